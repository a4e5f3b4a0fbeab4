"""One call of Amazon Bedrock's ConverseStream: its request, its events, and the model's turn made from them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    ContextTooLarge,
    StreamBroken,
)
from cicada.models.bedrock import read_failure
from cicada.models.failure import Failure
from cicada.models.guardrail import INTERVENED, GuardrailUse
from cicada.models.model_ids import Sampling, tool_fields
from cicada.models.ports import TextDelta, Usage
from cicada.models.stream_reader import EventStream
from cicada.models.streaming import Said, Stop

NORMAL_STOPS = frozenset({"end_turn", "stop_sequence"})
"""Every other stop reason means an incomplete answer."""

_INCOMPLETE: dict[str, type[AnswerIncomplete]] = {
    "max_tokens": AnswerTruncated,
    INTERVENED: AnswerBlocked,
    "content_filtered": AnswerBlocked,
    "malformed_model_output": AnswerMalformed,
    "malformed_tool_use": AnswerMalformed,
    "model_context_window_exceeded": ContextTooLarge,
}
"""Other reasons, ``tool_use`` by a model that was given no tools among them, are plain :class:`AnswerIncomplete`."""


def converse_request(
    model_id: str,
    system: str,
    messages: Sequence[Mapping[str, Any]],
    max_tokens: int,
    sampling: Mapping[str, float],
    tools: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The parameters of Converse and ConverseStream."""
    request: dict[str, Any] = {
        "modelId": model_id,
        "messages": messages,
        "inferenceConfig": {"maxTokens": max_tokens, **sampling},
    }
    if system.strip():  # the service refuses a blank one
        request["system"] = [{"text": system}]
    if tools is not None:
        request["toolConfig"] = tools
        if fields := tool_fields(model_id):
            request["additionalModelRequestFields"] = fields
    return request


def read_event(event: Mapping[str, Any]) -> Said | None:
    """What an event says; None for reasoning, block boundaries and unknown kinds.

    Raises StreamBroken if the event lacks a required field: botocore turns a payload that is not JSON into an empty
    event, and skipping it would leave a hole in the text.
    """
    try:
        if "contentBlockDelta" in event:
            text = event["contentBlockDelta"]["delta"].get("text")
            return TextDelta(text) if text else None
        if "messageStop" in event:
            return Stop(event["messageStop"]["stopReason"])
    except KeyError as error:
        raise StreamBroken(f"an event of the stream has no {error}") from error
    return read_usage(event["metadata"]) if "metadata" in event else None


def read_usage(metadata: Mapping[str, Any]) -> Usage:
    """The token counts of a stream's ``metadata``, or of a whole response."""
    counts = metadata.get("usage")
    if not counts:
        return Usage(reported=False)
    return Usage(
        input_tokens=counts.get("inputTokens", 0),
        output_tokens=counts.get("outputTokens", 0),
        cache_read_tokens=counts.get("cacheReadInputTokens", 0),
    )


def incomplete(stop_reason: str, usage: Usage | None = None) -> AnswerIncomplete:
    """The error of an answer without a normal finish; ``str(error)`` is the stop reason."""
    error = _INCOMPLETE.get(stop_reason, AnswerIncomplete)(stop_reason)
    error.usage = usage
    return error


TOOL_USE = "tool_use"
"""The stop reason of a turn that uses tools."""


@dataclass(frozen=True)
class ToolUse:
    """A use of a tool, whole."""

    id: str
    name: str
    given: Any
    """Its input: a JSON object, or the model's text where that is not JSON."""


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
    """Gathers one turn. Reasoning is kept unchanged: the service requires it back before the tools' results.

    A tool's input arrives as pieces of JSON, which are complete only at the block's end. Source: Amazon Bedrock User
    Guide, "Use a tool with streaming".
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self.shown = False
        """Some of its text was shown to the user."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event. Raises StreamBroken if it lacks a required field."""
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
        """The turn as the service takes it back: no blank text, and only shown text beside a tool's use, which some
        models refuse. An input that is not an object becomes an empty one, as the service accepts only objects."""
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


logger = logging.getLogger(__name__)


class ConverseCall:
    """One try, as :class:`cicada.models.streaming.ServiceCall`."""

    def __init__(
        self,
        client: Any,
        request: dict[str, Any],
        sent: dict[str, float],
        sampling: Sampling,
        *,
        turn: StreamedTurn | None = None,
        guard: GuardrailUse | None = None,
    ) -> None:
        """``sent`` are the request's sampling parameters. ``turn`` gathers the blocks of a turn that may use tools.

        ``guard`` is added to the request.
        """
        self._client = client
        self._guard = guard or GuardrailUse(None)
        self._request = self._guard.apply(request, streamed=True)
        self._sent = sent
        self._sampling = sampling
        self._turn = turn

    def open(self) -> EventStream:
        """See the port."""
        stream: EventStream = self._client.converse_stream(**self._request)["stream"]
        return stream

    def read(self, event: Mapping[str, Any]) -> Iterable[Said]:
        """See the port."""
        if self._turn is not None:
            self._turn.add(event)
        said = read_event(event)
        self._guard.traced(event.get("metadata", {}))
        if isinstance(said, TextDelta):
            self._guard.said(said.text)
        if isinstance(said, Stop):
            normal = said.reason in NORMAL_STOPS or (said.reason == TOOL_USE and self._turn is not None)
            return (said if normal else Stop(said.reason, self._incomplete(said.reason)),)
        return () if said is None else (said,)

    def failure(self, error: Exception, *, opened: bool) -> Failure | None:
        """See the port."""
        return self._guard.read(read_failure(error)) if isinstance(error, ClientError) or not opened else None

    def learn(self, failure: Failure) -> bool:
        """See the port."""
        if self._guard.gives_way(failure):
            return True
        model_id = self._model_id()
        if not failure.invalid or not self._sampling.learn(model_id, self._sent, str(failure.error)):
            return False
        logger.warning("the model rejects a sampling parameter", extra={"model": model_id})
        return True

    def _incomplete(self, reason: str) -> Callable[[str], AnswerIncomplete | None]:
        return self._guard.verdict if reason == INTERVENED else type(incomplete(reason))

    def _model_id(self) -> str:
        return str(self._request["modelId"])
