"""Questions to the deployed thing, over its WebSocket."""

from __future__ import annotations

import os
import signal
import time
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as open_websocket

from tests.e2e.plain_client import Socket, applied, of, whole
from tests.support.questions import joined

QUESTION = "What did Tamsin find at the gauge tower, and who read the gauge?"


def types(events):
    return [event["type"] for event in events]


def slow_down(cloud, delay_ms=60):
    """A model that writes slowly enough to be interrupted."""
    cloud.arm("bedrock.slow", delay_ms=delay_ms)


def whole_log(connect, request_id, subject="mara"):
    """A request's log as a fresh connection replays it."""
    socket = connect(subject)
    socket.send("resume", requestId=request_id, after=0)
    socket.until("resumed")
    return of(socket.frames, request_id)


def answer_worker(cloud):
    """The process ids of the answer function, most recent last."""
    (figures,) = [figures for name, figures in cloud.functions().items() if "AnswerFunction" in name]
    return [process["pid"] if isinstance(process, dict) else process for process in figures["processes"]]


# --- the happy path ---


@pytest.mark.parametrize(
    ("question", "episode", "answering"),
    [
        ("How many strokes of the fog bell did Ilse count?", "ep1", "thirteen"),
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
    complete = events[-1]
    assert (complete["grounded"], complete["strategy"], complete["failed"]) == (True, "rag", [])
    metrics = complete["metrics"]
    assert 0 < metrics["firstChunkMs"] <= metrics["latencyMs"]
    assert metrics["sourcesUsed"] >= 1
    assert metrics["inputTokens"] > 0


def test_small_talk_is_answered_directly_and_says_that_it_is_not_grounded(connect):
    events = connect().answer("Hello there!")
    assert types(events)[:2] == ["accepted", "attempt"]
    assert "sources" not in types(events)
    assert (events[-1]["strategy"], events[-1]["grounded"]) == ("direct", False)


def test_what_the_script_never_tells_is_answered_by_saying_so(connect):
    events = connect().answer("What is the chemical formula of the rocket fuel used on Mars?")
    assert events[-1]["type"] == "complete"
    assert events[-1]["grounded"] is False
    assert "citations" in types(events)


def test_several_questions_share_a_socket(connect):
    socket = connect()
    ids = [socket.ask(question) for question in (QUESTION, "Hello!", "Who is Petra?")]
    for request_id in ids:
        assert whole(socket.events(request_id))


# --- resume ---


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 9])
def test_an_answer_survives_a_socket_dropped_after_k_events(cloud, connect, k):
    slow_down(cloud)
    first = connect()
    request_id = first.ask(QUESTION)
    while len(of(first.frames, request_id)) < k:
        first.receive()
    first.close()
    second = connect()
    seen = of(first.frames, request_id)
    second.send("resume", requestId=request_id, after=seen[-1]["seq"])
    while not whole(of(first.frames + second.frames, request_id)):
        second.receive()
    events = of(first.frames + second.frames, request_id)
    assert events[-1]["type"] == "complete"
    assert events == whole_log(connect, request_id)
    assert not {event["seq"] for event in of(second.frames, request_id)} & {event["seq"] for event in seen}


def test_a_connection_cut_by_the_network_is_forgotten_and_the_answer_goes_on(cloud, connect):
    slow_down(cloud)
    socket = connect()
    request_id = socket.ask(QUESTION)
    socket.until("chunk")
    for connection in cloud.connections():
        cloud.drop(connection["connection_id"])
    deadline = time.monotonic() + 60
    while not whole(log := whole_log(connect, request_id)):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert log[-1]["type"] == "complete"


def test_a_finished_answer_can_be_read_again(connect):
    socket = connect()
    events = socket.answer("Hello!")
    again = connect()
    again.send("resume", requestId=events[0]["requestId"], after=0)
    resumed = again.until("resumed")
    assert (resumed["outcome"], resumed["lastSeq"], resumed["seq"]) == ("finished", len(events), 0)
    assert of(again.frames, events[0]["requestId"]) == events


def test_two_subscribers_see_the_same_events(cloud, connect):
    slow_down(cloud)
    first, second = connect(), connect()
    request_id = first.ask(QUESTION)
    first.until("attempt")
    second.send("resume", requestId=request_id, after=0)
    assert second.until("resumed")["outcome"] == "live"
    assert first.events(request_id) == second.events(request_id)


# --- one request is one request ---


def test_the_same_request_twice_is_one_request(cloud, connect):
    slow_down(cloud)
    cloud.clear_calls()
    socket, other = connect(), connect()
    request_id = str(uuid4())
    for _ in range(3):
        socket.ask(QUESTION, requestId=request_id)
    other.ask(QUESTION, requestId=request_id)
    assert socket.events(request_id) == other.events(request_id)
    calls = cloud.calls()
    assert calls["states.StartExecution" if "states.StartExecution" in calls else "stepfunctions.StartExecution"] == 1
    assert calls["bedrock-runtime.ConverseStream"] == 1


def test_the_same_request_id_for_another_question_is_refused(connect):
    socket = connect()
    events = socket.answer("Hello!")
    socket.ask("Goodbye!", requestId=events[0]["requestId"])
    refused = socket.until("error")
    assert (refused["seq"], refused["code"]) == (0, "request_conflict")


