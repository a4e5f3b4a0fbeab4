"""On which side of a theory a passage stands, as it was judged in this run: kept with the source itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cicada.corpus.passages import ScriptLocator
from cicada.profiles.record import Side
from cicada.profiles.rules import claim_of, clipped
from cicada.protocol.events import Reason, Source, StrengthWord

STRENGTHS: dict[StrengthWord, float] = {"strong": 0.9, "moderate": 0.6, "weak": 0.3}
"""What a judge's word is as a number in [0, 1]."""
STRONG = 0.7
MODERATE = 0.4
"""Strengths from which evidence is called so; what is below is weak, and no verdict rests on it alone."""
GATHERING = "gather_evidence"
_STATEMENT_CHARS = 60
"""Of a statement, as a reason names it."""
_DIGEST_CHARS = 16
_SIDES: tuple[Side, Side] = ("for", "against")
UNSORTED = "unsorted"
"""In place of a side, where the judge failed."""


@dataclass(frozen=True)
class Weighed:
    """A passage and what it says of a statement."""

    source: Source
    side: Side | None
    """None where it says neither, or could not be sorted."""
    strength: float
    """In [0, 1]; 0 without a side."""


def strength_words(strength: float) -> StrengthWord:
    """A strength in a word."""
    if strength >= STRONG:
        return "strong"
    return "moderate" if strength >= MODERATE else "weak"


def part_of(source: Source) -> str:
    """The episode that evidence belongs to, or the document: what holds in one need not hold in another."""
    locator = source.locator
    return f"{locator.episode_id} · {locator.episode_name}" if isinstance(locator, ScriptLocator) else locator.label()


def balance_words(weighed: Sequence[Weighed]) -> str:
    """What the evidence of one part, or of all, amounts to: numbers, and plain words about how much that is."""
    told = []
    for side in _SIDES:
        strengths = [one.strength for one in weighed if one.side == side]
        if strengths:
            told.append(f"{len(strengths)} {side} it, the strongest {strength_words(max(strengths))}")
        else:
            told.append(f"nothing {side} it")
    words = "; ".join(told)
    strengths = [one.strength for one in weighed if one.side is not None]
    if not strengths:
        return f"{words}. The verdict can only be open"
    if max(strengths) < MODERATE:
        return f"{words}. All of it is weak: the verdict can only be open"
    return words


def reason_of(statement: str, weighed: Weighed, *, unsorted: bool = False) -> Reason:
    """Why a gathered passage is among the sources: it tells the side, and of which statement."""
    if weighed.side is None and not unsorted:
        return Reason(kind="tool", name=GATHERING)
    matched = f"{weighed.side or UNSORTED}: {statement_named(statement)}"
    return Reason(kind="tool", name=GATHERING, matched=matched, confidence=weighed.strength)


def gathered_for(statement: str, sources: Sequence[Source]) -> dict[int, Weighed]:
    """The evidence of this run for or against this very statement, by number."""
    return evidence_of(sources).get(statement_named(statement), {})


def evidence_of(sources: Sequence[Source]) -> dict[str, dict[int, Weighed]]:
    """All evidence of this run: by statement, as :func:`statement_named` names it, and number.

    It is read from the reasons of the run's sources. A statement whose passages could not be sorted has none.
    """
    found: dict[str, dict[int, Weighed]] = {}
    for source in sources:
        for named, weighed in _gathered(source):
            evidence = found.setdefault(named, {})
            if weighed.side is not None:
                evidence[source.n] = weighed
    return found


def _gathered(source: Source) -> Iterator[tuple[str, Weighed]]:
    for reason in source.why:
        if (reason.kind, reason.name) != ("tool", GATHERING) or reason.matched is None:
            continue
        told, _, named = reason.matched.partition(": ")
        side: Side | None = next((side for side in _SIDES if side == told), None)
        yield named, Weighed(source, side, reason.confidence or 0.0)


def statement_named(statement: str) -> str:
    """A statement on a line of bounded length, with a digest of all of it where it is cut: no other is named so."""
    claim = claim_of(statement)
    if len(claim) <= _STATEMENT_CHARS:
        return claim
    digest = hashlib.sha256(claim.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{clipped(claim, _STATEMENT_CHARS)} #{digest}"
