"""Posts to the subscribers of a request in parallel: in order for each, and none waits for another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from cicada.concurrency import Concurrency
from cicada.delivery.outbox import Post, PostOutcome
from cicada.delivery.ports import Connections
from cicada.delivery.posting import post_frames
from cicada.delivery.record import Subscriber

MAX_WAITING_FRAMES = 100
"""Of one subscriber. One that falls further behind counts as busy and resumes from the log, which is complete."""


@dataclass
class _Queue:
    frames: deque[str] = field(default_factory=deque)
    running: bool = False


class SubscriberQueues:
    """One queue per subscriber; posts run in the background."""

    def __init__(
        self,
        connections: Connections,
        concurrency: Concurrency,
        report: Callable[[str, PostOutcome], None],
        now_s: Callable[[], float],
    ) -> None:
        """``report`` gets the connection and the outcome of each frame, in the background. It raises nothing."""
        self._connections = connections
        self._concurrency = concurrency
        self._report = report
        self._now_s = now_s
        self._changed = concurrency.condition()
        self._queues: dict[str, _Queue] = {}
        self._closed = False

    def send(self, post: Post) -> None:
        """Add frames to one subscriber's queue."""
        subscriber = post.subscriber
        with self._changed:
            queue = self._queues.setdefault(subscriber.connection_id, _Queue())
            overrun = len(queue.frames) + len(post.frames) > MAX_WAITING_FRAMES
            if overrun:
                queue.frames.clear()
            else:
                queue.frames.extend(post.frames)
            start = not queue.running and not overrun
            queue.running = queue.running or start
        if overrun:
            self._report(subscriber.connection_id, "busy")
        if start:
            self._concurrency.spawn(lambda: self._run(subscriber, queue), "post")

    def finish(self, *, timeout_s: float) -> bool:
        """Wait until everything is posted, then drop the rest. Returns whether everything was posted in time."""
        with self._changed:
            done = self._changed.wait_for(lambda: not any(queue.running for queue in self._queues.values()), timeout_s)
            self._closed = True
            return done

    def _run(self, subscriber: Subscriber, queue: _Queue) -> None:
        while (frame := self._take(queue)) is not None:
            outcome = post_frames(self._connections, Post(subscriber, (frame,)), self._now_s)
            if outcome != "delivered":
                with self._changed:
                    queue.frames.clear()
            self._report(subscriber.connection_id, outcome)

    def _take(self, queue: _Queue) -> str | None:
        """The next frame, or None at the end of the queue."""
        with self._changed:
            if self._closed or not queue.frames:
                queue.running = False
                queue.frames.clear()
                self._changed.notify_all()
                return None
            return queue.frames.popleft()
