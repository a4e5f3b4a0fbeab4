"""An ASGI application's start-up and shutdown.

Source: ASGI specification, "Lifespan Protocol".
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from cicada_http.bridge.exchange import App, Message


class StartFailed(Exception):
    """The application did not start."""


class Lifespan:
    """Starts the application when the block is entered, and shuts it down when it is left.

    An application that raises at the scope has no lifespan, as the specification says: it is served without.
    """

    def __init__(self, app: App) -> None:
        self.state: dict[str, Any] = {}
        """What the application keeps for its requests; each gets a copy."""
        self._app = app
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start it. Raises StartFailed."""
        self._task = asyncio.create_task(self._run(), name="lifespan")
        reply = await self._tell("lifespan.startup")
        if reply is not None and reply["type"] == "lifespan.startup.failed":
            raise StartFailed(str(reply.get("message") or "the application reported no reason"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shut it down."""
        assert self._task is not None
        await self._tell("lifespan.shutdown")
        await asyncio.gather(self._task, return_exceptions=True)

    async def _tell(self, kind: str) -> Message | None:
        """Send a message, and return the reply; None where the application takes none."""
        assert self._task is not None
        self._to_app.put_nowait({"type": kind})
        reply = asyncio.create_task(self._from_app.get())
        await asyncio.wait({reply, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        reply.cancel()
        return None

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        await self._app(scope, self._to_app.get, self._from_app.put)
