"""The client over real sockets, against servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import http
import itertools
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from cicada import errors as codes
from cicada.protocol.actions import Ask, Cancel, Ping, Resume, parse_action
from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Complete,
    Failed,
    Fallback,
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
    CicadaClient,
    ConnectionLost,
    ConnectionRefused,
    RequestExpired,
    RequestRefused,
    RequestUnknown,
    Timing,
    Unauthorized,
)
from cicada_client.connection import connect_websocket

FAST = Timing(
    reply_s=0.5,
    silence_s=0.4,
    gap_s=0.05,
    backoff_base_s=0.005,
    backoff_cap_s=0.02,
    attempts=5,
    first_attempts=5,
    open_s=2,
)
LOG: list[LogEvent] = [
    Accepted(route="rag", confidence=0.9, reasoning="about the script", strategy="rag"),
    Attempt(attempt=1, strategy="rag"),
    *(Chunk(attempt=1, content=f"lost {n} ") for n in range(3)),
    Fallback.model_validate(
        {"from": "rag", "to": "direct", "code": "stream_broken", "reason": "The answer was interrupted."}
    ),
    Attempt(attempt=2, strategy="direct"),
    *(Chunk(attempt=2, content=f"word{n} ") for n in range(8)),
    Complete(
        attempt=2,
        answered_by="direct",
        attempted=("rag", "direct"),
        model="m",
        grounded=False,
        stop_reason="end_turn",
        metrics=Metrics(latency_ms=10, attempt_ms=9, first_chunk_ms=8),
    ),
]
TEXT = "".join(f"word{n} " for n in range(8))


class Deployment:
    """A server that keeps one log for every request, and does to its frames what the test says."""

    def __init__(
        self,
        *,
        drops_after: Iterable[int] = (),
        disorder: Callable[[list[str]], list[str]] = lambda frames: frames,
        deaf: int = 0,
        statuses: Iterable[int] = (),
        replies: Callable[[Any], str | list[str] | None] = lambda action: None,
    ) -> None:
        """Take its misbehaviour.

        Args:
            drops_after: how many frames each connection carries until it is torn down; all of them at the end.
            disorder: what becomes of the frames of one replay.
            deaf: how many connections answer nothing at all.
            statuses: what the first handshakes are answered with.
            replies: frames of the test's own in answer to an action.
        """
        self.asked: dict[str, Ask] = {}
        self.actions: list[str] = []
        self.tokens: list[str | None] = []
        self.paths: list[str] = []
        self.connections = 0
        self.fragments: list[int] = []
        self._drops_after = iter(drops_after)
        self._disorder = disorder
        self._deaf = deaf
        self._statuses = iter(statuses)
        self._replies = replies

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        async with serve(self._serve, "127.0.0.1", 0, process_request=self._handshake, ping_interval=None) as server:
            yield _url(server)

    def _handshake(self, connection: ServerConnection, request: Request) -> Response | None:
        self.tokens.append(request.headers.get("Authorization"))
        self.paths.append(request.path)
        status = next(self._statuses, None)
        return None if status is None else connection.respond(http.HTTPStatus(status), "no\n")

    async def _serve(self, connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._converse(connection)

    async def _converse(self, connection: ServerConnection) -> None:
        self.connections += 1
        allowed = next(self._drops_after, None)
        deaf = self.connections <= self._deaf
        while True:
            parts = [part async for part in connection.recv_streaming()]
            self.fragments.append(len(parts))
            action = parse_action("".join(str(part) for part in parts))
            self.actions.append(action.action)
            if deaf:
                continue
            for frame in self._frames(action):
                if allowed == 0:
                    connection.transport.abort()
                    return
                await connection.send(frame)
                allowed = None if allowed is None else allowed - 1

    def _frames(self, action: Any) -> list[str]:
        own = self._replies(action)
        if own is not None:
            return [own] if isinstance(own, str) else own
        match action:
            case Ping():
                return [reply_frame(Pong())]
            case Ask(request_id=request_id):
                self.asked[request_id] = action
                return self._disorder(_events(request_id, 0))
            case Resume(request_id=request_id, after=after):
                if request_id not in self.asked:
                    return [reply_frame(Resumed(request_id=request_id, outcome="unknown"))]
                reply = reply_frame(Resumed(request_id=request_id, outcome="finished", last_seq=len(LOG)))
                return [*self._disorder(_events(request_id, after)), reply]
        raise AssertionError(action)


def _events(request_id: str, after: int) -> list[str]:
    return [event_frame(request_id, seq, dump_event(event)) for seq, event in enumerate(LOG, start=1) if seq > after]


def _url(server: Server) -> str:
    host, port = next(iter(server.sockets)).getsockname()[:2]
    return f"ws://{host}:{port}"


async def _ask(deployment: Deployment, question: str = "Who?", **options: Any) -> list[tuple[int, LogEvent]]:
    async with deployment.serving() as url, CicadaClient(url, timing=FAST, **options) as client:
        stream = client.ask(question)
        seen = [(frame.seq, frame.event) async for frame in stream.frames()]
        assert stream.answer.text == TEXT
        assert stream.answer.strategy == "direct"
        return seen  # type: ignore[return-value]


WHOLE = list(enumerate(LOG, start=1))


def test_a_well_behaved_server_is_asked_once() -> None:
    deployment = Deployment()
    assert asyncio.run(_ask(deployment)) == WHOLE
    assert (deployment.connections, deployment.actions) == (1, ["ask"])


@pytest.mark.parametrize("frames", range(1, len(LOG) + 2))
def test_a_connection_dropped_after_any_number_of_frames_loses_and_doubles_nothing(frames: int) -> None:
    assert asyncio.run(_ask(Deployment(drops_after=[frames]))) == WHOLE


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_nor_does_one_that_is_dropped_again_and_again(frames: int) -> None:
    deployment = Deployment(drops_after=itertools.repeat(frames))
    assert asyncio.run(_ask(deployment)) == WHOLE
    assert deployment.connections >= len(LOG) // frames


def test_an_ask_that_may_not_have_arrived_is_sent_again() -> None:
    deployment = Deployment(drops_after=[0, 0])
    assert asyncio.run(_ask(deployment)) == WHOLE
    assert deployment.actions == ["ask"] * 3
    assert len(deployment.asked) == 1


def test_doubled_frames_are_applied_once() -> None:
    doubled = Deployment(disorder=lambda frames: [frame for frame in frames for _ in range(2)])
    assert asyncio.run(_ask(doubled)) == WHOLE


@pytest.mark.parametrize("seed", range(5))
def test_frames_out_of_order_are_applied_in_order(seed: int) -> None:
    shuffled = Deployment(disorder=lambda frames: random.Random(seed).sample(frames, len(frames)))
    assert asyncio.run(_ask(shuffled)) == WHOLE


@pytest.mark.parametrize("seed", range(5))
def test_frames_that_are_lost_are_fetched(seed: int) -> None:
    rng = random.Random(seed)
    leaky = Deployment(disorder=lambda frames: [frame for frame in frames if rng.random() < 0.7])
    assert asyncio.run(_ask(leaky)) == WHOLE
    assert "resume" in leaky.actions


def test_a_server_that_falls_silent_is_left_for_a_new_connection() -> None:
    deployment = Deployment(deaf=1)
    assert asyncio.run(_ask(deployment)) == WHOLE
    assert deployment.connections == 2


def test_a_busy_server_is_tried_again() -> None:
    deployment = Deployment(statuses=[503, 429, 500])
    assert asyncio.run(_ask(deployment)) == WHOLE


def test_a_question_larger_than_a_gateway_frame_goes_out_in_several() -> None:
    async def ask() -> None:
        async with deployment.serving() as url, CicadaClient(url, timing=FAST) as client:
            answer = await client.answer(question, episodes=episodes)
            assert answer.text == TEXT

    deployment = Deployment()
    question, episodes = "\N{CRICKET}" * 4000, [f"{n:02}{'é' * 126}" for n in range(50)]
    asyncio.run(ask())
    assert max(deployment.fragments) > 1
    asked = next(iter(deployment.asked.values()))
    assert (asked.query, asked.episodes) == (question, tuple(episodes))


def test_filters_go_out_with_a_question() -> None:
    async def ask() -> None:
        async with deployment.serving() as url, CicadaClient(url, timing=FAST) as client:
            await client.answer("Who?", documents=["gate.md"], sections=["Setup > Locks"])

    deployment = Deployment()
    asyncio.run(ask())
    (asked,) = deployment.asked.values()
    assert (asked.documents, asked.sections) == (("gate.md",), ("Setup > Locks",))


def test_the_token_travels_in_a_header_and_not_in_the_url() -> None:
    deployment = Deployment()
    asyncio.run(_ask(deployment, token="secret"))
    assert deployment.tokens == ["Bearer secret"]
    assert not any("secret" in path or "token" in path for path in deployment.paths)


@pytest.mark.parametrize(
    ("status", "failure"),
    [(401, Unauthorized), (403, Unauthorized), (404, ConnectionRefused), (400, ConnectionRefused)],
)
def test_a_handshake_that_is_refused_for_good_is_not_tried_again(status: int, failure: type[Exception]) -> None:
    deployment = Deployment(statuses=itertools.repeat(status))
    with pytest.raises(failure, match=str(status)):
        asyncio.run(_ask(deployment))
    assert len(deployment.tokens) == 1


def test_a_server_that_is_never_well_is_given_up() -> None:
    deployment = Deployment(statuses=itertools.repeat(503))
    with pytest.raises(ConnectionLost, match="503"):
        asyncio.run(_ask(deployment))
    assert len(deployment.tokens) == FAST.first_attempts + 1


def test_nobody_listening_is_a_lost_connection() -> None:
    async def ask() -> None:
        async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0) as server:
            url = _url(server)
        async with CicadaClient(url, timing=FAST) as client:
            await client.answer("?")

    with pytest.raises(ConnectionLost):
        asyncio.run(ask())


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense"])
def test_a_url_that_is_none_is_said_to_be_so(url: str) -> None:
    async def ask() -> None:
        async with CicadaClient(url, timing=FAST) as client:
            await client.answer("?")

    with pytest.raises(ConnectionRefused, match="not a WebSocket URL"):
        asyncio.run(ask())


@pytest.mark.parametrize(("outcome", "failure"), [("unknown", RequestUnknown), ("expired", RequestExpired)])
def test_a_request_that_cannot_be_taken_up_again_is_told_apart(outcome: str, failure: type[Exception]) -> None:
    def reply(action: Any) -> str:
        return json.dumps({"type": "resumed", "requestId": action.request_id, "seq": 0, "outcome": outcome})

    async def resume() -> None:
        async with Deployment(replies=reply).serving() as url, CicadaClient(url, timing=FAST) as client:
            async for _ in client.resume("6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"):
                pass

    with pytest.raises(failure):
        asyncio.run(resume())


def test_a_refusal_for_good_carries_the_servers_code_and_detail() -> None:
    def refuse(action: Any) -> str:
        return reply_frame(Refused.of(codes.InvalidMessage(), action.request_id, "query: too strange"))

    with pytest.raises(RequestRefused, match=r"invalid_message: query: too strange"):
        asyncio.run(_ask(Deployment(replies=refuse)))


def test_a_gateway_that_fails_now_and_then_is_asked_again() -> None:
    faults = iter([True, True])

    def fail(action: Any) -> str | None:
        return (
            '{"message":"Internal server error","connectionId":"c=","requestId":"r="}' if next(faults, False) else None
        )

    deployment = Deployment(replies=fail)
    assert asyncio.run(_ask(deployment)) == WHOLE
    assert deployment.actions == ["ask"] * 3


def test_an_answer_is_cancelled() -> None:
    def only_begin(action: Any) -> str:
        if isinstance(action, Cancel):
            return event_frame(action.request_id, 2, dump_event(Failed.of(codes.Cancelled())))
        return event_frame(action.request_id, 1, dump_event(LOG[0]))

    async def ask() -> list[str]:
        async with Deployment(replies=only_begin).serving() as url, CicadaClient(url, timing=FAST) as client:
            stream = client.ask("?")
            seen = []
            async for event in stream:
                seen.append(event.type)
                if event.type == "accepted":
                    await stream.cancel()
            return seen

    assert asyncio.run(ask()) == ["accepted", "error"]


def test_a_token_goes_to_another_machine_over_tls_only() -> None:
    with pytest.raises(
        ConnectionRefused, match=r"ws://gateway\.example/live would send the token unencrypted: use wss://"
    ):
        asyncio.run(connect_websocket("ws://gateway.example/live", "secret"))
