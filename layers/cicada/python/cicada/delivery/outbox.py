"""The delivery of one attempt, without I/O: what to commit, what to post, when to wait.

The driver (:mod:`cicada.delivery.driver`) feeds it the strategy's text and events and the outcome of every effect, and
carries out what :meth:`Outbox.next` and :meth:`Outbox.committed` return. Text that arrives while a commit is in flight
is collected and sent as one event. While nothing arrives, the attempt's lease is renewed and the request is watched, so
that a cancellation or take-over is noticed soon.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cicada.delivery.decide import LEASE_S, append, has_landed, lease_from
from cicada.delivery.record import Changed, Commit, LogEntry, RequestHead, RequestSpend, Standalone, Subscriber
from cicada.errors import DeliveryUnavailable
from cicada.protocol.events import Chunk, LogEvent


class Fenced(Exception):
    """Another attempt has begun, or the request has ended: this attempt can change nothing any more."""


@dataclass(frozen=True)
class OutboxLimits:
    """How often an attempt writes and watches."""

    min_interval_s: float = 0.1
    """Between two commits: at most about 10 events a second."""
    max_interval_s: float = 2.0
    """Between two commits while the store fails."""
    store_budget_s: float = 15.0
    """How long the store may fail before the attempt gives up."""
    suspend_s: float = 2.0
    """How long a busy subscriber is skipped at first; doubles each time."""
    max_suspend_s: float = 16.0
    watch_s: float = 0.5
    """How long after the last write the head is read: a cancelled answer stops within a second."""
    renew_s: float = LEASE_S / 2
    """How long after the last write the lease is renewed."""
    max_chunk_bytes: int = 16 * 1024
    """Of one chunk's text, as JSON."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do for so long unless more arrives."""

    seconds: float


@dataclass(frozen=True)
class Watch:
    """Read the head and report it to :meth:`Outbox.watched`."""


@dataclass(frozen=True)
class Post:
    """Frames for one subscriber, in order."""

    subscriber: Subscriber
    frames: tuple[str, ...]


PostOutcome = Literal["delivered", "gone", "expired", "busy"]


@dataclass
class _Reader:
    suspended_until: float = 0.0
    suspend_s: float = 0.0


