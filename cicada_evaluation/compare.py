"""Two evaluations side by side: paired differences, query by query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cicada_evaluation.confidence import Difference, paired_difference
from cicada_evaluation.errors import EvaluationRefused
from cicada_evaluation.report import Measured, Report, SetResult


@dataclass(frozen=True)
class Compared:
    """One measure of one set: the second system against the first."""

    set_name: str
    first: str  # the mode; of answers the mode and the generator
    second: str
    measure: str
    first_mean: float
    second_mean: float  # both over the queries that the two have in common
    difference: Difference  # second less first
    wins: int  # queries on which the second is better
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
        for first, *others in [found.measured()]
        for other in others
        for row in _compared(found.name, first, other, seed)
    ]
    if not rows:
        raise EvaluationRefused("the report has one mode only: name a second report, or a set to search now")
    return Comparison(tuple(rows), ())


def _pairs(ours: SetResult, theirs: SetResult) -> Iterator[tuple[Measured, Measured]]:
    before, after = ours.measured(), theirs.measured()
    if len(before) == len(after) == 1:
        yield before[0], after[0]
        return
    by_name = {one.name: one for one in before}
    for one in after:
        if one.name in by_name:
            yield by_name[one.name], one


def _notes(ours: SetResult, theirs: SetResult) -> Iterator[str]:
    if ours.judgements_digest != theirs.judgements_digest:
        yield f"{theirs.name}: queries or judgements are not the same; only the queries in common are compared"
    if ours.corpus_digest != theirs.corpus_digest:
        yield f"{theirs.name}: the corpus is not the same"


def _compared(set_name: str, first: Measured, second: Measured, seed: int) -> Iterator[Compared]:
    pairs = [(first.values[query], values) for query, values in second.values.items() if query in first.values]
    for measure in (name for name in second.estimates if name in first.estimates):
        values = [(one[measure], other[measure]) for one, other in pairs if measure in one and measure in other]
        if not values:
            continue
        differences = [other - one for one, other in values]
        yield Compared(
            set_name=set_name,
            first=first.name,
            second=second.name,
            measure=measure,
            first_mean=sum(one for one, _ in values) / len(values),
            second_mean=sum(other for _, other in values) / len(values),
            difference=paired_difference(differences, seed=seed),
            wins=sum(difference > 0 for difference in differences),
            losses=sum(difference < 0 for difference in differences),
            queries=len(values),
        )
