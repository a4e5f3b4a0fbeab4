"""Forms as a model is given them and gives them back: a tool's name and schema, and a value that fits or what is wrong.

Models differ in what they take of JSON Schema. What all take is used: no ``$ref`` (definitions are put where they are
used), an object at the top with nothing but ``type``, ``properties`` and ``required`` (Amazon Nova's rule), and an
optional field as one that may be left out, not as one that may be null.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from cicada.models.ports import Form

MAX_PROBLEMS = 10
"""Told to a model whose answer does not fit: the first ones."""
MAX_PROBLEM_CHARS = 200
_MAX_NAME_CHARS = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_LEFT_OUT = frozenset({"title", "default", "discriminator", "examples", "$defs"})
"""Keywords that tell a model nothing that it needs."""


class OutputMisfit(Exception):
    """A value does not fit its form."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        """Take what is wrong, a line each: where, and which rule is broken, without the values."""
        super().__init__("; ".join(problems))
        self.problems = problems


def form_name(form: type[Form]) -> str:
    """What the form's tool is called: its class's name in snake case."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", form.__name__).lower()
    return _NOT_IN_NAMES.sub("_", words)[:_MAX_NAME_CHARS]


def form_description(form: type[Form]) -> str:
    """What the form is for: its docstring."""
    return inspect.cleandoc(form.__doc__) if form.__doc__ else "The answer."


def form_schema(form: type[Form]) -> dict[str, Any]:
    """The form's JSON schema, with nothing that some models refuse.

    Raises:
        ValueError: the form is recursive, or no object.
    """
    schema = form.model_json_schema()
    whole = _plain(schema, schema.get("$defs", {}), ())
    if whole.get("type") != "object":
        raise ValueError(f"{form.__name__} is no object with fields")
    return {"type": "object", "properties": whole.get("properties", {}), "required": whole.get("required", [])}


def read_form(form: type[Form], value: object) -> Form:
    """The form that a model filled in.

    Raises:
        FormMisfit: the value breaks the form's rules.
    """
    try:
        return form.model_validate_json(json.dumps(value))
    except ValidationError as error:
        listed = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [f"{_place(problem['loc'])}: {problem['msg']}"[:MAX_PROBLEM_CHARS] for problem in listed]
        raise OutputMisfit(tuple(problems[:MAX_PROBLEMS])) from None


def correction(name: str, misfit: OutputMisfit) -> str:
    """What a model is told whose answer does not fit."""
    return (
        f"This input of {name} does not fit its schema:\n"
        + "\n".join(f"- {problem}" for problem in misfit.problems)
        + f"\nCall {name} once more with the whole input, corrected."
    )


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in location) or "input"


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    """A schema without references. ``inside`` are the definitions that it is part of."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        if name in inside:
            raise ValueError(f"{name} holds itself: a form cannot be recursive")
        besides = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain({**definitions[name], **besides}, definitions, (*inside, name))
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _LEFT_OUT:
            continue
        if key == "const":
            plain["enum"] = [value]
        elif key == "properties":
            needed = schema.get("required", ())
            plain[key] = {
                name: _plain(field if name in needed else _without_null(field), definitions, inside)
                for name, field in value.items()
            }
        elif key == "oneOf":  # pydantic's word for a discriminated union
            plain["anyOf"] = [_plain(option, definitions, inside) for option in value]
        elif isinstance(value, Mapping):
            plain[key] = _plain(value, definitions, inside)
        elif isinstance(value, list):
            plain[key] = [_plain(item, definitions, inside) if isinstance(item, Mapping) else item for item in value]
        else:
            plain[key] = value
    return plain


def _without_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """A field that may be left out, without ``null`` as the other way to say so."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return field
    return {**options[0], **{key: value for key, value in field.items() if key != "anyOf"}}
