"""The sessions of agents: what was said, the attributes, and the calls that the caller still has to answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cicada_local.agents.turns import Result, Turn
from cicada_local.bedrock.errors import ValidationFailed


@dataclass(frozen=True)
class Awaited:
    """A call that was given back, and has no result yet."""

    use_id: str
    group: str
    function: str


@dataclass
class Session:
    """One session of one alias."""

    turns: list[Turn] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    prompt_attributes: dict[str, str] = field(default_factory=dict)
    invocation_id: str = ""
    awaited: list[Awaited] = field(default_factory=list)
    held: list[Result] = field(default_factory=list)
    """Results of the turn's other calls, which the service ran itself."""
    busy: bool = False
    until_s: float = 0.0
    """On the clock: when it is forgotten."""

    def wait_for(self, awaited: Sequence[Awaited], held: Sequence[Result]) -> str:
        """Wait for the caller's results; returns the invocation's id."""
        self.invocation_id = str(uuid.uuid4())
        self.awaited, self.held = list(awaited), list(held)
        return self.invocation_id

    def results(self, state: Mapping[str, Any]) -> Turn:
        """The caller's results as a turn. Raises ValidationFailed if they are not those that are waited for."""
        given = [one.get("functionResult") for one in state["returnControlInvocationResults"]]
        if not self.awaited or state.get("invocationId") != self.invocation_id:
            raise ValidationFailed("No invocation is waiting for these results: check the invocationId.")
        wanted = [(one.group, one.function) for one in self.awaited]
        if [(one and one["actionGroup"], one and one.get("function")) for one in given] != wanted:
            raise ValidationFailed("The results are not those of the functions that were returned.")
        results = list(self.held)
        for one, awaited in zip(given, self.awaited, strict=True):
            bodies = one.get("responseBody", {})
            if set(bodies) != {"TEXT"} or "body" not in bodies["TEXT"]:
                raise ValidationFailed("A function's responseBody has one content type, TEXT.")
            if one.get("responseState") == "FAILURE":
                raise ValidationFailed("A result with the state FAILURE is not served here.")
            results.append(Result(awaited.use_id, bodies["TEXT"]["body"], one.get("responseState") == "REPROMPT"))
        self.awaited, self.held, self.invocation_id = [], [], ""
        return Turn("user", results=tuple(results))


class Sessions:
    """All sessions; one that was not used for its agent's time is gone. Methods belong to one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[tuple[str, str, str], Session] = {}

    def at(self, agent_id: str, alias_id: str, session_id: str, ttl_s: float) -> Session:
        """A session, made now if there is none."""
        key = (agent_id, alias_id, session_id)
        now_s = self._clock()
        self._sessions = {one: kept for one, kept in self._sessions.items() if kept.busy or kept.until_s > now_s}
        session = self._sessions.setdefault(key, Session())
        session.until_s = now_s + ttl_s
        return session
