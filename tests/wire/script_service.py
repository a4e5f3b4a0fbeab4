"""ConverseStream with tools, and InvokeHarness, as a server that plays a script: for tests that say themselves what the
model does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from aiohttp import web

from cicada.agents.ports import Tool
from cicada.delivery.record import RequestKey
from cicada.models.bedrock import bedrock_client_config
from cicada_local.bedrock.event_stream import encode_event, encode_exception
from cicada_local.bedrock.replies import INVALID_SEQUENCE
from tests.wire.agent_contract import PATIENCE_S, Turn, World
from tests.wire.app_server import serving_app

_EARLY: dict[str, tuple[int, str]] = {
    "throttled": (429, "ThrottlingException"),
    "unavailable": (503, "ServiceUnavailableException"),
    "refused": (403, "AccessDeniedException"),
}
_STOPS = {"truncated": "max_tokens", "filtered": "content_filtered", "malformed": "malformed_tool_use"}


@dataclass
class ScriptService:
    """A running server."""

    url: str = ""
    turns: deque[Turn] = field(default_factory=deque)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """What was sent, in the order of its arrival."""
    sessions: list[str] = field(default_factory=list)
    """Of the invocations of a harness."""
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when a caller has closed its connection before the end."""

    def client(self, name: str = "bedrock-runtime") -> Any:
        """boto3's, aimed at it."""
        return boto3.client(
            name,
            endpoint_url=self.url,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=bedrock_client_config(read_timeout_s=PATIENCE_S),
        )

    async def converse_stream(self, request: web.Request) -> web.StreamResponse:
        """One turn of the script."""
        self.bodies.append(await request.json())
        turn = self.turns.popleft()
        if turn.fault in _EARLY:
            status, code = _EARLY[turn.fault]
            return web.json_response({"message": "by the script"}, status=status, headers={"x-amzn-ErrorType": code})
        response = web.StreamResponse(headers={"Content-Type": "application/vnd.amazon.eventstream"})
        await response.prepare(request)
        for frame in _frames(turn):
            await response.write(frame)
        match turn.fault:
            case "cut":
                if request.transport is not None:
                    request.transport.abort()
                return response
            case "exception":
                await response.write(encode_exception("modelStreamErrorException", {"message": "by the script"}))
            case "sequence":
                await response.write(encode_exception("modelStreamErrorException", {"message": INVALID_SEQUENCE}))
            case "stall":
                await self._stall(request)
            case _:
                reason = _STOPS.get(turn.fault or "", "tool_use" if turn.uses else "end_turn")
                usage = {"inputTokens": turn.input_tokens, "outputTokens": turn.output_tokens, "totalTokens": 0}
                await response.write(encode_event("messageStop", {"stopReason": reason}))
                await response.write(encode_event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
        await response.write_eof()
        return response

    async def invoke_harness(self, request: web.Request) -> web.StreamResponse:
        """One turn of the script: a harness streams it as Converse does."""
        self.sessions.append(request.headers["X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"])
        return await self.converse_stream(request)

    async def _stall(self, request: web.Request) -> None:
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.02)
        self.closed.set()


def _frames(turn: Turn) -> Iterator[bytes]:
    yield encode_event("messageStart", {"role": "assistant"})
    index = 0
    for piece in turn.text:
        yield encode_event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})
    if turn.text:
        yield encode_event("contentBlockStop", {"contentBlockIndex": index})
        index += 1
    for use in turn.uses:
        start = {"toolUse": {"toolUseId": use.id, "name": use.name}}
        yield encode_event("contentBlockStart", {"contentBlockIndex": index, "start": start})
        written = use.given if isinstance(use.given, str) else json.dumps(use.given)
        for at in range(0, len(written), 7):
            delta = {"toolUse": {"input": written[at : at + 7]}}
            yield encode_event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
        yield encode_event("contentBlockStop", {"contentBlockIndex": index})
        index += 1


class ScriptedRig:
    """The part of a :class:`tests.wire.agent_contract.Rig` that this server is to any adapter."""

    streams_turns = True
    reports_usage = True

    def __init__(self, service: ScriptService) -> None:
        self.service = service
        self.world = World()

    def play(self, *turns: Turn) -> None:
        self.service.turns.extend(turns)

    def serve(self, tools: Callable[[], Sequence[Tool[Any]]], key: RequestKey) -> None:
        """Every call brings its tools."""

    @property
    def offered(self) -> Sequence[set[str]]:
        told = (body.get("tools", body.get("toolConfig", {}).get("tools", ())) for body in self.service.bodies)
        return [{tool.get("toolSpec", tool)["name"] for tool in tools} for tools in told]

    @property
    def heard(self) -> Sequence[str]:
        return [json.dumps(body, ensure_ascii=False) for body in self.service.bodies]

    def closed_by_caller(self) -> bool:
        return self.service.closed.wait(PATIENCE_S)


@contextmanager
def serving_script() -> Iterator[ScriptService]:
    """Run one in a thread, on a port of its own."""
    service = ScriptService()

    app = web.Application(client_max_size=16 << 20)
    app.router.add_post("/model/{model_id}/converse-stream", service.converse_stream)
    app.router.add_post("/harnesses/invoke", service.invoke_harness)
    with serving_app(app) as url:
        service.url = url
        yield service