def test_a_cancelled_answer_ends_for_everybody(cloud, connect):
    slow_down(cloud, 150)
    socket, other = connect(), connect()
    request_id = socket.ask(QUESTION)
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


# --- faults ---


@pytest.mark.parametrize("mode", ["silent", "reset", "exception", "half_frame", "corrupt"])
def test_a_stream_that_is_cut_falls_to_direct_and_the_client_rewinds(cloud, connect, mode):
    slow_down(cloud)  # so that text has gone out before the cut
    cloud.arm("bedrock.cut", times=1, after=6, mode=mode)
    events = connect().answer(QUESTION)
    fallback = next(event for event in events if event["type"] == "fallback")
    assert (fallback["from"], fallback["to"], fallback["code"]) == ("rag", "direct", "stream_broken")
    complete = events[-1]
    assert (complete["type"], complete["strategy"], complete["attempt"]) == ("complete", "direct", 2)
    assert complete["failed"][0]["code"] == "stream_broken"
    assert complete["grounded"] is False
    assert joined(events).startswith("The script could not be consulted")
    # A reset may overtake what the worker has not read yet; a stream without chunks is read in large pieces.
    if mode not in ("reset", "silent"):
        assert "chunk" in types(events[: events.index(fallback)])


def test_a_worker_killed_in_mid_stream_is_replaced(cloud, connect):
    slow_down(cloud, 1_000)
    socket = connect()
    request_id = socket.ask(QUESTION)
    socket.until("chunk")
    for pid in answer_worker(cloud):
        os.kill(pid, signal.SIGKILL)
    assert not whole(of(socket.frames, request_id)), "it was killed too late"
    cloud.disarm()
    events = socket.events(request_id)
    fallback = next(event for event in events if event["type"] == "fallback")
    assert (fallback["to"], fallback["code"]) == ("direct", "worker_died")
    assert (events[-1]["type"], events[-1]["strategy"]) == ("complete", "direct")


def test_a_throttled_model_is_tried_again(cloud, connect):
    cloud.arm("bedrock.throttle", times=2)
    events = connect().answer(QUESTION)
    assert (events[-1]["type"], events[-1]["strategy"]) == ("complete", "rag")


def test_when_everything_fails_the_client_is_told_what_was_tried(cloud, connect):
    cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)
    events = connect().answer(QUESTION)
    last = events[-1]
    assert (last["type"], last["code"]) == ("error", "all_strategies_failed")
    assert [(failure["strategy"], failure["code"]) for failure in last["failed"]] == [
        ("rag", "model_refused"),
        ("direct", "model_refused"),
    ]


@pytest.mark.parametrize("fault", ["gateway.lost_ack", "gateway.busy"])
def test_posts_that_fail_lose_nothing(cloud, connect, fault):
    cloud.arm(fault, times=2)
    socket = connect()
    request_id = socket.ask(QUESTION)
    deadline = time.monotonic() + 60
    while not whole(of(socket.frames, request_id)):
        assert time.monotonic() < deadline
        try:
            socket.receive(2)
        except TimeoutError:
            socket.send("resume", requestId=request_id, after=applied(of(socket.frames, request_id)))
    events = socket.events(request_id)
    assert events == whole_log(connect, request_id)
    assert events[-1]["type"] == "complete"


def test_a_throttled_log_delays_the_answer_and_loses_nothing(cloud, connect):
    slow_down(cloud)
    socket = connect()
    request_id = socket.ask(QUESTION)
    socket.until("sources")
    cloud.arm("dynamodb.throttle", times=4)
    events = socket.events(request_id)
    assert events[-1]["type"] == "complete"
    assert events == whole_log(connect, request_id)


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
    mara, eve = connect("mara"), connect("eve")
    request_id = mara.ask(QUESTION)
    mara.until("chunk")
    eve.send("resume", requestId=request_id, after=0)
    assert eve.until("resumed")["outcome"] == "unknown"
    eve.send("cancel", requestId=request_id)
    assert eve.until("error")["code"] == "request_unknown"
    assert mara.events(request_id)[-1]["type"] == "complete"
    assert of(eve.frames, request_id) == []


@pytest.mark.parametrize("token", ["", "nonsense", "expired", "audience"])
def test_nobody_connects_without_a_valid_token(cloud, issuer, token):
    tokens = {"expired": issuer.token(lasts_s=-60), "audience": issuer.token(aud="another")}
    query = f"?token={tokens.get(token, token)}" if token else ""
    with pytest.raises(InvalidStatus) as refused, open_websocket(cloud.websocket_url + query):
        pass
    assert refused.value.response.status_code == 401


def test_a_token_that_expires_on_an_open_socket_ends_its_right_to_speak(connect):
    socket = connect(lasts_s=12)
    socket.send("ping")
    assert socket.until("pong")
    deadline = time.monotonic() + 30
    while socket.frames[-1].get("code") != "unauthorized":
        assert time.monotonic() < deadline
        time.sleep(1)
        socket.send("ping")
        socket.receive()


def test_without_faults_every_event_comes_exactly_once(connect):
    socket: Socket = connect()
    events = socket.answer("Thanks a lot!")
    seqs = [frame["seq"] for frame in socket.frames if frame["requestId"] == events[0]["requestId"]]
    assert sorted(seqs) == list(range(1, len(events) + 1))
