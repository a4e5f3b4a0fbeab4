"""The timeline of a request, built from its log lines: attempts, cost and outcome.

Without I/O. The steps and their fields are those of :mod:`cicada.request_trace`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from cicada.request_trace import Step

_ORDER = {step: place for place, step in enumerate(get_args(Step))}
_ERRORS = ("ERROR", "CRITICAL")
_MOST = sys.float_info.max
_TROUBLE = ("WARNING", *_ERRORS)


@dataclass(frozen=True)
class LogLine:
    """One line of a function's log."""

    at_ms: int  # epoch milliseconds
    group: str  # the log group that it stands in
    fields: Mapping[str, Any]  # the JSON object that the function logged

    @property
    def step(self) -> str | None:
        """The step that it logs; None if it is not a step."""
        return self.text("step")

    @property
    def message(self) -> str:
        """Its message."""
        return self.text("message") or ""

    @property
    def trouble(self) -> bool:
        """Whether it is a warning or an error."""
        return self.text("level") in _TROUBLE

    @property
    def invocation(self) -> str | None:
        """The function invocation that wrote it."""
        return self.text("function_request_id")

    @property
    def asker(self) -> str | None:
        """A digest of the user; None if the line has none."""
        return self.text("asker")

    def text(self, name: str) -> str | None:
        """A text field; None if absent."""
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None

    def number(self, name: str) -> float | None:
        """A number field; None if absent or out of range."""
        value = self.fields.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return value if -_MOST <= value <= _MOST else None

    def count(self, name: str) -> int:
        """A count; 0 if absent."""
        return int(self.number(name) or 0)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty if absent."""
        value = self.fields.get(name)
        return tuple(str(one) for one in value) if isinstance(value, list) else ()


@dataclass(frozen=True)
class TracedSpend:
    """Usage of text models."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0  # of those whose cost is known
    unpriced: int = 0
    """Calls of unknown cost: the price is unknown, or the stream broke before it reported its tokens."""

    @classmethod
    def of(cls, lines: Iterable[LogLine]) -> TracedSpend:
        """The sum of the ``model_call`` steps among some lines."""
        made = [line for line in lines if line.step == "model_call"]
        return cls(
            calls=sum(line.count("calls") for line in made),
            input_tokens=sum(line.count("input_tokens") for line in made),
            output_tokens=sum(line.count("output_tokens") for line in made),
            cost_usd=sum(line.number("cost_usd") or 0.0 for line in made),
            unpriced=sum(line.number("cost_usd") is None and not came_to_nothing(line) for line in made),
        )


def came_to_nothing(call: LogLine) -> bool:
    """Whether a model call failed before its first text, so that nothing is charged."""
    return call.text("fault") is not None and call.number("first_piece_ms") is None


Outcome = Literal["answered", "failed", "superseded", "cut_off", "under_way"]


@dataclass(frozen=True)
class AttemptTrace:
    """One attempt.

    ``superseded``: another attempt, or the request's end, came first. ``cut_off``: its worker logged no end and the
    request continued without it, because it was killed or ran out of time. ``under_way``: it has logged no end yet.
    """

    number: int
    strategy: str
    worker: str | None
    began_ms: int
    outcome: Outcome
    code: str | None  # why it failed, if it said so
    lines: tuple[LogLine, ...] = field(repr=False)

    @property
    def took_ms(self) -> int:
        """From its start to its last line."""
        return self.lines[-1].at_ms - self.began_ms

    @property
    def spent(self) -> TracedSpend:
        """Its usage of models."""
        return TracedSpend.of(self.lines)


