"""Posts to the subscribers of a request beside each other: in order to each, and none waits for another."""

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
"""For one subscriber. One that falls further behind counts as busy: it resumes from the log, which has everything."""


@dataclass
class _Lane:
    frames: deque[str] = field(default_factory=deque)
    running: bool = False


class SubscriberQueues:
    """One lane a subscriber. What is posted in a lane runs beside the caller, who hears of every outcome."""

    def __init__(
        self,
        connections: Connections,
        concurrency: Concurrency,
        report: Callable[[str, PostOutcome], None],
        now_s: Callable[[], float],
    ) -> None:
        """Wire the lanes.

        Args:
            connections: the sockets.
            concurrency: what the lanes run on.
            report: told the connection and the outcome of each frame, in the lane; it raises nothing.
            now_s: epoch seconds.
        """
        self._connections = connections
        self._concurrency = concurrency
        self._report = report
        self._now_s = now_s
        self._changed = concurrency.condition()
        self._lanes: dict[str, _Lane] = {}
        self._closed = False

    def send(self, post: Post) -> None:
        """Take frames for one subscriber, after all that were taken for it before."""
        subscriber = post.subscriber
        with self._changed:
            lane = self._lanes.setdefault(subscriber.connection_id, _Lane())
            overrun = len(lane.frames) + len(post.frames) > MAX_WAITING_FRAMES
            if overrun:
                lane.frames.clear()
            else:
                lane.frames.extend(post.frames)
            start = not lane.running and not overrun
            lane.running = lane.running or start
        if overrun:
            self._report(subscriber.connection_id, "busy")
        if start:
            self._concurrency.spawn(lambda: self._run(subscriber, lane), "post")

    def finish(self, *, timeout_s: float) -> bool:
        """Wait until everything is posted, at most so long, and give up the rest. Returns whether there was none."""
        with self._changed:
            done = self._changed.wait_for(lambda: not any(lane.running for lane in self._lanes.values()), timeout_s)
            self._closed = True
            return done

    def _run(self, subscriber: Subscriber, lane: _Lane) -> None:
        while (frame := self._take(lane)) is not None:
            outcome = post_frames(self._connections, Post(subscriber, (frame,)), self._now_s)
            if outcome != "delivered":
                with self._changed:
                    lane.frames.clear()
            self._report(subscriber.connection_id, outcome)

    def _take(self, lane: _Lane) -> str | None:
        """The next frame, or None when the lane is at its end."""
        with self._changed:
            if self._closed or not lane.frames:
                lane.running = False
                lane.frames.clear()
                self._changed.notify_all()
                return None
            return lane.frames.popleft()
