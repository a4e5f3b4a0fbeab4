"""A form's name, description and JSON schema for a model, and the validation of what the model returns.

Models accept different parts of JSON Schema. Only what all accept is used: no ``$ref`` (definitions are inlined), an
object at the top with nothing but ``type``, ``properties`` and ``required`` (Amazon Nova's rule), and optional fields
that may be absent rather than null.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from cicada.errors import AnswerMalformed, BudgetSpent
from cicada.models.ports import Form

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PROBLEMS = 10
"""Told to a model whose answer does not fit: the first ones."""
MAX_PROBLEM_CHARS = 200
MALFORMED_HINT = "Your last use of a tool could not be read. Give each tool one JSON object that fits its schema."
"""Added to the instructions of a model whose output the service could not read: with greedy decoding, the same request
would be answered the same again."""
_MAX_NAME_CHARS = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_LEFT_OUT = frozenset({"title", "default", "discriminator", "examples", "$defs"})
"""Keywords that models do not need."""


class OutputMisfit(Exception):
    """A value does not fit its form."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        """``problems`` name each place and the rule that it breaks, never a value."""
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
        ValueError: the form is recursive, or not an object.
    """
    schema = form.model_json_schema()
    whole = _plain(schema, schema.get("$defs", {}), ())
    if whole.get("type") != "object":
        raise ValueError(f"{form.__name__} is not a model with fields")
    return {"type": "object", "properties": whole.get("properties", {}), "required": whole.get("required", [])}


def read_form(form: type[Form], value: object) -> Form:
    """The form that a model filled in. Raises OutputMisfit if the value breaks the form's rules."""
    try:
        return form.model_validate_json(json.dumps(value))
    except ValidationError as error:
        listed = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [f"{_place(problem['loc'])}: {problem['msg']}"[:MAX_PROBLEM_CHARS] for problem in listed]
        raise OutputMisfit(tuple(problems[:MAX_PROBLEMS])) from None


def ask_twice(ask: Callable[[], T], correct: Callable[[OutputMisfit], None], model_id: str, form: str) -> T:
    """What ``ask`` returns; after a misfit it is corrected and asked once more.

    Raises:
        AnswerMalformed: the second answer does not fit either, or no call was left for it.
    """
    try:
        return ask()
    except OutputMisfit as misfit:
        extra = {"model": model_id, "form": form, "problems": len(misfit.problems)}
        logger.info("the model's answer does not match the schema", extra=extra)
        first = misfit
    correct(first)
    try:
        return ask()
    except BudgetSpent:
        raise AnswerMalformed(str(first)) from None
    except OutputMisfit as misfit:
        raise AnswerMalformed(str(misfit)) from None


def correction(name: str, misfit: OutputMisfit) -> str:
    """The message for a model whose answer does not fit."""
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
            raise ValueError(f"{name} is recursive, which is not supported")
        schema = {**definitions[name], **schema}
        del schema["$ref"]
        return _plain(schema, definitions, (*inside, name))
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            needed = schema.get("required", ())
            plain[key] = {
                name: _plain(field if name in needed else without_null(field), definitions, inside)
                for name, field in value.items()
            }
        elif key == "const":
            plain["enum"] = [value]
        elif key not in _LEFT_OUT:  # pydantic writes oneOf for a discriminated union
            plain["anyOf" if key == "oneOf" else key] = _plain_value(value, definitions, inside)
    return plain


def _plain_value(value: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_plain_value(item, definitions, inside) for item in value]
    return _plain(value, definitions, inside) if isinstance(value, Mapping) else value


def without_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """An optional field's schema without the alternative ``null``."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return field
    return {**options[0], **{key: value for key, value in field.items() if key != "anyOf"}}
