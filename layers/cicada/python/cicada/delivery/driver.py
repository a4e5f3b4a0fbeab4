"""Drives an attempt's :class:`~cicada.delivery.outbox.Outbox`: commits to the log and posts to the connections.

It runs in the background, so that the attempt never waits for the store. Each subscriber has a queue of its own, so
that a slow one delays neither the others nor the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from cicada.concurrency import THREADS, Concurrency, Running
from cicada.delivery.outbox import Outbox, Post, PostOutcome, Watch
from cicada.delivery.ports import Conflict, Connections, RequestLog, StoreFault
from cicada.delivery.posting import forget_subscriber
from cicada.delivery.record import Commit, RequestHead, RequestSpend, Standalone
from cicada.delivery.subscriber_queues import SubscriberQueues
from cicada.errors import DeliveryUnavailable
from cicada.protocol.events import LogEvent
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

LAST_POSTS_S = 3.0
"""How long the last posts may take: longer than one post's time-out. A client that misses one resumes."""


class DeliveryDriver:
    """A context manager that delivers text and events in order.

    Every method raises the error that stopped the delivery: ``Fenced``, ``AnswerTooLong`` or ``DeliveryUnavailable``.
    """

    def __init__(
        self,
        outbox: Outbox,
        log: RequestLog,
        connections: Connections,
        *,
        on_failure: Callable[[], None] = lambda: None,
        concurrency: Concurrency = THREADS,
        now_s: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_failure`` is called from the background when the delivery stops, so that the model can stop too."""
        self._outbox = outbox
        self._log = log
        self._monotonic = monotonic
        self._on_failure = on_failure
        self._concurrency = concurrency
        self._queues = SubscriberQueues(connections, concurrency, self._posted, now_s)
        self._changed = concurrency.condition()
        self._failure: BaseException | None = None
        self._stopping = False
        self._closed = False
        self._running: Running | None = None
        self._writes = 0
        self._outcomes: dict[PostOutcome, int] = {"delivered": 0, "gone": 0, "expired": 0, "busy": 0}

    def __enter__(self) -> Self:
        self._running = self._concurrency.spawn(self._run, "delivery")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop. Everything that is not committed is dropped: the next attempt starts from the log."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._running is not None:
            self._running.join()
        self._queues.finish(timeout_s=LAST_POSTS_S)
        log_event(
            logger,
            "delivered",
            "delivery ended",
            attempt=self.head.attempt,
            last_seq=self.head.last_seq,
            writes=self._writes,
            posts=self._outcomes["delivered"],
            posts_failed=sum(self._outcomes.values()) - self._outcomes["delivered"],
        )

    def text(self, piece: str) -> None:
        """Deliver a piece of the answer."""
        self._offer(lambda: self._outbox.text(piece))

    def event(self, event: LogEvent) -> None:
        """Deliver an event."""
        self._offer(lambda: self._outbox.event(event))

    def standalone(self, standalone: Standalone) -> None:
        """Store the question as completed from the conversation."""
        self._offer(lambda: self._outbox.standalone(standalone))

    def changed(self, told: str) -> None:
        """Store the description of a change that was made for the user."""
        self._offer(lambda: self._outbox.changed(told))

    def close(self, terminal: LogEvent, spent: RequestSpend, *, timeout_s: float) -> None:
        """Deliver the terminal event of an attempt that ``spent`` so much, and wait until it is committed.

        It is posted by the end of the context.

        Raises:
            DeliveryUnavailable: it was not committed within ``timeout_s``.
        """
        self._offer(lambda: self._outbox.close(terminal, spent))
        with self._changed:
            done = self._changed.wait_for(lambda: self._closed or self._failure is not None, timeout_s)
            self.raise_failure()
            if not done:
                raise DeliveryUnavailable(f"the last event was not stored within {timeout_s} s")

    def fail(self, spent: RequestSpend, *, timeout_s: float) -> None:
        """The attempt has failed after it ``spent`` so much: drop unwritten text, wait until the events are written."""
        with self._changed:
            self._outbox.fail(spent)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._outbox.idle or self._failure is not None, timeout_s)
            self.raise_failure()

    @property
    def first_chunk_at(self) -> float | None:
        """When the first text was committed, on the monotonic clock."""
        return self._outbox.first_chunk_at

    @property
    def head(self) -> RequestHead:
        """The head after the last commit."""
        return self._outbox.head

    def _offer(self, change: Callable[[], None]) -> None:
        with self._changed:
            self.raise_failure()
            change()
            self._changed.notify_all()

    def raise_failure(self) -> None:
        """Raise the error that stopped the delivery, if any."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._post(self._outbox.opening())
            while (commit := self._next()) is not None:
                posts = self._commit(commit)
                if posts is None:
                    continue
                self._post(posts)
                if commit.state != "open":
                    with self._changed:
                        self._closed = True
                        self._changed.notify_all()
                    break
        except BaseException as error:  # raised again in the attempt's thread
            with self._changed:
                self._failure = error
                self._changed.notify_all()
            self._on_failure()

    def _next(self) -> Commit | None:
        """The next commit to make; None once it is to stop."""
        while (step := self._step()) is not None:
            if isinstance(step, Commit):
                return step
            self._watch()
        return None

    def _step(self) -> Commit | Watch | None:
        """The next step once it is due; None once it is to stop."""
        with self._changed:
            while not self._stopping:
                step = self._outbox.next(self._monotonic())
                if isinstance(step, Commit | Watch):
                    return step
                self._changed.wait(step.seconds)
        return None

    def _watch(self) -> None:
        """Check that the request is still this attempt's. A failed read is repeated later."""
        try:
            head = self._log.head(self._outbox.head.key)
        except StoreFault as error:
            logger.info("could not check the request's current attempt", extra={"why": str(error)})
            return
        self._outbox.watched(head)

    def _commit(self, commit: Commit) -> tuple[Post, ...] | None:
        """Make a commit. Returns the posts, or None if the store failed and the commit is to be tried again."""
        self._writes += 1
        try:
            head = self._log.commit(self._outbox.head, commit)
        except StoreFault as error:
            message = "the log could not be written"
            log_event(logger, "fault", message, level=logging.WARNING, dependency="log", why=str(error))
            with self._changed:
                self._outbox.store_failed(self._monotonic())
            return None
        except Conflict as conflict:
            with self._changed:
                return self._outbox.conflicted(conflict.head, conflict.entries, self._monotonic())
        with self._changed:
            posts = self._outbox.committed(head, self._monotonic())
            self._changed.notify_all()
            return posts

    def _post(self, posts: tuple[Post, ...]) -> None:
        for post in posts:
            self._queues.send(post)

    def _posted(self, connection_id: str, outcome: PostOutcome) -> None:
        with self._changed:
            self._outcomes[outcome] += 1
            forget = self._outbox.posted(connection_id, outcome, self._monotonic())
            head = self._outbox.head
        if forget:
            forget_subscriber(self._log, head, connection_id)
