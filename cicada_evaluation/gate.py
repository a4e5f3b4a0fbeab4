"""Conditions that an evaluation must meet, for continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada_evaluation.errors import EvaluationRefused
from cicada_evaluation.report import Measured, Report, SetResult

_CONDITION = re.compile(
    r"(?:(?:(?P<set>[^\s/:+]+)/)?(?P<mode>[a-z0-9]+(?:\+[^\s,<>=]+)?):)?\s*"
    r"(?P<measure>[a-z][a-z0-9_]*(?:@[0-9]+)?)\s*(?P<relation>>=|<=)\s*(?P<bound>[0-9]*\.?[0-9]+)"
)
_RELATIONS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True)
class GateCondition:
    """A bound on a measure: in every set and mode, unless it names one; of answers, a mode or one's generator."""

    measure: str
    relation: str
    bound: float
    mode: str | None = None  # Alone, it speaks of all generators over it; ``<mode>+<generator>`` of one
    set_name: str | None = None

    def __str__(self) -> str:
        where = f"{self.set_name}/" if self.set_name else ""
        return f"{where}{self.mode}:{self._bound()}" if self.mode else self._bound()

    def speaks_of(self, found: SetResult, measured: Measured) -> bool:
        """Whether it must hold there."""
        names = (None, measured.name, measured.name.partition("+")[0])
        return self.set_name in (None, found.name) and self.mode in names

    def _bound(self) -> str:
        return f"{self.measure}{self.relation}{self.bound:g}"


def parse_gate(text: str) -> tuple[GateCondition, ...]:
    """Read conditions such as ``ndcg@10>=0.40,hybrid:recall@100>=0.9,cranfield/hybrid:search_p95_ms<=20``.

    ``@FILE`` reads them from a file: a line may hold several, and what follows a ``#`` is a remark.

    Raises:
        EvaluationRefused: one cannot be understood, or the file cannot be read.
    """
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EvaluationRefused(f"{text[1:]}: cannot be read: {error}") from error
    parts = [part.strip() for line in text.splitlines() for part in line.partition("#")[0].split(",")]
    conditions = tuple(_condition(part) for part in parts if part)
    if not conditions:
        raise EvaluationRefused("the gate holds no condition")
    return conditions


def missed(report: Report, conditions: Sequence[GateCondition]) -> list[str]:
    """What the report does not meet, a line each; a condition on something that was not measured is not met."""
    return [line for condition in conditions for line in _missed(report, condition)]


def missed_against(report: Report, base: Report, tolerance: float) -> list[str]:
    """Where the report is worse than an earlier one by more than the tolerance, a line each.

    Every measure of every set and mode of the report is looked at; one that the earlier report lacks, or has of other
    queries or judgements, is not met: a gate that silently checks nothing would be none.
    """
    return [line for found in report.sets for line in _missed_of_set(found, base.set(found.name), tolerance)]


def _condition(text: str) -> GateCondition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise EvaluationRefused(
            f"{text!r} is no condition: write for example ndcg@10>=0.40 or hybrid:search_p95_ms<=20"
        )
    return GateCondition(found["measure"], found["relation"], float(found["bound"]), found["mode"], found["set"])


def _missed(report: Report, condition: GateCondition) -> Iterator[str]:
    places = [
        (found, measured)
        for found in report.sets
        for measured in found.measured()
        if condition.speaks_of(found, measured)
    ]
    if not places:
        yield f"{condition}: nothing was measured that this speaks of"
    for found, measured in places:
        value = _value(measured, condition.measure)
        if value is None:
            yield f"{found.name}/{measured.name}: {condition.measure} was not measured ({condition})"
        elif not _RELATIONS[condition.relation](value, condition.bound):
            yield f"{found.name}/{measured.name}: {condition.measure} is {value:.4f} ({condition})"


def _value(measured: Measured, measure: str) -> float | None:
    estimate = measured.estimates.get(measure)
    return measured.figures.get(measure) if estimate is None else estimate.mean


def _missed_of_set(found: SetResult, base: SetResult | None, tolerance: float) -> Iterator[str]:
    if base is None:
        yield f"{found.name}: the earlier report does not have this set"
        return
    if base.judgements_digest != found.judgements_digest:
        yield f"{found.name}: the earlier report is of other queries or judgements"
        return
    earlier = {one.name: one for one in base.measured()}
    for measured in found.measured():
        where = f"{found.name}/{measured.name}"
        before = earlier.get(measured.name)
        if before is None:
            yield f"{where}: the earlier report does not have this mode"
            continue
        for measure, estimate in measured.estimates.items():
            if measure not in before.estimates:
                yield f"{where}: the earlier report does not have {measure}"
            elif estimate.mean < before.estimates[measure].mean - tolerance:
                yield (
                    f"{where}: {measure} is {estimate.mean:.4f}, more than {tolerance:g} below "
                    f"the earlier {before.estimates[measure].mean:.4f}"
                )
        if measured.of_answers:  # one that cites nothing has no precision to be worse than the earlier
            gone = [measure for measure in before.estimates if measure not in measured.estimates]
            yield from (f"{where}: {measure} was not measured, and the earlier report has it" for measure in gone)
