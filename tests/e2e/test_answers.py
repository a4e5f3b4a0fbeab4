"""Questions to the deployed thing, over its WebSocket: what is answered, and what is refused."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as open_websocket

from cicada.delivery.decide import LEASE_S
from cicada.index.access_rules import declare_readers
from cicada.index.s3 import S3Store
from cicada.personal_data import erasure
from cicada.revocation import DynamoDbRevocations
from cicada_cli.main import main
from tests.e2e.plain_client import PATIENCE_S, Socket, of, offers, whole
from tests.e2e.reading import COMPLEX, SIMPLE, eventually, failures, first, slow_down, streams, types, whole_log
from tests.support.questions import joined


@pytest.mark.parametrize(
    ("question", "episode", "answering"),
    [
        (SIMPLE, "ep1", "thirteen"),
        ("How many strokes does the bell ring?", "ep2", "seven"),
    ],
)
def test_a_question_is_answered_from_its_episode_with_a_checked_citation(connect, question, episode, answering):
    events = connect().answer(question, episodes=[episode])
    assert types(events)[:3] == ["accepted", "attempt", "sources"]
    assert types(events)[-2:] == ["citations", "complete"]
    sources = {source["n"]: source for source in events[2]["sources"]}
    assert {source["locator"]["episodeId"] for source in sources.values()} == {episode}
    citations = events[-2]["citations"]
    assert citations
    assert all(citation["verdict"] == "verified" for citation in citations)
    assert answering in joined(events) + " ".join(sources[citation["n"]]["text"] for citation in citations)


def test_what_the_script_never_tells_is_answered_by_saying_so(connect):
    events = connect().answer("What is the chemical formula of the rocket fuel used on Mars?")
    assert events[-1]["type"] == "complete"
    assert events[-1]["grounded"] is False
    assert "citations" in types(events)


def test_several_questions_share_a_socket(connect):
    socket = connect()
    ids = [socket.ask(question) for question in (COMPLEX, "Hello!", "Who is Petra?")]
    for request_id in ids:
        assert whole(socket.events(request_id))


def test_without_faults_every_event_comes_exactly_once(connect):
    socket: Socket = connect()
    events = socket.answer("Thanks a lot!")
    seqs = [frame["seq"] for frame in socket.frames if frame["requestId"] == events[0]["requestId"]]
    assert sorted(seqs) == list(range(1, len(events) + 1))


def test_a_change_of_rights_reaches_the_next_question(cloud, connect):
    def told(socket, kind, **question):
        """Without the rules, which an overloaded cloud may be too slow to read, an attempt fails and tells nothing."""
        deadline = time.monotonic() + PATIENCE_S
        while kind not in types(events := socket.answer(SIMPLE, **question)):
            assert {code for _, code in failures(events[-1])} & {"index_unavailable", "dependency_down"}, events
            assert time.monotonic() < deadline
        return first(events, kind)

    def collections(event):
        return {source["collection"] for source in event["sources"]}

    store = S3Store(cloud.client("s3"), cloud.outputs["IndexBucket"])
    reader, stranger = connect(groups=["readers", "users"]), connect(groups=["users"])
    try:
        declare_readers(store, "script", ("readers",))
        assert "script" in collections(told(reader, "sources"))
        # Of the same user: the kept answer is not for these groups. What other tests have loaded, everybody may read.
        assert "script" not in collections(told(stranger, "sources"))
        assert told(stranger, "error", collections=["script"])["code"] == "collection_unknown"
        declare_readers(store, "script", ("users",))
        assert "script" in collections(told(stranger, "sources"))
    finally:
        declare_readers(store, "script", None)


# --- one request is one request ---


def test_the_same_request_twice_is_one_request(cloud, connect, watch):
    slow_down(cloud)
    cloud.clear_calls()
    socket, other = connect(), connect()
    request_id = str(uuid4())
    for _ in range(3):
        socket.ask(SIMPLE, requestId=request_id)
    other.ask(SIMPLE, requestId=request_id)
    assert socket.events(request_id) == other.events(request_id)
    calls = cloud.calls()
    assert calls["stepfunctions.StartExecution"] == 1
    assert calls["bedrock-runtime.ConverseStream"] == 1


def test_the_same_request_id_for_another_question_is_refused(connect):
    socket = connect()
    events = socket.answer("Hello!")
    socket.ask("Goodbye!", requestId=events[0]["requestId"])
    refused = socket.until("error")
    assert (refused["seq"], refused["code"]) == (0, "request_conflict")


# --- cancelling ---


def test_a_cancelled_answer_ends_for_everybody(cloud, connect):
    slow_down(cloud, 150)
    socket, other = connect(), connect()
    request_id = socket.ask(SIMPLE)
    socket.until("chunk")
    other.send("resume", requestId=request_id, after=0)
    other.until("resumed")
    socket.send("cancel", requestId=request_id)
    for listener in (socket, other):
        end = listener.until("error", request_id=request_id)
        assert end["code"] == "cancelled"
        assert end["seq"] > 0
    log = whole_log(connect, request_id)
    assert whole(log)
    assert types(log).count("error") == 1
    time.sleep(1.5)
    assert whole_log(connect, request_id) == log


def test_cancelling_stops_the_model(cloud, connect):
    slow_down(cloud, 2_000)  # it would write for minutes
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("sources")
    assert eventually(lambda: streams(cloud)["open"] == 1)
    before = streams(cloud)["closed_by_caller"]
    socket.send("cancel", requestId=request_id)
    socket.until("error", request_id=request_id)
    assert eventually(lambda: streams(cloud)["open"] == 0, within_s=5)
    assert streams(cloud)["closed_by_caller"] == before + 1


# --- what is refused ---


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "invalid_message"),
        ("", "invalid_message"),
        ("null", "invalid_message"),
        ('{"action":"shout"}', "unknown_action"),
        ('{"action":"ask","requestId":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}', "invalid_message"),
        ('{"action":"ask","requestId":"1","query":"x"}', "invalid_message"),
        ('{"action":"ping","v":9}', "unsupported_version"),
    ],
)
def test_a_frame_that_is_no_message_is_refused_and_the_socket_lives_on(connect, frame, code):
    socket = connect()
    socket.send_raw(frame)
    refused = socket.until("error")
    assert (refused["seq"], refused["code"]) == (0, code)
    socket.send("ping")
    assert socket.until("pong")["seq"] == 0


def test_an_oversized_query_is_refused(connect):
    socket = connect()
    request_id = socket.ask("x" * 4001)
    refused = socket.until("error")
    assert (refused["code"], refused["requestId"]) == ("invalid_message", request_id)
    assert "query" in refused["detail"]


def test_somebody_elses_request_is_unknown_and_untouched(cloud, connect):
    slow_down(cloud)
    mara, eve = connect(), connect("eve")
    request_id = mara.ask(SIMPLE)
    mara.until("chunk")
    eve.send("resume", requestId=request_id, after=0)
    assert eve.until("resumed")["outcome"] == "unknown"
    eve.send("cancel", requestId=request_id)
    assert eve.until("error")["code"] == "request_unknown"
    assert mara.events(request_id)[-1]["type"] == "complete"
    assert of(eve.frames, request_id) == []


@pytest.mark.parametrize("token", ["", "nonsense", "expired", "audience", "key"])
def test_nobody_connects_without_a_valid_token(cloud, issuer, token):
    tokens = {
        "expired": issuer.token(lasts_s=-60),
        "audience": issuer.token(aud="another"),
        "key": issuer.token(kid=issuer.rsa_kid),  # signed by ES256, and names a key of another kind
    }
    offered = offers(tokens.get(token, token)) if token else None
    with pytest.raises(InvalidStatus) as refused, open_websocket(cloud.websocket_url, subprotocols=offered):
        pass
    assert refused.value.response.status_code == 401


def test_a_valid_token_in_the_url_is_refused(cloud, issuer):
    with pytest.raises(InvalidStatus) as refused, open_websocket(f"{cloud.websocket_url}?token={issuer.token()}"):
        pass
    assert refused.value.response.status_code == 401


def test_a_browser_is_answered_with_the_protocol_and_never_with_its_token(connect):
    assert connect().subprotocol == "cicada.v1"


def test_a_revoked_user_is_refused_at_the_next_frame_and_returns_with_a_newer_token(cloud, connect, user):
    now = int(time.time())
    old, other = connect(iat=now - 10), connect("tamsin", iat=now - 10)
    old.send("ping")
    assert old.until("pong")
    revocations = DynamoDbRevocations(cloud.client("dynamodb"), cloud.outputs["RequestsTable"])
    revocations.revoke(user, up_to=now - 10)
    refused_actions: list[dict[str, str]] = [
        {"action": "ping"},
        {"action": "ask", "requestId": str(uuid4()), "query": SIMPLE},
        {"action": "collections", "requestId": str(uuid4())},
        {"action": "search", "requestId": str(uuid4()), "query": SIMPLE},
    ]
    for action in refused_actions:
        old.send(**action)
        refused = old.until("error")
        assert (refused["code"], refused["seq"]) == ("unauthorized", 0)
    other.send("ping")
    assert other.until("pong")
    again = connect(iat=now - 9)
    assert again.answer(SIMPLE)[-1]["type"] == "complete"


def test_erasing_a_user_cancels_what_is_being_answered_and_leaves_nothing(
    cloud, connect, user, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(erasure, "PROCESSOR_S", 2)
    monkeypatch.setattr(erasure, "WORKER_S", 3 - LEASE_S)  # workers notice within a second; the rest is for lost ones
    (tmp_path / ".cicada").symlink_to(cloud.home)
    monkeypatch.chdir(tmp_path)
    socket = connect()
    socket.answer(SIMPLE, sessionId="s1")
    slow_down(cloud)
    cancelled = socket.ask(COMPLEX, sessionId="s1")
    socket.until("chunk", request_id=cancelled)
    assert main(["user", "erase", user, "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["deleted"].items() >= {"requests": 2, "conversations": 1, "cachedAnswers": 2}.items()
    assert socket.until("error", request_id=cancelled)["code"] == "cancelled"
    socket.ask(SIMPLE)
    assert socket.until("error")["code"] == "unauthorized"
    items = str(cloud.client("dynamodb").scan(TableName=cloud.outputs["RequestsTable"])["Items"])
    assert user not in items
    assert cancelled not in items


def test_a_token_that_expires_on_an_open_socket_ends_its_right_to_speak(connect):
    for lasts_s in (3, 8, 30):  # a busy machine may be slower than a token lasts
        with suppress(InvalidStatus):
            socket = connect(lasts_s=lasts_s)
            socket.send("ping")
            if socket.receive()["type"] == "pong":
                break
    assert socket.frames[-1]["type"] == "pong"
    deadline = time.monotonic() + PATIENCE_S
    while socket.frames[-1].get("code") != "unauthorized":
        assert time.monotonic() < deadline
        time.sleep(0.25)
        socket.send("ping")
        socket.receive()
