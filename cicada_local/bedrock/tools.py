"""The tools of a Converse request, read as strictly as AWS does, and what is said of them in its messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.bedrock.catalogue import TextModel
from cicada_local.bedrock.errors import ValidationFailed
from cicada_local.bedrock.tokens import count_tokens

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_TOP_FIELDS = frozenset({"type", "properties", "required"})
"""Of a schema, for a model that takes no other keyword at its top."""


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Offer:
    """The tools of a request, and whether the model has a choice."""

    tools: tuple[Tool, ...]
    chosen: Tool | None
    """The one that it must call, if it must call a certain one."""
    must: bool
    """Whether it must call any."""
    tokens: int


def read_tools(config: Any, model: TextModel) -> Offer | None:
    """Read ``toolConfig``. Raises ValidationFailed."""
    if config is None:
        return None
    tools = config.get("tools") if isinstance(config, dict) else None
    if not isinstance(tools, list) or not tools:
        raise ValidationFailed(
            "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have "
            "length greater than or equal to 1"
        )
    specs = [_read_spec(tool, f"toolConfig.tools.{place}", model) for place, tool in enumerate(tools)]
    offered = {
        spec["name"]: Tool(spec["name"], spec.get("description", ""), spec["inputSchema"]["json"]) for spec in specs
    }
    if len(offered) < len(specs):
        raise ValidationFailed("The model returned the following errors: tools: Tool names must be unique.")
    must, chosen = _read_choice(config.get("toolChoice"), model)
    if chosen is not None and chosen not in offered:
        raise ValidationFailed(
            f"The model returned the following errors: tool_choice: Tool '{chosen}' not found in provided tools"
        )
    return Offer(
        tuple(offered.values()), None if chosen is None else offered[chosen], must, count_tokens(json.dumps(specs))
    )


def is_tool_block(block: Any) -> bool:
    """Whether a content block is a tool's use or its result."""
    return isinstance(block, dict) and bool(block.keys() & {"toolUse", "toolResult"})


def tool_block_text(block: Mapping[str, Any]) -> str:
    """A tool block as text, for its tokens."""
    return json.dumps(block, ensure_ascii=False)


