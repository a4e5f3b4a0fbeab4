"""One request's side of the conversation: what to send, and when. Without I/O and without a clock of its own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Literal

from cicada import errors as codes
from cicada.protocol.actions import Ask, Cancel, ClientAction, Resume
from cicada.protocol.events import Failed, Refused, Resumed
from cicada_client.errors import ClientError, ConnectionLost, RequestExpired, RequestRefused, RequestUnknown
from cicada_client.frames import EventFrame
from cicada_client.tail import RequestTail
from cicada_client.timing import Timing

Actions = list[ClientAction]


class Exchange:
    """Follows one request to its end over as many connections as that takes.

    Whoever owns the connection tells it what happens (:meth:`connected`, :meth:`disconnected`, :meth:`event`,
    :meth:`resumed`, :meth:`refused`, :meth:`fault`, and :meth:`tick` at :attr:`deadline`) and sends what these
    return. It ends by a terminal event, the last of :attr:`log`, or by a :attr:`failure`.

    An ``ask`` is sent again until an event shows that the server has the request: the same ``requestId`` twice is one
    request. From then on it is resumed. A cancelled request that the server never knew ends with an ``error`` event
    of ``seq`` 0, which stands in no log.
    """

    def __init__(self, request_id: str, ask: Ask | None, timing: Timing, rng: random.Random) -> None:
        """``ask`` is None for a request that was asked elsewhere."""
        self.tail = RequestTail(request_id)
        self.log: list[EventFrame] = []
        """Every event applied, in order."""
        self.failure: ClientError | None = None
        self.stalled = False
        """Whether the connection brings nothing any more and should be given up."""
        self._ask = ask
        self._timing = timing
        self._rng = rng
        self._known = ask is None
        self._asked = ask is None
        self._connected = False
        self._awaited: Literal["ask", "resume"] | None = None
        self._cancel: Literal["no", "wanted", "sent", "done"] = "no"
        self._sent_at = 0.0
        self._heard_at = 0.0
        self._gap_since = 0.0
        self._fruitless = 0
        self._refusals = 0
        self._progress = 0
        self._retry_at: float | None = None
        self._may_resume_at = -math.inf

    @property
    def request_id(self) -> str:
        """The request."""
        return self.tail.request_id

    @property
    def key(self) -> str:
        """Tells it from everything else that is open."""
        return self.tail.request_id

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.tail.terminal is not None or self.failure is not None

    @property
    def deadline(self) -> float | None:
        """When :meth:`tick` has something to do, if nothing happens before."""
        return min((when for when, _ in self._timers()), default=None)

    # --- what happens ---

    def connected(self, now: float) -> Actions:
        """A new connection is open."""
        self._connected = True
        self._heard_at = now
        if self._may_resume_at > now and self._known and self._cancel not in ("wanted", "sent"):
            self._retry_at = self._may_resume_at  # connections that break at once bring no storm of replays
            return []
        return self._open(now)

    def disconnected(self) -> None:
        """The connection is gone, and with it whatever reply was awaited."""
        self._connected = self.stalled = False
        self._awaited = self._retry_at = None

    def cancel(self, now: float) -> Actions:
        """The asker wants no more of it."""
        if self.ended or self._cancel != "no":
            return []
        self._cancel = "wanted"
        if not self._asked:
            self._end_unasked()
            return []
        return self._cancel_known(now)

    def abandon(self, failure: ClientError) -> None:
        """There will be no connection."""
        if not self.ended:
            self.failure = failure

    def event(self, frame: EventFrame, now: float) -> Actions:
        """An event of the request has come."""
        if self.ended:
            return []
        if not self._known and self._cancel == "no":
            self._retry_at = None  # the ask was not the frame that the gateway failed with
        self._known = self._asked = True
        self._heard_at = now
        if self._awaited == "ask":
            self._awaited = None
        if frame.terminal and self._cancel != "no":  # ended, by this or by something else
            self._cancel = "done"
        was_behind = self.tail.behind
        applied = self.tail.feed(frame)
        self.log.extend(applied)
        if applied:
            self._fruitless = self._refusals = 0
        if self.tail.behind and (applied or not was_behind):
            self._gap_since = now
        return [] if self.ended else self._cancel_known(now)

    def resumed(self, reply: Resumed, now: float) -> Actions:
        """The reply to a ``resume``: what the log held has been replayed, though perhaps not all of it has come."""
        if self.ended:
            return []
        self._heard_at = now
        if self._awaited == "resume":
            self._awaited = None
        match reply.outcome:
            case "unknown":
                self.failure = RequestUnknown(f"the server knows no request {self.request_id} of this user")
            case "expired":
                self.failure = RequestExpired(f"the log of {self.request_id} is not kept any more")
            case "live" | "finished":
                self._known = True
                self.tail.note_last_seq(reply.last_seq)
                if reply.outcome == "finished":  # a terminal event exists, and has not been applied
                    self.tail.note_last_seq(self.tail.applied + 1)
                self._gap_since = now
        return [] if self.ended else self._cancel_known(now)

    def refused(self, reply: Refused, now: float) -> Actions:
        """The server refused a frame of this request."""
        if self.ended or not self._awaits_reply():
            return []
        self._heard_at = now
        if reply.code == codes.RequestUnknown.code and self._cancel == "sent" and not self._known:
            self._end_unasked()
        elif reply.code == codes.RequestUnknown.code:
            self.failure = RequestUnknown(f"the server knows no request {self.request_id} of this user")
        elif reply.code == codes.RequestExpired.code:
            self.failure = RequestExpired(f"the log of {self.request_id} is not kept any more")
        elif reply.retryable and reply.limit is None:  # a limit is freed by its time: the asker decides
            self._try_again(RequestRefused.of(reply), now)
        else:
            self.failure = RequestRefused.of(reply)
        return []

    def fault(self, message: str, now: float, progress: int = 0) -> Actions:
        """The gateway failed with some frame: perhaps with one of this request, if a reply is awaited.

        Args:
            message: the gateway's.
            now: the time.
            progress: grows with everything that comes over the connection, whichever request it is of: as long as the
                server gets on, a burst is borne, however often this request's turn does not come.
        """
        if not self.ended and self._awaits_reply():
            self._heard_at = now
            moving, self._progress = progress > self._progress, progress
            self._try_again(RequestRefused("gateway_fault", message), now, moving=moving)
        return []

    def tick(self, now: float) -> Actions:
        """Do what is due."""
        actions: Actions = []
        while due := [timer for timer in self._timers() if timer[0] <= now]:
            _, act = min(due, key=lambda timer: timer[0])
            actions += act(now)
        return actions

    # --- what follows ---

    def _timers(self) -> Iterator[tuple[float, Callable[[float], Actions]]]:
        if not self._connected or self.ended or self.stalled:
            return
        if self._retry_at is not None:
            yield self._retry_at, self._open
        elif self._awaits_reply():
            yield self._sent_at + self._timing.reply_s, self._miss_reply
        else:
            if self.tail.behind:
                patience_s = min(self._timing.gap_s * 2**self._fruitless, self._timing.silence_s)
                yield max(self._gap_since + patience_s, self._may_resume_at), self._fill_gap
            yield self._heard_at + self._timing.silence_s, self._resume

    def _awaits_reply(self) -> bool:
        return self._awaited is not None or self._cancel == "sent"

    def _open(self, now: float) -> Actions:
        """Send what this request needs said on a connection that knows nothing of it."""
        self._retry_at = None
        if self._cancel in ("wanted", "sent"):
            return self._send_cancel(now)
        if self._known or self._ask is None:
            return self._resume(now)
        self._asked = True
        self._awaited, self._sent_at = "ask", now
        return [self._ask]

    def _resume(self, now: float) -> Actions:
        self._awaited, self._sent_at = "resume", now
        self._may_resume_at = now + self._timing.gap_s
        return [Resume(requestId=self.request_id, after=self.tail.applied)]

    def _fill_gap(self, now: float) -> Actions:
        self._fruitless += 1
        if self._fruitless > self._timing.attempts:
            self.failure = ConnectionLost(f"event {self.tail.applied + 1} of {self.request_id} could not be had")
            return []
        return self._resume(now)

    def _miss_reply(self, now: float) -> Actions:
        """A reply is overdue. If other things came, it alone was lost; if nothing did, the connection is dead."""
        if self._heard_at <= self._sent_at:
            self.stalled = True
            return []
        self._awaited = None
        if self._cancel == "sent":
            return self._send_cancel(now)
        return [] if self._known else self._open(now)

    def _cancel_known(self, now: float) -> Actions:
        """Cancel once the server is known to have the request: earlier, the ``cancel`` could overtake the ``ask``."""
        ready = self._cancel == "wanted" and self._known and self._connected
        return self._send_cancel(now) if ready else []

    def _send_cancel(self, now: float) -> Actions:
        self._cancel, self._sent_at, self._retry_at = "sent", now, None
        return [Cancel(requestId=self.request_id)]

    def _try_again(self, failure: ClientError, now: float, *, moving: bool = False) -> None:
        self._refusals += 1
        if self._refusals > self._timing.attempts and not moving:
            self.failure = failure
            return
        self._awaited = None
        again_at = now + self._timing.backoff_s(self._refusals, self._rng)
        self._retry_at = max(again_at, self._may_resume_at)

    def _end_unasked(self) -> None:
        event = Failed.of(codes.Cancelled())
        raw = {"requestId": self.request_id, "seq": 0, **event.model_dump(mode="json", by_alias=True)}
        frame = EventFrame(self.request_id, 0, event, raw)
        self.tail.conclude(frame)
        self.log.append(frame)
