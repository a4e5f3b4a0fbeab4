"""One invocation of a harness: what is sent, and what its stream says.

Sources: botocore's service model ``bedrock-agentcore`` of 2024-02-28, InvokeHarness; the AgentCore developer guide,
"Connect to tools" and "Security and access controls".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from cicada.agents.exchange import AgentExchange
from cicada.errors import (
    AgentCapReached,
    AgentError,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.converse import TOOL_USE, ConverseCall, StreamedTurn
from cicada.models.failure import Failure, code_and_status
from cicada.models.model_ids import Sampling
from cicada.models.stream_reader import EventStream
from cicada.models.streaming import Said

MAX_ITERATIONS = 1
"""Of one invocation: all tools are ours, and the use of one ends it before a second turn."""
MAX_TIMEOUT_S = 3600
NO_TOOL = "no_tool"
"""The only allowed tool where none is offered: an empty list could mean no limit, and every session has a shell."""

_CAPS = {
    "max_iterations_exceeded": "iterations: the harness may ask the model once in an invocation",
    "timeout_exceeded": "time: the harness stopped when its time was over",
}
_TRUNCATED = "max_output_tokens_exceeded"
_UNAVAILABLE = "RuntimeClientError"
"""The harness itself failed: its session did not start, or broke down."""


@dataclass(frozen=True)
class Harness:
    """A harness that is deployed."""

    arn: str
    endpoint: str
    """Its endpoint, which names the version that is used."""


@dataclass(frozen=True)
class Run:
    """The session and the bounds of one invocation."""

    actor_id: str
    session_id: str
    """33 to 100 letters, digits, hyphens and underscores."""
    max_turn_tokens: int
    left_s: float


def request_of(
    harness: Harness, model_id: str, exchange: AgentExchange, run: Run, sampled: Mapping[str, float]
) -> dict[str, Any]:
    """The parameters of InvokeHarness.

    Every parameter is set, so that neither the model nor the tools depend on the deployed harness's defaults.
    """
    specs: list[dict[str, Any]] = [spec["toolSpec"] for spec in (exchange.tool_config or {}).get("tools", ())]
    functions = [{"description": spec["description"], "inputSchema": spec["inputSchema"]["json"]} for spec in specs]
    tools: list[dict[str, Any]] = [
        {"type": "inline_function", "name": spec["name"], "config": {"inlineFunction": function}}
        for spec, function in zip(specs, functions, strict=True)
    ]
    model = {"modelId": model_id, "maxTokens": run.max_turn_tokens, "apiFormat": "converse_stream", **sampled}
    return {
        "harnessArn": harness.arn,
        "qualifier": harness.endpoint,
        "runtimeSessionId": run.session_id,
        "actorId": run.actor_id,
        "messages": exchange.messages,
        "systemPrompt": [{"text": exchange.system}] if exchange.system.strip() else [],
        "model": {"bedrockModelConfig": model},
        "tools": tools,
        "skills": [],
        "allowedTools": [tool["name"] for tool in tools] or [NO_TOOL],
        "maxIterations": MAX_ITERATIONS,
        "maxTokens": run.max_turn_tokens,
        "timeoutSeconds": max(1, min(MAX_TIMEOUT_S, math.ceil(run.left_s))),
    }


class HarnessCall(ConverseCall):
    """One try, as :class:`cicada.models.streaming.ServiceCall`."""

    def __init__(
        self, client: Any, request: dict[str, Any], sampled: dict[str, float], sampling: Sampling, turn: StreamedTurn
    ) -> None:
        """Make a call; ``request`` are InvokeHarness's parameters, ``sampled`` the sampling parameters among them."""
        super().__init__(client, request, sampled, sampling, turn=turn)
        self._places = _Places()

    def open(self) -> EventStream:
        """See the port."""
        stream: EventStream = self._client.invoke_harness(**self._request)["stream"]
        return stream

    def read(self, event: Mapping[str, Any]) -> Iterable[Said]:
        """See the port. Raises AgentCapReached at the harness's own cap, and AgentError if it ran a tool itself."""
        event = self._places.placed(event)
        _check_tools(event)
        return super().read(event)

    def failure(self, error: Exception, *, opened: bool) -> Failure | None:
        """See the port."""
        failure = super().failure(error, opened=opened)
        malformed = failure is not None and isinstance(failure.error, AnswerMalformed)
        if isinstance(error, ClientError) and code_and_status(error)[0] == _UNAVAILABLE and not malformed:
            return Failure(ModelUnavailable(f"the harness failed: {error}"), retry=True)
        return failure

    def _incomplete(self, reason: str) -> Callable[[str], AnswerIncomplete | None]:
        if reason in _CAPS:
            raise AgentCapReached(_CAPS[reason])
        return AnswerTruncated if reason == _TRUNCATED else super()._incomplete(reason)

    def _model_id(self) -> str:
        return str(self._request["model"]["bedrockModelConfig"]["modelId"])


class _Places:
    """Gives every block of a turn an index of its own: harnesses have reused one for two uses of tools.

    Source: the library req_managed_agents, 0.1.0, notes on tested streams.
    """

    def __init__(self) -> None:
        self._now: dict[int, int] = {}
        self._next = 0

    def placed(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """An event with its block's own index. Raises StreamBroken if it has none."""
        for kind in ("contentBlockStart", "contentBlockDelta"):
            if kind in event:
                told = event[kind].get("contentBlockIndex")
                if not isinstance(told, int):
                    raise StreamBroken("an event of the stream has no contentBlockIndex")
                if kind == "contentBlockStart" or told not in self._now:
                    self._now[told], self._next = self._next, self._next + 1
                return {kind: {**event[kind], "contentBlockIndex": self._now[told]}}
        return event


def _check_tools(event: Mapping[str, Any]) -> None:
    start = event.get("contentBlockStart", {}).get("start", {})
    if "toolResult" in start or start.get("toolUse", {}).get("type", TOOL_USE) != TOOL_USE:
        raise AgentError("the harness ran a built-in tool, which is not allowed")
