"""A model's turn, put together from the events of a ConverseStream: its text, its reasoning, its uses of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cicada.errors import StreamBroken

TOOL_USE = "tool_use"
"""The stop reason of a turn that uses tools."""


@dataclass(frozen=True)
class ToolUse:
    """A use of a tool, whole."""

    id: str
    name: str
    given: Any
    """Its input: an object of JSON, or the text that the model wrote where that is none."""


@dataclass
class _Block:
    """One content block so far. Its kind is that of its first event."""

    kind: str = ""
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: bytes = b""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class StreamedTurn:
    """Gathers one turn. Reasoning is kept as it came: the service wants it back, unchanged, before the tools' results.

    Source: Amazon Bedrock User Guide, "Use a tool with streaming" and the API's ``ContentBlockDelta``: a tool's input
    arrives as pieces of JSON, which mean nothing before the block's end.
    """

    def __init__(self) -> None:
        """Begin a turn."""
        self._blocks: dict[int, _Block] = {}
        self.shown = False
        """Some of its text is a part of the answer already."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event. Raises StreamBroken if it lacks what it must have."""
        try:
            if "contentBlockStart" in event:
                self._start(event["contentBlockStart"])
            elif "contentBlockDelta" in event:
                self._delta(event["contentBlockDelta"])
        except KeyError as error:
            raise StreamBroken(f"an event of the stream has no {error}") from error

    @property
    def uses_tools(self) -> bool:
        """Whether the use of a tool has begun."""
        return any(block.kind == "tool" for block in self._blocks.values())

    @property
    def uses(self) -> tuple[ToolUse, ...]:
        """The uses of tools, in their order."""
        return tuple(
            ToolUse(block.id, block.name, _parsed(block.text)) for block in self._in_order() if block.kind == "tool"
        )

    @property
    def content(self) -> list[dict[str, Any]]:
        """The turn as the service takes it back: no blank text, and beside a tool's use, which some models refuse, only
        text that the user has seen. An input that is no object is given back as an empty one: the service takes
        nothing else."""
        content: list[dict[str, Any]] = []
        for block in self._in_order():
            if block.kind == "tool":
                given = _parsed(block.text)
                whole = given if isinstance(given, Mapping) else {}
                content.append({"toolUse": {"toolUseId": block.id, "name": block.name, "input": whole}})
            elif block.kind == "reasoning":
                content.append({"reasoningContent": _reasoning(block)})
            elif block.text.strip() and (self.shown or not self.uses_tools):
                content.append({"text": block.text})
        return content

    def _in_order(self) -> list[_Block]:
        return [self._blocks[index] for index in sorted(self._blocks)]

    def _start(self, start: Mapping[str, Any]) -> None:
        use = start["start"].get("toolUse")
        if use is not None:
            block = self._block(start["contentBlockIndex"], "tool")
            block.id, block.name = use["toolUseId"], use["name"]

    def _delta(self, event: Mapping[str, Any]) -> None:
        delta, index = event["delta"], event["contentBlockIndex"]
        if "toolUse" in delta:
            self._block(index, "tool").pieces.append(delta["toolUse"]["input"])
        elif "reasoningContent" in delta:
            block, content = self._block(index, "reasoning"), delta["reasoningContent"]
            block.pieces.append(content.get("text", ""))
            block.signature = content.get("signature", block.signature)
            block.redacted += content.get("redactedContent", b"")
        elif "text" in delta:
            self._block(index, "text").pieces.append(delta["text"])

    def _block(self, index: int, kind: str) -> _Block:
        return self._blocks.setdefault(index, _Block(kind))


def _parsed(text: str) -> Any:
    """A tool's input. Models that give a tool nothing write nothing."""
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _reasoning(block: _Block) -> dict[str, Any]:
    if block.redacted:
        return {"redactedContent": block.redacted}
    signature = {} if block.signature is None else {"signature": block.signature}
    return {"reasoningText": {"text": block.text, **signature}}
