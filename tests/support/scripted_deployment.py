"""A deployment whose answers and replies are fixed, behind a real WebSocket, in a thread of its own."""

from __future__ import annotations

import asyncio
import http
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from cicada.errors import Cancelled, RequestUnknown
from cicada.protocol.actions import Ask, Cancel, ClientAction, Ping, Resume
from cicada.protocol.events import (
    TERMINAL_TYPES,
    Failed,
    LogEvent,
    Pong,
    Refused,
    Reply,
    Resumed,
    dump_event,
    event_frame,
    reply_frame,
)

PATIENCE_S = 30
HOLD = "hold"
"""A step of a script: it waits here for ``release``, or for the request's end."""
Step = LogEvent | str
_ACTION: TypeAdapter[ClientAction] = TypeAdapter(ClientAction)


class ScriptedDeployment:
    """A context: a server that answers each question of ``answers``, and other actions by ``reply``."""

    def __init__(
        self,
        answers: Mapping[str, Sequence[Step] | Refused] | None = None,
        reply: Callable[[Any], Reply] | None = None,
        *,
        token: str | None = None,
    ) -> None:
        """``token``: the only one that is accepted; any, or none, if it is None."""
        self.url = ""
        self.received: list[ClientAction] = []
        self.connections = 0
        self._answers = dict(answers or {})
        self._reply = reply
        self._token = token
        self._logs: dict[str, list[str]] = {}
        self._ended: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._go_on = asyncio.Event()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def release(self) -> None:
        """Let scripts go on past their holds."""
        self._loop.call_soon_threadsafe(self._go_on.set)

    def script(self, question: str, answer: Sequence[Step] | Refused) -> None:
        """Answer a question in another way from now on."""
        self._answers[question] = answer

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true of what was received. Raises TimeoutError."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"received: {self.received}")
            time.sleep(0.01)

    def actions(self, kind: type[Any]) -> list[Any]:
        """The received actions of a kind."""
        return [action for action in self.received if isinstance(action, kind)]

    async def _serve(self) -> None:
        async with serve(
            self._talk, "127.0.0.1", 0, process_request=self._admit, ping_interval=None, close_timeout=0.1
        ) as server:
            self.url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/live"
            self._ready.set()
            await self._stop.wait()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if self._token is None or request.headers.get("Authorization") in (self._token, f"Bearer {self._token}"):
            return None
        return connection.respond(http.HTTPStatus.UNAUTHORIZED, "no\n")

    async def _talk(self, connection: ServerConnection) -> None:
        self.connections += 1
        playing: list[asyncio.Task[None]] = []
        try:
            async for text in connection:
                action = _ACTION.validate_json(text)
                self.received.append(action)
                match action:
                    case Ping():
                        await connection.send(reply_frame(Pong()))
                    case Ask():
                        playing.append(asyncio.create_task(self._play(action, connection)))
                    case Cancel():
                        await self._append(action.request_id, Failed.of(Cancelled()), connection)
                        self._go_on.set()
                    case Resume():
                        await self._resume(action, connection)
                    case _:
                        assert self._reply is not None
                        reply = self._reply(action).model_copy(update={"request_id": action.request_id})
                        await connection.send(reply_frame(reply))
        except ConnectionClosed:
            pass
        for task in playing:
            task.cancel()

    async def _play(self, ask: Ask, connection: ServerConnection) -> None:
        steps = self._answers[ask.query]
        if isinstance(steps, Refused):
            await connection.send(reply_frame(steps.model_copy(update={"request_id": ask.request_id})))
            return
        for step in steps:
            if isinstance(step, str):
                await self._go_on.wait()
            else:
                await self._append(ask.request_id, step, connection)

    async def _append(self, request_id: str, event: LogEvent, connection: ServerConnection) -> None:
        if request_id in self._ended:
            return
        if event.type in TERMINAL_TYPES:
            self._ended.add(request_id)
        log = self._logs.setdefault(request_id, [])
        log.append(event_frame(request_id, len(log) + 1, dump_event(event)))
        await connection.send(log[-1])

    async def _resume(self, resume: Resume, connection: ServerConnection) -> None:
        log = self._logs.get(resume.request_id)
        if log is None:
            await connection.send(reply_frame(Refused.of(RequestUnknown(), resume.request_id)))
            return
        for frame in log[resume.after :]:
            await connection.send(frame)
        outcome = "finished" if resume.request_id in self._ended else "live"
        told = {"requestId": resume.request_id, "outcome": outcome, "lastSeq": len(log)}
        await connection.send(reply_frame(Resumed.model_validate(told)))
