"""Drives an attempt's :class:`~cicada.delivery.outbox.Outbox`: commits to the log and posts to the sockets.

It runs on a thread of its own, so that neither the store nor a slow reader holds up the reading of the model's stream.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from cicada.delivery.outbox import Outbox, Post, Wait
from cicada.delivery.ports import Conflict, Connections, RequestLog, StoreFault
from cicada.delivery.posting import forget_subscriber, post_frames
from cicada.delivery.record import MAX_SUBSCRIBERS, Commit, Head
from cicada.errors import DeliveryUnavailable
from cicada.protocol.events import LogEvent

logger = logging.getLogger(__name__)


class Courier:
    """A context: within it, text and events are delivered in order.

    Every method raises what stopped the delivery: ``Fenced``, ``AnswerTooLong`` or ``DeliveryUnavailable``.
    """

    def __init__(
        self,
        outbox: Outbox,
        log: RequestLog,
        connections: Connections,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outbox = outbox
        self._log = log
        self._connections = connections
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._stopping = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self._pool = ThreadPoolExecutor(MAX_SUBSCRIBERS, thread_name_prefix="post")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop. What is not committed by now is dropped: the next attempt begins with a clean slate."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()
        self._pool.shutdown()

    def text(self, piece: str) -> None:
        """Take a piece of the answer."""
        self._offer(lambda: self._outbox.text(piece))

    def event(self, event: LogEvent) -> None:
        """Take an event."""
        self._offer(lambda: self._outbox.event(event))

    def close(self, terminal: LogEvent, *, timeout_s: float) -> None:
        """Take the terminal event and wait until it is committed and posted.

        Raises:
            DeliveryUnavailable: it is not committed within ``timeout_s``.
        """
        self._offer(lambda: self._outbox.close(terminal))
        with self._changed:
            done = self._changed.wait_for(lambda: self._closed or self._failure is not None, timeout_s)
            self._raise_failure()
            if not done:
                raise DeliveryUnavailable(f"the last event was not stored within {timeout_s} s")

    @property
    def first_chunk_at(self) -> float | None:
        """When the first text was committed, on the monotonic clock."""
        return self._outbox.first_chunk_at

    @property
    def head(self) -> Head:
        """The head after the last commit."""
        return self._outbox.head

    def _offer(self, change: Callable[[], None]) -> None:
        with self._changed:
            self._raise_failure()
            change()
            self._changed.notify()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._post(self._outbox.opening())
            while (commit := self._next()) is not None:
                posts = self._commit(commit)
                self._post(posts)
                if commit.state != "open" and posts is not None:
                    break
            with self._changed:
                self._closed = not self._stopping
                self._changed.notify_all()
        except BaseException as error:  # carried to the thread that offers
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _next(self) -> Commit | None:
        """The next commit to make; None once it is told to stop."""
        with self._changed:
            while not self._stopping:
                step = self._outbox.next(self._monotonic())
                if isinstance(step, Commit):
                    return step
                self._changed.wait(step.seconds if isinstance(step, Wait) else None)
        return None

    def _commit(self, commit: Commit) -> tuple[Post, ...] | None:
        """Make a commit. Returns what to post of it, or None when the store failed and it is to be tried again."""
        try:
            head = self._log.commit(self._outbox.head, commit)
        except StoreFault as error:
            logger.warning("the log could not be written", extra={"why": str(error)})
            with self._changed:
                self._outbox.store_failed(self._monotonic())
            return None
        except Conflict as conflict:
            with self._changed:
                return self._outbox.conflicted(conflict.head, conflict.entries, self._monotonic())
        with self._changed:
            return self._outbox.committed(head, self._monotonic())

    def _post(self, posts: tuple[Post, ...] | None) -> None:
        if not posts:
            return
        if len(posts) == 1:
            outcomes = [post_frames(self._connections, posts[0])]
        else:
            outcomes = list(self._pool.map(lambda post: post_frames(self._connections, post), posts))
        for post, outcome in zip(posts, outcomes, strict=True):
            with self._changed:
                gone = self._outbox.posted(post.connection_id, outcome, self._monotonic())
            if gone:
                forget_subscriber(self._log, self._outbox.head, post.connection_id)
