"""A request's record: its head, and its log of events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from cicada.protocol.events import Degraded, LogEvent, StrategyFailure, StrategyName, event_frame, load_event
from cicada.usage.limits import MICRO
from cicada.usage.reservations import NOTHING, Amount, Reservation

MAX_SUBSCRIBERS = 3
"""Connections that follow one request: a second tab, a phone."""
MAX_LOG_BYTES = 256 * 1024
"""UTF-8 bytes of all events of one request; a longer answer ends with an error."""

State = Literal["open", "complete", "failed"]


@dataclass(frozen=True)
class RequestKey:
    """The user and the client's id of the question; another user's request has another key."""

    subject: str
    request_id: str


@dataclass(frozen=True)
class Subscriber:
    """A connection that follows a request until its token expires."""

    connection_id: str
    expires_at: int | None = None
    """Epoch seconds; None for a connection without a token, and in older records."""

    def expired(self, now_s: float) -> bool:
        """Whether its token has expired: it gets no more events."""
        return self.expires_at is not None and self.expires_at <= now_s


@dataclass(frozen=True)
class Question:
    """What was asked."""

    query: str
    session_id: str | None = None
    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    top_k: int | None = None
    tenant: str | None = None
    """The asker's, if the token names one: earlier answers may be shared within it."""
    groups: tuple[str, ...] = field(default=(), compare=False)
    """The asker's when it was asked: they say which collections may be read. A newer token may name others."""
    documents: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


@dataclass(frozen=True)
class Standalone:
    """A question that can be understood without its conversation."""

    query: str
    degraded: Degraded | None = None
    """What to tell the client if it could not be completed."""
    in_own_words: bool = False
    """Of a completed question: every content word is the asker's. Answers may quote anything, so they do not count."""
    rests_on: tuple[str, ...] | None = ()
    """The collections that the turns rested on from which it was completed; None where that is not known."""


@dataclass(frozen=True)
class RequestSpend:
    """What attempts have used of text models, as far as known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    """None if a model's price or usage is unknown."""
    known_usd: float = 0.0
    """As far as it is known."""
    unreported: Amount = NOTHING
    """What calls whose usage was not reported may have used: their shares of the request's budget."""

    @property
    def counted(self) -> Amount:
        """What counts as used: what is known, and what calls without a report may have used."""
        tokens, microusd = self.unreported
        return Amount(self.input_tokens + self.output_tokens + tokens, round(self.known_usd * MICRO) + microusd)

    def __add__(self, other: RequestSpend) -> RequestSpend:
        """The sum of both."""
        return RequestSpend(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
            self.known_usd + other.known_usd,
            Amount(*(one + more for one, more in zip(self.unreported, other.unreported, strict=True))),
        )


@dataclass(frozen=True)
class Changed:
    """The changes that an attempt made for the user; they stay even if the attempt fails."""

    attempt: int
    told: tuple[str, ...]
    """A description of each change."""


@dataclass(frozen=True)
class LogEntry:
    """One event of the log. ``body`` is its JSON without ``requestId`` and ``seq``."""

    seq: int
    attempt: int
    body: str

    def frame(self, request_id: str) -> str:
        """The frame that a client receives."""
        return event_frame(request_id, self.seq, self.body)

    def event(self) -> LogEvent | None:
        """The event; None if a newer release wrote it and this one cannot read it."""
        try:
            return load_event(self.body)
        except ValueError:
            return None


@dataclass(frozen=True)
class Fence:
    """The position that a writer expects; its write lands only if the log is there and the request is open."""

    attempt: int
    last_seq: int


