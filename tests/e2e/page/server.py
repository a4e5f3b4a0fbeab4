"""A scripted Cicada for tests of the page: its files on a plain static host, and a server whose answers are fixed.

It keeps the contract of delivery towards a client that may be cut off at any time; the faults of its wire are chosen by
the test. Nothing waits for a time: a script stops at a :class:`Hold` until the test lets it go on.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from cicada.delivery.posting import EXPIRED
from cicada.errors import Cancelled, CicadaError, PassageUnknown, RequestUnknown, UnknownAction
from cicada.protocol.actions import (
    Ask,
    Cancel,
    ClientAction,
    ConfirmChange,
    ManageProfile,
    Ping,
    ReadPassages,
    Resume,
    parse_action,
    parse_corpus_action,
)
from cicada.protocol.corpus import DocumentRead, PassageRead, Passages
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
from stacks.page_bundle import page_bundle
from stacks.page_headers import page_headers
from tests.e2e.page.browser import PATIENCE_S

PREFIX = "/some/where/"
"""Below which the page lies: it must not rely on being at the top of its host."""


@dataclass(frozen=True)
class Hold:
    """The script waits here until ``ScriptedServer.release``."""


Step = LogEvent | dict[str, Any] | Hold
"""A plain dict is an event that this version of the protocol does not know."""


@dataclass
class Wire:
    """What goes wrong between the server and the page."""

    cuts: list[int] = field(default_factory=list)
    """The n-th connection is cut, as by a network, when this many events have been sent on it."""
    swallow_asks: int = 0
    """This many asks are cut off before the server takes note of them."""
    lose_accepted: int = 0
    """This many requests are taken up, and cut off before the reply."""
    lost: set[int] = field(default_factory=set)
    """Events that do not arrive when they are first sent."""
    doubled: bool = False
    swapped: bool = False
    """The first frames of a replay come in reverse."""
    deaf: bool = False
    """Frames are read and never answered."""
    refused: CicadaError | None = None
    """Every frame is refused."""
    silent: bool = False
    """Live events are not pushed: only a resume brings them."""


@dataclass
class _Log:
    frames: list[str] = field(default_factory=list)
    subscribers: list[_Socket] = field(default_factory=list)
    finished: bool = False
    question: Ask | None = None


class _Socket:
    """One connection, cut when its time has come."""

    def __init__(self, connection: ServerConnection, cut_after: int | None) -> None:
        self._connection = connection
        self._left = cut_after

    async def send(self, frame: str) -> None:
        try:
            await self._connection.send(frame)
        except ConnectionClosed:
            return

    async def send_event(self, frame: str) -> None:
        if self._left == 0:
            self.cut()
            return
        await self.send(frame)
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.cut()

    def cut(self) -> None:
        self._connection.transport.abort()


def _select(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The protocol, and never the token that is offered beside it."""
    return next((one for one in offered if one == "cicada.v1"), None)


KNOWN = frozenset({"ask", "resume", "cancel", "ping", "confirm", "profile", "read"})
"""Actions that the server answers by itself."""


def _parsed(text: str | bytes) -> ClientAction:
    try:
        return parse_action(text)
    except UnknownAction:
        return parse_corpus_action(text)


