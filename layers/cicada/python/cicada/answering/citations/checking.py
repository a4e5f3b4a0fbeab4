"""One claim held against the passages that it cites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cicada.answering.citations.clauses import Clause, Word
from cicada.answering.citations.codes import Objection
from cicada.answering.citations.date_names import is_date_name
from cicada.answering.citations.english_tables import INTRODUCING
from cicada.answering.citations.known import Known, language_of, rarity
from cicada.answering.citations.numbers import Quantity, quantities
from cicada.answering.citations.quotes import holds, plain, quotations, without_quotations
from cicada.answering.citations.reading import read
from cicada.answering.citations.terms import matched
from cicada.answering.citations.turning import contradiction
from cicada.index.lexical.scripts import is_unspaced
from cicada.index.lexical.tokens import normalised, tokens
from cicada.protocol.events import Source

MIN_SUPPORT = 0.6
"""The weighted share of a sentence's content words, outside of its quotations, that its passages must have."""
MIN_UNSPACED_SUPPORT = 0.5
"""The same, for scripts without spaces."""
MIN_SHARE = 0.3
"""Of a sentence with several markers, the share that each passage must have for itself."""
NAMED_WEIGHT = 0.5
"""Of a name or a number, which is looked for apart: that it is there says little of what is said of it."""
MAX_STRANGE_RUN = 1
"""Words side by side that no passage has: more of them are a detail that is made up."""
MIN_COSINE = 0.85
"""From this similarity of meanings on a sentence is supported, where an embedder is given, whatever its words are."""
_EDGES = " .,;:!?…。、"
_NEARLY_ALL = 0.75

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

    @cached_property
    def _voices(self) -> frozenset[str]:
        return frozenset(known.voice for known in self._known.values() if known.voice)

    def check(self, claim: str, source: Source, cited: Sequence[Source]) -> Finding:
        """Check a claim against one passage; ``cited`` are all that it cites there, from which it may draw together."""
        mine = self._known[source.n]
        others = [self._known[other.n] for other in cited]
        reading = _Claim(claim, mine)
        objection = _of_quotations(reading, mine, others)
        if objection is not None:
            return Finding(objection, self._share(reading, [mine]))
        share, together = self._share(reading, [mine]), self._share(reading, others)
        if not reading.content:
            if reading.quotes or holds(mine.source.text, reading.told):
                return Finding(None, 1.0)
            return Finding(Objection("nothing_to_compare", "the sentence says nothing that could be compared"), 0.0)
        objection = (
            _of_numbers(reading, others)
            or _of_names(reading, others, self._voices)
            or contradiction(
                reading.clauses,
                [one for other in others for one in other.clauses],
                lambda term: _has(term, others),
                reading.language,
            )
        )
        if objection is None and (
            self._strange(reading, others) or together < reading.needed or (share < MIN_SHARE and not reading.quotes)
        ):
            objection = self._unsupported(reading, mine, together)
        return Finding(objection, share)

    def _share(self, claim: _Claim, sources: Sequence[Known]) -> float:
        total = found = 0.0
        for word in claim.content:
            weight = self._weight(word)
            total += weight
            if _has(word.term, sources):
                found += weight
        return round(found / total, 4) if total else 0.0

    def _weight(self, word: Word) -> float:
        looked_for_apart = word.name or word.term.startswith("#")
        return rarity(normalised(word.shown), self._all) * (NAMED_WEIGHT if looked_for_apart else 1.0)

    def _strange(self, claim: _Claim, sources: Sequence[Known]) -> bool:
        """Whether words side by side are in none of the passages."""
        for clause in claim.clauses:
            run = 0
            for word in clause.words:
                if word.turning or word.owner or word.term.startswith("#") or is_unspaced(word.term[:1]):
                    continue
                run = 0 if _has(word.term, sources) else run + 1
                if run > MAX_STRANGE_RUN:
                    return True
        return False

    def _unsupported(self, claim: _Claim, source: Known, share: float) -> Objection | None:
        if self._similarity is not None and self._similarity(claim.text, source.source.text) >= MIN_COSINE:
            return None
        if claim.language != source.language:
            return Objection("other_language", "the sentence is in another language than its passage")
        return Objection("unsupported", f"the passage holds {share:.0%} of what the sentence says")


