"""What one asker saw of one request, written down frame by frame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Frame = dict[str, Any]
"""An event of a request's log, as it came over the wire."""

TERMINAL_TYPES = ("complete", "error")
BLOCKED = "answer_blocked"
"""The code of an end that withdraws the text before it."""


@dataclass
class Screen:
    """One reader of a request: a tab, with the sockets that it had one after the other."""

    arrived: list[list[Frame]] = field(default_factory=list)
    """The request's events as each socket brought them, repeats included."""
    displayed: tuple[Frame, ...] = ()
    """What the client applied, in order."""
    text: str = ""
    """What stood on the screen at the end."""
    failure: str | None = None
    """Why the client gave up, if it did."""
    followed: bool = True
    """Whether the reader stayed to the end."""

    def opened(self) -> list[Frame]:
        """A new socket: where its frames go."""
        self.arrived.append([])
        return self.arrived[-1]


@dataclass
class Followed:
    """One request: what was asked, what its readers saw, and what the log holds."""

    number: int
    request_id: str
    question: str
    cancelled: bool = False
    asked_at: float = 0.0
    """On the monotonic clock, as the next."""
    ended_at: float | None = None
    screens: list[Screen] = field(default_factory=list)
    log: tuple[Frame, ...] | None = None
    """As a fresh connection replays it at the end; None where that could not be had."""
    ended_alone: bool | None = None
    """Of a request whose readers had left: whether it ended without anybody's resume."""

    @property
    def latest(self) -> Frame | None:
        """The event with the highest seq that any reader got."""
        frames = [frame for screen in self.screens for socket in screen.arrived for frame in socket]
        return max(frames, key=lambda frame: int(frame["seq"]), default=None)

    @property
    def never_asked(self) -> bool:
        """Whether it was cancelled before the server had it: there is no log, and nobody saw an event of it."""
        return self.cancelled and self.log is None and self.latest is None

    @property
    def outcome(self) -> str:
        """How the log says that it ended: ``complete``, an error's code, ``open``, or that there is no log."""
        if self.never_asked:
            return "cancelled before it was asked"
        if self.log is None:
            return "lost"
        end = next((frame for frame in self.log if frame["type"] in TERMINAL_TYPES), None)
        if end is None:
            return "open"
        return "complete" if end["type"] == "complete" else str(end["code"])

    @property
    def answered_by(self) -> str | None:
        """The strategy that answered."""
        end = self.log[-1] if self.log else {}
        answered_by: str | None = end.get("answeredBy")
        return answered_by


def event_of(text: str | bytes, request_id: str) -> Frame | None:
    """A frame, if it is an event of this request."""
    try:
        frame: Frame = json.loads(text)
    except ValueError:
        return None
    known = isinstance(frame, dict) and frame.get("requestId") == request_id
    return frame if known and frame.get("seq", 0) > 0 else None


def text_of(frames: Iterable[Frame]) -> str:
    """The text that stands on a screen after these events: of the last attempt alone, and none of a blocked answer."""
    text = ""
    for frame in frames:
        if frame["type"] == "withdrawn" or (frame["type"] == "error" and frame["code"] == BLOCKED):
            return ""
        if frame["type"] in ("attempt", "fallback"):
            text = ""
        elif frame["type"] == "chunk":
            text += frame["content"]
    return text


def attempts_of(frames: Sequence[Frame]) -> list[list[Frame]]:
    """The events of each attempt: from one ``attempt`` event to the next ``fallback`` or ``attempt``."""
    attempts: list[list[Frame]] = []
    inside = False
    for frame in frames:
        if frame["type"] == "attempt":
            attempts.append([])
        inside = frame["type"] == "attempt" or (inside and frame["type"] != "fallback")
        if inside:
            attempts[-1].append(frame)
    return attempts


def write_record(path: Path, requests: Iterable[Followed]) -> None:
    """Write down all that was seen of each request: a JSON object a line."""
    lines = (json.dumps(asdict(one), ensure_ascii=False) for one in requests)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