def check_tool_turns(messages: Sequence[Mapping[str, Any]], offer: Offer | None) -> None:
    """Every use of a tool has its result in the next turn, and every result its use. Raises ValidationFailed."""
    open_ids: list[str] = []
    all_ids: set[str] = set()
    for place, message in enumerate(messages):
        blocks = [block for block in message["content"] if is_tool_block(block)]
        if blocks and offer is None:
            raise ValidationFailed(
                "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            )
        path = f"messages.{place}.content"
        kind, other = ("toolUse", "toolResult") if message["role"] == "assistant" else ("toolResult", "toolUse")
        if any(other in block for block in blocks):
            raise ValidationFailed(f"{other} blocks are not allowed in a turn of the {message['role']} at {path}.")
        ids = [_tool_id(block[kind], f"{path}.{kind}") for block in blocks]
        if message["role"] == "assistant":
            for block in blocks:
                _check_use(block["toolUse"], f"{path}.toolUse")
            if len({*all_ids, *ids}) < len(all_ids) + len(ids):
                raise ValidationFailed(
                    f"The model returned the following errors: {path}: `tool_use` ids must be unique"
                )
            all_ids.update(ids)
            open_ids = ids
            continue
        if len(ids) > len(open_ids):
            raise ValidationFailed(
                f"The number of toolResult blocks at {path} exceeds the number of toolUse blocks of previous turn."
            )
        missing = [identifier for identifier in open_ids if identifier not in ids]
        if missing:
            raise ValidationFailed(f"Expected toolResult blocks at {path} for the following Ids: {', '.join(missing)}")
        if any(not block["toolResult"].get("content") for block in blocks if "status" in block["toolResult"]):
            raise ValidationFailed(
                f"The content field at {path}.0.toolResult cannot be empty when status value is error."
            )
        open_ids = []


def _read_spec(tool: Any, path: str, model: TextModel) -> dict[str, Any]:
    spec = tool.get("toolSpec") if isinstance(tool, dict) else None
    if not isinstance(spec, dict):
        raise ValidationFailed(f"The value at {path} is not served here: only toolSpec is.")
    name = spec.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"1 validation error detected: Value '{name}' at '{path}.toolSpec.name' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+"
        )
    if spec.get("description", "-") == "":
        raise ValidationFailed(
            f"1 validation error detected: Value '' at '{path}.toolSpec.description' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        )
    schema = (spec.get("inputSchema") or {}).get("json")
    where = f"{path}.toolSpec.inputSchema.json"
    if not isinstance(schema, dict):
        raise ValidationFailed(
            f"The format of the value at {where} is invalid. Provide a json object for the field and try again."
        )
    if schema.get("type") != "object":
        raise ValidationFailed(f"The value at {where}.type must be one of the following: object.")
    if model.plain_schemas and not schema.keys() <= _TOP_FIELDS:
        raise ValidationFailed(
            f"The value at {where} has fields that this model doesn't support: "
            f"{', '.join(sorted(schema.keys() - _TOP_FIELDS))}. Only type, properties and required are supported."
        )
    if not _sound(schema):
        raise ValidationFailed(
            f"The model returned the following errors: {path}.custom.input_schema: JSON schema is invalid. It must "
            "match JSON Schema draft 2020-12."
        )
    return spec


def _sound(schema: Any) -> bool:
    """Whether a schema's keywords have values of their kinds; a reference must lead to a definition."""

    def sound(part: Any) -> bool:
        if isinstance(part, bool):
            return True
        if not isinstance(part, dict):
            return False
        kinds = part.get("type", [])
        named = {kinds} if isinstance(kinds, str) else set(kinds) if isinstance(kinds, list) else {None}
        properties, required = part.get("properties", {}), part.get("required", [])
        options = [option for word in ("anyOf", "oneOf", "allOf", "prefixItems") for option in part.get(word, [])]
        inner = [part[word] for word in ("items", "additionalProperties") if word in part]
        reference = part.get("$ref")
        return (
            named <= _TYPES
            and isinstance(properties, dict)
            and isinstance(required, list)
            and isinstance(part.get("enum", []), list)
            and (reference is None or str(reference).removeprefix("#/$defs/") in schema.get("$defs", {}))
            and all(sound(one) for one in [*properties.values(), *options, *inner])
        )

    return sound(schema)


def _read_choice(choice: Any, model: TextModel) -> tuple[bool, str | None]:
    """Whether a tool must be called, and the name of the one that must be, if it is a certain one."""
    if choice is None:
        return False, None
    kind, value = next(iter(choice.items())) if isinstance(choice, dict) and len(choice) == 1 else (None, None)
    if kind not in ("auto", "any", "tool"):
        raise ValidationFailed("The value at toolConfig.toolChoice must be one of the following: auto, any, tool.")
    if kind == "auto":
        return False, None
    if model.reasons:
        raise ValidationFailed(
            "The model returned the following errors: Thinking may not be enabled when tool_choice forces tool use."
        )
    return True, str(value.get("name")) if kind == "tool" and isinstance(value, dict) else None


def _check_use(use: Mapping[str, Any], path: str) -> None:
    name = use.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"1 validation error detected: Value '{name}' at '{path}.name' failed to satisfy constraint: Member must "
            "satisfy regular expression pattern: [a-zA-Z0-9_-]+"
        )
    if not isinstance(use.get("input"), dict):
        raise ValidationFailed(
            f"The format of the value at {path}.input is invalid. Provide a json object for the field and try again."
        )


def _tool_id(block: Any, path: str) -> str:
    identifier = block.get("toolUseId") if isinstance(block, dict) else None
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
        raise ValidationFailed(
            f"1 validation error detected: Value '{identifier}' at '{path}.toolUseId' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"
        )
    return identifier
