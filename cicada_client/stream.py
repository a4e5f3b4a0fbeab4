"""An answer as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from cicada.errors import CicadaError
from cicada.protocol.events import Failed
from cicada_client.errors import AnswerFailed
from cicada_client.exchange import Exchange
from cicada_client.frames import ClientEvent, EventFrame, UnknownEvent
from cicada_client.tail import Answer


class AnswerStream:
    """The events of one request, each once and in order, up to the terminal one.

    Iterating it yields the events; :meth:`frames` yields them with their places in the log. It can be iterated more
    than once, and by several tasks: each gets every event from the first on. An answer that nobody iterates goes on.

    Raises:
        ConnectionLost, ConnectionRefused, Unauthorized, RequestRefused, RequestExpired, RequestUnknown: while
            iterating, after the last event that could be had.
    """

    def __init__(self, exchange: Exchange, cancel: Callable[[], None]) -> None:
        """Made by the client."""
        self._exchange = exchange
        self._cancel = cancel
        self._news = asyncio.Event()

    @property
    def request_id(self) -> str:
        """The request's id: another client of the same user can resume it by this."""
        return self._exchange.request_id

    @property
    def answer(self) -> Answer:
        """What is known of the answer so far."""
        return self._exchange.tail.answer()

    @property
    def failure(self) -> AnswerFailed | None:
        """Why there is no answer, once the request has ended with an ``error`` event."""
        frame = self._exchange.tail.terminal
        match frame and frame.event:
            case Failed(code=code, message=message, retryable=retryable):
                return AnswerFailed(code, message, retryable=retryable, text=self.answer.text)
            case UnknownEvent(type="error", fields=fields):
                return AnswerFailed(
                    str(fields.get("code", CicadaError.code)),
                    str(fields.get("message", CicadaError.told)),
                    retryable=bool(fields.get("retryable")),
                    text=self.answer.text,
                )
        return None

    async def __aiter__(self) -> AsyncIterator[ClientEvent]:
        """Yield each event."""
        async for frame in self.frames():
            yield frame.event

    async def frames(self) -> AsyncIterator[EventFrame]:
        """Yield each event in its frame."""
        read = 0
        while (frame := await self.frame(read)) is not None:
            read += 1
            yield frame

    async def frame(self, index: int) -> EventFrame | None:
        """Wait for one event, counted from 0; None if the request ends before it.

        Raises:
            ConnectionLost, ConnectionRefused, Unauthorized, RequestRefused, RequestExpired, RequestUnknown: it cannot
                be had.
        """
        while True:
            if index < len(self._exchange.log):
                return self._exchange.log[index]
            if self._exchange.failure is not None:
                raise self._exchange.failure
            if self._exchange.ended:
                return None
            await self._news.wait()

    async def cancel(self) -> None:
        """Cancel the request, and return when it has ended: by the cancellation, or by an earlier terminal event.

        Raises:
            ConnectionLost, ConnectionRefused, Unauthorized, RequestRefused, RequestExpired, RequestUnknown: it is
                not known whether it has.
        """
        self._cancel()
        async for _ in self.frames():
            pass

    def notify(self) -> None:
        """Wake waiting readers; the client calls this when the exchange has changed."""
        self._news.set()
        self._news = asyncio.Event()
