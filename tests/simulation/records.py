"""What is known of each request, apart from the production code's own view of it."""

from __future__ import annotations

from typing import Any

from cicada.errors import AnswerBlocked
from cicada.protocol.events import TERMINAL_TYPES
from tests.simulation.expressions import Item
from tests.simulation.models import Call

Key = tuple[str, str]
"""Subject and request id."""


class Record:
    """What is known of one request."""

    def __init__(self, key: Key, created_at: float) -> None:
        self.key = key
        self.created_at = created_at
        self.events: list[dict[str, Any]] = []
        self.attempts: list[int] = []
        """Of each event, the attempt under which it stands."""
        self.frames: dict[int, str] = {}
        self.withdrawn: dict[int, str] = {}
        """The frames that stood in the log before they were withdrawn; one that was under way may still arrive."""
        self.workers: dict[int, str] = {}
        """By attempt."""
        self.begun_at: dict[int, float] = {}
        self.calls: list[Call] = []
        self.agent_calls: list[Call] = []
        """Those for the turns of agents, which have a token budget in place of a count."""
        self.judge_calls: list[Call] = []
        """Those that judged an attempt's citations."""
        self.ended_at: float | None = None
        self.item: Item = {}

    @property
    def blocked(self) -> bool:
        """Whether it ended as blocked."""
        return bool(self.terminal and self.terminal.get("code") == AnswerBlocked.code)

    @property
    def all_calls(self) -> list[Call]:
        """Of every kind."""
        return self.calls + self.agent_calls + self.judge_calls

    @property
    def terminal(self) -> dict[str, Any] | None:
        """The event that ended it."""
        return self.events[-1] if self.events and self.events[-1]["type"] in TERMINAL_TYPES else None

    def text_of(self, attempt: int) -> str:
        """The text that the log holds of an attempt."""
        return "".join(e["content"] for e in self.events if e["type"] == "chunk" and e["attempt"] == attempt)
