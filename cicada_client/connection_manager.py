"""Keeps one connection open for the request registry as long as it is needed."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from cicada_client.connection import Connector, Transport, TransportClosed
from cicada_client.errors import ClientError, ConnectionLost, ConnectionRefused, Unauthorized
from cicada_client.request_registry import ConnectionDead, RequestRegistry
from cicada_client.timing import Timing

logger = logging.getLogger(__name__)

TokenProvider = Callable[[], Awaitable[str]]
"""Returns a token that is valid now; asked before every connection."""


@dataclass(frozen=True)
class Status:
    """The state of the connection, for display."""

    state: Literal["connecting", "connected", "waiting", "idle"]
    """``waiting``: it failed and is retried soon. ``idle``: no connection is open or needed."""
    failures: int = 0
    """In a row, up to now."""
    reason: str = ""
    """Of the last failure."""


class ConnectionManager:
    """Opens the connection when a request needs it, and again when it breaks, within the bounds of the timing."""

    def __init__(
        self,
        board: RequestRegistry,
        url: str,
        *,
        token: str | TokenProvider | None,
        timing: Timing,
        on_status: Callable[[Status], None] | None,
        connector: Connector,
        clock: Callable[[], float],
        sleep: Callable[[float], Coroutine[Any, Any, None]],
        rng: random.Random,
    ) -> None:
        """See :class:`~cicada_client.client.CicadaClient` for what is what."""
        self._board = board
        self._url = url
        self._token = token
        self._timing = timing
        self._on_status = on_status
        self._connector = connector
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._changed = asyncio.Event()
        self._failures = 0
        self._rejections = 0
        self._attempts = timing.first_attempts
        self._reason = ""
        self._status: Status | None = None

    def wake(self) -> None:
        """The registry has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Keep a connection, until cancelled."""
        try:
            while True:
                while not self._board.busy:
                    self._tell(Status("idle"))
                    await self._change()
                try:
                    transport = await self._open()
                except ClientError as error:
                    self._failures = self._rejections = 0
                    self._board.give_up(error)
                else:
                    await self._use(transport)
        except Exception as error:
            self._board.give_up(ClientError(f"the client has failed: {error!r}"))
            raise

    async def _open(self) -> Transport:
        """Open a connection, with as many attempts as it takes within the bound.

        Raises:
            ConnectionLost, ConnectionRefused, Unauthorized.
        """
        while True:
            if self._failures > self._attempts:
                raise ConnectionLost(f"gave up after {self._failures} failures in a row; the last: {self._reason}")
            if self._failures:
                self._tell(Status("waiting", self._failures, self._reason))
                await self._sleep(self._timing.backoff_s(self._failures, self._rng))
            self._tell(Status("connecting", self._failures, self._reason))
            try:
                async with asyncio.timeout(self._timing.open_s):
                    return await self._connector(self._url, await self._fresh_token())
            except Unauthorized as error:
                self._reject(error)
            except TransportClosed as error:
                self._fail(str(error))
            except TimeoutError:
                self._fail(f"no connection within {self._timing.open_s:g} s")

    async def _fresh_token(self) -> str | None:
        if not callable(self._token):
            return self._token
        try:
            return await self._token()
        except (ClientError, TransportClosed):
            raise
        except Exception as error:
            raise ConnectionRefused(f"no token: {error}") from error

    async def _use(self, transport: Transport) -> None:
        """Use a connection until it ends, and count how it ended."""
        self._attempts = self._timing.attempts
        self._board.opened(self._clock())
        self._tell(Status("connected"))
        opened_at = self._clock()
        works = (self._receive(transport), self._send(transport))
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._clock() - opened_at >= self._timing.stable_s:
                self._failures = 0
            await done.pop()
        except (TransportClosed, ConnectionDead) as error:
            if self._board.busy:
                self._fail(str(error) or "the connection was closed")
        except Unauthorized as error:
            try:
                self._reject(error)
            except Unauthorized:
                self._board.give_up(error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._board.lost()
            await transport.close()

    async def _receive(self, transport: Transport) -> None:
        """Take in what comes.

        Raises:
            TransportClosed, Unauthorized.
        """
        while True:
            text = await transport.receive()
            applied = self._board.events
            self._board.received(text, self._clock())
            if self._board.events > applied:
                self._failures = self._rejections = 0
            self._changed.set()

    async def _send(self, transport: Transport) -> None:
        """Send what is due when it is, and return when the connection is to be given back.

        Raises:
            TransportClosed, ConnectionDead.
        """
        while not self._board.retired(self._clock()):
            self._board.tick(self._clock())
            while self._board.outgoing:
                action = self._board.outgoing.popleft()
                await transport.send(action.model_dump_json(by_alias=True, exclude_none=True))
                self._board.sent(self._clock())
            await self._change(self._board.deadline() - self._clock())

    def _fail(self, reason: str) -> None:
        self._failures += 1
        self._reason = reason
        logger.info("connection failed", extra={"failures": self._failures, "reason": reason})

    def _reject(self, error: Unauthorized) -> None:
        """A token was rejected: a token provider gets one chance to return another."""
        self._rejections += 1
        if not callable(self._token) or self._rejections > 1:
            raise error
        self._fail(str(error))

    async def _change(self, timeout_s: float | None = None) -> None:
        """Wait until something has changed, or for the time."""
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(self._changed.wait())}
        if timeout_s is not None:
            waits.add(asyncio.create_task(self._sleep(max(0.0, timeout_s))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        self._changed.clear()

    def _tell(self, status: Status) -> None:
        if status != self._status:
            self._status = status
            if self._on_status is not None:
                self._on_status(status)
