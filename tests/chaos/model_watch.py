"""A tap on the way to the model: which calls went out, what each asked, and what the model said.

A proxy that passes bytes on as they come, faults included. It stands between the functions and the local cloud when
their ``AWS_ENDPOINT_URL_BEDROCK_RUNTIME`` names it, and counts model calls without a word from the code that makes
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.chaos.model_stream import Said, has_ended, read_response

VARIABLE = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"

_REQUEST = re.compile(rb"POST /model/([^/ ]+)/(converse-stream|converse|invoke) ")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_READ_BYTES = 65_536


@dataclass
class ModelCall:
    """One call of a text model."""

    model_id: str
    operation: str
    prompt: str
    """The user's turns."""
    at: float
    """When it came, on the monotonic clock."""
    raw: bytearray = field(default_factory=bytearray, repr=False)
    """The response so far."""
    closed_at: float | None = None
    """When its caller closed the connection before the response's end, or the service did."""

    @property
    def streaming(self) -> bool:
        """Whether more of the response is awaited."""
        return self.closed_at is None and not has_ended(bytes(self.raw))

    @property
    def said(self) -> Said:
        """What the model said."""
        return read_response(self.operation, bytes(self.raw))


class ModelWatch:
    """The proxy, in a thread of its own."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        """Every call of a text model so far, in order. Only the proxy's thread appends."""
        self._upstream: tuple[str, int] | None = None
        self._loop = asyncio.new_event_loop()
        self._address = ""
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="model-watch", daemon=True)
        self._thread.start()
        started.wait()

    @property
    def url(self) -> str:
        """What :data:`VARIABLE` is to be."""
        return self._address

    def forward_to(self, endpoint_url: str) -> None:
        """Where the model is; calls before this are refused."""
        parts = urlsplit(endpoint_url)
        self._upstream = (parts.hostname or "localhost", parts.port or 80)

    def streaming(self) -> list[ModelCall]:
        """The calls whose response is under way."""
        return [call for call in list(self.calls) if call.streaming]

    def close(self) -> None:
        """Cut every connection, and stop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        started.set()
        self._loop.run_forever()
        self._server.close()
        for task in self._connections:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._connections, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._pass_on(reader, writer)
        except OSError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._upstream is None:
            return
        from_model, to_model = await asyncio.open_connection(*self._upstream)
        requests = _Requests()

        async def ask() -> None:
            while data := await reader.read(_READ_BYTES):
                self.calls.extend(requests.feed(data))
                to_model.write(data)
                await to_model.drain()

        async def answer() -> None:
            while data := await from_model.read(_READ_BYTES):
                if requests.current is not None:
                    requests.current.raw += data
                writer.write(data)
                await writer.drain()

        ways = [asyncio.create_task(ask()), asyncio.create_task(answer())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            if requests.current is not None and requests.current.streaming:
                requests.current.closed_at = time.monotonic()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            to_model.close()
            with contextlib.suppress(OSError):
                await to_model.wait_closed()


class _Requests:
    """Tells the requests of one connection apart."""

    def __init__(self) -> None:
        self.current: ModelCall | None = None
        """The call whose response comes now; None while it is something else's."""
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[ModelCall]:
        """Take what the caller sends, and yield each call of a text model once it is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._buffer, 0, end)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < size:
                return
            request, self._buffer = self._buffer[:size], self._buffer[size:]
            self.current = _call(request, request[end + 4 :])
            if self.current is not None:
                yield self.current


def _call(request: bytes, body: bytes) -> ModelCall | None:
    found = _REQUEST.match(request)
    if found is None or found[2] == b"invoke":
        return None
    turns: list[dict[str, Any]] = json.loads(body)["messages"]
    prompt = "\n".join(_text(block) for turn in turns for block in turn["content"])
    return ModelCall(found[1].decode(), found[2].decode(), prompt, time.monotonic())


def _text(block: dict[str, Any]) -> str:
    """The text of a block, whether or not a guardrail is to look at it."""
    guarded = block.get("guardContent", {}).get("text", block)
    return str(guarded.get("text", ""))
