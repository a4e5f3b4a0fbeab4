"""A client on a thread of its own, so that the main thread can wait for keys and Ctrl-C."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from cicada.protocol.corpus import Collections
from cicada.protocol.events import Confirmed
from cicada_client import AnswerStream, CicadaClient, ClientError, EventFrame, ProfilesClient, Status, TokenProvider

Item = EventFrame | Status
T = TypeVar("T")

CANCEL_TIMEOUT_S = 5.0
"""How long to wait for the end of a cancelled answer."""


class PendingAnswer:
    """The events of one question, and changes of the connection, for the main thread to iterate.

    An interrupt while it waits loses nothing: iterating continues.

    Raises:
        ClientError: while iterating, after the last event.
    """

    def __init__(self, cancel: Callable[[], object]) -> None:
        """Made by the session."""
        self._items: queue.SimpleQueue[Item | ClientError | None] = queue.SimpleQueue()
        self._cancel = cancel

    def __iter__(self) -> Self:
        """Itself."""
        return self

    def __next__(self) -> Item:
        """Wait for the next item."""
        item = self._items.get()
        if item is None:
            raise StopIteration
        if isinstance(item, ClientError):
            raise item
        return item

    def put(self, item: Item | ClientError | None) -> None:
        """Add an item; None is the last."""
        self._items.put(item)

    def cancel(self) -> None:
        """Cancel the answer. Events until its end are still iterated."""
        self._cancel()


class ClientSession:
    """A client that is open while the block runs. It asks one question at a time."""

    def __init__(self, url: str, token: str | TokenProvider | None) -> None:
        """The connection opens on first use."""
        self._client = CicadaClient(url, token=token, on_status=self._tell)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cicada-session", daemon=True)
        self._pending: PendingAnswer | None = None

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        self._run(self._client.__aenter__()).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection and end the thread."""
        self._run(self._client.__aexit__(None, None, None)).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

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
    ) -> PendingAnswer:
        """Ask a question.

        Raises:
            InvalidQuestion: the question is empty or too long.
        """

        async def begin() -> AnswerStream:
            return self._client.ask(
                question,
                collections=collections,
                episodes=episodes,
                documents=documents,
                sections=sections,
                top_k=top_k,
                session_id=session_id,
            )

        stream = self._run(begin()).result()
        pending = self._pending = PendingAnswer(lambda: self._run(self._cancel(stream, pending)))
        self._run(self._read(stream, pending))
        return pending

    def profiles(self, work: Callable[[ProfilesClient], Coroutine[Any, Any, T]]) -> T:
        """Run a call on the user's profiles and return its result. Raises ClientError."""
        return self._run(work(self._client.profiles)).result()

    def collections(self) -> Collections:
        """What the user may read. Raises ClientError."""
        return self._run(self._client.collections()).result()

    def confirm(self, request_id: str, confirmation_id: str, *, accept: bool) -> Confirmed:
        """Confirm or decline a deletion and return the outcome. Raises ClientError."""
        return self._run(self._client.confirm(request_id, confirmation_id, accept=accept)).result()

    async def _read(self, stream: AnswerStream, pending: PendingAnswer) -> None:
        try:
            async for frame in stream.frames():
                pending.put(frame)
        except ClientError as error:
            pending.put(error)
        finally:
            pending.put(None)

    async def _cancel(self, stream: AnswerStream, pending: PendingAnswer) -> None:
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT_S):
                await stream.cancel()
        except TimeoutError:
            pending.put(None)
        except ClientError:
            pass  # raised where the answer is iterated

    def _tell(self, status: Status) -> None:
        if self._pending is not None:
            self._pending.put(status)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
