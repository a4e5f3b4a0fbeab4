"""The client's care for its connection, on a clock that the test turns."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from cicada import errors as codes
from cicada.delivery.posting import EXPIRED
from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Complete,
    Failed,
    LogEvent,
    Metrics,
    Pong,
    Refused,
    Resumed,
    dump_event,
    event_frame,
    reply_frame,
)
from cicada_client import (
    AnswerFailed,
    AnswerStream,
    CicadaClient,
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    InvalidQuestion,
    NotSignedIn,
    RequestRefused,
    Status,
    Timing,
    Unauthorized,
)
from cicada_client.connection import TransportClosed

ACCEPTED = Accepted(route="rag", confidence=0.9, reasoning="about the script", strategy="rag")
COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("rag",),
    model="m",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=10, attempt_ms=9, first_chunk_ms=8),
)
TIMING = Timing(attempts=3, first_attempts=3, backoff_base_s=1, backoff_cap_s=4)


class Clock:
    """Time that stands still until every task waits, and then jumps to whoever waits for the next moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._order), woken))
        await woken

    async def until(self, reached: Callable[[], bool], *, limit_s: float = 100_000) -> None:
        """Let time pass until something is so."""
        end = self.now + limit_s
        while True:
            for _ in range(30):
                await asyncio.sleep(0)
            if reached():
                return
            while self._waiting and self._waiting[0][2].done():
                heapq.heappop(self._waiting)
            assert self._waiting, "everybody waits, and for nothing"
            self.now, _, woken = heapq.heappop(self._waiting)
            assert self.now <= end, "it did not come to pass"
            woken.set_result(None)

    async def pass_s(self, seconds: float) -> None:
        """Let so much time pass."""
        done = asyncio.create_task(self.sleep(seconds))
        await self.until(done.done)


