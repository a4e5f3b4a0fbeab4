"""Metric math, as far as the stacks use it. What is not served is refused as CloudWatch refuses an unknown function.

Source: Amazon CloudWatch User Guide, "Using math expressions with CloudWatch metrics".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cicada_local.cloudwatch.errors import ValidationError
from cicada_local.cloudwatch.metrics import Series

Value = float | Series | list[Series]
"""A scalar, a time series, or an array of time series."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/^<>(),\[\]]))"
)


class ExpressionInvalid(ValidationError):
    """An expression that cannot be evaluated."""


@dataclass(frozen=True)
class Scope:
    """What an expression is evaluated in."""

    series: Mapping[str, Series]
    """By the ids that it may refer to."""
    starts: Sequence[int]
    """The beginnings of all periods that are asked for."""
    period_s: int
    quotas: Mapping[str, float] = field(default_factory=dict)
    """The service quota of each id whose metric has one."""
    metrics: frozenset[str] = frozenset()
    """The ids that ``METRICS()`` stands for."""


def evaluate(expression: str, scope: Scope) -> Series:
    """An expression's time series.

    Raises:
        ExpressionInvalid: it cannot be read, refers to what is not there, or gives no single time series.
    """
    value = _Reader(expression, scope).whole()
    if isinstance(value, float):
        raise ExpressionInvalid(f"The expression '{expression}' must give a time series, not a scalar")
    if isinstance(value, list):
        if len(value) != 1:
            raise ExpressionInvalid(f"The expression '{expression}' gives several time series; one is served here")
        return value[0]
    return value


def referred(expression: str) -> set[str]:
    """The ids that an expression refers to."""
    return {text for kind, text in _tokens(expression) if kind == "name" and text[0].islower()}


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while expression[at:].strip():
        match = _TOKEN.match(expression, at)
        if match is None or match.lastgroup is None:
            raise ExpressionInvalid(f"Error in expression '{expression}': unexpected {expression[at:].strip()[:10]!r}")
        at = match.end()
        yield match.lastgroup, match[match.lastgroup]


