"""An asker: this repository's own client over sockets that break, and a record of all that comes over them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from cicada_client import AnswerStream, CicadaClient, ClientError, Timing
from cicada_client.connection import Transport, TransportClosed
from tests.chaos.place import Place
from tests.chaos.plans import Drop, Plan
from tests.chaos.questions import Asked
from tests.chaos.record import Followed, Frame, Screen, event_of, text_of
from tests.support.plain_sockets import open_socket

TIMING = Timing(
    open_s=10, reply_s=8, silence_s=6, gap_s=0.5, backoff_base_s=0.1, backoff_cap_s=2, attempts=40, first_attempts=40
)
"""Impatient, so that a run of minutes sees many resumes; and tenacious, for its faults come close together."""


class Asker:
    """Asks one question by a plan, and writes down what its readers see."""

    def __init__(
        self,
        place: Place,
        asked: Asked,
        plan: Plan,
        followed: Followed,
        *,
        session_id: str | None = None,
        rng: random.Random,
        dropped: Callable[[str], None],
    ) -> None:
        """``dropped`` is told of every socket that breaks by plan, with the kind of event."""
        self._place = place
        self._asked = asked
        self._plan = plan
        self._followed = followed
        self._session_id = session_id
        self._rng = rng
        self._dropped = dropped

    async def run(self) -> None:
        """Ask, and return when every reader has seen the end, or has gone."""
        plan, followed = self._plan, self._followed
        followed.cancelled = plan.cancels_after_s is not None
        followed.asked_at = time.monotonic()
        readers = [self._read(plan, asks=True)]
        if plan.second != "none":
            quiet = replace(plan, drops=(), cancels_after_s=None)
            readers.append(self._read(quiet, asks=plan.second == "asks"))
        await asyncio.gather(*readers)
        if plan.leaves_at is None:
            followed.ended_at = time.monotonic()

    async def _read(self, plan: Plan, *, asks: bool) -> None:
        screen = Screen()
        self._followed.screens.append(screen)
        sockets = _Sockets(self._followed.request_id, screen, plan.drops, self._dropped)
        rng = random.Random(self._rng.random())
        if not asks and not await self._created():
            return
        async with CicadaClient(
            self._place.url, token=self._place.token, timing=TIMING, connector=sockets.open, rng=rng
        ) as client:
            stream = self._begin(client, asks=asks)
            cancelling = asyncio.create_task(self._cancel(stream, plan.cancels_after_s))
            displayed: list[Frame] = []
            try:
                async for frame in stream.frames():
                    if frame.seq > 0:  # a request that the server never knew is ended by the client alone
                        displayed.append(dict(frame.raw))
                    if frame.event.type == plan.leaves_at:
                        screen.followed = False
                        break
            except ClientError as error:
                screen.failure = f"{type(error).__name__}: {error}"
            finally:
                cancelling.cancel()
                await asyncio.gather(cancelling, return_exceptions=True)
            screen.displayed = tuple(displayed)
            # Whoever leaves may not have looked at all that has come by then.
            screen.text = stream.answer.text if screen.followed else text_of(displayed)

    def _begin(self, client: CicadaClient, *, asks: bool) -> AnswerStream:
        request_id = self._followed.request_id
        if not asks:
            return client.resume(request_id)
        asked = self._asked
        return client.ask(asked.text, episodes=asked.episodes, session_id=self._session_id, request_id=request_id)

    async def _created(self) -> bool:
        """Wait until the first reader has seen an event; whether one came."""
        while self._followed.ended_at is None and self._followed.latest is None:
            await asyncio.sleep(0.05)
            if self._followed.screens[0].failure is not None:
                return False
        return True

    async def _cancel(self, stream: AnswerStream, after_s: float | None) -> None:
        if after_s is not None:
            await asyncio.sleep(after_s)
            with suppress(ClientError):
                await stream.cancel()


class _Sockets:
    """Opens one reader's sockets, each of which breaks where the next drop says."""

    def __init__(
        self, request_id: str, screen: Screen, drops: tuple[Drop, ...], dropped: Callable[[str], None]
    ) -> None:
        self._request_id = request_id
        self._screen = screen
        self._drops = list(drops)
        self._dropped = dropped
        self._offline_s = 0.0

    async def open(self, url: str, token: str | None) -> Transport:
        await asyncio.sleep(self._offline_s)
        self._offline_s = 0.0
        connection = await open_socket(url, token)
        return _Socket(connection, self._screen.opened(), self)

    def event(self, text: str | bytes) -> Frame | None:
        return event_of(text, self._request_id)

    def drop_at(self, kind: str) -> Drop | None:
        """The drop that is due at an event, each once."""
        due = next((drop for drop in self._drops if drop.kind == kind), None)
        if due is not None:
            self._drops.remove(due)
            self._offline_s = due.offline_s
            self._dropped(kind)
        return due


class _Socket:
    """A :class:`cicada_client.connection.Transport` that records, and breaks."""

    def __init__(self, connection: ClientConnection, arrived: list[Frame], sockets: _Sockets) -> None:
        self._connection = connection
        self._arrived = arrived
        self._sockets = sockets
        self._broken = False

    async def send(self, text: str) -> None:
        try:
            await self._connection.send(text)
        except WebSocketException as error:
            raise TransportClosed(str(error)) from error

    async def receive(self) -> str | bytes:
        if self._broken:
            raise TransportClosed("dropped")
        try:
            text: str | bytes = await self._connection.recv()
        except WebSocketException as error:
            raise TransportClosed(str(error)) from error
        frame = self._sockets.event(text)
        if frame is not None:
            self._arrived.append(frame)
            drop = self._sockets.drop_at(frame["type"])
            if drop is not None:
                self._broken = True
                self._connection.transport.abort()
                if drop.frame_lost:
                    raise TransportClosed("dropped")
        return text

    async def close(self) -> None:
        await self._connection.close()
