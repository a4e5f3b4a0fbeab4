"""The parameters of a function's call, which all arrive as strings, as the input of a tool.

What cannot be read stays the string that it is: the tool's form refuses it, and the model is told why.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from cicada.agents.classic.schema import Parameter, parameters_of
from cicada.agents.ports import ToolInput
from cicada.errors import ToolInvalid

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_MAX_NUMBER_CHARS = 40


@dataclass(frozen=True)
class ParameterGiven:
    """A parameter of a call, as it came."""

    name: str
    value: str
    kind: str | None = None
    """What the service calls its type, where it does."""


def read_parameters(form: type[ToolInput], given: Iterable[ParameterGiven]) -> dict[str, Any]:
    """The input that some parameters stand for. It is not validated here: see :class:`cicada.agents.toolbox.ToolBox`.

    Args:
        form: the tool's.
        given: the call's.

    Raises:
        ToolInvalid: a name stands there twice, or what should be a plain value is called something else.
    """
    known = {parameter.name: parameter for parameter in parameters_of(form)}
    found: dict[str, Any] = {}
    for one in given:
        if one.name in found:
            raise ToolInvalid("a parameter is given twice")
        parameter = known.get(one.name)
        if parameter is None:
            found[one.name] = one.value
            continue
        if not parameter.required and one.value.strip() in ("", "null"):
            continue  # how models leave out what they need not give
        if one.kind is not None and one.kind != parameter.kind and not parameter.is_json:
            raise ToolInvalid(f"the input does not fit: {parameter.name} is to be of type {parameter.kind}")
        found[one.name] = _read(parameter, one.value)
    return found


def _read(parameter: Parameter, value: str) -> Any:
    if parameter.is_json:
        return _read_json(value)
    match parameter.kind:
        case "integer" if _INTEGER.fullmatch(value.strip()):
            return int(value)
        case "number":
            return _read_number(value)
        case "boolean" if value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
        case _:
            return value


def _read_number(value: str) -> float | str:
    try:
        number = float(value) if len(value) <= _MAX_NUMBER_CHARS else math.nan
    except ValueError:
        return value
    return number if math.isfinite(number) else value


def _read_json(value: str) -> Any:
    """JSON; or the list that a model meant by ``[a, b]``, by one bare word, or by words with commas between them."""
    try:
        return json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        pass
    text = value.strip()
    if "{" in text or '"' in text:
        return value
    listed = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [part.strip() for part in listed.split(",") if part.strip()]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
