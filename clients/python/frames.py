"""What the client receives, read leniently.

The library's own models are strict about what they read. A client outlives the server's versions: it leaves unknown
fields aside, and hands on as :class:`UnknownEvent` what it has no model for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from cicada.protocol.events import TERMINAL_TYPES, LogEvent, Pong, Refused, Resumed


@dataclass(frozen=True)
class UnknownEvent:
    """An event that this client has no model for: of a newer server."""

    type: str
    fields: Mapping[str, Any]


ClientEvent = LogEvent | UnknownEvent


@dataclass(frozen=True)
class EventFrame:
    """One event in its place in a request's log; ``raw`` is the frame as the server sent it."""

    request_id: str
    seq: int
    """Its place in the log; 0 for an ``error`` that the client itself has put at the end, see :mod:`.exchange`."""
    event: ClientEvent
    raw: Mapping[str, Any]

    @property
    def terminal(self) -> bool:
        """Whether it ends its request, whatever else it says."""
        return self.event.type in TERMINAL_TYPES


@dataclass(frozen=True)
class GatewayFault:
    """API Gateway's own complaint about a frame, such as ``Internal server error``: it names no request of ours."""

    message: str


Incoming = EventFrame | Resumed | Refused | Pong | GatewayFault

_EVENT: TypeAdapter[LogEvent] = TypeAdapter(Annotated[LogEvent, Field(discriminator="type")])
_REPLIES: Mapping[str, TypeAdapter[Resumed] | TypeAdapter[Refused] | TypeAdapter[Pong]] = {
    "resumed": TypeAdapter(Resumed),
    "error": TypeAdapter(Refused),
    "pong": TypeAdapter(Pong),
}


def parse_frame(text: str | bytes) -> Incoming | None:
    """Read one frame; None if it is nothing that a client could use."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    kind, seq = raw.get("type"), raw.get("seq")
    if not isinstance(kind, str):
        message = raw.get("message")
        return GatewayFault(message) if isinstance(message, str) else None
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        return None
    if seq == 0:
        return _parse_reply(kind, raw)
    request_id = raw.get("requestId")
    return EventFrame(request_id, seq, _parse_event(kind, raw), raw) if isinstance(request_id, str) else None


def _parse_reply(kind: str, raw: dict[str, Any]) -> Resumed | Refused | Pong | None:
    model = _REPLIES.get(kind)
    if model is None:
        return None
    try:
        return model.validate_python(raw, extra="ignore")
    except ValidationError:
        return None


def _parse_event(kind: str, raw: dict[str, Any]) -> ClientEvent:
    try:
        return _EVENT.validate_python(raw, extra="ignore")
    except ValidationError:
        return UnknownEvent(kind, {name: value for name, value in raw.items() if name not in ("requestId", "seq")})
