"""Forms filled in by a model of an OpenAI-compatible endpoint: an answer that is JSON, by ``response_format``.

Source: OpenAI API guide, "Structured model outputs", for the rules of strict schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cicada.errors import AnswerMalformed, ModelError
from cicada.models.openai_chat import ChatMessage, ChatModel, JsonAnswer, OpenAiChat
from cicada.models.ports import CallScope, CountedCallScope, Filled, Finished, Form, Prompt, Usage
from cicada.models.structured_output import (
    OutputMisfit,
    ask_twice,
    form_description,
    form_name,
    form_schema,
    read_form,
)

_FENCED = re.compile(r"^```[a-zA-Z]*\s*\n(.*?)\n?```\s*$", re.DOTALL)


class OpenAiStructuredModel(ChatModel):
    """A model of an endpoint that fills in forms; the port's contract is :class:`cicada.models.ports.StructuredModel`.

    The form's schema is sent as ``response_format``, strict where the schema allows it. An endpoint that refuses or
    ignores it is asked for any JSON object, then for JSON by the prompt alone; the process remembers that.
    """

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """See the port. An error's ``usage`` is that of all calls.

        Raises:
            ValueError: the form cannot be given to a model (:func:`cicada.models.structured_output.form_schema`).
        """
        filling = _Filling(self._chat, prompt, form, self._chat.clock() + time_budget_s, call_scope)
        try:
            value: Form = ask_twice(filling.ask, filling.correct, self.model_id, form_name(form))
        except ModelError as error:
            if filling.calls:
                error.usage = filling.usage
            raise
        return Filled(value, filling.usage, filling.calls)


class _Filling(CountedCallScope):
    """One form being filled in; the call scope of its calls."""

    def __init__(
        self, chat: OpenAiChat, prompt: Prompt, form: type[Form], deadline_s: float, call_scope: CallScope
    ) -> None:
        self._chat = chat
        self._form: type[Any] = form
        self._deadline_s = deadline_s
        super().__init__(call_scope)
        self._schema = form_schema(form)
        schema, strict = strict_schema(self._schema)
        self._answer = JsonAnswer(form_name(form), form_description(form), schema, strict)
        self._turns = [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)]
        self._format = chat.dialects.of(chat.model_id).format
        self._text = ""
        self.usage = Usage()
        """Of all calls so far."""

    def ask(self) -> Any:
        """One answer. Raises OutputMisfit if it does not fit the form, or the endpoint itself rejects it."""
        self._text = ""
        try:
            self._text = self._write()
        except AnswerMalformed as error:
            raise OutputMisfit((str(error),)) from error
        return read_form(self._form, without_filler(json_in(self._text), self._schema))

    def correct(self, misfit: OutputMisfit) -> None:
        """Tell the model what was wrong."""
        if isinstance(misfit, NoJson):
            self._chat.dialects.format_ignored(self._chat.model_id, self._format)
        if self._text.strip():
            self._turns += [ChatMessage("assistant", self._text), ChatMessage("user", _correction(misfit.problems))]

    def _write(self) -> str:
        left_s = self._deadline_s - self._chat.clock()
        pieces: list[str] = []
        try:
            for piece in self._chat.stream(self._turns, answer=self._answer, time_budget_s=left_s, call_scope=self):
                if isinstance(piece, Finished):
                    self.usage += piece.usage
                else:
                    pieces.append(piece.text)
        except ModelError as error:
            if error.usage is not None:  # none where no call was made
                self.usage += error.usage
            raise
        return "".join(pieces)


class NoJson(OutputMisfit):
    """The answer is not JSON."""


def json_in(text: str) -> object:
    """The JSON value in an answer, perhaps within a fence or other words. Raises NoJson without one."""
    stripped = text.strip()
    fenced = _FENCED.match(stripped)
    begin, end = stripped.find("{"), stripped.rfind("}")
    for candidate in (stripped, fenced[1] if fenced else "", stripped[begin : end + 1] if begin >= 0 else ""):
        try:
            value: object = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value
    raise NoJson(("the answer is not valid JSON",))


def _correction(problems: tuple[str, ...]) -> str:
    return (
        "This does not fit the schema:\n"
        + "\n".join(f"- {problem}" for problem in problems)
        + "\nAnswer once more with the whole JSON object, corrected, and with nothing else."
    )


def strict_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A form's strict schema and true, or the unchanged schema and false where it cannot be strict.

    A strict schema closes every object and requires every field; optional fields may be null instead. An object with
    arbitrary keys cannot be strict.
    """
    try:
        return _strict(schema), True
    except _NotStrict:
        return dict(schema), False


class _NotStrict(Exception):
    """A part of a schema cannot be strict."""


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    free = schema.get("type") == "object" and "properties" not in schema
    if not schema or free or "allOf" in schema:  # an empty schema allows any value
        raise _NotStrict
    strict = dict(schema)
    if isinstance(schema.get("items"), Mapping):
        strict["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(option) for option in schema["anyOf"]]
    if "properties" in schema:
        strict |= _closed(schema["properties"], schema.get("required", ()))
    return strict


def _closed(fields: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    properties = {
        name: _strict(field) if name in required else _nullable(_strict(field)) for name, field in fields.items()
    }
    return {"properties": properties, "required": list(fields), "additionalProperties": False}


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    options = field.get("anyOf")
    if options is not None:
        return field if {"type": "null"} in options else {**field, "anyOf": [*options, {"type": "null"}]}
    about = {"description": field["description"]} if "description" in field else {}
    bare = {key: value for key, value in field.items() if key != "description"}
    return {**about, "anyOf": [bare, {"type": "null"}]}


def _option(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The schema, or its alternative, that has a key."""
    return next((option for option in (schema, *schema.get("anyOf", ())) if key in option), {})


def without_filler(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value without the nulls that a strict schema requires for absent fields; ``schema`` is the original one."""
    if isinstance(value, list):
        items = _option(schema, "items").get("items", {})
        return [without_filler(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    whole = _option(schema, "properties")
    fields, required = whole.get("properties", {}), whole.get("required", ())
    return {
        name: without_filler(part, fields.get(name, {}))
        for name, part in value.items()
        if part is not None or name not in fields or name in required
    }