class _Claim:
    """A claim, read as far as it is needed."""

    def __init__(self, text: str, source: Known) -> None:
        self.text = text
        label = plain(source.label)
        self.quotes = [quote for quote in quotations(text) if plain(quote).strip(_EDGES) not in label]
        self.told = without_quotations(text) if self.quotes else text
        self.language = language_of(self.told, source.language)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """Of what it says outside of quotations; there, without the words that introduce them."""
        clauses = read(self.told, self.language)
        if not self.quotes:
            return clauses
        told = (tuple(word for word in one.words if word.shown.lower() not in INTRODUCING) for one in clauses)
        return tuple(replace(one, words=words) for one, words in zip(clauses, told, strict=True) if words)

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """Words that can support it, each once."""
        words = {word.term: word for clause in self.clauses for word in clause.words if not word.turning}
        if self.quotes:  # what introduces a quotation cannot be told from a claim where a script has no words
            return tuple(word for word in words.values() if not is_unspaced(word.term[:1]))
        return tuple(words.values())

    @property
    def needed(self) -> float:
        """The support that it must have: less where pairs of characters are compared, which inflections change."""
        unspaced = sum(is_unspaced(word.term[:1]) for word in self.content)
        return MIN_UNSPACED_SUPPORT if unspaced > len(self.content) / 2 else MIN_SUPPORT

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return quantities(self.told)


def _of_quotations(claim: _Claim, mine: Known, cited: Sequence[Known]) -> Objection | None:
    for quote in claim.quotes:
        if not any(holds(other.source.text, quote) for other in cited):
            return Objection("quote_not_found", "a quotation is not in the passage")
    if claim.quotes and not any(holds(mine.source.text, quote) for quote in claim.quotes):
        return Objection("quote_not_found", "no quotation of the sentence is in this passage")
    return None


def _of_numbers(claim: _Claim, cited: Sequence[Known]) -> Objection | None:
    for quantity in claim.quantities:
        units = [other.numbers[quantity.value] for other in cited if quantity.value in other.numbers]
        if not units and quantity.value.endswith(":00"):
            hour = quantity.value.removesuffix(":00")
            units = [other.numbers[hour] for other in cited if hour in other.numbers]
        if not units:
            return Objection("number_missing", f"the passage does not mention {quantity.shown}")
        there = frozenset().union(*units)
        if quantity.unit and "" not in there and quantity.unit not in there:
            return Objection(
                "number_missing", f"the passage does not mention {quantity.shown}: it has {', '.join(sorted(there))}"
            )
    return None


def _of_names(claim: _Claim, cited: Sequence[Known], voices: frozenset[str]) -> Objection | None:
    words = frozenset(word for other in cited for word in other.words)
    said = {word.term for clause in claim.clauses for word in clause.words if not word.owner}
    for clause in claim.clauses:
        for word in clause.words:
            shown = normalised(word.shown)
            if (
                word.term.startswith("#")
                or _has_exactly(word.term, cited)
                or all(part in words for part in tokens(shown))
            ):
                continue
            capital = word.shown[:1].isupper()
            if is_date_name(shown, word.term, claim.language, capital=capital):
                return Objection("number_missing", f"the passage does not mention {word.shown}")
            if word.name or (word.opens and capital and _poses(shown, clause, said, cited, voices)):
                return Objection("name_missing", f"the passage neither is by {word.shown} nor speaks of them")
    return None


def _poses(shown: str, clause: Clause, said: set[str], cited: Sequence[Known], voices: frozenset[str]) -> bool:
    """Whether a sentence's first word, capital as any first word, stands where the passage has another name."""
    if shown in voices:
        return True
    if any(word.term in said for other in cited for word in other.speaker):
        return False
    rest = [word.term for word in clause.words if not (word.opens or word.turning)]
    if not rest or sum(_has(term, cited) for term in rest) < len(rest) * _NEARLY_ALL:
        return False
    for known in (one for other in cited for one in other.clauses):
        if sum(matched(term, known.terms) for term in rest) >= len(rest) * _NEARLY_ALL and (
            known.first_person or any(word.term not in said and word.shown[:1].isupper() for word in known.words)
        ):
            return True
    return False


def _has(term: str, sources: Sequence[Known]) -> bool:
    return any(term in source.vocabulary for source in sources)


def _has_exactly(term: str, sources: Sequence[Known]) -> bool:
    return any(source.vocabulary.has(term) for source in sources)
