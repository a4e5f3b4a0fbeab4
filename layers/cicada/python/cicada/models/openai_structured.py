"""Forms filled in by a model of an OpenAI-compatible endpoint: an answer that is JSON, by ``response_format``.

Source: OpenAI API guide, "Structured model outputs", for the rules of strict schemas.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from cicada.errors import AnswerMalformed, BudgetSpent, ModelError
from cicada.models.openai_chat import ChatMessage, ChatModel, JsonAnswer, OpenAiChat
from cicada.models.ports import CallScope, CountedCallScope, Filled, Finished, Form, Prompt, Usage
from cicada.models.structured_output import OutputMisfit, form_description, form_name, form_schema, read_form

logger = logging.getLogger(__name__)

_FENCED = re.compile(r"^```[a-zA-Z]*\s*\n(.*?)\n?```\s*$", re.DOTALL)


class OpenAiStructuredModel(ChatModel):
    """A model of an endpoint that fills in forms; the port's contract is :class:`cicada.models.ports.StructuredModel`.

    The form's schema goes as ``response_format``, enforced by the endpoint where its rules allow that. Where the
    endpoint refuses or ignores it, it is asked for any JSON object, or for JSON by the prompt alone, and that is
    remembered.
    """

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """See the port. An error's ``usage`` is that of all calls.

        Raises:
            ValueError: the form cannot be given to a model (:func:`cicada.models.structured_output.form_schema`).
        """
        filling = _Filling(self._chat, prompt, form, self._chat.clock() + time_budget_s, call_scope)
        try:
            value = filling.fill()
        except ModelError as error:
            if filling.calls:
                error.usage = filling.usage
            raise
        return Filled(value, filling.usage, filling.calls)


class _Filling(CountedCallScope):
    """One form being filled in; the call scope that the model is held by."""

    def __init__(
        self, chat: OpenAiChat, prompt: Prompt, form: type[Form], deadline_s: float, call_scope: CallScope
    ) -> None:
        self._chat = chat
        self._form: type[Any] = form
        self._deadline_s = deadline_s
        super().__init__(call_scope)
        self._name = form_name(form)
        self._schema = form_schema(form)
        schema, strict = strict_schema(self._schema)
        self._answer = JsonAnswer(self._name, form_description(form), schema, strict)
        self._turns = [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)]
        self.usage = Usage()
        """Of all calls so far."""

    def fill(self) -> Any:
        asked_by = self._chat.dialects.of(self._chat.model_id).format
        text = ""
        try:
            text = self._write()
            return self._read(text)
        except AnswerMalformed as error:  # the endpoint itself could not read it
            first: OutputMisfit | AnswerMalformed = error
        except OutputMisfit as misfit:
            first = misfit
        problems = first.problems if isinstance(first, OutputMisfit) else (str(first),)
        logger.info(
            "the model's answer does not fit its form",
            extra={"model": self._chat.model_id, "form": self._name, "problems": len(problems)},
        )
        if isinstance(first, NoJson):
            self._chat.dialects.format_ignored(self._chat.model_id, asked_by)
        if text.strip():
            self._turns += [ChatMessage("assistant", text), ChatMessage("user", _correction(problems))]
        try:
            return self._read(self._write())
        except BudgetSpent:
            raise AnswerMalformed(str(first)) from None
        except OutputMisfit as misfit:
            raise AnswerMalformed(str(misfit)) from None

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

    def _read(self, text: str) -> Any:
        return read_form(self._form, without_filler(json_in(text), self._schema))


class NoJson(OutputMisfit):
    """The answer is no JSON at all."""


def json_in(text: str) -> object:
    """The value that an answer is, perhaps within a fence or some words. Raises NoJson if it is none."""
    stripped = text.strip()
    fenced = _FENCED.match(stripped)
    begin, end = stripped.find("{"), stripped.rfind("}")
    for candidate in (stripped, fenced[1] if fenced else "", stripped[begin : end + 1] if begin >= 0 else ""):
        try:
            value: object = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return value
    raise NoJson(("the answer is no JSON",))


def _correction(problems: tuple[str, ...]) -> str:
    return (
        "This does not fit the schema:\n"
        + "\n".join(f"- {problem}" for problem in problems)
        + "\nAnswer once more with the whole JSON object, corrected, and with nothing else."
    )


def strict_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A form's schema as strict ones are written, if it can be: every object closed, and every field required.

    A field that may be left out may be null instead.

    Returns:
        The schema, and whether it is strict; it stays as it is where a rule cannot be kept (an object with any keys).
    """
    try:
        return _strict(schema), True
    except _NotStrict:
        return dict(schema), False


class _NotStrict(Exception):
    """A schema has a part that no strict schema can have."""


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "allOf" in schema or (schema.get("type") == "object" and "properties" not in schema):
        raise _NotStrict
    if not schema:  # any value
        raise _NotStrict
    strict = dict(schema)
    if isinstance(schema.get("items"), Mapping):
        strict["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(option) for option in schema["anyOf"]]
    if "properties" in schema:
        required = schema.get("required", ())
        strict["properties"] = {
            name: _strict(field) if name in required else _nullable(_strict(field))
            for name, field in schema["properties"].items()
        }
        strict["required"] = list(schema["properties"])
        strict["additionalProperties"] = False
    return strict


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    options = field.get("anyOf")
    if options is not None:
        return field if {"type": "null"} in options else {**field, "anyOf": [*options, {"type": "null"}]}
    about = {"description": field["description"]} if "description" in field else {}
    bare = {key: value for key, value in field.items() if key != "description"}
    return {**about, "anyOf": [bare, {"type": "null"}]}


def without_filler(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value without the nulls that a strict schema makes a model say for what it leaves out.

    Args:
        schema: the form's, as it was before it was made strict.
    """
    options = (schema, *schema.get("anyOf", ()))
    if isinstance(value, list):
        items: Mapping[str, Any] = next((option["items"] for option in options if "items" in option), {})
        return [without_filler(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    whole: Mapping[str, Any] = next((option for option in options if "properties" in option), {})
    fields, required = whole.get("properties", {}), whole.get("required", ())
    return {
        name: without_filler(part, fields.get(name, {}))
        for name, part in value.items()
        if part is not None or name not in fields or name in required
    }
