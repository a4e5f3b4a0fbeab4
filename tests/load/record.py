"""What one person saw of one request, and when; the frames in a form that thousands of them can be kept in."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.record import Followed, Frame, Screen
from tests.load.people import Kind

_KEPT = ("seq", "type", "attempt", "content", "code", "strategy", "answeredBy", "attempted", "indexVersion")
"""Fields that the check reads; the others are compared by their digest."""
MILESTONES = ("accepted", "attempt", "sources", "chunk", "complete", "error")


def compact(frame: Mapping[str, Any]) -> Frame:
    """A frame without what is long in it, and the digest of all of it."""
    whole = json.dumps(frame, sort_keys=True, ensure_ascii=False).encode()
    return {name: frame[name] for name in _KEPT if name in frame} | {"digest": hashlib.sha256(whole).hexdigest()[:16]}


@dataclass
class Request:
    """One question, as its asker saw it."""

    person: int
    kind: Kind
    followed: Followed
    at_once: int
    """Questions that were open when it was asked, itself among them."""
    is_slow: bool
    """Whether its asker reads slowly."""
    screen: Screen = field(default_factory=Screen)
    times: dict[str, float] = field(default_factory=dict)
    """Of the first event of each kind, on the monotonic clock."""
    first_chunk_ms: float | None = None
    """From acceptance to the first text, as the server's ``complete`` tells it."""
    drops: int = 0
    disordered: int = 0
    """Frames that came over a socket with another seq than the next: the client has mended it."""
    gateway_faults: int = 0
    """Frames of its asker that API Gateway could not hand on, while this question was open."""
    asked_again: int = 0
    """How often its asker asked it anew, with the same id, after the client had given up."""
    refused: bool = False
    """Whether its asker was told in the end that the server takes no question now."""
    _socket: object = None

    def arrived(self, frame: Mapping[str, Any], socket: object) -> None:
        """An event came over a socket."""
        if socket is not self._socket:
            self._socket = socket
            self.screen.opened()
        got = self.screen.arrived[-1]
        if got and frame["seq"] != got[-1]["seq"] + 1:
            self.disordered += 1
        got.append(compact(frame))
        self.times.setdefault(frame["type"], time.monotonic())
        if frame["type"] == "complete":
            self.first_chunk_ms = (frame.get("metrics") or {}).get("firstChunkMs")

    @property
    def first_text_s(self) -> float | None:
        """From asking to the first text, as the asker saw it."""
        return self.times["chunk"] - self.followed.asked_at if "chunk" in self.times else None

    @property
    def took_s(self) -> float | None:
        """From asking to the end."""
        return None if self.followed.ended_at is None else self.followed.ended_at - self.followed.asked_at


@dataclass
class Tally:
    """What a run counts as it goes."""

    asked: int = 0
    ended: int = 0
    open: int = 0
    most_open: int = 0
    drops: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    """What clients gave up with, by kind."""
    happened: list[tuple[float, str]] = field(default_factory=list)
    """What was done to the deployment, and after how many seconds."""