@dataclass(frozen=True)
class RequestHead:
    """A request without its events."""

    key: RequestKey
    question: Question
    origin: str
    """The frame that created it: distinguishes a repeated write of that frame from another frame with the same id."""
    accepted_at_ms: int
    expires_at: int
    """Epoch seconds; afterwards the request is expired, whether or not it is still stored."""
    state: State = "open"
    attempt: int = 0
    strategy: StrategyName | None = None
    """Of the attempt, once one has begun."""
    execution: str | None = None
    """The workflow execution that drives the request, once one has claimed it."""
    worker: str | None = None
    """The invocation that runs the attempt: distinguishes a repeated begin from another worker's."""
    lease_until: int = 0
    """When the worker's claim ends, in epoch seconds; every write extends it. Before any claim: when one is due."""
    failed: tuple[StrategyFailure, ...] = ()
    """Every attempt before this one, in order, and why it failed."""
    reserved_calls: int = 0
    """Model calls that were allotted to the attempts so far."""
    takeovers: int = 0
    """How often its workflow was restarted because its worker was lost."""
    standalone: Standalone | None = None
    """The completed question, once an attempt has completed it."""
    spent: RequestSpend = RequestSpend()
    """By failed attempts that could still report it."""
    changed: Changed | None = None
    """By the last attempt that changed anything."""
    last_seq: int = 1
    log_bytes: int = 0
    withdrawn: bool = False
    """It was blocked, and items of its withdrawn events may be left: see :meth:`RequestLog.purge`."""
    subscribers: tuple[Subscriber, ...] = ()
    reservation: Reservation | None = None
    """What is reserved for it; None if no limit concerns it. It stays when it is settled."""

    @property
    def used(self) -> Amount:
        """What counts as used at settlement. Estimates for calls without reported usage never exceed the
        reservation."""
        counted = self.spent.counted
        if self.reservation is None:
            return counted
        known = replace(self.spent, unreported=NOTHING).counted
        return Amount(*map(max, known, map(min, counted, self.reservation.most)))

    @property
    def fence(self) -> Fence:
        """The fence of a write to this head."""
        return Fence(self.attempt, self.last_seq)

    def expired(self, now_s: float) -> bool:
        """Whether its retention has ended."""
        return self.expires_at <= now_s

    def frame(self, seq: int, body: str) -> str:
        """The frame of one of its events."""
        return event_frame(self.key.request_id, seq, body)


@dataclass(frozen=True)
class AttemptClaim:
    """What the begin of an attempt changes on the head."""

    attempt: int
    strategy: StrategyName
    execution: str
    worker: str
    failed: tuple[StrategyFailure, ...] = ()
    """Every attempt before it, and why it failed."""
    calls: int = 0
    """Model calls that this attempt may make."""
    reserved_calls: int = 0
    """Model calls of all attempts so far, including this one."""


@dataclass(frozen=True)
class Commit:
    """One atomic change of a request: events appended under a fence, and new values of the head (None: unchanged).

    The events get the places from ``fence.last_seq + 1`` on. Committing the same value twice is harmless: the second
    finds the fence moved by the first (see :func:`cicada.delivery.decide.has_landed`).
    """

    fence: Fence
    bodies: tuple[str, ...]
    """Empty in a heartbeat, which only extends the lease."""
    state: State = "open"
    claim: AttemptClaim | None = None
    lease_until: int | None = None
    standalone: Standalone | None = None
    spent: RequestSpend | None = None
    changed: Changed | None = None
    log: tuple[LogEntry, ...] = ()
    """Every event before these, where bodies of them are replaced; empty where the log stays as it is."""

    @property
    def attempt(self) -> int:
        """The attempt of the events."""
        return self.claim.attempt if self.claim else self.fence.attempt

    @property
    def last_seq(self) -> int:
        """The log's highest seq after the commit."""
        return self.fence.last_seq + len(self.bodies)

    @property
    def added_bytes(self) -> int:
        """UTF-8 bytes by which the log grows."""
        return sum(len(body.encode()) for body in self.bodies)

    def entries(self) -> tuple[LogEntry, ...]:
        """The events with their places."""
        first = self.fence.last_seq + 1
        return tuple(LogEntry(first + i, self.attempt, body) for i, body in enumerate(self.bodies))
