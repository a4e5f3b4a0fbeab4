"""How much of a claim's words passages have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cicada.citations.amounts import has_amount
from cicada.citations.claim import Claim
from cicada.citations.clauses import Word
from cicada.citations.known import Known, rarity
from cicada.citations.naming import is_of_weekend
from cicada.citations.number_words import UNITS
from cicada.index.lexical.scripts import is_unspaced
from cicada.text.tokens import normalised

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
MAX_STRANGE_END = 1
"""The same, at the end of a sentence whose other words the passages have: a detail is put there."""
MIN_HEAD = 0.6
"""The share of the words before such an end that the passages have."""
NAMED_WEIGHT = 0.5
"""Of a name or a number, which is looked for apart: that it is there says little of what is said of it."""
AKIN_WEIGHT = 0.7
"""Of a word of which the passage has one that begins alike, or that it is compounded with."""


MEASURING = frozenset(UNITS) | frozenset(
    "half quarter halbe halben demi media medio mezza mezzo lang evening morning noon midnight afternoon".split()
)
"""Words of a measure, which are looked for apart."""


@dataclass(frozen=True)
class Support:
    """How much of a claim's words passages have."""

    share: float
    """Weighted, in [0, 1]."""
    lacking: tuple[str, ...]
    """The words that they do not have, as the claim has them."""
    made_up: bool
    """Whether so many of those stand side by side that they are a detail of its own."""
    anchored: bool
    """Whether the claim has numbers or names: all of these were found before."""


def support_of(claim: Claim, sources: Sequence[Known], all_sources: Sequence[Known]) -> Support:
    """What passages have of a claim; ``all_sources`` tell how rare a word is among what the answer was written from."""
    total = found = 0.0
    lacking: list[str] = []
    anchored = False
    numbers = _numbers_in(claim, sources)
    for word in claim.content:
        if word.shown.lower() in MEASURING:
            continue
        apart = word.name or word.term.startswith("#")
        anchored = anchored or apart
        weight = rarity(normalised(word.shown), all_sources) * (NAMED_WEIGHT if apart else 1.0)
        total += weight
        credit = _credit(word, sources, numbers)
        found += weight * credit
        if not credit and not apart:
            lacking.append(word.shown)
    share = round(found / total, 4) if total else 0.0
    return Support(share, tuple(lacking), _is_made_up(claim, sources, numbers), anchored)


def needed_support(claim: Claim, support: Support) -> float:
    """The share that a claim must have."""
    if claim.unspaced:
        return MIN_UNSPACED_SUPPORT
    return MIN_ANCHORED_SUPPORT if support.anchored else MIN_SUPPORT


def _numbers_in(claim: Claim, sources: Sequence[Known]) -> frozenset[str]:
    """The terms of a claim's numbers that passages have, which may be written otherwise there, or be a sum."""
    return frozenset(f"#{one.value}" for one in claim.quantities if has_amount(one, claim.told, sources))


def _credit(word: Word, sources: Sequence[Known], numbers: frozenset[str]) -> float:
    if word.term.startswith("#"):
        return float(word.term in numbers)
    if any(word.term in source.vocabulary for source in sources):
        return 1.0
    if word.name and is_of_weekend(normalised(word.shown), sources):
        return 1.0
    return AKIN_WEIGHT if any(source.vocabulary.akin(word.term) for source in sources) else 0.0


def _is_made_up(claim: Claim, sources: Sequence[Known], numbers: frozenset[str]) -> bool:
    head: list[float] = []
    run = 0
    for clause in claim.clauses:
        run_of_clause = 0
        for word in clause.words:
            if word.turning or word.owner or word.shown.lower() in MEASURING or is_unspaced(word.term[:1]):
                continue
            credit = _credit(word, sources, numbers)
            run_of_clause = 0 if credit else run_of_clause + 1
            if run_of_clause > MAX_STRANGE_RUN:
                return True
            head.append(credit)
        run = run_of_clause
    told = head[: len(head) - run]
    return run > MAX_STRANGE_END and len(told) > 1 and sum(told) >= len(told) * MIN_HEAD
