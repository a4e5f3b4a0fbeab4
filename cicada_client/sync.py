"""The client for programs without asyncio: the same methods, each of which waits for its result."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from cicada_client.client import CicadaClient
from cicada_client.connection_manager import Status, TokenProvider
from cicada_client.conversations import ConversationsClient
from cicada_client.errors import AnswerFailed
from cicada_client.frames import ClientEvent, EventFrame
from cicada_client.profiles import ProfilesClient
from cicada_client.stream import AnswerStream
from cicada_client.tail import Answer
from cicada_client.timing import Timing
from cicada_client.uploads import UploadsClient

P = ParamSpec("P")
T = TypeVar("T")
Client = TypeVar("Client")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine on the client's loop and returns its result."""


class _Face(Generic[Client]):
    """Calls the methods of an object that lives on the client's loop."""

    def __init__(self, client: Client, run: Run) -> None:
        self._client = client
        self._run = run


def _waiting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_Face[Client], P], T]:
    """The method of the same name and parameters that waits for the result."""

    def wait(self: _Face[Client], /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(method(self._client, *args, **kwargs))
        return result

    return update_wrapper(wait, method)


class SyncProfiles(_Face[ProfilesClient]):
    """The operations on the user's profiles: see :class:`~cicada_client.profiles.ProfilesClient`."""

    list = _waiting(ProfilesClient.list)
    show = _waiting(ProfilesClient.show)
    create = _waiting(ProfilesClient.create)
    update = _waiting(ProfilesClient.update)
    undo = _waiting(ProfilesClient.undo)
    delete = _waiting(ProfilesClient.delete)
    history = _waiting(ProfilesClient.history)
    export = _waiting(ProfilesClient.export)


class SyncConversations(_Face[ConversationsClient]):
    """The operations on the user's conversations: see :class:`~cicada_client.conversations.ConversationsClient`."""

    list = _waiting(ConversationsClient.list)
    show = _waiting(ConversationsClient.show)
    rename = _waiting(ConversationsClient.rename)
    delete = _waiting(ConversationsClient.delete)
    restore = _waiting(ConversationsClient.restore)


class SyncUploads(_Face[UploadsClient]):
    """Uploads of documents: see :class:`~cicada_client.uploads.UploadsClient`."""

    begin = _waiting(UploadsClient.begin)
    list = _waiting(UploadsClient.list)
    delete = _waiting(UploadsClient.delete)
    send = _waiting(UploadsClient.send)


class Frames:
    """Iterates the events of an answer. An interrupt (Ctrl-C) while it waits loses none: iterating goes on after it."""

    def __init__(self, stream: AnswerStream, run: Run) -> None:
        self._stream = stream
        self._run = run
        self._read = 0

    def __iter__(self) -> Self:
        """Itself."""
        return self

    def __next__(self) -> EventFrame:
        """Wait for the next event."""
        frame: EventFrame | None = self._run(self._stream.frame(self._read))
        if frame is None:
            raise StopIteration
        self._read += 1
        return frame


class SyncAnswerStream:
    """The events of one request, each once and in order: see :class:`~cicada_client.stream.AnswerStream`."""

    def __init__(self, stream: AnswerStream, run: Run) -> None:
        self._stream = stream
        self._run = run

    @property
    def request_id(self) -> str:
        """The request's id; the same user can resume it by this."""
        return self._stream.request_id

    @property
    def answer(self) -> Answer:
        """What is known of the answer so far."""
        return self._run(_evaluated(lambda: self._stream.answer))  # type: ignore[no-any-return]

    @property
    def failure(self) -> AnswerFailed | None:
        """Why there is no answer, once the request has ended with an ``error`` event."""
        return self._run(_evaluated(lambda: self._stream.failure))  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[ClientEvent]:
        """Iterate the events from the first on, as they arrive."""
        return map(_event_of, self.frames())

    def frames(self) -> Frames:
        """Iterate the events in their frames."""
        return Frames(self._stream, self._run)

    def cancel(self) -> None:
        """Cancel the request, and return when it has ended."""
        self._run(self._stream.cancel())


class SyncCicadaClient(_Face[CicadaClient]):
    """Asks a deployment questions over one WebSocket, from a program without asyncio.

    ::

        with SyncCicadaClient("wss://…/live", token=token) as client:
            for event in client.ask("Who rang the bell?", episodes=["ep1"]):
                match event:
                    case Chunk(content=text):
                        print(text, end="")
            answer = client.answer("And in the second episode?", episodes=["ep2"])

    The connection is served by a thread of its own. The methods may be called from any other thread, by several at
    once; they raise what those of :class:`~cicada_client.client.CicadaClient` raise. Without ``with``, use
    :meth:`open` and :meth:`close`. An interrupt (Ctrl-C) ends the waiting, and leaves the client usable.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | TokenProvider | Callable[[], str] | None = None,
        timing: Timing | None = None,
        on_status: Callable[[Status], None] | None = None,
    ) -> None:
        """Initialise; :meth:`open` starts the thread.

        Args:
            url: the deployment's WebSocket URL.
            token: what the deployment's authorizer wants, or a function that gets a fresh one. One that is not
                asynchronous runs in a thread of its own.
            timing: how long to wait for what.
            on_status: told of every change of the connection, in the client's thread; must not block.
        """
        provider = _provider(token) if callable(token) else token
        super().__init__(CicadaClient(url, token=provider, timing=timing, on_status=on_status), self._wait)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.profiles = SyncProfiles(self._client.profiles, self._wait)
        """The user's profiles."""
        self.conversations = SyncConversations(self._client.conversations, self._wait)
        self.uploads = SyncUploads(self._client.uploads, self._wait)
        """The user's conversations."""

    def open(self) -> None:
        """Start the client's thread; the first question opens the connection."""
        if self._thread is not None:
            raise RuntimeError("the client is open already")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="cicada-client", daemon=True)
        self._thread.start()
        self._wait(self._client.__aenter__())

    def close(self) -> None:
        """Close the connection and end the thread. The server finishes open requests."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        try:
            self._wait(self._client.__aexit__(None, None, None))
        finally:
            self._thread = self._loop = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def __enter__(self) -> Self:
        """Open the client."""
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def ask(
        self,
        question: str,
        *,
        collections: Sequence[str] = (),
        episodes: Sequence[str] = (),
        documents: Sequence[str] = (),
        sections: Sequence[str] = (),
        top_k: int | None = None,
        session_id: str | None = None,
        request_id: str | None = None,
    ) -> SyncAnswerStream:
        """Ask a question and return its answer as it arrives: see :meth:`.CicadaClient.ask`."""
        return self._stream(
            lambda: self._client.ask(
                question,
                collections=collections,
                episodes=episodes,
                documents=documents,
                sections=sections,
                top_k=top_k,
                session_id=session_id,
                request_id=request_id,
            )
        )

    def resume(self, request_id: str) -> SyncAnswerStream:
        """Resume an earlier request of this user, from its first event on."""
        return self._stream(lambda: self._client.resume(request_id))

    answer = _waiting(CicadaClient.answer)
    confirm = _waiting(CicadaClient.confirm)
    feedback = _waiting(CicadaClient.feedback)
    collections = _waiting(CicadaClient.collections)
    documents = _waiting(CicadaClient.documents)
    search = _waiting(CicadaClient.search)
    read = _waiting(CicadaClient.read)

    # --- the thread ---

    def _stream(self, begin: Callable[[], AnswerStream]) -> SyncAnswerStream:
        stream: AnswerStream = self._wait(_evaluated(begin))
        return SyncAnswerStream(stream, self._wait)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the client's loop and wait for its result; an interrupt cancels the coroutine."""
        if self._loop is None or threading.current_thread() is self._thread:
            work.close()
            why = "the client is not open" if self._loop is None else "the client's own thread cannot wait for itself"
            raise RuntimeError(why)
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _provider(token: Callable[[], str | Awaitable[str]]) -> TokenProvider:
    async def fresh() -> str:
        given = await asyncio.to_thread(token)
        return await given if inspect.isawaitable(given) else given

    return fresh


def _event_of(frame: EventFrame) -> ClientEvent:
    return frame.event


async def _evaluated(value: Callable[[], T]) -> T:
    return value()
