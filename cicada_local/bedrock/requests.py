"""Reads requests to Bedrock Runtime as strictly as AWS does, and with its words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cicada_local.agents.turns import Turn, read_turns
from cicada_local.bedrock.catalogue import RerankModel, TextModel
from cicada_local.bedrock.errors import ValidationFailed
from cicada_local.bedrock.guardrails import GuardedText
from cicada_local.bedrock.tokens import count_tokens
from cicada_local.bedrock.tools import Offer, check_tool_turns, is_tool_block, read_tools, tool_block_text


@dataclass(frozen=True)
class GuardConfig:
    """A guardrail in a call, and the texts that it is to look at."""

    identifier: str
    version: str
    mode: str
    """``sync`` or ``async``; a whole response is always synchronous."""
    traced: bool
    texts: tuple[GuardedText, ...]


@dataclass(frozen=True)
class ConverseRequest:
    """A conversation, as far as the answerer uses it."""

    system: str
    user: str
    """The user's last turn; with tools, all that the user said."""
    input_tokens: int
    max_tokens: int
    stop_sequences: tuple[str, ...]
    offer: Offer | None = None
    """The tools that may be called."""
    turns: tuple[Turn, ...] = ()
    """All of them, where tools are offered."""
    guard: GuardConfig | None = None
    """The guardrail that checks the call."""


@dataclass(frozen=True)
class RerankRequest:
    """Texts to be ranked for a query."""

    query: str
    texts: tuple[str, ...]
    top_n: int


def read_converse(body: bytes, model: TextModel) -> ConverseRequest:
    """Read the body of Converse or ConverseStream. Raises ValidationFailed."""
    fields = read_object(body)
    offer = read_tools(fields.get("toolConfig"), model)
    turns = _read_turns(fields.get("messages"))
    check_tool_turns(fields["messages"], offer)
    system = "\n".join(_read_blocks(_list(fields, "system"), "system"))
    config = fields.get("inferenceConfig") or {}
    _check_sampling(config, model)
    _check_additional(fields.get("additionalModelRequestFields") or {}, model)
    input_tokens = count_tokens(system) + sum(count_tokens(turn) for turn in turns) + (offer.tokens if offer else 0)
    if input_tokens > model.max_input_tokens:
        raise ValidationFailed("Input is too long for requested model.")
    asked = [turn for turn, message in zip(turns, fields["messages"], strict=True) if _asks(message)]
    return ConverseRequest(
        system,
        "\n\n".join(asked) if offer else asked[-1],
        input_tokens,
        _max_tokens(config, model),
        _stop_sequences(config),
        offer,
        read_turns(fields["messages"]) if offer else (),
        _read_guard(fields.get("guardrailConfig"), fields["messages"]),
    )


def _read_guard(config: Any, messages: list[dict[str, Any]]) -> GuardConfig | None:
    """The guardrail of a call. If any block of the user's turns is marked, only marked ones are looked at."""
    if config is None:
        return None
    if not config.get("guardrailIdentifier") or not config.get("guardrailVersion"):
        raise ValidationFailed("The guardrailConfig needs a guardrailIdentifier and a guardrailVersion.")
    for name, known in (("streamProcessingMode", ("sync", "async")), ("trace", _TRACES)):
        if config.get(name, known[0]) not in known:
            raise ValidationFailed(
                f"1 validation error detected: Value '{config[name]}' at 'guardrailConfig.{name}' failed to satisfy "
                f"constraint: Member must satisfy enum value set: [{', '.join(known)}]"
            )
    blocks = [block for message in messages if message["role"] == "user" for block in message["content"]]
    marked = [read_guarded(block["guardContent"]) for block in blocks if "guardContent" in block]
    texts = marked or [GuardedText(block["text"]) for block in blocks if "text" in block]
    return GuardConfig(
        config["guardrailIdentifier"],
        config["guardrailVersion"],
        config.get("streamProcessingMode", "sync"),
        config.get("trace", "disabled") != "disabled",
        tuple(texts),
    )


_TRACES = ("disabled", "enabled", "enabled_full")
_QUALIFIERS = frozenset({"grounding_source", "query", "guard_content"})


