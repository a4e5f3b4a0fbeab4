"""The ``Condition`` element of IAM policies.

Source: IAM User Guide, "IAM JSON policy elements: Condition operators" and "Conditions with multiple context keys or
values". Operators on dates, IP addresses and binary values are refused: no stack uses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

Context = Mapping[str, Sequence[str]]
"""The values of a request's condition keys; the keys in lower case."""
Test = Callable[[Context], bool]
Compare = Callable[[str, str], bool]

_IF_EXISTS = "IfExists"
_FOR_ALL, _FOR_ANY = "ForAllValues", "ForAnyValue"


class PolicyInvalid(ValueError):
    """A policy that IAM would refuse, or that uses what this evaluation lacks."""


@lru_cache(maxsize=4096)
def pattern(text: str) -> re.Pattern[str]:
    """A pattern with ``*`` for any characters and ``?`` for one."""
    parts = ({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in text)
    return re.compile("".join(parts), re.DOTALL)


def like(value: str, wanted: str) -> bool:
    """Whether a value matches a pattern."""
    return value == wanted or (("*" in wanted or "?" in wanted) and pattern(wanted).fullmatch(value) is not None)


def _arn_like(value: str, wanted: str) -> bool:
    """Each of the six parts of an ARN is compared by itself."""
    parts, wanted_parts = value.split(":", 5), wanted.split(":", 5)
    return len(parts) == len(wanted_parts) and all(map(like, parts, wanted_parts))


def _numeric(compare: Callable[[float, float], bool]) -> Compare:
    def compared(value: str, wanted: str) -> bool:
        try:
            return compare(float(value), float(wanted))
        except ValueError:
            return False

    return compared


_POSITIVE: dict[str, Compare] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": like,
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
    "NumericEquals": _numeric(lambda value, wanted: value == wanted),
    "NumericLessThan": _numeric(lambda value, wanted: value < wanted),
    "NumericLessThanEquals": _numeric(lambda value, wanted: value <= wanted),
    "NumericGreaterThan": _numeric(lambda value, wanted: value > wanted),
    "NumericGreaterThanEquals": _numeric(lambda value, wanted: value >= wanted),
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
}


def compile_condition(condition: Mapping[str, Mapping[str, Any]]) -> Test:
    """A test of a request's context: every operator, and every key of each, must hold.

    Raises:
        PolicyInvalid: an operator is unknown.
    """
    tests = [
        _test(operator, key.lower(), _texts(wanted))
        for operator, keys in condition.items()
        for key, wanted in keys.items()
    ]
    return lambda context: all(test(context) for test in tests)


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in values)


def _test(operator: str, key: str, wanted: Sequence[str]) -> Test:
    quantifier, _, name = operator.rpartition(":")
    if_exists = name.endswith(_IF_EXISTS)
    name = name.removesuffix(_IF_EXISTS)
    if quantifier not in ("", _FOR_ALL, _FOR_ANY):
        raise PolicyInvalid(f"unknown set operator {quantifier} in a condition")
    if name == "Null":
        return lambda context: (key not in context) == (wanted[0].lower() == "true")
    negated = name in _NEGATED
    compare = _POSITIVE.get(_NEGATED.get(name, name))
    if compare is None:
        raise PolicyInvalid(f"unknown condition operator {operator}")

    def one(value: str) -> bool:
        return any(compare(value, each) for each in wanted) != negated

    def test(context: Context) -> bool:
        values = context.get(key)
        if values is None:
            return if_exists or quantifier == _FOR_ALL or (negated and quantifier != _FOR_ANY)
        return (
            all(map(one, values)) if quantifier == _FOR_ALL or (negated and not quantifier) else any(map(one, values))
        )

    return test