class _Reader:
    """Reads an expression from the left and evaluates it on the way."""

    def __init__(self, expression: str, scope: Scope) -> None:
        self._expression = expression
        self._tokens = list(_tokens(expression))
        self._at = 0
        self._scope = scope

    def whole(self) -> Value:
        value = self._either()
        if self._at < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._at][1]!r}")
        return value

    # --- operators, from the weakest ---

    def _either(self) -> Value:
        return self._left(self._both, {"OR": _or, "||": _or})

    def _both(self) -> Value:
        return self._left(self._compared, {"AND": _and, "&&": _and})

    def _compared(self) -> Value:
        return self._left(self._sum, _COMPARISONS)

    def _sum(self) -> Value:
        return self._left(self._product, {"+": operator.add, "-": operator.sub})

    def _product(self) -> Value:
        return self._left(self._power, {"*": operator.mul, "/": _divided})

    def _power(self) -> Value:
        return self._left(self._signed, {"^": _raised})

    def _signed(self) -> Value:
        if self._takes("-"):
            return _mapped(self._signed(), operator.neg)
        return self._one()

    def _left(self, inner: Callable[[], Value], signs: Mapping[str, Operation]) -> Value:
        value = inner()
        while self._at < len(self._tokens) and self._tokens[self._at][1] in signs:
            operation = signs[self._tokens[self._at][1]]
            self._at += 1
            value = combined(value, inner(), operation)
        return value

    # --- operands ---

    def _one(self) -> Value:
        kind, text = self._next()
        if kind == "number":
            return float(text)
        if text == "(":
            value = self._either()
            self._expect(")")
            return value
        if text == "[":
            return [self._series(value) for value in self._arguments("]")]
        if kind == "name" and self._takes("("):
            return self._call(text)
        if kind == "name" and text in self._scope.series:
            return self._scope.series[text]
        raise self._error(f"{text!r} is no id of this request")

    def _call(self, name: str) -> Value:
        if name == "SERVICE_QUOTA":
            return self._quota()
        if name == "FILL":
            return self._fill()
        arguments = self._arguments(")")
        match name, arguments:
            case "IF", [condition, yes]:
                return _chosen(condition, yes, {})
            case "IF", [condition, yes, no]:
                return _chosen(condition, yes, no)
            case "METRICS", []:
                return [self._scope.series[id] for id in sorted(self._scope.metrics)]
            case "PERIOD", [_]:
                return float(self._scope.period_s)
            case (("SUM" | "AVG" | "MIN" | "MAX"), [value]):
                return self._reduced(name, value)
        raise self._error(f"the function {name} with {len(arguments)} arguments is not served here")

    def _quota(self) -> Series:
        _, id = self._next()
        self._expect(")")
        if id not in self._scope.quotas:
            raise self._error(f"{id!r} is no usage metric with a service quota")
        return dict.fromkeys(self._scope.starts, self._scope.quotas[id])

    def _fill(self) -> Value:
        value = self._either()
        self._expect(",")
        repeat = self._takes("REPEAT")
        filler: Value = 0.0 if repeat else self._either()
        self._expect(")")
        if isinstance(value, float) or isinstance(filler, list):
            raise self._error("FILL takes a time series or an array of them, and a number, a time series or REPEAT")
        filled = [_filled(one, filler, self._scope.starts, repeat=repeat) for one in _each(value)]
        return filled if isinstance(value, list) else filled[0]

    def _reduced(self, name: str, value: Value) -> Value:
        """Over an array, by time; over one time series, to a scalar."""
        reduce = _REDUCTIONS[name]
        if isinstance(value, list):
            times = sorted({at for one in value for at in one})
            return {at: reduce([one[at] for one in value if at in one]) for at in times}
        if isinstance(value, float):
            raise self._error(f"{name} takes a time series or an array of them")
        return reduce(list(value.values())) if value else {}

    def _arguments(self, end: str) -> list[Value]:
        found: list[Value] = []
        if self._takes(end):
            return found
        while True:
            found.append(self._either())
            if self._takes(end):
                return found
            self._expect(",")

    def _series(self, value: Value) -> Series:
        if not isinstance(value, dict):
            raise self._error("an array holds time series")
        return value

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise self._error("unexpected end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, text: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][1] == text:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise self._error(f"expected {text!r}")

    def _error(self, message: str) -> ExpressionInvalid:
        return ExpressionInvalid(f"Error in expression '{self._expression}': {message}")


Operation = Callable[[float, float], float | None]
"""None where there is no value."""


def combined(left: Value, right: Value, operation: Operation) -> Value:
    """An operation on two values: on time series, where both have a value at the time."""
    if isinstance(left, list) or isinstance(right, list):
        if isinstance(left, list) and isinstance(right, list):
            raise ExpressionInvalid("operations between two arrays are not served here")
        pairs = [(one, right) for one in left] if isinstance(left, list) else [(left, one) for one in _each(right)]
        return [_one_series(combined(first, second, operation)) for first, second in pairs]
    if isinstance(left, float) and isinstance(right, float):
        value = operation(left, right)
        if value is None:
            raise ExpressionInvalid("the expression divides by zero")
        return float(value)
    times = _times(left, right)
    return {at: float(value) for at in times if (value := operation(_at(left, at), _at(right, at))) is not None}


def _times(left: float | Series, right: float | Series) -> Iterable[int]:
    if isinstance(left, float):
        return right if isinstance(right, dict) else ()
    return left if isinstance(right, float) else [at for at in left if at in right]


def _at(value: float | Series, at: int) -> float:
    return value if isinstance(value, float) else value[at]


def _each(value: Value) -> list[Series]:
    if isinstance(value, float):
        raise ExpressionInvalid("a time series is expected")
    return value if isinstance(value, list) else [value]


def _one_series(value: Value) -> Series:
    return _each(value)[0]


def _mapped(value: Value, change: Callable[[float], float]) -> Value:
    return combined(value, 0.0, lambda one, _: change(one))


def _chosen(condition: Value, yes: Value, no: Value) -> Value:
    if isinstance(yes, list) or isinstance(no, list) or isinstance(condition, list):
        raise ExpressionInvalid("IF over arrays is not served here")
    if isinstance(condition, float):
        return yes if condition else no
    branches = {at: yes if value else no for at, value in condition.items()}
    return {at: _at(branch, at) for at, branch in branches.items() if isinstance(branch, float) or at in branch}


def _filled(series: Series, filler: float | Series, starts: Sequence[int], *, repeat: bool) -> Series:
    found: Series = {}
    last: float | None = None
    for at in starts:
        if at in series:
            last = found[at] = series[at]
        elif repeat:
            if last is not None:
                found[at] = last
        elif isinstance(filler, float) or at in filler:
            found[at] = _at(filler, at)
    return found


def _divided(left: float, right: float) -> float | None:
    return None if right == 0 else left / right


def _raised(left: float, right: float) -> float | None:
    try:
        value = left**right
    except (ZeroDivisionError, OverflowError):
        return None
    return None if isinstance(value, complex) else float(value)


def _and(left: float, right: float) -> float:
    return float(bool(left) and bool(right))


def _or(left: float, right: float) -> float:
    return float(bool(left) or bool(right))


_COMPARISONS: Mapping[str, Operation] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "SUM": sum,
    "AVG": lambda values: sum(values) / len(values),
    "MIN": min,
    "MAX": max,
}
