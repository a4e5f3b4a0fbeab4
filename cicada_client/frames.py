"""What the client receives, read leniently.

The library's own models are strict about what they read. A client outlives the server's versions: it leaves unknown
fields aside, and of an event that has a part which it cannot read, that part alone, such as a source of a new kind.
What it has no model for even then is handed on as :class:`UnknownEvent`. Older servers' events are read as today's.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from cicada.errors import AnswerBlocked
from cicada.protocol.conversations import ConversationReply, FeedbackGiven
from cicada.protocol.corpus import CorpusReply
from cicada.protocol.events import TERMINAL_TYPES, Confirmed, LogEvent, Metrics, Pong, Refused, Resumed, StrategyFailure
from cicada.protocol.profiles import ProfileReply
from cicada.protocol.uploads import UploadReply


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
class GatewayFaultFrame:
    """API Gateway's own complaint about a frame, such as ``Internal server error``: it names no request of ours."""

    message: str


Reply = (
    Resumed | Refused | Confirmed | Pong | ProfileReply | CorpusReply | ConversationReply | FeedbackGiven | UploadReply
)
Incoming = EventFrame | Reply | GatewayFaultFrame

_MOST_ROUNDS = 8
"""How often parts are left aside: what is missing then takes what it is missing from with it."""
Part = TypeVar("Part", bound=BaseModel)

_EVENT: TypeAdapter[LogEvent] = TypeAdapter(Annotated[LogEvent, Field(discriminator="type")])
_REPLIES: Mapping[str, type[Reply]] = {reply.model_fields["type"].default: reply for reply in get_args(Reply)}


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
        return GatewayFaultFrame(message) if isinstance(message, str) else None
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        return None
    if seq == 0:
        return _parse_reply(kind, raw)
    request_id = raw.get("requestId")
    return EventFrame(request_id, seq, _parse_event(kind, raw), raw) if isinstance(request_id, str) else None


def _parse_reply(kind: str, raw: dict[str, Any]) -> Reply | None:
    model = _REPLIES.get(kind)
    if model is None:
        return None
    return _read(model, raw) or _read(model, {name: value for name, value in raw.items() if name != "limit"})


def failures_in(fields: Mapping[str, Any]) -> tuple[StrategyFailure, ...]:
    """The strategies that a terminal event tells of as failed, as far as they can be read."""
    failed = fields.get("failed")
    return tuple(filter(None, (_read(StrategyFailure, one) for one in failed))) if isinstance(failed, list) else ()


def metrics_in(fields: Mapping[str, Any]) -> Metrics | None:
    """What a terminal event says that the answer took; None if that cannot be read."""
    return _read(Metrics, fields.get("metrics"))


def withholds(event: Mapping[str, Any]) -> bool:
    """Whether an event says that the answer was blocked. Older servers' errors say so of the last strategy alone."""
    codes = (event.get("code"), _last_failure_code(event))
    return event.get("type") == "withdrawn" or (event.get("type") == "error" and AnswerBlocked.code in codes)


def _last_failure_code(fields: Mapping[str, Any]) -> str | None:
    """Why the last strategy failed, whatever its name."""
    failed = fields.get("failed")
    last = failed[-1] if isinstance(failed, list) and failed else None
    code = last.get("code") if isinstance(last, dict) else None
    return code if isinstance(code, str) else None


def _read(model: type[Part], raw: object) -> Part | None:
    try:
        return model.model_validate(raw, extra="ignore")
    except ValidationError:
        return None


def _parse_event(kind: str, raw: dict[str, Any]) -> ClientEvent:
    today = _of_today(raw) if kind == "complete" else raw
    try:
        return _EVENT.validate_python(today, extra="ignore")
    except ValidationError as error:
        found = _without(today, error)
    return found or UnknownEvent(kind, {name: value for name, value in raw.items() if name not in ("requestId", "seq")})


def _of_today(complete: dict[str, Any]) -> dict[str, Any]:
    """An older server's ``complete``, which said ``strategy`` for ``answeredBy``, and no more of what was tried."""
    if "answeredBy" in complete or "strategy" not in complete:
        return complete
    answered_by = complete["strategy"]
    tried = [failure.strategy for failure in failures_in(complete)]
    return {"attempted": [*tried, answered_by], **complete, "answeredBy": answered_by}


def _without(raw: dict[str, Any], error: ValidationError) -> LogEvent | None:
    """An event without the parts that cannot be read; None if it is nothing without them."""
    for _ in range(_MOST_ROUNDS):
        places = {_place(raw, one["loc"][1:]) for one in error.errors()}
        if () in places:
            return None
        for place in sorted(places, key=_in_order, reverse=True):  # the last of a list first, and parts before wholes
            raw = _removed(raw, place)
        try:
            return _EVENT.validate_python(raw, extra="ignore")
        except ValidationError as again:
            error = again
    return None


_Place = tuple[str | int, ...]


def _place(raw: Any, location: _Place) -> _Place:
    """Where in an event an error is: of something missing, that which it is missing from."""
    place: list[str | int] = []
    for part in location:
        there = isinstance(raw, dict) and part in raw if isinstance(part, str) else isinstance(raw, list)
        if there:  # otherwise it is a name that is missing, or the tag of one of several models
            raw = raw[part]
            place.append(part)
    return tuple(place)


def _in_order(place: _Place) -> list[tuple[bool, str | int]]:
    return [(isinstance(part, int), part) for part in place]


def _removed(raw: Any, place: _Place) -> Any:
    """A copy without a part."""
    first, *rest = place
    left = copy.copy(raw)
    if rest:
        left[first] = _removed(raw[first], tuple(rest))
    else:
        del left[first]
    return left
