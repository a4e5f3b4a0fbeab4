"""An OpenAI-compatible endpoint over real HTTP, as kind and as unkind as such servers are.

Chat Completions, streamed, in OpenAI's wire format. Fault switches (``cicada_local.faults``):

``openai.error``   before the stream; ``status``, ``message``, ``type``, ``code``, ``param``, ``headers``, or a ``body``
``openai.refuse``  the connection is closed without a response
``openai.slow``    ``first_ms`` before the response, ``first_piece_ms`` from its headers to the first chunk,
                   ``delay_ms`` between chunks
``openai.cut``     ``mode`` (see :data:`CUTS`), ``after`` so many pieces, ``framing`` ``chunked`` or ``close``;
                   ``fault`` for ``error``
``openai.stop``    ``reason``, ``after`` so many pieces
``openai.plain``   the answer in one piece, as if ``stream`` were not known
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from cicada.models.openai_http import ChatConnection
from cicada_local.bedrock.streams import StreamCounts, pause
from cicada_local.bedrock.tokens import count_tokens, split_pieces
from cicada_local.faults import Faults
from tests.wire.app_server import serving_app
from tests.wire.bedrock_service import Identity

ANSWER = "Aoi found the letter in the boathouse on the second evening [1]. She did not tell Ren about it [2]."
CUTS = ("reset", "silent", "half_event", "garbled", "no_object", "no_text", "error", "done", "stall")


@dataclass
class OpenAiService:
    """A running endpoint; what it says and what it takes are the test's to set, what it was asked to be read."""

    url: str = ""
    """Its base URL."""
    certificate: Path | None = None
    answer: Callable[[Mapping[str, Any]], str] = lambda body: ANSWER
    key: str | None = None
    """The key that it asks for."""
    usage: Callable[[int, int], Mapping[str, Any] | None] = lambda prompt, completion: {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    usage_with_finish: bool = False
    """Whether the usage comes with the last chunk of the answer, and not in one of its own."""
    reasoning: str | None = None
    unknown: frozenset[str] = frozenset()
    """Fields of a request that it refuses."""
    framing: str = "chunked"
    newline: str = "\n"
    faults: Faults = field(default_factory=Faults)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: set[tuple[str, int]] = field(default_factory=set)
    counts: StreamCounts = field(default_factory=StreamCounts)

    @property
    def calls(self) -> int:
        """Requests so far."""
        return len(self.bodies)

    def streams(self) -> dict[str, int]:
        """How the calls ended."""
        return asdict(self.counts)

    def connection(self, **settings: Any) -> ChatConnection:
        """A connection to it."""
        trusted = None if self.certificate is None else str(self.certificate)
        return ChatConnection(self.url, **{"authorities": trusted, "read_timeout_s": 5.0, **settings})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """POST {base}/chat/completions."""
        await request.read()  # a call that breaks off before its body is there was none
        self.counts.open += 1
        try:
            return await self._complete(request)
        except _Refused as refused:
            self.counts.refused += 1
            return refused.response
        except ConnectionResetError:
            self.counts.closed_by_caller += 1
            raise
        finally:
            self.counts.open -= 1

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername"))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(body)
        slow = self.faults.take("openai.slow") or {}
        await pause(request, slow.get("first_ms", 0) / 1000)
        self._fail_early(request, body)
        text = self.answer(body)
        pieces = split_pieces(text)
        stop = self.faults.take("openai.stop") or {}
        reason, pieces = stop.get("reason", "stop"), pieces[: stop.get("after")]
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        if limit is not None and count_tokens(text) > limit:
            reason, pieces = "length", pieces[:limit]
        usage = self.usage(
            sum(count_tokens(turn["content"]) for turn in body["messages"]), count_tokens("".join(pieces))
        )
        if self.faults.take("openai.plain") is not None:
            self.counts.finished += 1
            message = {"role": "assistant", "content": "".join(pieces)}
            return web.json_response({"choices": [{"message": message, "finish_reason": reason}], "usage": usage})
        cut = self.faults.take("openai.cut")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        if "close" in (self.framing, (cut or {}).get("framing")) or (cut or {}).get("mode") == "silent":
            response._length_check = False  # aiohttp's switch for a body that is neither chunked nor counted
            response.force_close()
        await response.prepare(request)
        await response.write(self._comment())
        await pause(request, slow.get("first_piece_ms", 0) / 1000)
        await response.write(self._chunk({"role": "assistant", "content": ""}))
        if self.reasoning is not None:
            await response.write(self._chunk({"reasoning_content": self.reasoning}))
        for sent, piece in enumerate(pieces):
            if cut is not None and sent == cut.get("after", 3):
                break
            if sent:
                await pause(request, slow.get("delay_ms", 0) / 1000)
            await response.write(self._chunk({"content": piece}))
        if cut is not None:
            await self._break(request, response, cut)
            self.counts.broken += 1
            return response
        asked = (body.get("stream_options") or {}).get("include_usage", False)
        told = usage if asked else None
        await response.write(self._chunk({}, reason, usage=told if self.usage_with_finish else None))
        if told is not None and not self.usage_with_finish:
            await response.write(self._event(json.dumps({"choices": [], "usage": told})))
        await response.write(self._event("[DONE]"))
        await response.write_eof()
        self.counts.finished += 1
        return response

    def _fail_early(self, request: web.Request, body: Mapping[str, Any]) -> None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            raise _Refused(
                401, f"Incorrect API key provided: {request.headers.get('Authorization')}", code="invalid_api_key"
            )
        for name in self.unknown & body.keys():
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            raise _Refused(400, message, type="invalid_request_error", code="unsupported_parameter", param=name)
        if (error := self.faults.take("openai.error")) is not None:
            raise _Refused(**error)
        if self.faults.take("openai.refuse") is not None:
            assert request.transport is not None
            request.transport.abort()
            raise _Refused(500)

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, *, usage: Any = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._event(
            json.dumps({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice], "usage": usage})
        )

    def _event(self, data: str) -> bytes:
        return f"data: {data}{self.newline}{self.newline}".encode()

    def _comment(self) -> bytes:
        return f": keep-alive{self.newline}{self.newline}".encode()

    async def _break(self, request: web.Request, response: web.StreamResponse, cut: Mapping[str, Any]) -> None:
        chunk = self._chunk({"content": "never whole"})
        match cut["mode"]:
            case "half_event":
                await response.write(chunk[: len(chunk) // 2])
            case "garbled":
                await response.write(self._event('{"choices": [{"delta": {"content": "nev'))
            case "no_object":
                await response.write(self._event('["never", "an", "object"]'))
            case "no_text":
                await response.write(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n')
            case "error":
                fault = cut.get("fault", {"message": "The server had an error", "type": "server_error"})
                await response.write(self._event(json.dumps({"error": fault})))
            case "done":
                await response.write(self._event("[DONE]"))
            case "stall":
                await pause(request, math.inf)
        if cut["mode"] in ("reset", "half_event") and cut.get("framing") != "close":
            if request.transport is not None:
                request.transport.abort()
            return
        await response.write_eof()


class _Refused(Exception):
    """Answered with an error."""

    def __init__(
        self, status: int = 500, message: str = "Injected.", *, headers: Any = None, body: Any = None, **more: Any
    ) -> None:
        super().__init__(message)
        content = (
            {"error": {"message": message, "type": None, "code": None, "param": None, **more}} if body is None else body
        )
        self.response = web.Response(
            status=status, body=json.dumps(content).encode(), content_type="application/json", headers=headers
        )


@contextmanager
def serving(identity: Identity | None = None) -> Iterator[OpenAiService]:
    """Run an endpoint in a thread, on a port of its own; over TLS if it is given an identity."""
    service = OpenAiService(certificate=None if identity is None else identity.certificate)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", service.complete)
    with serving_app(app, tls=None if identity is None else identity.context()) as url:
        service.url = f"{url}/v1"
        yield service
