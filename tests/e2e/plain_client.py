"""A plain client: what a socket brings, frame by frame."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Self
from uuid import uuid4

from websockets.sync.client import connect
from websockets.typing import Subprotocol

from cicada.subprotocols import BEARER, PROTOCOL

TERMINAL = ("complete", "error")
PATIENCE_S = 60


def offers(token: str | None) -> list[Subprotocol] | None:
    """The subprotocols that a browser offers with a token."""
    return None if token is None else [Subprotocol(PROTOCOL), Subprotocol(f"{BEARER}{token}")]


class Socket:
    """One WebSocket."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """Connect; a token is offered as a browser does it."""
        self._opened = contextlib.ExitStack()
        self._socket = self._opened.enter_context(
            connect(url, subprotocols=offers(token), open_timeout=PATIENCE_S, close_timeout=1)
        )
        self.subprotocol = self._socket.subprotocol
        self.frames: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._opened.close()

    def send(self, action: str, **fields: Any) -> None:
        self._socket.send(json.dumps({"action": action} | fields))

    def send_raw(self, frame: str | bytes) -> None:
        self._socket.send(frame)

    def receive(self, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self._socket.recv(timeout=timeout_s))
        self.frames.append(frame)
        return frame

    def until(self, *types: str, request_id: str | None = None) -> dict[str, Any]:
        """Receive until a frame of one of these types comes."""
        while True:
            frame = self.receive()
            if frame["type"] in types and request_id in (None, frame["requestId"]):
                return frame

    def ask(self, query: str, **fields: Any) -> str:
        request_id = fields.pop("requestId", None) or str(uuid4())
        self.send("ask", requestId=request_id, query=query, **fields)
        return request_id

    def answer(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        """Ask, and return the request's events in order once its terminal event is there."""
        request_id = self.ask(query, **fields)
        return self.events(request_id)

    def events(self, request_id: str) -> list[dict[str, Any]]:
        """Receive until a request's log is whole."""
        while not whole(log := of(self.frames, request_id)):
            self.receive()
        return log


def of(frames: list[dict[str, Any]], request_id: str) -> list[dict[str, Any]]:
    """A request's events in order, each once."""
    by_seq = {frame["seq"]: frame for frame in frames if frame["requestId"] == request_id and frame["seq"] > 0}
    return [by_seq[seq] for seq in sorted(by_seq)]


def applied(log: list[dict[str, Any]]) -> int:
    """Up to where a log has no gap."""
    seqs = {event["seq"] for event in log}
    return next(seq for seq in range(len(seqs) + 1) if seq + 1 not in seqs)


def whole(log: list[dict[str, Any]]) -> bool:
    """Whether nothing is missing up to a terminal event."""
    return bool(log) and log[-1]["type"] in TERMINAL and [event["seq"] for event in log] == list(range(1, len(log) + 1))