class Outbox:
    """See the module. Times are seconds of one monotonic clock."""

    def __init__(
        self,
        head: RequestHead,
        limits: OutboxLimits | None = None,
        *,
        begun: Commit | None = None,
        now: float = 0.0,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Start an attempt's delivery.

        Args:
            head: after the commit that began the attempt.
            begun: that commit, which is posted first.
            now: the monotonic clock at that commit.
            now_s: epoch seconds, for the lease.
        """
        self._limits = limits or OutboxLimits()
        self._now_s = now_s
        self._renewed_at = now
        self._watched_at = now
        self._standalone: Standalone | None = None
        self._spent: RequestSpend | None = None
        self._changed: Changed | None = None
        self._told: tuple[str, ...] = ()
        self._head = head
        self._queue: list[LogEvent | str] = []
        self._closing = False
        self._in_flight: Commit | None = None
        self._carries_chunk = False
        self._not_before = 0.0
        self._interval_s = self._limits.min_interval_s
        self._failing_since: float | None = None
        self._readers: dict[str, _Reader] = {}
        self._begun = begun
        self.first_chunk_at: float | None = None
        """When the first text was committed."""

    @property
    def head(self) -> RequestHead:
        """The head after the last commit."""
        return self._head

    @property
    def idle(self) -> bool:
        """Whether everything is committed."""
        noted = (self._standalone, self._spent, self._changed)
        return not self._queue and noted == (None, None, None) and self._in_flight is None

    def opening(self) -> tuple[Post, ...]:
        """The first posts: the attempt's begin."""
        if self._begun is None:
            return ()
        frames = tuple(entry.frame(self._head.key.request_id) for entry in self._begun.entries())
        return tuple(Post(subscriber, frames) for subscriber in self._head.subscribers)

    def text(self, piece: str) -> None:
        """Add a piece of the answer."""
        if self._queue and isinstance(self._queue[-1], str):
            self._queue[-1] += piece
        elif piece:
            self._queue.append(piece)

    def event(self, event: LogEvent) -> None:
        """Add an event, after all text before it."""
        self._queue.append(event)

    def fail(self, spent: RequestSpend) -> None:
        """The attempt has failed: drop unwritten text, and store what was spent."""
        self._queue = [item for item in self._queue if not isinstance(item, str)]
        self._note(spent)

    def standalone(self, standalone: Standalone) -> None:
        """Store the completed question for attempts that may follow."""
        self._standalone = standalone

    def changed(self, told: str) -> None:
        """Store the description of a change that was made for the user, for attempts that may follow."""
        if told not in self._told:
            self._told = (*self._told, told)
            self._changed = Changed(self._head.attempt, self._told)

    def close(self, terminal: LogEvent, spent: RequestSpend) -> None:
        """Add the terminal event, and store what the attempt has spent; nothing may come after it."""
        self._queue.append(terminal)
        self._note(spent)
        self._closing = True

    def _note(self, spent: RequestSpend) -> None:
        if spent.calls:
            self._spent = self._head.spent + spent

    def next(self, now: float) -> Commit | Watch | Wait:
        """The next step: make a commit and report its outcome, read the head and report it, or wait.

        Raises:
            AnswerTooLong: the log would exceed its limit.
        """
        if self.idle:
            return self._sign_of_life(now)
        if now < self._not_before and not (self._closing and self._failing_since is None):
            return Wait(self._not_before - now)
        if self._in_flight is None:
            events = self._take()
            self._carries_chunk = any(isinstance(event, Chunk) for event in events)
            self._in_flight = replace(
                append(self._head, events) if events else Commit(self._head.fence, ()),
                lease_until=lease_from(self._now_s()),
                standalone=self._standalone,
                spent=self._spent,
                changed=self._changed,
            )
            self._standalone = self._spent = self._changed = None
        self._not_before = now + self._interval_s
        return self._in_flight

    def _sign_of_life(self, now: float) -> Commit | Watch | Wait:
        """The next step while there is nothing to write."""
        renew_in = self._renewed_at + self._limits.renew_s - now
        if renew_in <= 0:
            self._carries_chunk = False
            self._in_flight = Commit(self._head.fence, (), lease_until=lease_from(self._now_s()))
            self._not_before = now + self._interval_s
            return self._in_flight
        watch_in = self._watched_at + self._limits.watch_s - now
        if watch_in <= 0:
            self._watched_at = now
            return Watch()
        return Wait(min(renew_in, watch_in))

    def watched(self, head: RequestHead) -> None:
        """The head was read. Raises Fenced."""
        if head.state != "open" or head.attempt != self._head.attempt:
            raise _fenced(head)

    def committed(self, head: RequestHead, now: float) -> tuple[Post, ...]:
        """The commit has landed and the store returned ``head``. Returns the posts."""
        commit, self._in_flight = self._in_flight, None
        if commit is None:
            raise AssertionError("no commit is in progress")
        self._head = head
        self._renewed_at = self._watched_at = now
        self._failing_since = None
        self._interval_s = self._limits.min_interval_s
        if self._carries_chunk and self.first_chunk_at is None:
            self.first_chunk_at = now
        frames = tuple(entry.frame(head.key.request_id) for entry in commit.entries())
        return tuple(
            Post(subscriber, frames)
            for subscriber in head.subscribers
            if commit.state != "open" or self._reader(subscriber.connection_id).suspended_until <= now
        )

    def conflicted(self, head: RequestHead, entries: Sequence[LogEntry], now: float) -> tuple[Post, ...]:
        """The commit met a conflict. If it had landed and its acknowledgement was lost, returns the posts.

        Raises:
            Fenced: another attempt has begun, or the request has ended.
        """
        if self._in_flight is not None and has_landed(self._in_flight, head, entries):
            # Another attempt's events may already follow ours: keep our own fence, so that the next commit fails.
            mine = replace(head, attempt=self._in_flight.attempt, last_seq=self._in_flight.last_seq)
            return self.committed(mine, now)
        raise _fenced(head)

    def store_failed(self, now: float) -> None:
        """The store failed: the same commit, which may have landed, is repeated after a longer interval.

        Raises:
            DeliveryUnavailable: the store has failed for longer than its budget.
        """
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since >= self._limits.store_budget_s:
            raise DeliveryUnavailable(f"the log could not be written for {now - self._failing_since:.1f} s")
        self._interval_s = min(self._interval_s * 2, self._limits.max_interval_s)
        self._not_before = now + self._interval_s

    def posted(self, connection_id: str, outcome: PostOutcome, now: float) -> bool:
        """Take the outcome of a post. Returns whether to forget the subscriber.

        A busy subscriber is skipped for a while; its client sees the gap in ``seq`` and resumes.
        """
        reader = self._reader(connection_id)
        if outcome == "delivered":
            reader.suspend_s = 0.0
        elif outcome == "busy":
            reader.suspend_s = min(max(self._limits.suspend_s, reader.suspend_s * 2), self._limits.max_suspend_s)
            reader.suspended_until = now + reader.suspend_s
        else:
            self._readers.pop(connection_id, None)
        return outcome in ("gone", "expired")

    def _reader(self, connection_id: str) -> _Reader:
        return self._readers.setdefault(connection_id, _Reader())

    def _take(self) -> list[LogEvent]:
        events: list[LogEvent] = []
        for item in self._queue:
            if isinstance(item, str):
                events.extend(
                    Chunk(attempt=self._head.attempt, content=part)
                    for part in split_text(item, self._limits.max_chunk_bytes)
                )
            else:
                events.append(item)
        self._queue.clear()
        return events


def _fenced(head: RequestHead) -> Fenced:
    return Fenced(f"request is {head.state}, attempt {head.attempt}, seq {head.last_seq}")


MIN_PART_BYTES = 12
"""The longest escape of one character in JSON."""


def split_text(text: str, max_bytes: int) -> list[str]:
    """Cut text between characters into parts of at most ``max_bytes`` (see :func:`json_bytes`).

    ``max_bytes`` is at least :data:`MIN_PART_BYTES`.
    """
    parts: list[str] = []
    while text:
        cut = min(len(text), max_bytes)
        while (size := json_bytes(text[:cut])) > max_bytes:
            cut = max(1, min(cut - 1, cut * max_bytes // size))
        parts.append(text[:cut])
        text = text[cut:]
    return parts


def json_bytes(text: str) -> int:
    """The UTF-8 bytes of a text as JSON, without its quotation marks."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2
