"""Action groups' functions: as the model is told of them, and as they are called and answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.agents.classic_store import Function
from cicada_local.agents.turns import BrainTool

_TYPES = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class FunctionFailed(Exception):
    """A function failed, or did not answer in the form that it should; the message is the service's."""


@dataclass(frozen=True)
class Answer:
    """What a function answered."""

    text: str
    reprompts: bool
    attributes: dict[str, str] | None
    prompt_attributes: dict[str, str] | None


def tool_of(function: Function) -> BrainTool:
    """A function as a tool of the model."""
    properties = {
        name: {"type": parameter["type"], "description": parameter.get("description", "")}
        for name, parameter in function.parameters.items()
    }
    required = [name for name, parameter in function.parameters.items() if parameter.get("required")]
    schema = {"type": "object", "properties": properties, "required": required}
    return BrainTool(function.name, function.description, schema)


def parameters_of(function: Function | None, given: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the model gave, as strings with their types: the declared one, where the model kept to it."""
    declared = {} if function is None else function.parameters
    found = []
    for name, value in given.items():
        kind = declared.get(name, {}).get("type", "string")
        if not isinstance(value, str) and kind == "string":
            kind = _TYPES.get(type(value), "string")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found.append({"name": name, "type": kind, "value": text})
    return found


def event_of(
    function: Function,
    parameters: Sequence[Mapping[str, str]],
    *,
    about: Mapping[str, str],
    text: str,
    attributes: Mapping[str, str],
    prompt_attributes: Mapping[str, str],
) -> dict[str, Any]:
    """The event that a function is called with."""
    return {
        "messageVersion": "1.0",
        "agent": {
            "name": about.get("agentName", about["agentId"]),
            "id": about["agentId"],
            "alias": about["agentAliasId"],
            "version": about["agentVersion"],
        },
        "inputText": text,
        "sessionId": about["sessionId"],
        "actionGroup": function.group,
        "function": function.name,
        "parameters": list(parameters),
        "sessionAttributes": dict(attributes),
        "promptSessionAttributes": dict(prompt_attributes),
    }


def read_answer(payload: bytes, function: Function) -> Answer:
    """A function's answer. Raises FunctionFailed if it has another form, or says FAILURE."""
    try:
        whole = json.loads(payload)
        response = whole["response"]
        body = response["functionResponse"]["responseBody"]["TEXT"]["body"]
        state = response["functionResponse"].get("responseState")
        same = (whole["messageVersion"], response["actionGroup"], response["function"])
    except (ValueError, KeyError, TypeError):
        raise FunctionFailed("The server encountered an error processing the Lambda response.") from None
    attributes, prompt_attributes = whole.get("sessionAttributes"), whole.get("promptSessionAttributes")
    strings = all(_is_strings(one) for one in (attributes, prompt_attributes))
    if same != ("1.0", function.group, function.name) or not isinstance(body, str) or not strings:
        raise FunctionFailed("The server encountered an error processing the Lambda response.")
    if state == "FAILURE":
        raise FunctionFailed("The Lambda function reported a failure.")
    if state not in (None, "REPROMPT"):
        raise FunctionFailed("The server encountered an error processing the Lambda response.")
    return Answer(body, state == "REPROMPT", attributes, prompt_attributes)


def _is_strings(value: object) -> bool:
    return value is None or (
        isinstance(value, dict) and all(isinstance(one, str) for pair in value.items() for one in pair)
    )