def read_guarded(block: Any) -> GuardedText:
    """A block's text and qualifiers. Raises ValidationFailed."""
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, dict) or not isinstance(text.get("text"), str):
        raise ValidationFailed("The guarded content must be text.")
    qualifiers = tuple(text.get("qualifiers") or ())
    unknown = sorted(set(qualifiers) - _QUALIFIERS)
    if unknown:
        raise ValidationFailed(
            f"1 validation error detected: Value '{unknown[0]}' at 'qualifiers' failed to satisfy constraint: Member "
            "must satisfy enum value set: [grounding_source, query, guard_content]"
        )
    return GuardedText(text["text"], qualifiers)


def read_rerank(body: bytes, model: RerankModel) -> RerankRequest:
    """Read the body of InvokeModel, in the format of Amazon Rerank or Cohere Rerank. Raises ValidationFailed."""
    fields = read_object(body)
    needed = {"query", "documents"} | ({"api_version"} if model.cohere else set())
    allowed = needed | {"top_n"} | ({"max_tokens_per_doc"} if model.cohere else set())
    problems = [f"#: required key [{name}] not found" for name in sorted(needed - fields.keys())]
    problems += [f"#: extraneous key [{name}] is not permitted" for name in sorted(fields.keys() - allowed)]
    query, documents = fields.get("query"), fields.get("documents")
    if isinstance(query, str) and not query:
        problems.append("#/query: expected minLength: 1, actual: 0")
    elif query is not None and not isinstance(query, str):
        problems.append(f"#/query: expected type: String, found: {json_type(query)}")
    if isinstance(documents, list):
        if not 1 <= len(documents) <= model.max_texts:
            problems.append(f"#/documents: expected 1 to {model.max_texts} items, found: {len(documents)}")
        problems += [
            f"#/documents/{place}: expected a String that is not empty"
            for place, text in enumerate(documents)
            if not isinstance(text, str) or not text
        ]
    elif documents is not None:
        problems.append(f"#/documents: expected type: JSONArray, found: {json_type(documents)}")
    top_n = fields.get("top_n", len(documents) if isinstance(documents, list) else 1)
    if isinstance(top_n, bool) or not isinstance(top_n, int) or top_n < 1:
        problems.append(f"#/top_n: {json.dumps(top_n)} is not greater or equal to 1")
    elif isinstance(documents, list) and top_n > len(documents):
        problems.append(f"#/top_n: {top_n} exceeds the number of documents")
    if model.cohere and "api_version" in fields and fields["api_version"] != COHERE_API_VERSION:
        problems.append(f"#/api_version: {json.dumps(fields['api_version'])} is not served here")
    if problems or not isinstance(query, str) or not isinstance(documents, list):
        raise malformed(problems)
    return RerankRequest(query, tuple(documents), top_n)


COHERE_API_VERSION = 2


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises ValidationFailed."""
    try:
        fields = json.loads(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ValidationFailed("Malformed input request, please reformat your input and try again.")
    return fields


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name) or []
    if not isinstance(value, list):
        raise ValidationFailed(f"1 validation error detected: Value at '{name}' failed to satisfy constraint: a list")
    return value


def _read_turns(messages: Any) -> list[str]:
    """The text of each turn. A conversation begins and ends with the user and alternates."""
    turns = _list({"messages": messages}, "messages")
    if not turns:
        raise ValidationFailed("The messages field is required and must contain at least one message.")
    texts = []
    for place, turn in enumerate(turns):
        role = turn.get("role") if isinstance(turn, dict) else None
        if role not in ("user", "assistant"):
            raise ValidationFailed(
                f"1 validation error detected: Value '{role}' at 'messages.{place + 1}.member.role' failed to satisfy "
                "constraint: Member must satisfy enum value set: [user, assistant]"
            )
        if place == 0 and role != "user":
            raise ValidationFailed(
                "A conversation must start with a user message. Try again with a conversation that starts with a user "
                "message."
            )
        if role != ("user", "assistant")[place % 2]:
            raise ValidationFailed(
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
                "between user and assistant roles and try again."
            )
        blocks = _list(turn, "content")
        if not blocks:
            raise ValidationFailed(
                f"The content field in the Message object at messages.{place} is empty. Add a ContentBlock object to "
                "the content field and try again."
            )
        texts.append("\n".join(_read_blocks(blocks, f"messages.{place}.content")))
    if len(turns) % 2 == 0:
        raise ValidationFailed("A conversation must end with a user message.")
    return texts


def _asks(message: dict[str, Any]) -> bool:
    """Whether a turn is words of the user, and no tool's result."""
    return message["role"] == "user" and not any(is_tool_block(block) for block in message["content"])