@dataclass(frozen=True)
class RequestTrace:
    """All log lines of one request, at least one."""

    request_id: str
    lines: tuple[LogLine, ...]  # in order
    attempts: tuple[AttemptTrace, ...]
    asker: str | None = None  # the user, if the lines name one; requests of several users can have the same id
    cut: bool = False  # whether lines are missing between the first ones and the end

    @classmethod
    def of(
        cls, request_id: str, lines: Iterable[LogLine], *, asker: str | None = None, cut: bool = False
    ) -> RequestTrace:
        """Sort the lines and assign them to attempts.

        Args:
            request_id: the request.
            lines: its lines, at least one.
            asker: the user of the request. Lines of other users are dropped.
            cut: whether lines are missing between the first ones and the end.
        """
        own = (line for line in lines if asker is None or line.asker in (asker, None))
        ordered = tuple(sorted(own, key=_place))
        return cls(request_id, ordered, tuple(_attempts(ordered, cut=cut)), asker, cut)

    def first(self, *steps: Step) -> LogLine | None:
        """The first line with one of these steps."""
        return next((line for line in self.lines if line.step in steps), None)

    def all(self, step: Step) -> list[LogLine]:
        """Every line of a step."""
        return [line for line in self.lines if line.step == step]

    @property
    def end(self) -> LogLine | None:
        """The line of the terminal event; None if absent."""
        return self.first("complete", "ended")

    @property
    def began_ms(self) -> int:
        """Time of its first line, epoch milliseconds."""
        return self.lines[0].at_ms

    @property
    def took_ms(self) -> int:
        """Until its terminal event, or its last line if there is none."""
        return (self.end or self.lines[-1]).at_ms - self.began_ms

    @property
    def spent(self) -> TracedSpend:
        """The usage of models by all attempts."""
        return TracedSpend.of(self.lines)

    def in_brief(self) -> Iterator[LogLine]:
        """The steps, and warnings and errors that no step of the same invocation reports."""
        told = {line.invocation for line in self.lines if line.step is not None and _fails_attempt(line)}
        for line in self.lines:
            error = line.text("level") in _ERRORS
            if line.step is not None or (line.trouble and not (error and line.invocation in told)):
                yield line

    def attempt_of(self, line: LogLine) -> AttemptTrace | None:
        """The attempt whose worker wrote the line; None if no worker did."""
        return self._owners.get(id(line))

    @cached_property
    def _owners(self) -> Mapping[int, AttemptTrace]:
        return {id(line): attempt for attempt in reversed(self.attempts) for line in attempt.lines}


def askers(lines: Iterable[LogLine]) -> tuple[str, ...]:
    """The users of the lines, in order of appearance."""
    ordered = sorted(lines, key=_place)
    return tuple(dict.fromkeys(asker for line in ordered if (asker := line.asker)))


def _place(line: LogLine) -> tuple[int, int, int]:
    """Lines of the same millisecond are sorted in the usual order of steps."""
    return line.at_ms, line.count("attempt"), _ORDER.get(line.step or "", len(_ORDER))


def _attempts(lines: Sequence[LogLine], *, cut: bool) -> Iterable[AttemptTrace]:
    openings = [line for line in lines if line.step == "attempt"]
    over = any(line.step in ("complete", "ended") for line in lines)
    for place, opening in enumerate(openings):
        number = opening.count("attempt")
        own = tuple(line for line in lines if line is opening or _is_of(line, opening, number))
        gone_on = not cut and (over or place + 1 < len(openings))
        outcome, code = _outcome(own, gone_on=gone_on)
        yield AttemptTrace(
            number, opening.text("strategy") or "?", opening.text("worker"), opening.at_ms, outcome, code, own
        )


def _is_of(line: LogLine, opening: LogLine, number: int) -> bool:
    """Whether an attempt's worker wrote a line: in the same invocation, after the attempt started."""
    if opening.invocation is None:
        return line.step != "attempt" and line.count("attempt") == number
    return line.invocation == opening.invocation and line.at_ms >= opening.at_ms and line.step != "attempt"


def _outcome(own: Sequence[LogLine], *, gone_on: bool) -> tuple[Outcome, str | None]:
    steps = {line.step for line in own}
    if "complete" in steps:
        return "answered", None
    if "superseded" in steps:
        return "superseded", None
    failures = [line for line in own if _fails_attempt(line)]
    if failures:
        return "failed", next((code for line in failures if (code := line.text("code"))), "internal")
    return ("cut_off" if gone_on else "under_way"), None


def _fails_attempt(line: LogLine) -> bool:
    """Whether it reports the failure of the attempt, not of an optional dependency."""
    if line.step == "fault":
        return line.number("attempt") is not None and line.text("dependency") is None
    return line.step == "ended" or (line.step is None and line.text("level") in _ERRORS)
