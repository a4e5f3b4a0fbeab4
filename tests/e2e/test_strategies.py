"""Each strategy, and the chain from one to the next, on the deployed thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cicada_local.places import aws_environment
from tests.e2e.conftest import BLOCKED, DENIED
from tests.e2e.plain_client import of
from tests.e2e.reading import COMPLEX, POLICY, SIMPLE, answers_by, failures, first, slow_down, types
from tests.support.questions import joined


def publish(cloud, tmp_path):
    """Publish a version of the index with one more message, in a collection of its own."""
    message = {"episodeId": "n1", "chapterId": "n1-ch1", "messageId": "n1-0001", "speaker": "Mara", "textENG": "Noted."}
    file = tmp_path / "notes.jsonl"
    file.write_text(json.dumps(message | {"episodeName": "Notes"}), encoding="utf-8")
    command = [sys.executable, "-m", "cicada_local.loading", str(file), "--collection", "notes"]
    command += ["--bucket", cloud.outputs["IndexBucket"], "--model", cloud.outputs["EmbeddingModelId"]]
    command += ["--dimensions", cloud.outputs["EmbeddingDimensions"]]
    subprocess.run(command, env=aws_environment(os.environ, cloud.endpoint_url), check=True, timeout=120)


def test_a_simple_question_is_answered_by_rag(connect):
    events = connect().answer(SIMPLE, episodes=["ep1"])
    complete = events[-1]
    assert (complete["answeredBy"], complete["attempted"], failures(complete)) == ("rag", ["rag"], [])
    assert complete["grounded"] is True
    metrics = complete["metrics"]
    assert 0 < metrics["firstChunkMs"] <= metrics["latencyMs"]
    assert metrics["retrievalLatencyMs"] >= 0
    assert metrics["cacheLatencyMs"] >= 0
    assert (metrics["modelCalls"], metrics["sourcesUsed"]) == (1, 1)
    assert metrics["passagesCited"] >= 1
    assert metrics["inputTokens"] > 0


def test_small_talk_is_answered_directly_and_says_that_it_is_not_grounded(connect):
    events = connect().answer("Hello there!")
    assert types(events)[:2] == ["accepted", "attempt"]
    assert "sources" not in types(events)
    complete = events[-1]
    assert (complete["answeredBy"], complete["attempted"], complete["grounded"]) == ("direct", ["direct"], False)


def test_a_complex_question_is_searched_for_and_looked_up_at_once(connect):
    events = connect().answer(COMPLEX)
    complete = events[-1]
    assert (complete["answeredBy"], complete["attempted"], complete["grounded"]) == ("hybrid", ["hybrid"], True)
    metrics = complete["metrics"]
    assert metrics["retrievalLatencyMs"] >= 0
    assert metrics["cacheLatencyMs"] >= 0
    assert metrics["modelCalls"] == 1


def test_a_policy_question_is_answered_once_and_then_given_again_until_a_publish(cloud, connect, tmp_path):
    socket = connect()
    once = socket.answer(POLICY)
    assert once[-1]["attempted"] == ["cag", "rag"]
    assert failures(once[-1]) == [("cag", "cache_miss")]
    assert once[-1]["grounded"] is True

    again = answers_by(socket, POLICY, "cag")
    sources = first(again, "sources")
    assert (sources["reused"]["use"], sources["reused"]["question"]) == ("answer", POLICY)
    assert {source["origin"] for source in sources["sources"]} == {"cache"}
    assert joined(again) == joined(once)
    assert first(again, "citations")["citations"] == first(once, "citations")["citations"]
    assert again[-1]["attempted"] == ["cag"]
    assert (again[-1]["metrics"]["modelCalls"], again[-1]["grounded"]) == (0, True)

    publish(cloud, tmp_path)
    after = answers_by(socket, POLICY, "rag")
    assert after[-1]["attempted"] == ["cag", "rag"]
    assert first(after, "sources")["indexVersion"] != sources["indexVersion"]


def test_somebody_elses_answer_is_not_given_again(connect):
    connect("ann").answer(POLICY)
    answers_by(connect("ann"), POLICY, "cag")
    assert connect("bob").answer(POLICY)[-1]["attempted"] == ["cag", "rag"]


@pytest.mark.parametrize("mode", ["silent", "reset", "exception", "half_frame", "corrupt", "garbled"])
def test_a_stream_that_is_cut_falls_through_to_direct_and_the_client_rewinds(cloud, connect, mode):
    slow_down(cloud)  # so that text has gone out before the cut
    cloud.arm("bedrock.cut", times=1, after=6, mode=mode)
    events = connect().answer(SIMPLE)
    fallback = first(events, "fallback")
    assert (fallback["from"], fallback["code"]) == ("rag", "stream_broken")
    complete = events[-1]
    assert (complete["type"], complete["answeredBy"]) == ("complete", "direct")
    assert complete["attempted"] == ["rag", "cag", "direct"]
    assert failures(complete) == [("rag", "stream_broken"), ("cag", "cache_miss")]
    assert complete["grounded"] is False
    # A reset may overtake what the worker has not read yet; a stream without chunks is read in large pieces.
    if mode not in ("reset", "silent"):
        assert "chunk" in types(events[: events.index(fallback)])


def test_the_last_resort_says_so_and_offers_the_passages_that_were_found(cloud, connect):
    cloud.arm("bedrock.cut", times=1, after=0, mode="exception")
    events = connect().answer(SIMPLE, episodes=["ep1"])
    found, offered = [event for event in events if event["type"] == "sources"]
    assert offered["offered"] is True
    assert not found.get("offered")
    by_score = sorted(found["sources"], key=lambda source: -source["score"])
    ids = [source["passageId"] for source in offered["sources"]]
    assert ids == [source["passageId"] for source in by_score[: len(ids)]]
    assert joined(events).startswith("The sources could not be consulted")
    assert "citations" not in types(events)
    assert events[-1]["grounded"] is False


@pytest.mark.parametrize(("question", "strategy"), [(SIMPLE, "rag"), (COMPLEX, "hybrid")])
def test_the_same_question_gets_its_answer_again_on_its_own_route_without_a_model(cloud, connect, question, strategy):
    socket = connect()
    once = socket.answer(question, episodes=["ep1"])
    assert once[-1]["answeredBy"] == strategy
    asked_again = f"hi, {question[0].lower()}{question[1:]} thanks"
    for _ in range(20):  # the answer before is kept after its end: the first look-up may come too early
        again = socket.answer(asked_again, episodes=["ep1"])
        if first(again, "sources").get("reused", {}).get("use") == "answer":
            break
    sources = first(again, "sources")
    assert (sources["reused"]["use"], sources["reused"]["question"]) == ("answer", question)
    assert joined(again) == joined(once)
    assert (again[-1]["answeredBy"], again[-1]["metrics"]["modelCalls"]) == (strategy, 0)
    cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)
    assert joined(socket.answer(question, episodes=["ep1"])) == joined(once)


def test_when_everything_fails_the_client_is_told_what_was_tried(cloud, connect):
    cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)
    last = connect().answer(COMPLEX)[-1]
    assert (last["type"], last["code"]) == ("error", "all_strategies_failed")
    assert failures(last) == [
        ("hybrid", "model_refused"),
        ("rag", "model_refused"),
        ("cag", "cache_miss"),
        ("direct", "model_refused"),
    ]


def test_an_answer_that_the_model_did_not_finish_is_never_complete(cloud, connect):
    cloud.arm("bedrock.stop", times=1, stop_reason="max_tokens")
    complete = connect().answer(SIMPLE)[-1]
    assert failures(complete)[0] == ("rag", "answer_truncated")
    assert complete["answeredBy"] == "direct"


def test_a_blocked_answer_ends_the_request_and_no_other_strategy_is_tried(cloud, connect):
    cloud.arm("bedrock.stop", times=1, stop_reason="guardrail_intervened")
    last = connect().answer(SIMPLE)[-1]
    assert (last["type"], last["code"], failures(last)) == ("error", "answer_blocked", [("rag", "answer_blocked")])


def test_a_question_that_the_guardrail_blocks_ends_with_its_message_and_leaves_no_text(cloud, connect, watch):
    before = len(watch.calls)
    events = connect().answer(f"Who found the {DENIED} in the boathouse?")
    last = events[-1]
    assert (last["type"], last["code"], last["message"]) == ("error", "answer_blocked", BLOCKED)
    assert failures(last) == [("rag", "answer_blocked")]
    assert len(watch.calls) - before == 1


def test_no_request_calls_a_model_more_than_four_times(cloud, connect, watch):
    cloud.arm("bedrock.throttle")
    before = len(watch.calls)
    last = connect().answer(COMPLEX)[-1]
    assert last["type"] == "error"
    assert 0 < len(watch.calls) - before <= 4


# --- a conversation ---


def test_a_follow_up_is_completed_from_the_conversation(connect):
    socket = connect()
    session = "11111111-2222-4333-8444-555555555555"
    socket.answer("Who is Petra?", sessionId=session)
    events = socket.answer("And what did she find?", sessionId=session)
    sources = [event for event in events if event["type"] == "sources"][-1]
    assert "Petra" in sources["query"]
    assert events[-1]["type"] == "complete"


def test_a_follow_up_without_its_conversation_is_asked_as_it_stands(connect):
    events = connect().answer("And what did she find?")
    assert not any(event.get("query") for event in events if event["type"] == "sources")
    assert of(events, events[0]["requestId"]) == events