def _read_blocks(blocks: list[Any], path: str) -> list[str]:
    texts = []
    for place, block in enumerate(blocks):
        if is_tool_block(block):
            texts.append(tool_block_text(block))
            continue
        kind, value = next(iter(block.items())) if isinstance(block, dict) and block else (None, None)
        if kind == "cachePoint":
            continue
        if kind == "reasoningContent" and ".content" in path:
            texts.append(json.dumps(value))
            continue
        text = value.get("text", {}).get("text") if kind == "guardContent" and isinstance(value, dict) else value
        if kind not in ("text", "guardContent") or not isinstance(text, str):
            raise ValidationFailed(f"This model doesn't support the {kind} content block at {path}.{place}.")
        if not text.strip():
            raise ValidationFailed(
                f"The text field in the ContentBlock object at {path}.{place} is blank. Add text to the text field, "
                "and try again."
            )
        texts.append(text)
    return texts


def _check_sampling(config: dict[str, Any], model: TextModel) -> None:
    names = {"temperature": "temperature", "topP": "top_p"}
    sent = [name for name in names if config.get(name) is not None]
    for name in sent:
        value = config[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ValidationFailed(
                f"1 validation error detected: Value '{value}' at 'inferenceConfig.{name}' failed to satisfy "
                "constraint: Member must have value less than or equal to 1"
            )
    if sent and model.sampling == "none":
        raise ValidationFailed(
            f"The model returned the following errors: `{names[sent[0]]}` is deprecated for this model."
        )
    if len(sent) > 1 and model.sampling == "one":
        raise ValidationFailed(
            "The model returned the following errors: `temperature` and `top_p` cannot both be specified for this "
            "model. Please use only one."
        )


def _check_additional(more: dict[str, Any], model: TextModel) -> None:
    """Nova takes its ``topK`` here. Source: Amazon Nova User Guide, "Complete request schema"."""
    if "inferenceConfig" not in more:
        return
    if not model.plain_schemas:
        raise malformed(["#: extraneous key [inferenceConfig] is not permitted"])
    top_k = more["inferenceConfig"].get("topK", 0)
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 0 <= top_k <= 128:
        raise malformed([f"#/inferenceConfig/topK: {json.dumps(top_k)} is not between 0 and 128"])


def _max_tokens(config: dict[str, Any], model: TextModel) -> int:
    value = config.get("maxTokens", model.max_output_tokens)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValidationFailed(
            f"1 validation error detected: Value '{value}' at 'inferenceConfig.maxTokens' failed to satisfy "
            "constraint: Member must have value greater than or equal to 1"
        )
    if value > model.max_output_tokens:
        raise ValidationFailed(
            f"The maximum tokens you requested exceeds the model limit of {model.max_output_tokens}. Try again with a "
            f"maximum tokens value that is lower than {model.max_output_tokens}."
        )
    return value


def _stop_sequences(config: dict[str, Any]) -> tuple[str, ...]:
    sequences = _list(config, "stopSequences")
    if not all(isinstance(sequence, str) and sequence for sequence in sequences):
        raise ValidationFailed("1 validation error detected: Value at 'inferenceConfig.stopSequences' is blank")
    return tuple(sequences)


def malformed(problems: list[str]) -> ValidationFailed:
    """The error for a body that breaks the model's schema."""
    return ValidationFailed(
        f"Malformed input request: {', '.join(problems)}, please reformat your input and try again."
    )


def json_type(value: Any) -> str:
    """What a value is, in the words of these errors."""
    kinds = {bool: "Boolean", int: "Integer", float: "Number", str: "String", list: "JSONArray", dict: "JSONObject"}
    return kinds.get(type(value), "Null")
