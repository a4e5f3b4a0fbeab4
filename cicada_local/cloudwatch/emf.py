"""Embedded metric format: metrics in lines of logs, read as strictly as CloudWatch Logs reads them.

Source: Amazon CloudWatch User Guide, "Specification: Embedded metric format", and its JSON schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cicada_local.cloudwatch.metrics import Metric

MARK = '"_aws"'
"""Stands in every line that has metrics."""
EVENT_BYTES = 1024 * 1024
MAX_METRICS = 100
MAX_DIMENSIONS = 30
MAX_VALUES = 100
NAME_CHARS = 1024
DIMENSION_NAME_CHARS, DIMENSION_VALUE_CHARS = 250, 1024
OLDEST_S, NEWEST_S = 14 * 24 * 3600, 2 * 3600
"""How far from now a time stamp may lie."""
LARGEST = 2.0**360
_SIZES = tuple(f"{prefix}{kind}" for kind in ("bytes", "bits") for prefix in ("kilo", "mega", "giga", "tera", ""))
UNITS = frozenset(
    {"Seconds", "Microseconds", "Milliseconds", "Percent", "Count", "None", "Count/Second"}
    | {size.capitalize() for size in _SIZES}
    | {f"{size.capitalize()}/Second" for size in _SIZES}
)


class Invalid(Exception):
    """A line that says it has metrics, and breaks the specification: CloudWatch drops its metrics."""


@dataclass(frozen=True)
class Reported:
    """A metric's values in a line."""

    metric: Metric
    values: tuple[float, ...]
    unit: str
    at: float
    """Seconds since the epoch, in real time."""


def read(message: str, now: float) -> list[Reported]:
    """The metrics of a log line; none if it says nothing of any.

    Args:
        message: the line.
        now: the real time, seconds since the epoch.

    Raises:
        Invalid: none of them is taken.
    """
    if MARK not in message:
        return []
    try:
        root = json.loads(message)
    except ValueError:
        return []
    if not isinstance(root, dict) or "_aws" not in root:
        return []
    if len(message.encode()) > EVENT_BYTES:
        raise Invalid(f"the event is larger than {EVENT_BYTES} bytes")
    about = _of_type(root["_aws"], dict, "_aws")
    at = about.get("Timestamp")
    if isinstance(at, bool) or not isinstance(at, int):
        raise Invalid("Timestamp is to be a whole number of milliseconds")
    if not -OLDEST_S <= at / 1000 - now <= NEWEST_S:
        raise Invalid("Timestamp is more than two weeks old, or more than two hours ahead")
    directives = _of_type(about.get("CloudWatchMetrics"), list, "CloudWatchMetrics")
    return [one for directive in directives for one in _directive(directive, root, at / 1000)]


def _directive(directive: Any, root: Mapping[str, Any], at: float) -> Iterator[Reported]:
    directive = _of_type(directive, dict, "a directive")
    namespace = _text(directive.get("Namespace"), "Namespace", NAME_CHARS)
    if namespace.startswith((":", "AWS/")):
        raise Invalid(f"the namespace {namespace} is not for custom metrics")
    sets = [_dimensions(one, root) for one in _of_type(directive.get("Dimensions"), list, "Dimensions")]
    definitions = _of_type(directive.get("Metrics"), list, "Metrics")
    if len(definitions) > MAX_METRICS:
        raise Invalid(f"a directive has more than {MAX_METRICS} metrics")
    for definition in definitions:
        name, unit = _definition(definition)
        values = _values(name, root)
        for dimensions in sets:
            yield Reported(Metric.of(namespace, name, dimensions), values, unit, at)


def _definition(definition: Any) -> tuple[str, str]:
    definition = _of_type(definition, dict, "a metric")
    unit = definition.get("Unit", "None")
    if unit not in UNITS:
        raise Invalid(f"{unit!r} is no unit")
    if definition.get("StorageResolution", 60) not in (1, 60):
        raise Invalid("StorageResolution is to be 1 or 60")
    return _text(definition.get("Name"), "Name", NAME_CHARS), unit


def _dimensions(names: Any, root: Mapping[str, Any]) -> dict[str, str]:
    names = _of_type(names, list, "a set of dimensions")
    if len(names) > MAX_DIMENSIONS:
        raise Invalid(f"a set has more than {MAX_DIMENSIONS} dimensions")
    found = {}
    for name in names:
        name = _text(name, "a dimension's name", DIMENSION_NAME_CHARS)
        if name.startswith(":"):
            raise Invalid(f"the dimension {name} begins with a colon")
        found[name] = _text(root.get(name), f"the dimension {name}", DIMENSION_VALUE_CHARS)
        if not found[name].isascii() or not found[name].strip():
            raise Invalid(f"the dimension {name} is to be visible ASCII text")
    return found


def _values(name: str, root: Mapping[str, Any]) -> tuple[float, ...]:
    given: Any = root.get(name)
    values: list[Any] = given if isinstance(given, list) else [given]
    if not 1 <= len(values) <= MAX_VALUES:
        raise Invalid(f"{name} is to have 1 to {MAX_VALUES} values")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Invalid(f"{name} is to be a number, or a list of numbers")
        if not math.isfinite(value) or abs(value) > LARGEST:
            raise Invalid(f"{name} is out of range")
    return tuple(float(value) for value in values)


def _of_type(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise Invalid(f"{what} is to be {'an object' if kind is dict else 'a list'}")
    return value


def _text(value: Any, what: str, chars: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= chars:
        raise Invalid(f"{what} is to be a text of 1 to {chars} characters")
    return value