class Socket:
    """A connection whose other end is the test."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.sent: list[dict[str, Any]] = []
        self.closed = False
        self._incoming: asyncio.Queue[str | None] = asyncio.Queue()

    async def send(self, text: str) -> None:
        if self.closed:
            raise TransportClosed("closed")
        self.sent.append(json.loads(text))

    async def receive(self) -> str:
        text = await self._incoming.get()
        if text is None:
            raise TransportClosed("dropped")
        return text

    async def close(self) -> None:
        self.closed = True

    def push(self, *texts: str) -> None:
        for text in texts:
            self._incoming.put_nowait(text)

    def event(self, request_id: str, seq: int, event: LogEvent) -> None:
        self.push(event_frame(request_id, seq, dump_event(event)))

    def drop(self) -> None:
        self._incoming.put_nowait(None)

    @property
    def actions(self) -> list[str]:
        return [frame["action"] for frame in self.sent]


class World:
    """A client, its clock, and the connections that it opened."""

    def __init__(self, *, timing: Timing = TIMING, token: str | Callable[[], Awaitable[str]] | None = None) -> None:
        self.clock = Clock()
        self.sockets: list[Socket] = []
        self.attempts = 0
        self.failures: list[Exception] = []
        """What the next attempts to connect meet."""
        self.statuses: list[Status] = []
        self.client = CicadaClient(
            "wss://example.test/live",
            token=token,
            timing=timing,
            on_status=self.statuses.append,
            connector=self._connect,
            clock=self.clock,
            sleep=self.clock.sleep,
            rng=random.Random(7),
        )

    async def _connect(self, url: str, token: str | None) -> Socket:
        assert url == "wss://example.test/live"
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        self.sockets.append(Socket(token))
        return self.sockets[-1]

    async def sent(self, action: str, *, on: int) -> Socket:
        """The connection of that number, once the client has sent this as its latest action there."""
        await self.clock.until(lambda: len(self.sockets) > on and self.sockets[on].actions[-1:] == [action])
        return self.sockets[on]


def play(scene: Callable[[World], Coroutine[Any, Any, None]], **world: Any) -> World:
    """Run a scene in a world with an open client."""
    made: list[World] = []

    async def run() -> None:
        made.append(World(**world))
        async with made[0].client:
            await scene(made[0])

    asyncio.run(run())
    return made[0]


async def types(stream: AnswerStream) -> list[str]:
    return [event.type async for event in stream]


def test_the_first_question_opens_the_connection_and_is_sent_as_the_protocol_says() -> None:
    async def scene(world: World) -> None:
        await world.clock.pass_s(60)
        assert world.attempts == 0
        stream = world.client.ask("Où est-elle ?", episodes=["ep1"], top_k=5, session_id="s")
        socket = await world.sent("ask", on=0)
        assert socket.sent == [
            {
                "v": 1,
                "action": "ask",
                "requestId": stream.request_id,
                "query": "Où est-elle ?",
                "sessionId": "s",
                "collections": [],
                "episodes": ["ep1"],
                "topK": 5,
            }
        ]
        socket.event(stream.request_id, 1, ACCEPTED)
        socket.event(stream.request_id, 2, Chunk(attempt=1, content="Here."))
        socket.event(stream.request_id, 3, COMPLETE)
        assert await types(stream) == ["accepted", "chunk", "complete"]
        assert stream.answer.text == "Here."
        assert [(frame.seq, frame.raw["requestId"]) async for frame in stream.frames()][-1] == (3, stream.request_id)

    play(scene)


@pytest.mark.parametrize("question", ["", " ", "x" * 4001])
def test_a_question_that_breaks_the_protocol_is_not_sent(question: str) -> None:
    async def scene(world: World) -> None:
        with pytest.raises(InvalidQuestion, match="query"):
            world.client.ask(question)
        with pytest.raises(InvalidQuestion, match="topK"):
            world.client.ask("?", top_k=0)
        with pytest.raises(InvalidQuestion, match="requestId"):
            world.client.resume("mine")

    assert play(scene).attempts == 0


def test_requests_share_one_connection_and_their_events_do_not_mix() -> None:
    async def scene(world: World) -> None:
        streams = [world.client.ask(f"question {n}") for n in range(3)]
        socket = await world.sent("ask", on=0)
        for stream in reversed(streams):
            socket.event(stream.request_id, 1, ACCEPTED)
        for seq in (2, 3):
            for n, stream in enumerate(streams):
                socket.event(stream.request_id, seq, Chunk(attempt=1, content=f"{n}{seq} "))
        for stream in streams:
            socket.event(stream.request_id, 4, COMPLETE)
        for n, stream in enumerate(streams):
            await types(stream)
            assert stream.answer.text == f"{n}2 {n}3 "

    assert len(play(scene).sockets) == 1


def test_every_open_request_is_resumed_on_a_new_connection_after_what_it_has() -> None:
    async def scene(world: World) -> None:
        first, second = world.client.ask("one"), world.client.ask("two")
        socket = await world.sent("ask", on=0)
        socket.event(first.request_id, 1, ACCEPTED)
        socket.event(first.request_id, 2, Chunk(attempt=1, content="a"))
        socket.drop()
        again = await world.sent("ask", on=1)
        assert [(frame["action"], frame["requestId"], frame.get("after")) for frame in again.sent] == [
            ("resume", first.request_id, 2),
            ("ask", second.request_id, None),
        ]
        assert socket.closed
        for stream in (first, second):
            again.event(stream.request_id, 3 if stream is first else 1, COMPLETE)
            assert (await types(stream))[-1] == "complete"

    play(scene)


def test_failures_are_spaced_ever_wider_and_borne_only_so_often() -> None:
    async def scene(world: World) -> None:
        world.failures = [TransportClosed("refused") for _ in range(4)]
        stream = world.client.ask("?")
        with pytest.raises(ConnectionLost, match=r"4 failures in a row.*refused"):
            await asyncio.gather(types(stream), world.clock.until(lambda: not world.failures))
        assert world.attempts == 4
        assert world.clock.now <= 1 + 2 + 4
        waits = [status for status in world.statuses if status.state == "waiting"]
        assert [(status.failures, status.reason) for status in waits] == [(n, "refused") for n in (1, 2, 3)]

        afterwards = world.client.ask("and now?")
        socket = await world.sent("ask", on=0)
        socket.event(afterwards.request_id, 1, COMPLETE)
        assert await types(afterwards) == ["complete"]

    play(scene)


def test_a_server_that_was_never_reached_is_given_up_sooner_than_one_that_was() -> None:
    async def scene(world: World) -> None:
        world.failures = [TransportClosed("refused")] * 2
        with pytest.raises(ConnectionLost):
            await asyncio.gather(types(world.client.ask("?")), world.clock.until(lambda: not world.failures))
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        world.failures = [TransportClosed("refused")] * 4
        socket.drop()
        (await world.sent("ask", on=1)).event(stream.request_id, 1, COMPLETE)
        await types(stream)

    play(scene, timing=Timing(attempts=5, first_attempts=1))


def test_the_pauses_are_random_below_a_bound_that_doubles() -> None:
    timing = Timing(backoff_base_s=1, backoff_cap_s=8)
    for failures, bound in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (60, 8)]:
        pauses = [timing.backoff_s(failures, random.Random(seed)) for seed in range(200)]
        assert 0 <= min(pauses) < bound / 10
        assert bound * 0.9 < max(pauses) <= bound


def test_a_server_that_drops_every_connection_is_given_up_unless_the_answer_gets_on() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        for n in range(6):  # more often than failures are borne, but an event each time
            socket = await world.sent("ask" if n == 0 else "resume", on=n)
            socket.event(stream.request_id, n + 1, ACCEPTED if n == 0 else Chunk(attempt=1, content=str(n)))
            socket.drop()
        for n in range(6, 9):
            (await world.sent("resume", on=n)).drop()
        with pytest.raises(ConnectionLost):
            await types(stream)
        assert stream.answer.text == "12345"
        assert len(world.sockets) == 9

    play(scene)


def test_a_connection_without_a_sign_of_life_is_replaced() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        again = await world.sent("ask", on=1)
        assert socket.closed
        assert world.clock.now >= TIMING.reply_s
        again.event(stream.request_id, 1, COMPLETE)
        await types(stream)

    play(scene)


def test_an_idle_connection_is_kept_from_the_idle_cut_by_pings() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, COMPLETE)
        for pings in range(1, 4):
            await world.clock.until(lambda count=pings: socket.actions.count("ping") == count, limit_s=9 * 60)  # type: ignore[misc]
            socket.push(reply_frame(Pong()))
        assert len(world.sockets) == 1

    play(scene)


def test_an_idle_connection_that_is_lost_is_not_missed_until_the_next_question() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, COMPLETE)
        await types(stream)
        socket.drop()
        await world.clock.until(lambda: world.statuses[-1].state == "idle")
        again = world.client.ask("and?")
        (await world.sent("ask", on=1)).event(again.request_id, 1, COMPLETE)
        assert await types(again) == ["complete"]
        assert "waiting" not in {status.state for status in world.statuses}

    play(scene)


def test_a_connection_is_given_back_before_the_two_hour_cut() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, COMPLETE)
        while not socket.closed:
            await world.clock.until(lambda: socket.closed or socket.actions[-1] == "ping")
            socket.push(reply_frame(Pong()))
            socket.sent.append({"action": "answered"})
        assert 100 * 60 < world.clock.now < 118 * 60
        assert world.statuses[-1].state == "idle"

    play(scene)


def test_a_request_that_is_open_when_the_connection_grows_old_is_moved_to_a_new_one() -> None:
    async def scene(world: World) -> None:
        await asyncio.sleep(0)
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, ACCEPTED)
        seen = 1
        while not socket.closed:  # a very long answer: it is resumed at each silence, and lives
            await world.clock.until(lambda count=seen: socket.closed or len(socket.sent) > count)  # type: ignore[misc]
            seen = len(socket.sent)
            socket.push(reply_frame(Resumed(request_id=stream.request_id, outcome="live", last_seq=1)))
        again = await world.sent("resume", on=1)
        assert world.clock.now < 118 * 60
        again.event(stream.request_id, 2, COMPLETE)
        assert await types(stream) == ["accepted", "complete"]
        assert not any(status.failures for status in world.statuses)

    play(scene)


def test_a_fresh_token_is_fetched_for_every_connection() -> None:
    tokens = (f"token-{n}" for n in itertools.count())

    async def fresh() -> str:
        return next(tokens)

    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        (await world.sent("ask", on=0)).drop()
        (await world.sent("ask", on=1)).event(stream.request_id, 1, COMPLETE)
        await types(stream)
        assert [socket.token for socket in world.sockets] == ["token-0", "token-1"]

    play(scene, token=fresh)


def test_a_token_that_cannot_be_had_yet_is_asked_for_again() -> None:
    asked: list[None] = []

    async def fresh() -> str:
        asked.append(None)
        if len(asked) == 1:
            raise TransportClosed("the issuer cannot be reached")
        return "token"

    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        (await world.sent("ask", on=0)).event(stream.request_id, 1, COMPLETE)
        await types(stream)
        assert len(asked) == 2

    play(scene, token=fresh)


def test_without_a_sign_in_nothing_is_tried_again() -> None:
    async def fresh() -> str:
        raise NotSignedIn("sign in again: cicada login")

    async def scene(world: World) -> None:
        with pytest.raises(NotSignedIn, match="sign in again"):
            await types(world.client.ask("?"))
        assert not world.sockets

    play(scene, token=fresh)


def test_a_token_that_has_expired_is_replaced_without_the_reader_noticing() -> None:
    tokens = (f"token-{n}" for n in itertools.count())

    async def fresh() -> str:
        return next(tokens)

    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, ACCEPTED)
        await world.sent("resume", on=0)
        socket.push(reply_frame(Refused.of(codes.Unauthorized(), stream.request_id)))
        again = await world.sent("resume", on=1)
        assert again.token == "token-1"
        again.event(stream.request_id, 2, COMPLETE)
        assert await types(stream) == ["accepted", "complete"]

    play(scene, token=fresh)


def test_an_answer_whose_token_expires_goes_on_with_a_fresh_one_without_a_lost_or_doubled_word() -> None:
    tokens = (f"token-{n}" for n in itertools.count())

    async def fresh() -> str:
        return next(tokens)

    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, ACCEPTED)
        socket.event(stream.request_id, 2, Attempt(attempt=1, strategy="rag"))
        socket.event(stream.request_id, 3, Chunk(attempt=1, content="The bell "))
        socket.push(EXPIRED)
        again = await world.sent("resume", on=1)
        assert (again.token, again.sent[-1]["after"]) == ("token-1", 3)
        assert socket.closed
        again.event(stream.request_id, 3, Chunk(attempt=1, content="The bell "))
        again.event(stream.request_id, 4, Chunk(attempt=1, content="rang."))
        again.event(stream.request_id, 5, COMPLETE)
        assert await types(stream) == ["accepted", "attempt", "chunk", "chunk", "complete"]
        assert stream.answer.text == "The bell rang."

    play(scene, token=fresh)


def test_a_fixed_token_that_is_not_accepted_is_not_tried_twice() -> None:
    async def scene(world: World) -> None:
        world.failures = [Unauthorized("HTTP 401")]
        with pytest.raises(Unauthorized):
            await types(world.client.ask("?"))
        assert world.attempts == 1
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.push(reply_frame(Refused.of(codes.Unauthorized())))
        with pytest.raises(Unauthorized):
            await types(stream)

    play(scene, token="fixed")


def test_a_provider_whose_tokens_are_never_accepted_gets_a_second_chance_only() -> None:
    async def token() -> str:
        return "stale"

    async def scene(world: World) -> None:
        world.failures = [Unauthorized("HTTP 401")] * 9
        stream = world.client.ask("?")
        with pytest.raises(Unauthorized):
            await asyncio.gather(types(stream), world.clock.until(lambda: world.attempts == 2))
        assert world.attempts == 2

    play(scene, token=token)


def test_a_provider_that_fails_is_named_as_the_reason() -> None:
    async def token() -> str:
        raise OSError("the key ring is locked")

    async def scene(world: World) -> None:
        with pytest.raises(ConnectionRefused, match="the key ring is locked"):
            await types(world.client.ask("?"))

    play(scene, token=token)


def test_a_refused_question_ends_alone() -> None:
    async def scene(world: World) -> None:
        refused, other = world.client.ask("one"), world.client.ask("two")
        socket = await world.sent("ask", on=0)
        socket.push(reply_frame(Refused.of(codes.RequestConflict(), refused.request_id)))
        socket.event(other.request_id, 1, COMPLETE)
        with pytest.raises(RequestRefused, match="request_conflict"):
            await types(refused)
        assert await types(other) == ["complete"]

    play(scene)


def test_a_whole_answer_or_the_reason_why_not() -> None:
    async def scene(world: World) -> None:
        asking = asyncio.create_task(world.client.answer("?"))
        socket = await world.sent("ask", on=0)
        socket.event(socket.sent[0]["requestId"], 1, ACCEPTED)
        socket.event(socket.sent[0]["requestId"], 2, Chunk(attempt=1, content="Here."))
        socket.event(socket.sent[0]["requestId"], 3, COMPLETE)
        answer = await asking
        assert (answer.text, answer.complete, answer.metrics) == ("Here.", True, COMPLETE.metrics)

        asking = asyncio.create_task(world.client.answer("?"))
        await world.clock.until(lambda: len(socket.sent) == 2)
        socket.event(socket.sent[1]["requestId"], 1, ACCEPTED)
        socket.event(socket.sent[1]["requestId"], 2, Chunk(attempt=1, content="He"))
        socket.event(socket.sent[1]["requestId"], 3, Failed.of(codes.ModelBusy()))
        with pytest.raises(AnswerFailed) as failure:
            await asking
        assert (failure.value.code, failure.value.retryable, failure.value.text) == ("model_busy", True, "He")

    play(scene)


def test_cancel_returns_when_the_request_has_ended() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, ACCEPTED)
        cancelling = asyncio.create_task(stream.cancel())
        await world.sent("cancel", on=0)
        assert not cancelling.done()
        socket.event(stream.request_id, 2, Failed.of(codes.Cancelled()))
        await cancelling
        assert await types(stream) == ["accepted", "error"]
        await stream.cancel()
        assert socket.actions == ["ask", "cancel"]

    play(scene)


def test_a_request_of_elsewhere_is_taken_up_by_its_id() -> None:
    async def scene(world: World) -> None:
        stream = world.client.resume("6F1ED002-AB5A-4C2B-B52D-6F2C9A3A7D10")
        socket = await world.sent("resume", on=0)
        assert socket.sent[0]["requestId"] == "6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"
        assert socket.sent[0]["after"] == 0
        socket.event(stream.request_id, 2, COMPLETE)
        socket.event(stream.request_id, 1, ACCEPTED)
        assert await types(stream) == ["accepted", "complete"]

    play(scene)


def test_the_same_request_id_is_one_request() -> None:
    async def scene(world: World) -> None:
        request_id = "6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"
        first = world.client.ask("?", request_id=request_id)
        assert world.client.ask("?", request_id=request_id) is first
        assert (await world.sent("ask", on=0)).actions == ["ask"]

    play(scene)


def test_two_readers_of_one_answer_both_get_all_of_it() -> None:
    async def scene(world: World) -> None:
        stream = world.client.ask("?")
        readers = asyncio.gather(types(stream), types(stream))
        socket = await world.sent("ask", on=0)
        socket.event(stream.request_id, 1, ACCEPTED)
        socket.event(stream.request_id, 2, COMPLETE)
        assert list(await readers) == [["accepted", "complete"]] * 2

    play(scene)


def test_closing_the_client_ends_what_is_open_and_its_socket() -> None:
    streams = []

    async def scene(world: World) -> None:
        streams.append(world.client.ask("?"))
        await world.sent("ask", on=0)

    world = play(scene)
    assert world.sockets[0].closed
    with pytest.raises(ConnectionLost, match="closed"):
        asyncio.run(types(streams[0]))
    with pytest.raises(RuntimeError, match="async with"):
        world.client.ask("?")


def test_a_defect_of_the_client_is_told_to_who_waits_instead_of_leaving_them_waiting() -> None:
    async def scene(world: World) -> None:
        world.failures = [KeyError("oops")]
        with pytest.raises(ClientError, match="oops"):
            await types(world.client.ask("?"))
        with pytest.raises(RuntimeError):
            world.client.ask("?")

    play(scene)
