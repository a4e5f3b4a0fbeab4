"""Converse's requests as a chat's turns, and what comes back of them as Converse's stop reasons and errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    ContextTooLarge,
    ModelBusy,
    ModelError,
    ModelRefused,
)
from cicada.models.openai_chat import ChatMessage, JsonAnswer
from cicada.models.openai_structured import strict_schema
from cicada.models.ports import Usage
from cicada_local.bedrock.tools import Tool

_STOPS: dict[type[ModelError], str] = {
    AnswerTruncated: "max_tokens",
    AnswerBlocked: "content_filtered",
    AnswerMalformed: "malformed_model_output",
    ContextTooLarge: "model_context_window_exceeded",
}


def turns_of(body: Mapping[str, Any]) -> list[ChatMessage]:
    """The turns of a request, which has been found to be valid."""
    system = "\n".join(_text(block) for block in body.get("system") or ())
    turns = [ChatMessage("system", system)] if system.strip() else []
    for message in body["messages"]:
        texts = [text for block in message["content"] if (text := _text(block))]
        turns.append(ChatMessage(message["role"], "\n".join(texts)))
    return turns


def _text(block: Mapping[str, Any]) -> str:
    """What a content block says in words; a tool's input is the JSON object that the model wrote then."""
    if "toolUse" in block:
        return json.dumps(block["toolUse"].get("input"), ensure_ascii=False)
    if "toolResult" in block:
        return "\n".join(_text(part) for part in block["toolResult"].get("content") or ())
    if "json" in block:
        return json.dumps(block["json"], ensure_ascii=False)
    if "guardContent" in block:
        return str(block["guardContent"]["text"]["text"])
    return str(block.get("text", ""))


def answer_of(tool: Tool) -> JsonAnswer:
    """The answer that is a tool's input."""
    if "$ref" in json.dumps(tool.schema):  # a strict schema closes the objects that it refers to, too
        return JsonAnswer(tool.name, tool.description, tool.schema, strict=False)
    schema, strict = strict_schema(tool.schema)
    return JsonAnswer(tool.name, tool.description, schema, strict)


def stop_of(error: AnswerIncomplete) -> str:
    """The stop reason of an answer that is not what it should be."""
    return _STOPS.get(type(error), "malformed_model_output")


def aws_error_of(error: ModelError) -> tuple[str, int]:
    """The exception, and its status, that Bedrock would answer with."""
    match error:
        case ModelBusy():
            return "ThrottlingException", 429
        case ContextTooLarge() | ModelRefused():
            return "ValidationException", 400
        case _:
            return "ServiceUnavailableException", 503


def counts_of(usage: Usage | None) -> dict[str, int]:
    """A usage as Converse tells it."""
    told = usage or Usage()
    whole = told.input_tokens + told.output_tokens + told.cache_read_tokens
    counts = {"inputTokens": told.input_tokens, "outputTokens": told.output_tokens, "totalTokens": whole}
    return {**counts, "cacheReadInputTokens": told.cache_read_tokens} if told.cache_read_tokens else counts
