"""One claim held against the passages that it cites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cicada.citations.amounts import missing_amount
from cicada.citations.binding import bound_elsewhere
from cicada.citations.claim import Claim
from cicada.citations.codes import Objection
from cicada.citations.known import Known
from cicada.citations.language import common_language
from cicada.citations.naming import missing_name
from cicada.citations.quotes import holds
from cicada.citations.sequence import other_order
from cicada.citations.speakers import other_speaker
from cicada.citations.support import MIN_SHARE, Support, needed_support, support_of
from cicada.citations.turning import contradiction
from cicada.citations.verbatim import exchanged_word
from cicada.protocol.events import Source

MIN_COSINE = 0.85
"""From this similarity of meanings on a sentence is supported, where an embedder is given, whatever its words are."""
_TOLD_LACKING = 4
"""Words that a reason names."""

Similarity = Callable[[str, str], float]
"""The cosine of two texts' meanings, in [-1, 1]."""


@dataclass(frozen=True)
class Finding:
    """What came of one claim and one of its passages."""

    objection: Objection | None
    similarity: float
    """The share of the claim's content words, weighted by rarity, that the passage has; 1.0 for a mere quotation."""


class Checker:
    """Checks claims against numbered sources."""

    def __init__(self, sources: Sequence[Source], similarity: Similarity | None = None) -> None:
        """Take the sources, which are read when they are first cited.

        Args:
            sources: what the answer may cite.
            similarity: compares meanings, for sentences whose words alone do not tell; it may call a model.
        """
        self._known = {source.n: Known(source) for source in sources}
        self._all = tuple(self._known.values())
        self._similarity = similarity
        self._reread: dict[tuple[int, str], Known] = {}

    @cached_property
    def _voices(self) -> frozenset[str]:
        return frozenset(known.voice for known in self._known.values() if known.voice)

    def check(self, claim: str, source: Source, cited: Sequence[Source]) -> Finding:
        """Check a claim against one passage; ``cited`` are all that it cites there, from which it may draw together."""
        reading = Claim(claim, self._known[source.n])
        mine = self._read(source, reading)
        others = [self._read(other, reading) for other in cited]
        objection = _of_quotations(reading, mine, others)
        share = support_of(reading, [mine], self._all)
        together = share if len(others) == 1 else support_of(reading, others, self._all)
        if objection is not None:
            return Finding(objection, share.share)
        if not reading.content:
            if reading.quotes or holds(mine.source.text, reading.told):
                return Finding(None, 1.0)
            return Finding(Objection("nothing_to_compare", "the sentence says nothing that could be compared"), 0.0)
        objection = missing_amount(reading.told, reading.quantities, others) or missing_name(
            reading, others, self._voices
        )
        if objection is None:
            objection = other_speaker(reading, others)
        if objection is None and not reading.only_quotes:
            objection = contradiction(
                reading.clauses,
                [one for other in others for one in other.clauses],
                lambda term: any(term in other.vocabulary for other in others),
                reading.language,
            )
            objection = (
                objection
                or bound_elsewhere(reading, others)
                or other_order(reading, others)
                or exchanged_word(reading, others)
                or self._of_support(reading, mine, share, together)
            )
        return Finding(objection, share.share)

    def _read(self, source: Source, claim: Claim) -> Known:
        """A source; in the claim's language where the two must be in one, and the source is too short to tell."""
        known = self._known[source.n]
        if known.language == claim.language or common_language(claim.told, source.text) != claim.language:
            return known
        key = (source.n, claim.language)
        if key not in self._reread:
            self._reread[key] = Known(source, claim.language)
        return self._reread[key]

    def _of_support(self, claim: Claim, source: Known, alone: Support, together: Support) -> Objection | None:
        enough = together.share >= needed_support(claim, together) and not together.made_up
        if enough and (alone.share >= MIN_SHARE or claim.quotes):
            return None
        if self._similarity is not None and self._similarity(claim.text, source.source.text) >= MIN_COSINE:
            return None
        if claim.language != source.language:
            return Objection("other_language", "the sentence is in another language than its passage")
        if enough:
            return Objection("unsupported", f"this passage holds {alone.share:.0%} of what the sentence says")
        named = ", ".join(together.lacking[:_TOLD_LACKING])
        return Objection(
            "unsupported",
            f"the passage does not speak of {named}"
            if named
            else "the passage holds too little of what the sentence says",
        )


def _of_quotations(claim: Claim, mine: Known, cited: Sequence[Known]) -> Objection | None:
    for quote in claim.quotes:
        if not any(holds(other.source.text, quote) for other in cited):
            return Objection("quote_not_found", "a quotation is not in the passage")
    if claim.quotes and not any(holds(mine.source.text, quote) for quote in claim.quotes):
        return Objection("quote_not_found", "no quotation of the sentence is in this passage")
    return None
