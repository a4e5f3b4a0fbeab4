"""Tools as the functions of an action group, and the parameters of a call, all strings, as a tool's input.

A function has at most five parameters, each a string, a number, an integer, a boolean or an array, and an array's items
have no type. So any other value is a string of JSON, and its description outlines the JSON. Sources of the limits:
Amazon Bedrock User Guide, "Amazon Bedrock Agents quotas", and the API's model.

An unreadable value stays a string: the tool's form refuses it, and tells the model why.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from cicada.agents.ports import Tool, ToolInput
from cicada.errors import ToolInvalid
from cicada.models.structured_output import form_schema, without_null

MAX_FUNCTIONS = 11
"""Of all action groups of one agent."""
MAX_PARAMETERS = 5
MAX_DESCRIPTION_CHARS = 1_200
MAX_PARAMETER_DESCRIPTION_CHARS = 500
MIN_INSTRUCTION_CHARS, MAX_INSTRUCTION_CHARS = 40, 4_000

READING_GROUP, WORKER_GROUP = "reading", "worker"
"""The action groups: the first one's functions run in the action-group function, the second one's in the worker."""

Kind = Literal["string", "number", "integer", "boolean"]
_PLAIN: tuple[Kind, ...] = ("string", "number", "integer", "boolean")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    name: str
    kind: Kind
    description: str
    required: bool
    is_json: bool = False
    """The string is JSON."""


@dataclass(frozen=True)
class FunctionSchema:
    """A function as an agent is told of it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


def function_of(tool: Tool[Any]) -> FunctionSchema:
    """A tool as a function of an action group. Raises ValueError beyond the service's limits."""
    parameters = parameters_of(tool.form)
    if len(parameters) > MAX_PARAMETERS:
        raise ValueError(f"{tool.name} has {len(parameters)} parameters, and a function at most {MAX_PARAMETERS}")
    if not 0 < len(tool.description) <= MAX_DESCRIPTION_CHARS:
        raise ValueError(f"the description of {tool.name} has not 1 to {MAX_DESCRIPTION_CHARS} characters")
    for parameter in parameters:
        if not 0 < len(parameter.description) <= MAX_PARAMETER_DESCRIPTION_CHARS:
            raise ValueError(
                f"the description of {tool.name}.{parameter.name} has not 1 to {MAX_PARAMETER_DESCRIPTION_CHARS} "
                "characters"
            )
    return FunctionSchema(tool.name, tool.description, parameters)


def parameters_of(form: type[ToolInput]) -> tuple[Parameter, ...]:
    """A form's fields as parameters, in order."""
    schema = form_schema(form)
    required = schema["required"]
    return tuple(_parameter(name, field, name in required) for name, field in schema["properties"].items())


def _parameter(name: str, field: Mapping[str, Any], required: bool) -> Parameter:
    told = str(field.get("description", name)).rstrip(".") + "."
    shape = without_null(field)
    kind = shape.get("type")
    if kind in _PLAIN:
        allowed = shape.get("enum", ())
        listed = f" One of: {', '.join(map(str, allowed))}." if allowed else ""
        return Parameter(name, kind, f"{told}{listed}", required)
    return Parameter(name, "string", f"{told} As JSON: {outline(shape)}", required, is_json=True)


def outline(schema: Mapping[str, Any]) -> str:
    """An example of some JSON for a model, from a schema of :func:`cicada.models.structured_output.form_schema`.

    For example ``[{"name": string, "cites"?: [integer]}]``.
    """
    shape = without_null(schema)
    if "enum" in shape:
        return " | ".join(json.dumps(value) for value in shape["enum"])
    if "anyOf" in shape:
        return " | ".join(outline(option) for option in shape["anyOf"])
    match shape.get("type"):
        case "array":
            return f"[{outline(shape.get('items', {}))}]"
        case "object":
            required = shape.get("required", ())
            fields = [
                f"{json.dumps(name)}{'' if name in required else '?'}: {outline(field)}"
                for name, field in shape.get("properties", {}).items()
            ]
            return f"{{{', '.join(fields)}}}"
        case kind:
            return str(kind or "any")


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
    """The input in some parameters, not yet validated. Raises ToolInvalid for a repeated name, or a wrong type."""
    known = {parameter.name: parameter for parameter in parameters_of(form)}
    found: dict[str, Any] = {}
    for one in given:
        if one.name in found:
            raise ToolInvalid("duplicate parameter")
        parameter = known.get(one.name)
        if parameter is None:
            found[one.name] = one.value
            continue
        if not parameter.required and one.value.strip() in ("", "null"):
            continue  # models leave out optional values so
        if one.kind is not None and one.kind != parameter.kind and not parameter.is_json:
            raise ToolInvalid(f"invalid input: {parameter.name} must be of type {parameter.kind}")
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
    """JSON, or the list that a model means by ``[a, b]``, one bare word, or words separated by commas."""
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
    raise ValueError(f"invalid JSON: {name}")
