"""A request's record: its head, and its log of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cicada.protocol.events import Degraded, StrategyFailure, StrategyName, event_frame

MAX_SUBSCRIBERS = 3
"""Connections that tail one request: a second tab, a phone."""
MAX_LOG_BYTES = 256 * 1024
"""UTF-8 bytes of all events of one request; an answer that outgrows it ends with an error."""

State = Literal["open", "complete", "failed"]


@dataclass(frozen=True)
class RequestKey:
    """Who asked, and the client's id of the question: another user's request is simply absent."""

    subject: str
    request_id: str


@dataclass(frozen=True)
class Subscriber:
    """A connection that follows a request until its token expires."""

    connection_id: str
    expires_at: int | None = None
    """Epoch seconds. None for a connection without a token, and in records that were stored without this field."""

    def expired(self, now_s: float) -> bool:
        """Whether its token has expired: nothing of the request may reach it any more."""
        return self.expires_at is not None and self.expires_at <= now_s


@dataclass(frozen=True)
class Question:
    """What was asked, as the workers need it."""

    query: str
    session_id: str | None = None
    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    top_k: int | None = None
    tenant: str | None = None
    """The asker's, where the token names one: earlier answers may be shared within it."""


@dataclass(frozen=True)
class Standalone:
    """A question as completed from its conversation."""

    query: str
    degraded: Degraded | None = None
    """What is to be said of it, if it could not be completed as it should."""
    in_own_words: bool = False
    """Every telling word is the asker's: none comes from an answer, which may quote anything."""


@dataclass(frozen=True)
class RequestSpend:
    """What attempts have used of text models, as far as it is known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    """None where a model's price, or what it used, is not known."""

    def __add__(self, other: RequestSpend) -> RequestSpend:
        """Both together."""
        return RequestSpend(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


@dataclass(frozen=True)
class Changed:
    """What an attempt has changed for the user: that stays, whatever becomes of the attempt."""

    attempt: int
    told: tuple[str, ...]
    """Each change in words for people."""


@dataclass(frozen=True)
class LogEntry:
    """One event in its place in the log. ``body`` is the event's JSON without ``requestId`` and ``seq``."""

    seq: int
    attempt: int
    body: str

    def frame(self, request_id: str) -> str:
        """The frame that a client receives."""
        return event_frame(request_id, self.seq, self.body)


@dataclass(frozen=True)
class Fence:
    """What a writer believes of the log; its write lands only if that still holds and the request is open."""

    attempt: int
    last_seq: int


@dataclass(frozen=True)
class RequestHead:
    """A request without its events."""

    key: RequestKey
    question: Question
    origin: str
    """What created it: tells a repeated create of the same frame from another frame with the same id."""
    accepted_at_ms: int
    expires_at: int
    """Epoch seconds; past it the request is expired, whether it is still stored or not."""
    state: State = "open"
    attempt: int = 0
    strategy: StrategyName | None = None
    """The strategy of the attempt, once one has begun."""
    execution: str | None = None
    """The workflow execution that drives the request, once one has claimed it."""
    worker: str | None = None
    """The invocation that runs the attempt: tells a repeated begin from another worker's."""
    lease_until: int = 0
    """Epoch seconds until which the worker's claim holds, which every write of it moves on; before any claim, until
    which one is awaited."""
    failed: tuple[StrategyFailure, ...] = ()
    """Every attempt before this one, in order, and why it failed."""
    reserved_calls: int = 0
    """Calls to text models that were allotted to the attempts so far."""
    takeovers: int = 0
    """How often its workflow was started again because nobody worked on it."""
    standalone: Standalone | None = None
    """The question as completed from the conversation, once an attempt has done so."""
    spent: RequestSpend = RequestSpend()
    """By the attempts that failed and could still say so."""
    changed: Changed | None = None
    """By the last attempt that has changed anything."""
    last_seq: int = 1
    log_bytes: int = 0
    subscribers: tuple[Subscriber, ...] = ()

    @property
    def fence(self) -> Fence:
        """The fence that a write must carry to land on this head."""
        return Fence(self.attempt, self.last_seq)

    def expired(self, now_s: float) -> bool:
        """Whether its retention has ended."""
        return self.expires_at <= now_s

    def frame(self, seq: int, body: str) -> str:
        """The frame of one of its events."""
        return event_frame(self.key.request_id, seq, body)


@dataclass(frozen=True)
class AttemptClaim:
    """What the beginning of an attempt changes on the head."""

    attempt: int
    strategy: StrategyName
    execution: str
    worker: str
    failed: tuple[StrategyFailure, ...] = ()
    """Every attempt before it, and why it failed."""
    calls: int = 0
    """Calls to text models that this attempt may make."""
    reserved_calls: int = 0
    """Those of all attempts so far, this one's included."""


@dataclass(frozen=True)
class Commit:
    """One atomic change of a request: events appended under a fence, and what changes with them.

    The events take the places ``fence.last_seq + 1`` and on. Committing the same value twice is harmless: the second
    finds the fence moved by the first (see :func:`cicada.delivery.decide.has_landed`).
    """

    fence: Fence
    bodies: tuple[str, ...]
    """Empty in a heartbeat, which only moves the lease on."""
    state: State = "open"
    claim: AttemptClaim | None = None
    lease_until: int | None = None
    """Where the lease moves to; unchanged when None."""
    standalone: Standalone | None = None
    """What the head's ``standalone`` becomes; unchanged when None."""
    spent: RequestSpend | None = None
    """What the head's ``spent`` becomes; unchanged when None."""
    changed: Changed | None = None
    """What the head's ``changed`` becomes; unchanged when None."""

    @property
    def attempt(self) -> int:
        """The attempt under which the events stand."""
        return self.claim.attempt if self.claim else self.fence.attempt

    @property
    def last_seq(self) -> int:
        """The log's highest seq after the commit."""
        return self.fence.last_seq + len(self.bodies)

    @property
    def added_bytes(self) -> int:
        """By how much the log grows, in UTF-8 bytes."""
        return sum(len(body.encode()) for body in self.bodies)

    def entries(self) -> tuple[LogEntry, ...]:
        """The events in their places."""
        first = self.fence.last_seq + 1
        return tuple(LogEntry(first + i, self.attempt, body) for i, body in enumerate(self.bodies))
