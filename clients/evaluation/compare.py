"""Two evaluations side by side: paired differences, query by query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clients.evaluation.confidence import Difference, paired_difference
from clients.evaluation.errors import EvaluationRefused
from clients.evaluation.report import ModeResult, Report, SetResult


@dataclass(frozen=True)
class Compared:
    """One measure of one set: the second system against the first."""

    set_name: str
    first: str
    """The mode."""
    second: str
    measure: str
    first_mean: float
    second_mean: float
    """Both over the queries that the two have in common."""
    difference: Difference
    """Second less first."""
    wins: int
    """Queries on which the second is better."""
    losses: int
    queries: int


@dataclass(frozen=True)
class Comparison:
    """All that two reports have in common, and what a reader should know of it."""

    rows: tuple[Compared, ...]
    notes: tuple[str, ...]


def compare(first: Report, second: Report, *, seed: int = 0) -> Comparison:
    """Compare each set and mode of the second report with the same of the first.

    Where each has one mode only, and not the same, these two are compared.

    Raises:
        EvaluationRefused: the reports have nothing in common.
    """
    rows: list[Compared] = []
    notes: list[str] = []
    for theirs in second.sets:
        ours = first.set(theirs.name)
        if ours is not None:
            notes += _notes(ours, theirs)
            rows += [row for pair in _pairs(ours, theirs) for row in _compared(theirs.name, *pair, seed)]
    if not rows:
        raise EvaluationRefused("the two reports have no query of one set and mode in common")
    return Comparison(tuple(rows), tuple(notes))


def compare_modes(report: Report, *, seed: int = 0) -> Comparison:
    """Compare, in each set of a report, every other mode with the first.

    Raises:
        EvaluationRefused: there is one mode only.
    """
    rows = [
        row
        for found in report.sets
        for other in found.modes[1:]
        for row in _compared(found.name, found.modes[0], other, seed)
    ]
    if not rows:
        raise EvaluationRefused("the report has one mode only: name a second report, or a set to search now")
    return Comparison(tuple(rows), ())


def _pairs(ours: SetResult, theirs: SetResult) -> Iterator[tuple[ModeResult, ModeResult]]:
    if len(ours.modes) == len(theirs.modes) == 1:
        yield ours.modes[0], theirs.modes[0]
        return
    for mode in theirs.modes:
        if (same := ours.mode(mode.mode)) is not None:
            yield same, mode


def _notes(ours: SetResult, theirs: SetResult) -> Iterator[str]:
    if ours.judgements_digest != theirs.judgements_digest:
        yield f"{theirs.name}: queries or judgements are not the same; only the queries in common are compared"
    if ours.corpus_digest != theirs.corpus_digest:
        yield f"{theirs.name}: the corpus is not the same"


def _compared(set_name: str, first: ModeResult, second: ModeResult, seed: int) -> Iterator[Compared]:
    before = {result.id: result.values for result in first.queries}
    pairs = [(before[result.id], result.values) for result in second.queries if result.id in before]
    for measure in (name for name in second.estimates if name in first.estimates):
        values = [(one[measure], other[measure]) for one, other in pairs]
        if not values:
            continue
        differences = [other - one for one, other in values]
        yield Compared(
            set_name=set_name,
            first=first.mode,
            second=second.mode,
            measure=measure,
            first_mean=sum(one for one, _ in values) / len(values),
            second_mean=sum(other for _, other in values) / len(values),
            difference=paired_difference(differences, seed=seed),
            wins=sum(difference > 0 for difference in differences),
            losses=sum(difference < 0 for difference in differences),
            queries=len(values),
        )
