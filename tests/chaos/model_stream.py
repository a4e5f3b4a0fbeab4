"""What a model said, read from the bytes of its response, whole or broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from botocore.eventstream import EventStreamBuffer, ParserError

_END_OF_HEAD = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(frozen=True)
class Said:
    """The text of one response, as far as it came."""

    status: int
    """HTTP's; 0 if not even that came."""
    text: str = ""
    stop_reason: str | None = None
    """None where the turn did not come to its end."""

    @property
    def whole(self) -> bool:
        """Whether the model came to its normal end."""
        return self.stop_reason in ("end_turn", "stop_sequence")


def read_response(operation: str, raw: bytes) -> Said:
    """Read the response of ``converse`` or ``converse-stream`` as it came over the wire: what can be read of it."""
    head, found, body = raw.partition(_END_OF_HEAD)
    if not found:
        return Said(0)
    status = int(head.split(b" ", 2)[1])
    if b"transfer-encoding: chunked" in head.lower():
        body = b"".join(_chunks(body))
    if status != 200:
        return Said(status)
    return _read_stream(body) if operation == "converse-stream" else _read_whole(body)


def has_ended(raw: bytes) -> bool:
    """Whether a response has come to its end over a connection that stays open."""
    head, found, body = raw.partition(_END_OF_HEAD)
    if not found:
        return False
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        return raw.endswith(_LAST_CHUNK)
    _, counted, rest = lower.partition(b"content-length:")
    return bool(counted) and len(body) >= int(rest.split(b"\r\n", 1)[0])


def _chunks(body: bytes) -> Iterator[bytes]:
    """The content of a chunked body, and of its last chunk as much as came."""
    place = 0
    while (end := body.find(b"\r\n", place)) >= 0:
        size = int(body[place:end].split(b";")[0] or b"0", 16)
        if size == 0:
            return
        yield body[end + 2 : end + 2 + size]
        place = end + 2 + size + 2


def _read_whole(body: bytes) -> Said:
    try:
        turn = json.loads(body)
        text = "".join(block.get("text", "") for block in turn["output"]["message"]["content"])
        return Said(200, text, turn["stopReason"])
    except (ValueError, KeyError):
        return Said(200)


def _read_stream(body: bytes) -> Said:
    frames = EventStreamBuffer()
    frames.add_data(body)
    pieces: list[str] = []
    stop_reason: str | None = None
    try:
        for frame in frames:
            kind = frame.headers.get(":event-type")
            content = json.loads(frame.payload) if frame.payload else {}
            if kind == "contentBlockDelta":
                pieces.append(content["delta"].get("text", ""))
            elif kind == "messageStop":
                stop_reason = content["stopReason"]
    except (ParserError, ValueError, KeyError):  # from here on it was broken on purpose
        pass
    return Said(200, "".join(pieces), stop_reason)
