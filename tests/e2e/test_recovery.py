"""Workers that die, starts that are lost or come twice, dependencies that stay down."""

from __future__ import annotations

import json
import os
import time

from cicada.delivery.dynamodb import INLINE_BYTES
from stacks.answer_settings import Budget
from tests.chaos.house import ANSWER, EXHAUSTED, House
from tests.e2e import command
from tests.e2e.plain_client import PATIENCE_S, of, whole
from tests.e2e.reading import (
    PATIENT_S,
    SIMPLE,
    failures,
    first,
    function_name,
    let_pass,
    slow_down,
    types,
    whole_log,
)


def cicada(cloud, *words):
    """Run the command line over the logs, or the table, of the deployment."""
    environment = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    return command.cicada([*words, "--endpoint-url", cloud.endpoint_url, "--region", "us-east-1"], environment)


def sweep(cloud):
    """Run the scheduled sweep now."""
    (outcome,) = House(cloud).sweep()
    assert "error" not in outcome


# --- workers ---


def test_a_worker_killed_in_mid_stream_is_replaced_and_its_story_is_told(cloud, connect):
    slow_down(cloud, 1_000)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("chunk")
    assert cloud.kill_workers(function_name(cloud, ANSWER))
    assert not whole(of(socket.frames, request_id)), "it was killed too late"
    cloud.disarm()
    events = socket.events(request_id)
    assert first(events, "fallback")["code"] == "worker_died"
    assert events[-1]["type"] == "complete"
    assert failures(events[-1])[0] == ("rag", "worker_died")

    told = cicada(cloud, "trace", request_id, "--json")
    assert told.returncode == 0, told.stderr
    story = json.loads(told.stdout)
    assert (story["outcome"], story["answeredBy"]) == ("complete", events[-1]["answeredBy"])
    assert [(one["strategy"], one["outcome"]) for one in story["attempts"]] == [
        ("rag", "cut_off"),
        ("cag", "failed"),
        ("direct", "answered"),
    ]
    steps = {line.get("step") for line in story["lines"]}
    assert {"accepted", "started", "attempt", "retrieved", "model_call", "delivered", "complete"} <= steps

    for_people = cicada(cloud, "trace", request_id)
    assert "rag" in for_people.stdout
    assert "direct" in for_people.stdout


def test_every_worker_killed_ends_the_request_with_what_was_tried(cloud, connect):
    slow_down(cloud, 1_000)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    worker = function_name(cloud, ANSWER)
    while (frame := socket.receive())["type"] not in ("complete", "error"):
        if frame["type"] == "chunk":
            cloud.kill_workers(worker)
    events = whole_log(connect, request_id)
    # A worker may die between storing an event and posting it: that one is read by a resume.
    assert [event for event in events if event in socket.frames] == of(socket.frames, request_id)
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "all_strategies_failed")
    assert {code for _, code in failures(events[-1])} <= {"worker_died", "cache_miss"}


# --- starts ---


def test_a_start_that_was_lost_is_made_up_for_by_the_sweep(cloud, connect, user):
    cloud.arm("stepfunctions.lost_start", times=1)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("accepted")
    let_pass(cloud, user, request_id, PATIENT_S)
    sweep(cloud)
    events = socket.events(request_id)
    assert events[-1]["type"] == "complete"
    assert events == whole_log(connect, request_id)


def test_a_start_that_was_lost_is_made_up_for_by_a_resume(cloud, connect, user):
    cloud.arm("stepfunctions.lost_start", times=1)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("accepted")
    let_pass(cloud, user, request_id, PATIENT_S)
    socket.send("resume", requestId=request_id, after=1)
    assert socket.until("resumed")["outcome"] == "live"
    assert socket.events(request_id)[-1]["type"] == "complete"