class ScriptedServer:
    """Both hosts. A context: they are gone with it."""

    def __init__(
        self,
        scripts: Mapping[str, Sequence[Step]],
        *,
        wire: Wire | None = None,
        config: dict[str, Any] | None = None,
        headers: bool = False,
        folder: Path | None = None,
    ) -> None:
        """Answer each question of ``scripts`` as it says; ``config`` is added to the page's ``config.json``.

        ``folder``: what the static host shows in place of the page; its ``deployment.json`` names the server.

        ``headers``: whether the static host sends those of ``headers.json``, as it should.
        """
        self.wire = wire or Wire()
        self.asked: list[Ask] = []
        self.received: list[ClientAction] = []
        """Every action, of all connections, in order."""
        self.opened: list[str] = []
        """The path of every connection that was opened."""
        self.offered: list[list[str]] = []
        """The subprotocols that each of them offered."""
        self.accepting = True
        self.config_status: int = HTTPStatus.OK
        self.replies: list[Reply] = []
        """To the calls that change a profile, in order."""
        self.document: DocumentRead | None = None
        """What ``read`` reads in; without it the server does not know the action."""
        self.passages: list[PassageRead] = []
        """Of the document, in its order."""
        self.answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        """Replies to other actions by their name, from the action's fields; an action without one is not known."""
        self.called: list[dict[str, Any]] = []
        """Those actions, in order."""
        self._scripts = scripts
        self._config = config or {}
        self._headers = headers
        self._folder = page_bundle() if folder is None else folder
        self._logs: dict[str, _Log] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._released = 0
        self._changed = asyncio.Event()
        self._sockets: set[_Socket] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scripted-server", daemon=True)
        self._port = 0
        self._host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._file_handler())
        self._host_thread = threading.Thread(target=self._host.serve_forever, name="static-host", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        self._host_thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._host.shutdown()
        self._host.server_close()
        self._host_thread.join()

    @property
    def page_url(self) -> str:
        """Where the page is."""
        return f"http://localhost:{self._host.server_port}{PREFIX}"

    @property
    def websocket_url(self) -> str:
        """Where the page's questions go."""
        return f"ws://localhost:{self._port}/live"

    def actions(self, kind: type[ClientAction]) -> list[Any]:
        """The received actions of a kind."""
        return [action for action in self.received if isinstance(action, kind)]

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true of what was received. Raises TimeoutError."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {PATIENCE_S:.0f} s; received: {self.received}")
            time.sleep(0.01)

    def release(self) -> None:
        """Let every script go on past one more hold."""

        def release() -> None:
            self._released += 1
            self._changed.set()

        self._loop.call_soon_threadsafe(release)

    def cut_all(self) -> None:
        """Cut every open connection, as by a network."""

        def cut() -> None:
            for socket in list(self._sockets):
                socket.cut()

        self._loop.call_soon_threadsafe(cut)

    def expire(self) -> None:
        """Let the token of every open connection expire: nothing more is pushed to it after the refusal."""

        def expire() -> None:
            for log in self._logs.values():
                log.subscribers.clear()
            for socket in list(self._sockets):
                task = self._loop.create_task(socket.send(EXPIRED))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(expire)

    def forget(self) -> None:
        """Lose every request, as a server does when its time to keep them is over."""
        self._loop.call_soon_threadsafe(self._logs.clear)

    # --- the socket's end ---

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with serve(
            self._talk,
            "localhost",
            0,
            process_request=self._admit,
            select_subprotocol=_select,
            ping_interval=None,
            close_timeout=0.1,
        ) as server:
            self._port = next(iter(server.sockets)).getsockname()[1]
            self._ready.set()
            await self._stop.wait()
            for task in self._tasks:
                task.cancel()
            for socket in list(self._sockets):
                socket.cut()

    async def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if not self.accepting:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "not now\n")
        self.opened.append(request.path)
        told = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
        self.offered.append([one.strip() for one in told.split(",") if one.strip()])
        return None

    async def _talk(self, connection: ServerConnection) -> None:
        number = len(self.opened) - 1
        socket = _Socket(connection, self.wire.cuts[number] if number < len(self.wire.cuts) else None)
        self._sockets.add(socket)
        try:
            async for text in connection:
                if await self._answered(text, connection):
                    continue
                action = _parsed(text)
                self.received.append(action)
                if not self.wire.deaf:
                    await self._handle(action, socket)
        except ConnectionClosed:
            pass
        finally:
            self._sockets.discard(socket)

    async def _answered(self, text: str | bytes, connection: ServerConnection) -> bool:
        """Whether it was one of the actions of ``answers``, or one that this server does not know."""
        fields = json.loads(text)
        if (answer := self.answers.get(fields["action"])) is not None:
            self.called.append(fields)
            reply = {"seq": 0, "requestId": fields["requestId"], **answer(fields)}
        elif fields["action"] not in KNOWN:
            reply = json.loads(reply_frame(Refused.of(UnknownAction(), fields.get("requestId"))))
        else:
            return False
        await connection.send(json.dumps(reply))
        return True

    async def _handle(self, action: ClientAction, socket: _Socket) -> None:
        if self.wire.refused is not None:
            request_id = None if isinstance(action, Ping) else action.request_id
            await socket.send(reply_frame(Refused.of(self.wire.refused, request_id)))
            return
        match action:
            case Ask():
                await self._ask(action, socket)
            case Resume():
                await self._resume(action, socket)
            case Cancel():
                await self._cancel(action, socket)
            case Ping():
                await socket.send(reply_frame(Pong()))
            case ReadPassages():
                await socket.send(reply_frame(self._read(action)))
            case ConfirmChange() | ManageProfile():
                reply = self.replies.pop(0).model_copy(update={"request_id": action.request_id})
                await socket.send(reply_frame(reply))

    def _read(self, action: ReadPassages) -> Reply:
        if self.document is None:
            return Refused.of(UnknownAction(), action.request_id)
        places = {passage.passage_id: place for place, passage in enumerate(self.passages)}
        place = places.get(action.passage_id)
        if place is None:
            return Refused.of(PassageUnknown("no such passage"), action.request_id)
        first = max(0, place - action.before)
        end = place + action.after + 1
        return Passages(
            request_id=action.request_id,
            index_version="v1",
            collection=action.collection or "script",
            document=self.document,
            passages=tuple(self.passages[first:end]),
            at=place - first,
            has_previous=first > 0,
            has_next=end < len(self.passages),
        )

    async def _ask(self, ask: Ask, socket: _Socket) -> None:
        if self.wire.swallow_asks:
            self.wire.swallow_asks -= 1
            socket.cut()
            return
        log = self._logs.get(ask.request_id)
        if log is not None:
            assert log.question == ask, "the same requestId must be the same question"
            log.subscribers.append(socket)
            await self._replay(log, 0, socket)
            return
        self.asked.append(ask)
        log = self._logs[ask.request_id] = _Log(question=ask)
        steps = list(self._scripts[ask.query])
        first = steps.pop(0)
        assert not isinstance(first, Hold)
        if self.wire.lose_accepted:
            self.wire.lose_accepted -= 1
            await self._append(log, ask.request_id, first)
            socket.cut()
        else:
            log.subscribers.append(socket)
            await self._append(log, ask.request_id, first)
        task = asyncio.create_task(self._play(log, ask.request_id, steps))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play(self, log: _Log, request_id: str, steps: Sequence[Step]) -> None:
        holds = 0
        for step in steps:
            if isinstance(step, Hold):
                holds += 1
                while self._released < holds:
                    self._changed.clear()
                    await self._changed.wait()
            elif not log.finished:
                await self._append(log, request_id, step)
                await asyncio.sleep(0)

    async def _append(self, log: _Log, request_id: str, step: LogEvent | dict[str, Any]) -> None:
        body = json.dumps(step) if isinstance(step, dict) else dump_event(step)
        seq = len(log.frames) + 1
        frame = event_frame(request_id, seq, body)
        log.frames.append(frame)
        kind = step["type"] if isinstance(step, dict) else step.type
        log.finished = kind in TERMINAL_TYPES
        if seq in self.wire.lost or (self.wire.silent and seq > 1):
            self.wire.lost.discard(seq)
            return
        for socket in list(log.subscribers):
            for _ in range(2 if self.wire.doubled else 1):
                await socket.send_event(frame)

    async def _resume(self, resume: Resume, socket: _Socket) -> None:
        log = self._logs.get(resume.request_id)
        if log is None:
            await socket.send(reply_frame(Resumed(request_id=resume.request_id, outcome="unknown")))
            return
        if socket not in log.subscribers:
            log.subscribers.append(socket)
        last = await self._replay(log, resume.after, socket)
        outcome = "finished" if log.finished else "live"
        await socket.send(
            reply_frame(Resumed.model_validate({"requestId": resume.request_id, "outcome": outcome, "lastSeq": last}))
        )

    async def _replay(self, log: _Log, after: int, socket: _Socket) -> int:
        frames = log.frames[after:]
        last = len(log.frames)
        if self.wire.swapped:
            frames.reverse()
        for frame in frames:
            for _ in range(2 if self.wire.doubled else 1):
                await socket.send_event(frame)
        return last

    async def _cancel(self, cancel: Cancel, socket: _Socket) -> None:
        log = self._logs.get(cancel.request_id)
        if log is None:
            await socket.send(reply_frame(Refused.of(RequestUnknown(), cancel.request_id)))
            return
        if not log.finished:
            log.subscribers = [other for other in log.subscribers if other is not socket]
            await self._append(log, cancel.request_id, Failed.of(Cancelled()))
        await socket.send_event(log.frames[-1])

    # --- the page's host ---

    def _file_handler(self) -> type[http.server.SimpleHTTPRequestHandler]:
        server = self

        class Files(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, directory=str(server._folder), **kwargs)

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path in (f"{PREFIX}config.json", f"{PREFIX}deployment.json"):
                    self._config()
                elif path.startswith(PREFIX):
                    self.path = "/" + path.removeprefix(PREFIX)
                    super().do_GET()
                else:
                    self.send_error(HTTPStatus.NOT_FOUND)

            def end_headers(self) -> None:
                if server._headers:
                    for name, value in page_headers(server.websocket_url.removesuffix("/live")).items():
                        self.send_header(name, value)
                super().end_headers()

            def _config(self) -> None:
                body = json.dumps({"webSocketUrl": server.websocket_url, **server._config}).encode()
                self.send_response(server.config_status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Files
