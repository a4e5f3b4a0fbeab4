"""The open requests and calls of a client over their shared connection, without I/O and clock."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from cicada import errors as codes
from cicada.protocol.actions import ClientAction, Ping
from cicada.protocol.conversations import FeedbackGiven
from cicada.protocol.events import Confirmed, Pong, Refused, Resumed
from cicada_client.call import Call, CallReply, feedback_key
from cicada_client.errors import ClientError, Unauthorized
from cicada_client.exchange import Exchange
from cicada_client.frames import EventFrame, GatewayFaultFrame, parse_frame
from cicada_client.timing import Timing

logger = logging.getLogger(__name__)


class ConnectionDead(Exception):
    """The connection is open but delivers nothing any more."""


class RequestRegistry:
    """Hands frames to the exchange or the call that they concern, and keeps the connection from being cut.

    Its owner tells it what happens, sends what gathers in :attr:`outgoing`, and calls :meth:`tick` at
    :meth:`deadline`.
    """

    def __init__(self, timing: Timing, on_change: Callable[[Exchange | Call], None]) -> None:
        """``on_change`` is called for every exchange or call with new events or an end."""
        self.outgoing: deque[ClientAction] = deque()
        self.opened_at: float | None = None
        """When the connection was opened; None without one."""
        self.events = 0
        """Events applied and calls answered: what measures progress."""
        self._timing = timing
        self._on_change = on_change
        self._exchanges: dict[str, Exchange | Call] = {}
        self._active_at = 0.0
        self._pinged_at: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a request is open."""
        return bool(self._exchanges)

    # --- requests ---

    def add(self, exchange: Exchange | Call, now: float) -> None:
        """Add a request or a call."""
        self._exchanges[exchange.key] = exchange
        if self.opened_at is not None:
            self._after(exchange, exchange.connected(now))

    def cancel(self, request_id: str, now: float) -> None:
        """Cancel a request if it is open."""
        exchange = self._exchanges.get(request_id)
        if isinstance(exchange, Exchange):
            self._after(exchange, exchange.cancel(now))

    def give_up(self, failure: ClientError) -> None:
        """End every request: there will be no connection."""
        for exchange in list(self._exchanges.values()):
            exchange.abandon(failure)
            self._after(exchange, ())

    # --- the connection ---

    def opened(self, now: float) -> None:
        """A new connection is open."""
        self.opened_at = self._active_at = now
        self._pinged_at = None
        self.outgoing.clear()
        for exchange in list(self._exchanges.values()):
            self._after(exchange, exchange.connected(now))

    def lost(self) -> None:
        """The connection is gone."""
        self.opened_at = None
        self.outgoing.clear()
        for exchange in self._exchanges.values():
            exchange.disconnected()

    def sent(self, now: float) -> None:
        """A frame went out."""
        self._active_at = now

    def received(self, text: str | bytes, now: float) -> None:
        """A frame came in.

        Raises:
            Unauthorized: it says that the connection's token is not accepted any more.
        """
        self._active_at = now
        self._pinged_at = None
        frame = parse_frame(text)
        match frame:
            case Refused(code=codes.Unauthorized.code):
                raise Unauthorized(frame.message)
            case Refused(request_id=None) | GatewayFaultFrame():
                logger.warning("a frame was not accepted", extra={"reason": frame.message})
                for exchange in list(self._exchanges.values()):
                    self._after(exchange, exchange.fault(frame.message, now, self.events))
            case Pong() | None:
                pass
            case _:
                if concerned := self._concerned(frame):
                    self._after(concerned, self._hand(frame, concerned, now))

    def _concerned(self, frame: EventFrame | Resumed | Refused | CallReply) -> Exchange | Call | None:
        """The recipient of a frame. A refusal names a request, which may also have a waiting confirmation."""
        request_id = frame.request_id or ""
        match frame:
            case Confirmed():
                return self._exchanges.get(f"{request_id} {frame.confirmation_id}")
            case FeedbackGiven():
                rating = feedback_key(request_id)
                return next((one for key, one in self._exchanges.items() if key.startswith(rating)), None)
            case Refused():
                open_ones = (one for one in self._exchanges.values() if one.request_id == request_id)
                return min(open_ones, key=lambda one: isinstance(one, Exchange), default=None)
            case _:
                return self._exchanges.get(request_id)

    def _hand(
        self, frame: EventFrame | Resumed | Refused | CallReply, exchange: Exchange | Call, now: float
    ) -> Sequence[ClientAction]:
        if isinstance(exchange, Call):
            return self._answer(frame, exchange, now)
        match frame:
            case EventFrame():
                known = len(exchange.log)
                actions = exchange.event(frame, now)
                self.events += len(exchange.log) - known
                return actions
            case Resumed():
                return exchange.resumed(frame, now)
            case Refused():
                return exchange.refused(frame, now)
            case _:
                return ()

    def _answer(
        self, frame: EventFrame | Resumed | Refused | CallReply, call: Call, now: float
    ) -> Sequence[ClientAction]:
        match frame:
            case Refused():
                return call.refused(frame, now)
            case EventFrame() | Resumed():
                return ()
            case _:
                self.events += 1
                call.replied(frame)
                return ()

    def tick(self, now: float) -> None:
        """Do what is due on an open connection.

        Raises:
            ConnectionDead: give it up.
        """
        for exchange in list(self._exchanges.values()):
            self._after(exchange, exchange.tick(now))
            if exchange.stalled:
                raise ConnectionDead(f"no reply within {self._timing.reply_s:g} s")
        if self._pinged_at is not None:
            if now >= self._pinged_at + self._timing.reply_s:
                raise ConnectionDead(f"no answer to a ping within {self._timing.reply_s:g} s")
        elif now >= self._active_at + self._timing.ping_s:
            self._pinged_at = now
            self.outgoing.append(Ping())

    def deadline(self) -> float:
        """When :meth:`tick` or :meth:`retired` has something to say, if nothing happens before."""
        if self._pinged_at is None:
            ping = self._active_at + self._timing.ping_s
        else:
            ping = self._pinged_at + self._timing.reply_s
        deadlines = (exchange.deadline for exchange in self._exchanges.values())
        return min(ping, self._retires_at(), *(due for due in deadlines if due is not None))

    def retired(self, now: float) -> bool:
        """Whether the connection is so old that it should be given back before it is cut."""
        return now >= self._retires_at()

    def _retires_at(self) -> float:
        grace_s = self._timing.retire_grace_s if self._exchanges else 0.0
        return (self.opened_at or 0.0) + self._timing.retire_s + grace_s

    def _after(self, exchange: Exchange | Call, actions: Sequence[ClientAction]) -> None:
        if self.opened_at is not None:
            self.outgoing.extend(actions)
        if exchange.ended:
            self._exchanges.pop(exchange.key, None)
        self._on_change(exchange)