def test_a_request_is_started_again_once_and_then_ended(cloud, connect, user):
    cloud.arm("stepfunctions.lost_start")
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("accepted")
    for _ in range(2):
        let_pass(cloud, user, request_id, PATIENT_S)
        sweep(cloud)
    events = socket.events(request_id)
    assert types(events) == ["accepted", "error"]
    assert (events[-1]["code"], events[-1]["retryable"]) == ("workflow_unavailable", True)


def test_a_start_that_comes_twice_answers_once(cloud, connect, watch):
    slow_down(cloud)
    cloud.arm("stepfunctions.duplicate_start", times=1)
    before = len(watch.calls)
    socket = connect()
    events = socket.answer(SIMPLE)
    assert events[-1]["attempted"] == ["rag"]
    assert types(events).count("attempt") == 1
    assert len(watch.calls) - before == 1
    assert whole_log(connect, events[0]["requestId"]) == events


def test_a_start_that_fails_is_told_at_once(cloud, connect):
    cloud.arm("stepfunctions.error", operation="StartExecution")
    events = connect().answer(SIMPLE)
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "workflow_unavailable")


# --- errors that tell much ---


def fail_at_length(cloud, user, request_id):
    """Have a request's strategies failed for reasons too long for an event inside the request's item."""
    reason = "It had read a long page. " * 40
    failed = [{"strategy": name, "code": "model_unavailable", "reason": reason} for name in ("hybrid", "rag", "cag")]
    assert len(json.dumps(failed)) > INLINE_BYTES
    cloud.client("dynamodb").update_item(
        TableName=House(cloud).request_table(),
        Key={"pk": {"S": f"{request_id}#{user}"}, "sk": {"S": "head"}},
        UpdateExpression="SET failed = :failed",
        ExpressionAttributeValues={":failed": {"S": json.dumps(failed)}},
        ConditionExpression="attribute_exists(pk)",
    )


def test_a_request_whose_error_is_long_is_ended_by_the_sweep(cloud, connect, user):
    cloud.arm("stepfunctions.lost_start", times=1)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("accepted")
    fail_at_length(cloud, user, request_id)
    let_pass(cloud, user, request_id, Budget().request_time_s + PATIENT_S)
    sweep(cloud)
    events = socket.events(request_id)
    assert types(events) == ["accepted", "error"]
    assert [strategy for strategy, _ in failures(events[-1])] == ["hybrid", "rag", "cag"]


def test_a_request_whose_error_is_long_is_ended_by_the_workflow(cloud, connect, user):
    cloud.arm("stepfunctions.lost_start", times=1)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("accepted")
    fail_at_length(cloud, user, request_id)
    task = {"subject": user, "requestId": request_id, "execution": "by-hand", "strategy": "direct", "failures": {}}
    ended = cloud.client("lambda").invoke(FunctionName=House(cloud).name_of(EXHAUSTED), Payload=json.dumps(task))
    assert json.load(ended["Payload"]) == {"ended": True}
    events = socket.events(request_id)
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "all_strategies_failed")


# --- what stays down ---


def test_a_model_that_stays_down_is_left_alone_and_taken_up_again(cloud, connect, watch):
    socket = connect()
    cloud.arm("bedrock.throttle")
    for _ in range(8):
        end = socket.answer(SIMPLE)[-1]
        if ("rag", "dependency_down") in failures(end):
            break
    assert ("rag", "dependency_down") in failures(end)
    shown = cicada(cloud, "breakers", "list")
    assert "model:local.extractive" in shown.stdout
    assert "open" in shown.stdout

    cloud.disarm()
    deadline = time.monotonic() + PATIENCE_S
    while (end := socket.answer(SIMPLE)[-1]).get("answeredBy") != "rag":
        assert time.monotonic() < deadline
    assert failures(end) == []


def test_a_throttled_model_is_tried_again(cloud, connect):
    cloud.arm("bedrock.throttle", times=1)
    complete = connect().answer(SIMPLE)[-1]
    assert (complete["type"], complete["answeredBy"]) == ("complete", "rag")
    assert complete["metrics"]["modelCalls"] == 2
