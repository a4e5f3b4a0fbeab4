"""The client: asks questions and returns answers, and reconnects when the connection is lost."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from pydantic import ValidationError

from cicada.protocol.actions import (
    DEFAULT_NEIGHBOURS,
    Action,
    Ask,
    ClientAction,
    ConfirmChange,
    FeedbackReason,
    GiveFeedback,
    ListCollections,
    ListDocuments,
    Rating,
    ReadPassages,
    Search,
)
from cicada.protocol.conversations import FeedbackGiven
from cicada.protocol.corpus import Collections, Documents, Passages, SearchFound
from cicada.protocol.events import Confirmed, Reply
from cicada_client.call import Call, CallAction, CallReply
from cicada_client.connection import MAX_MESSAGE_BYTES, Connector, connect_websocket
from cicada_client.connection_manager import ConnectionManager, Status, TokenProvider
from cicada_client.conversations import ConversationsClient
from cicada_client.errors import ClientError, ConnectionLost, InvalidQuestion
from cicada_client.exchange import Exchange
from cicada_client.profiles import ProfilesClient
from cicada_client.request_registry import RequestRegistry
from cicada_client.stream import AnswerStream
from cicada_client.tail import Answer
from cicada_client.timing import Timing
from cicada_client.uploads import UploadsClient

ExpectedReply = TypeVar("ExpectedReply", bound=Reply)
Checked = TypeVar("Checked", bound=Action)


class CicadaClient:
    """Asks a deployment questions over one WebSocket.

    ::

        async with CicadaClient("wss://…/live", token=token) as client:
            async for event in client.ask("Who rang the bell?", episodes=["ep1"]):
                match event:
                    case Chunk(content=text):
                        print(text, end="")
                    case Fallback():
                        print("\\n(the answer begins anew)")
            answer = await client.answer("And in the second episode?", episodes=["ep2"])

    Any number of requests share the connection. It is opened with the first, and again, after a growing random pause,
    whenever it is lost while a request is open; every open request is then resumed. What was given up with
    :class:`~cicada_client.errors.ConnectionLost` can be taken up later by its ``request_id``: see :meth:`resume`.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | TokenProvider | None = None,
        timing: Timing | None = None,
        on_status: Callable[[Status], None] | None = None,
        connector: Connector = connect_websocket,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        """Take what is needed; nothing is opened yet.

        Args:
            url: the deployment's WebSocket URL.
            token: what the deployment's authorizer wants, or a function that gets a fresh one.
            timing: how long to wait for what.
            on_status: told of every change of the connection; must not block.
            connector: opens connections.
            clock: seconds that never run backwards.
            sleep: waits for seconds of that clock.
            rng: source of the pauses' randomness.
        """
        self._timing = timing or Timing()
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._streams: dict[str, AnswerStream] = {}
        self._board = RequestRegistry(self._timing, self._show)
        self._manager = ConnectionManager(
            self._board,
            url,
            token=token,
            timing=self._timing,
            on_status=on_status,
            connector=connector,
            clock=clock,
            sleep=sleep,
            rng=self._rng,
        )
        self._keeping: asyncio.Task[None] | None = None
        self._calls: dict[str, asyncio.Event] = {}
        self.profiles = ProfilesClient(self._replied)
        """The user's profiles: see :class:`~cicada_client.profiles.ProfilesClient`."""
        self.conversations = ConversationsClient(self._replied)
        """The user's conversations: see :class:`~cicada_client.conversations.ConversationsClient`."""
        self.uploads = UploadsClient(self._replied)
        """Uploads of documents: see :class:`~cicada_client.uploads.UploadsClient`."""

    async def __aenter__(self) -> Self:
        """Start; the first question opens the connection."""
        self._keeping = asyncio.create_task(self._manager.run(), name="cicada-client")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection. The server finishes open requests."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        self._board.give_up(ConnectionLost("the client was closed"))

    # --- what it is for ---

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
    ) -> AnswerStream:
        """Ask a question and return its answer as it arrives.

        Args:
            question: 1 to 4,000 characters.
            collections: search only these; all when empty.
            episodes: search only these; all when empty.
            documents: search only documents with these sources; all when empty.
            sections: search only below these headings, such as ``Setup > Locks``; all when empty.
            top_k: passages to retrieve; the deployment's own number when None.
            session_id: names a conversation.
            request_id: a UUID; the same one twice is one request. A new one when None.

        Raises:
            InvalidQuestion: it breaks the protocol.
        """
        ask = _checked(
            Ask,
            requestId=request_id or _new_id(),
            query=question,
            sessionId=session_id,
            collections=tuple(collections),
            episodes=tuple(episodes),
            documents=tuple(documents),
            sections=tuple(sections),
            topK=top_k,
        )
        return self._begin(ask.request_id, ask)

    def resume(self, request_id: str) -> AnswerStream:
        """Resume an earlier request of this user, from its first event on."""
        try:
            return self._begin(str(uuid.UUID(request_id)), None)
        except ValueError as error:
            raise InvalidQuestion("requestId: must be a UUID") from error

    async def answer(
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
    ) -> Answer:
        """Ask a question and return the whole answer. Takes what :meth:`ask` takes.

        Raises:
            InvalidQuestion: it breaks the protocol.
            AnswerFailed: it ended with an ``error`` event.
            ConnectionLost, ConnectionRefused, Unauthorized, RequestRefused, RequestExpired, RequestUnknown: as
                their names say.
        """
        stream = self.ask(
            question,
            collections=collections,
            episodes=episodes,
            documents=documents,
            sections=sections,
            top_k=top_k,
            session_id=session_id,
            request_id=request_id,
        )
        async for _ in stream:
            pass
        if stream.failure is not None:
            raise stream.failure
        return stream.answer

    async def confirm(self, request_id: str, confirmation_id: str, *, accept: bool) -> Confirmed:
        """Answer an event ``confirm``: have the deletion done that it shows, or decline. Done once, however often.

        Raises:
            RequestRefused: with the code ``confirmation_expired``, ``confirmation_unknown``, ``profile_conflict`` (what
                is to be deleted was changed meanwhile), or another of the protocol's.
        """
        action = ConfirmChange(requestId=request_id, confirmationId=confirmation_id, accept=accept)
        return await self._call(action, Confirmed)

    async def feedback(
        self,
        request_id: str,
        rating: Rating | Literal["none"],
        *,
        reason: FeedbackReason | None = None,
        comment: str | None = None,
    ) -> FeedbackGiven:
        """Rate the answer to a request of this user. The last rating counts; ``none`` takes it back.

        Args:
            request_id: of the answer's request.
            rating: ``up``, ``down`` or ``none``.
            reason: with ``down``: what is wrong with the answer.
            comment: in the user's words, up to 1,000 characters.

        Raises:
            RequestRefused: with the code ``request_unknown``, ``request_expired``, or another of the protocol's.
        """
        action = _checked(GiveFeedback, requestId=request_id, rating=rating, reason=reason, comment=comment)
        return await self._call(action, FeedbackGiven)

    # --- the corpus ---

    async def collections(self) -> Collections:
        """List the collections that the user may read, and what they hold.

        This and the methods below raise :class:`~cicada_client.errors.RequestRefused` with the code of the server
        (``unknown_action`` where it is older than the method), and what asking can raise.
        """
        pages = [await self._call(_checked(ListCollections, requestId=_new_id()), Collections)]
        while pages[-1].next is not None:
            action = _checked(ListCollections, requestId=_new_id(), cursor=pages[-1].next)
            pages.append(await self._call(action, Collections))
        listed = tuple(collection for page in pages for collection in page.collections)
        return pages[0].model_copy(update={"collections": listed, "next": None})

    async def documents(self, collection: str, *, prefix: str | None = None, cursor: str | None = None) -> Documents:
        """List a page of a collection's documents, by source.

        Args:
            collection: its name.
            prefix: list only sources that begin with it.
            cursor: the ``next`` of the page before.
        """
        action = _checked(
            ListDocuments, requestId=_new_id(), collection=collection, prefix=prefix or None, cursor=cursor
        )
        return await self._call(action, Documents)

    async def search(
        self,
        query: str,
        *,
        collections: Sequence[str] = (),
        episodes: Sequence[str] = (),
        documents: Sequence[str] = (),
        sections: Sequence[str] = (),
        top_k: int | None = None,
    ) -> SearchFound:
        """Search without an answer: the passages that :meth:`ask` would find. An empty filter allows everything."""
        action = _checked(
            Search,
            requestId=_new_id(),
            query=query,
            collections=tuple(collections),
            episodes=tuple(episodes),
            documents=tuple(documents),
            sections=tuple(sections),
            topK=top_k,
        )
        return await self._call(action, SearchFound)

    async def read(
        self,
        passage_id: str,
        *,
        collection: str | None = None,
        before: int = DEFAULT_NEIGHBOURS,
        after: int = DEFAULT_NEIGHBOURS,
        index_version: str | None = None,
    ) -> Passages:
        """Read a passage with those around it, in the order of its document.

        Args:
            passage_id: of a source or citation.
            collection: of the passage: ids are unique within a collection. All are looked at when None.
            before: passages before it, 0 to 30.
            after: passages after it, 0 to 30.
            index_version: in which the passage was seen: if it is gone, the error says that the document has changed.
        """
        action = _checked(
            ReadPassages,
            requestId=_new_id(),
            passageId=passage_id,
            collection=collection,
            before=before,
            after=after,
            indexVersion=index_version,
        )
        return await self._call(action, Passages)

    # --- requests ---

    def _begin(self, request_id: str, ask: Ask | None) -> AnswerStream:
        self._check_open()
        if known := self._streams.get(request_id):
            return known
        if ask is not None:
            _refuse_too_large(ask)
        exchange = Exchange(request_id, ask, self._timing, self._rng)
        stream = self._streams[request_id] = AnswerStream(exchange, lambda: self._cancel(request_id))
        self._board.add(exchange, self._clock())
        self._manager.wake()
        return stream

    def _cancel(self, request_id: str) -> None:
        self._board.cancel(request_id, self._clock())
        self._manager.wake()

    async def _call(self, action: CallAction, expected: type[ExpectedReply]) -> ExpectedReply:
        """Send an action, and return its reply. Raises ClientError."""
        reply = await self._replied(action)
        if not isinstance(reply, expected):
            raise ClientError(f"the server answered {action.action} with {reply.type}")
        return reply

    async def _replied(self, action: CallAction) -> CallReply:
        self._check_open()
        _refuse_too_large(action)
        call = Call(action, self._timing, self._rng)
        ended = self._calls[call.key] = asyncio.Event()
        try:
            self._board.add(call, self._clock())
            self._manager.wake()
            await ended.wait()
        finally:
            del self._calls[call.key]
        if call.reply is None:
            raise call.failure or ConnectionLost("no reply came")
        return call.reply

    def _check_open(self) -> None:
        if self._keeping is None or self._keeping.done():
            raise RuntimeError("the client is not open: use it in `async with`")

    def _show(self, exchange: Exchange | Call) -> None:
        """Wake the readers of a request, and forget it once it has ended."""
        if isinstance(exchange, Call):
            if exchange.ended and (ended := self._calls.get(exchange.key)):
                ended.set()
            return
        stream = self._streams[exchange.request_id]
        if exchange.ended:
            del self._streams[exchange.request_id]
        stream.notify()


def _new_id() -> str:
    return str(uuid.uuid4())


def _checked(kind: type[Checked], **fields: Any) -> Checked:
    """An action with these fields. Raises InvalidQuestion, which names what breaks the protocol."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        told = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in problems)
        raise InvalidQuestion(told.replace("Value error, ", "")) from error


def _refuse_too_large(action: ClientAction) -> None:
    """Raise InvalidQuestion for a message that is too large for API Gateway, which would close the connection."""
    size = len(action.model_dump_json(by_alias=True).encode())
    if size > MAX_MESSAGE_BYTES:
        raise InvalidQuestion(f"the message has {size:,} bytes of {MAX_MESSAGE_BYTES:,}")
