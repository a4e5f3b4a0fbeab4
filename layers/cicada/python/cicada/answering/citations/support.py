"""How much of a claim's words passages have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cicada.answering.citations.claim import Claim
from cicada.answering.citations.clauses import Word
from cicada.answering.citations.known import Known, rarity
from cicada.index.lexical.scripts import is_unspaced
from cicada.index.lexical.tokens import normalised

MIN_SUPPORT = 0.45
"""The weighted share of a sentence's content words, outside of its quotations, that its passages must have."""
MIN_ANCHORED_SUPPORT = 0.3
"""The same, of a sentence whose numbers and names the passages have: it is told in other words."""
MIN_UNSPACED_SUPPORT = 0.3
"""The same, for scripts without spaces, where pairs of characters are compared, which inflections change."""
MIN_SHARE = 0.2
"""Of a sentence with several markers, the share that each passage must have for itself."""
MAX_STRANGE_RUN = 3
"""Words side by side that no passage has: more of them are a detail that is made up."""
NAMED_WEIGHT = 0.5
"""Of a name or a number, which is looked for apart: that it is there says little of what is said of it."""
AKIN_WEIGHT = 0.7
"""Of a word of which the passage has one that begins alike, or that it is compounded with."""


@dataclass(frozen=True)
class Support:
    """How much of a claim's words passages have."""

    share: float
    """Weighted, in [0, 1]."""
    lacking: tuple[str, ...]
    """The words that they do not have, as the claim has them."""
    longest_run: int
    """The most of those that stand side by side."""
    anchored: bool
    """Whether the claim has numbers or names: all of these were found before."""


def support_of(claim: Claim, sources: Sequence[Known], all_sources: Sequence[Known]) -> Support:
    """What passages have of a claim; ``all_sources`` tell how rare a word is among what the answer was written from."""
    total = found = 0.0
    lacking: list[str] = []
    anchored = False
    for word in claim.content:
        apart = word.name or word.term.startswith("#")
        anchored = anchored or apart
        weight = rarity(normalised(word.shown), all_sources) * (NAMED_WEIGHT if apart else 1.0)
        total += weight
        credit = _credit(word, sources)
        found += weight * credit
        if not credit and not apart:
            lacking.append(word.shown)
    share = round(found / total, 4) if total else 0.0
    return Support(share, tuple(lacking), _longest_run(claim, sources), anchored)


def needed_support(claim: Claim, support: Support) -> float:
    """The share that a claim must have."""
    if claim.unspaced:
        return MIN_UNSPACED_SUPPORT
    return MIN_ANCHORED_SUPPORT if support.anchored else MIN_SUPPORT


def _credit(word: Word, sources: Sequence[Known]) -> float:
    if any(word.term in source.vocabulary for source in sources):
        return 1.0
    return AKIN_WEIGHT if any(source.vocabulary.akin(word.term) for source in sources) else 0.0


def _longest_run(claim: Claim, sources: Sequence[Known]) -> int:
    longest = 0
    for clause in claim.clauses:
        run = 0
        for word in clause.words:
            if word.turning or word.owner or word.term.startswith("#") or is_unspaced(word.term[:1]):
                continue
            run = 0 if _credit(word, sources) else run + 1
            longest = max(longest, run)
    return longest
