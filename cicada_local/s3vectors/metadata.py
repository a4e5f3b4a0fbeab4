"""Metadata of vectors, and the filters over it.

Source: Amazon S3 User Guide, "Metadata filtering" and "Limitations and restrictions".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeGuard

from cicada_local.s3vectors.errors import ValidationFailed

MAX_KEYS = 50
MAX_FILTERABLE_BYTES = 2048
MAX_METADATA_BYTES = 40 * 1024
MAX_CONSTRAINTS = 100
"""Of a filter, on an index in ENHANCED mode."""

Metadata = Mapping[str, Any]
Test = Callable[[Metadata], bool]

_PRIMITIVES = (str, int, float, bool)
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda found, asked: found > asked,
    "$gte": lambda found, asked: found >= asked,
    "$lt": lambda found, asked: found < asked,
    "$lte": lambda found, asked: found <= asked,
}


def check_metadata(key: str, metadata: Any, non_filterable: Collection[str]) -> None:
    """Check a vector's metadata. Raises ValidationFailed, in the service's words where these are known."""
    if not isinstance(metadata, dict):
        raise _invalid(key, "Metadata must be an object")
    if len(metadata) > MAX_KEYS:
        raise _invalid(key, f"Metadata object must have at most {MAX_KEYS} keys")
    for name, value in metadata.items():
        if not 1 <= len(name) <= 63:
            raise _invalid(key, "Metadata keys must have 1 to 63 characters")
        members = value if isinstance(value, list) else [value]
        if not members or not all(isinstance(member, _PRIMITIVES) for member in members):
            raise _invalid(key, f"Metadata value of '{name}' must be a string, number, boolean, or a list of these")
    filterable = {name: value for name, value in metadata.items() if name not in non_filterable}
    if size_bytes(filterable) > MAX_FILTERABLE_BYTES:
        raise _invalid(key, f"Filterable metadata must have at most {MAX_FILTERABLE_BYTES} bytes")
    if size_bytes(metadata) > MAX_METADATA_BYTES:
        raise _invalid(key, f"Metadata must have at most {MAX_METADATA_BYTES} bytes")


def size_bytes(metadata: Metadata) -> int:
    """What metadata counts, as compact JSON."""
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


def _invalid(key: str, why: str) -> ValidationFailed:
    return ValidationFailed(f"Invalid record for key '{key}': {why}")


def read_filter(document: Any, non_filterable: Collection[str]) -> Test:
    """Read a filter. Raises ValidationFailed."""
    constraints = [0]
    test = _read(document, non_filterable, constraints)
    if constraints[0] > MAX_CONSTRAINTS:
        raise ValidationFailed(f"Invalid query filter: at most {MAX_CONSTRAINTS} constraints are supported")
    return test


def _read(document: Any, non_filterable: Collection[str], constraints: list[int]) -> Test:
    if not isinstance(document, dict) or not document:
        raise ValidationFailed("Invalid query filter: a filter must be a non-empty object")
    tests: list[Test] = []
    for name, condition in document.items():
        if name in ("$and", "$or"):
            if not isinstance(condition, list) or not condition:
                raise ValidationFailed(f"Invalid query filter: {name} takes a non-empty array of filters")
            parts = [_read(part, non_filterable, constraints) for part in condition]
            tests.append(_all(parts) if name == "$and" else _any(parts))
        elif name.startswith("$"):
            raise ValidationFailed(f"Invalid query filter: unknown operator {name}")
        elif name in non_filterable:
            raise ValidationFailed(f"Invalid use of non-filterable metadata in filter: {name}")
        else:
            tests += _conditions(name, condition, constraints)
    return _all(tests)


def _conditions(name: str, condition: Any, constraints: list[int]) -> list[Test]:
    operators = condition if isinstance(condition, dict) else {"$eq": condition}
    if not operators:
        raise ValidationFailed(f"Invalid query filter: {name} has no condition")
    constraints[0] += len(operators)
    return [_condition(name, operator, asked) for operator, asked in operators.items()]


def _condition(name: str, operator: str, asked: Any) -> Test:
    if operator in ("$in", "$nin"):
        return _membership(name, operator, asked)
    if operator == "$exists":
        if not isinstance(asked, bool):
            raise ValidationFailed("Invalid query filter: $exists takes a boolean")
        return lambda metadata: (name in metadata) == asked
    if operator == "$startsWith":
        if not isinstance(asked, str):
            raise ValidationFailed("Invalid query filter: $startsWith takes a string")
        return lambda metadata: isinstance(found := metadata.get(name), str) and found.startswith(asked)
    if operator in _COMPARISONS:
        if not _is_number(asked):
            raise ValidationFailed(f"Invalid query filter: {operator} takes a number")
        return _comparison(name, _COMPARISONS[operator], asked)
    return _equality(name, operator, asked)


def _membership(name: str, operator: str, asked: Any) -> Test:
    if not isinstance(asked, list) or not asked or not all(isinstance(one, _PRIMITIVES) for one in asked):
        raise ValidationFailed(f"Invalid query filter: {operator} takes a non-empty array of primitives")
    if operator == "$in":  # the guide promises "any element" for $eq alone: a list in the metadata matches no $in
        return lambda metadata: any(_same(metadata.get(name), one) for one in asked)
    return lambda metadata: name in metadata and not any(_same(metadata[name], one) for one in asked)


def _equality(name: str, operator: str, asked: Any) -> Test:
    if operator not in ("$eq", "$ne"):
        raise ValidationFailed(f"Invalid query filter: unknown operator {operator}")
    if not isinstance(asked, _PRIMITIVES):
        raise ValidationFailed(f"Invalid query filter: {operator} takes a string, number or boolean")
    if operator == "$ne":
        return lambda metadata: name in metadata and not _equal(metadata[name], asked)
    return lambda metadata: _equal(metadata.get(name), asked)


def _comparison(name: str, compare: Callable[[float, float], bool], asked: float) -> Test:
    def test(metadata: Metadata) -> bool:
        found = metadata.get(name)
        return _is_number(found) and compare(found, asked)

    return test


def _equal(found: Any, asked: Any) -> bool:
    """Equality; of a list, with any element."""
    return any(_same(one, asked) for one in found) if isinstance(found, list) else _same(found, asked)


def _same(found: Any, asked: Any) -> bool:
    return isinstance(found, bool) == isinstance(asked, bool) and bool(found == asked)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _all(tests: list[Test]) -> Test:
    return lambda metadata: all(test(metadata) for test in tests)


def _any(tests: list[Test]) -> Test:
    return lambda metadata: any(test(metadata) for test in tests)
