"""Checks requests against botocore's own model of a service, as strictly as the service does.

The model knows each operation's members, which of them are required, and their types, lengths, ranges, patterns and
enumerations. botocore itself checks little of that before it sends a request; the service checks all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape

_NUMBERS = ("integer", "long", "float", "double")
_JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "blob": str,
    "boolean": bool,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float, str),
    "list": list,
    "map": dict,
    "structure": dict,
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with one member."""

    path: str
    """As in ``/vectors/0/key``."""
    message: str


def load(service: str) -> ServiceModel:
    """botocore's model of a service, such as ``s3vectors``."""
    return botocore.session.Session().get_service_model(service)


class Refused(Exception):
    """A request that the service's model rules out; the message is the service's."""


def read_input(shape: Shape, body: bytes) -> dict[str, Any]:
    """A JSON request, without what is null in it.

    Raises:
        Refused: it is no JSON, or breaks the model's constraints.
    """
    try:
        asked = json.loads(body or b"{}")
    except ValueError as error:
        raise Refused("Request body is not valid JSON") from error
    found = list(problems(shape, asked))
    if found:
        told = "; ".join(f"Value at '{one.path}' failed to satisfy constraint: {one.message}" for one in found)
        raise Refused(f"{len(found)} validation error(s) detected: {told}")
    return {key: value for key, value in asked.items() if value is not None}


def problems(shape: Shape, value: Any, path: str = "") -> Iterator[Problem]:
    """All that is wrong with a request, or a part of one.

    Args:
        shape: what the model expects; an operation's ``input_shape``.
        value: parsed JSON.
        path: where it stands.
    """
    if getattr(shape, "is_document_type", False):
        return
    expected = _JSON_TYPES.get(shape.type_name)
    wrong_type = expected is not None and not isinstance(value, expected)
    if wrong_type or (shape.type_name in _NUMBERS and isinstance(value, bool)):
        yield Problem(path or "/", f"must be of type {shape.type_name}")
        return
    match shape.type_name:
        case "structure":
            yield from _structure(shape, value, path)
        case "list":
            yield from _bounds(shape, len(value), path, "length")
            for place, item in enumerate(value):
                yield from problems(shape.member, item, f"{path}/{place}")
        case "map":
            yield from _map(shape, value, path)
        case "string":
            yield from _string(shape, value, path)
        case "float" | "double" if not math.isfinite(value):
            yield Problem(path, "Member must be a finite number")
        case kind if kind in _NUMBERS:
            yield from _bounds(shape, value, path, "value")


def _map(shape: Shape, value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for key, item in value.items():
        yield from problems(shape.key, key, f"{path}/{key}")
        yield from problems(shape.value, item, f"{path}/{key}")


def _structure(shape: Shape, value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name in shape.required_members:
        if value.get(name) is None:
            yield Problem(f"{path}/{name}", "Member must not be null")
    given = {name: member for name, member in value.items() if member is not None}
    if getattr(shape, "is_tagged_union", False) and len(given) != 1:
        yield Problem(path or "/", "exactly one member must be set")
    for name, member in given.items():
        if name in shape.members:
            yield from problems(shape.members[name], member, f"{path}/{name}")
        else:
            yield Problem(f"{path}/{name}", "is no member of the request")


def _string(shape: Shape, value: str, path: str) -> Iterator[Problem]:
    yield from _bounds(shape, len(value), path, "length")
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed:
        yield Problem(path, f"Member must satisfy enum value set: [{', '.join(allowed)}]")
    pattern = shape.metadata.get("pattern")
    if pattern and "\\p" not in pattern.lower() and not re.fullmatch(pattern.strip("^$"), value):
        yield Problem(path, f"Member must satisfy regular expression pattern: {pattern}")


def _bounds(shape: Shape, size: float, path: str, what: str) -> Iterator[Problem]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    told = "Member must have length" if what == "length" else "Member must be"
    if least is not None and size < least:
        yield Problem(path, f"{told} greater than or equal to {least}")
    if most is not None and size > most:
        yield Problem(path, f"{told} less than or equal to {most}")
