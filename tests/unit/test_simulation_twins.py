"""What the simulation stands on: its scheduler, and the twins of services."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada.attempts.chain import FALLS_TO, longest_path
from tests.simulation.concurrency import SimulatedConcurrency
from tests.simulation.expressions import condition, updated
from tests.simulation.faults import Faults
from tests.simulation.functions import Failure
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.table import Table
from tests.simulation.workflow import ANSWER, EXHAUSTED, Workflow

NAMES = {"#state": "state", "#log": "log", "#e2": "2"}
ITEM: dict[str, Any] = {"pk": {"S": "a"}, "state": {"S": "open"}, "n": {"N": "9"}, "log": {"M": {"1": {"S": "x"}}}}


@pytest.fixture
def scheduler():
    return Scheduler(Random(1))


@pytest.fixture
def calm():
    """Faults of a world in which there are none."""
    return next(made for seed in range(1_000) if (made := Faults(Random(seed), Counter())).off)


def unexpected(who, error):
    pytest.fail(f"{who}: {error}")


def run(scheduler, *tasks, until=1_000.0):
    """Run functions side by side, each in a process of its own."""
    processes = [Process(f"p{n}", "test") for n, _ in enumerate(tasks)]
    started = [scheduler.spawn(process, task, "main") for process, task in zip(processes, tasks, strict=True)]
    scheduler.run(until)
    return processes, started


# --- expressions ---


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("#state = :s AND n = :n", {":s": {"S": "open"}, ":n": {"N": "9"}}, True),
        ("#state = :s AND n < :n", {":s": {"S": "open"}, ":n": {"N": "10"}}, True),
        ("n > :n", {":n": {"N": "10"}}, False),
        ("n = :s", {":s": {"S": "9"}}, False),
        ("attribute_not_exists(pk)", {}, False),
        ("attribute_not_exists(other) OR n = :n", {":n": {"N": "1"}}, True),
        ("NOT (attribute_exists(n) AND attribute_exists(#log.#e2))", {}, True),
        ("missing <> :n", {":n": {"N": "1"}}, True),
        ("pk = :a AND n BETWEEN :low AND :high", {":a": {"S": "a"}, ":low": {"N": "1"}, ":high": {"N": "9"}}, True),
        ("begins_with(pk, :a) AND n IN (:n, :m)", {":a": {"S": "a"}, ":n": {"N": "1"}, ":m": {"N": "9"}}, True),
    ],
)
def test_conditions_hold_as_dynamodb_has_them(text, values, holds):
    assert condition(text)(ITEM, NAMES, values) is holds


def test_an_update_sees_the_item_as_it_was_and_leaves_it_so():
    after = updated(
        ITEM,
        "SET n = n + :one, m = n, #log.#e2 = :y, #state = if_not_exists(#state, :y) REMOVE pk",
        NAMES,
        {":one": {"N": "1"}, ":y": {"S": "y"}},
    )
    assert after == {
        "n": {"N": "10"},
        "m": {"N": "9"},
        "state": {"S": "open"},
        "log": {"M": {"1": {"S": "x"}, "2": {"S": "y"}}},
    }
    assert "2" not in ITEM["log"]["M"]


# --- the scheduler ---


def test_time_passes_only_where_somebody_waits(scheduler):
    seen = []

    def sleeper(seconds):
        scheduler.sleep(seconds)
        seen.append((seconds, scheduler.now))

    run(scheduler, lambda: sleeper(5), lambda: sleeper(2), lambda: sleeper(9))
    assert seen == [(2, 2), (5, 5), (9, 9)]


def test_a_killed_process_does_nothing_more_not_even_as_it_unwinds(scheduler):
    done = []

    def victim():
        try:
            scheduler.sleep(10)
        finally:
            scheduler.sleep(1)
            done.append("cleaned up")

    process = Process("victim", "test")
    scheduler.spawn(process, victim, "main")
    scheduler.call_at(5, lambda: scheduler.kill(process))
    scheduler.run(100)
    assert done == []


def test_a_frozen_process_goes_on_later(scheduler):
    woken_at = []
    process = Process("frozen", "test")

    def sleep():
        scheduler.sleep(2)
        woken_at.append(scheduler.now)

    scheduler.spawn(process, sleep, "main")
    scheduler.call_at(1, lambda: scheduler.freeze(process, 60))
    scheduler.run(100)
    assert woken_at == [61]


def test_a_condition_excludes_and_notifies(scheduler):
    concurrency = SimulatedConcurrency(scheduler, unexpected)
    condition = concurrency.condition()
    order: list[object] = []

    def waiter():
        with condition:
            order.append(condition.wait_for(lambda: "made" in order, timeout=50))

    def maker():
        scheduler.sleep(3)
        with condition:
            scheduler.sleep(3)
            order.append("made")
            condition.notify_all()

    run(scheduler, waiter, maker)
    assert order == ["made", True]


def test_things_are_done_side_by_side_and_the_first_error_is_raised(scheduler):
    concurrency = SimulatedConcurrency(scheduler, unexpected)

    def slowly(seconds):
        scheduler.sleep(seconds)
        if seconds == 7:
            raise ValueError(seconds)
        return -seconds

    results = []

    def both():
        results.append((concurrency.each(slowly, [5, 6]), scheduler.now))
        with pytest.raises(ValueError, match="7"):
            concurrency.each(slowly, [1, 7])

    _, (task,) = run(scheduler, both)
    assert task.error is None
    assert results == [([-5, -6], 6)]


# --- the twins ---


def test_a_write_whose_condition_fails_changes_nothing_and_shows_what_stands(scheduler, calm):
    changes = []
    table = Table(scheduler, calm, lambda *change: changes.append(change), index=("open", "open_in", "at"))
    item = {"pk": {"S": "a"}, "sk": {"S": "head"}}

    def writer():
        table.put_item(TableName="t", Item=item, ConditionExpression="attribute_not_exists(pk)")
        with pytest.raises(ClientError) as refused:
            table.put_item(TableName="t", Item=item | {"n": {"N": "1"}}, ConditionExpression="attribute_not_exists(pk)")
        assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
        assert refused.value.response["Item"] == item

    _, (task,) = run(scheduler, writer)
    assert task.error is None
    assert changes == [("a", "head", None, item)]


def test_the_index_shows_what_has_its_hash_key_and_lags(scheduler, calm):
    table = Table(scheduler, calm, lambda *_: None, index=("open", "open_in", "at"))
    item = {"pk": {"S": "a"}, "sk": {"S": "head"}, "open_in": {"N": "1"}, "at": {"N": "5"}, "more": {"S": "x"}}
    seen = []

    def look():
        found = table.scan(
            TableName="t",
            IndexName="open",
            FilterExpression="at < :nine",
            ExpressionAttributeValues={":nine": {"N": "9"}},
        )
        seen.append([sorted(item) for item in found["Items"]])

    def writer():
        table.put_item(TableName="t", Item=item)
        look()
        scheduler.sleep(1)
        look()
        table.update_item(TableName="t", Key={"pk": item["pk"], "sk": item["sk"]}, UpdateExpression="REMOVE open_in")
        scheduler.sleep(1)
        look()

    _, (task,) = run(scheduler, writer)
    assert task.error is None
    assert seen == [[], [["at", "open_in", "pk", "sk"]], []]


@pytest.mark.parametrize("entry", sorted(FALLS_TO))
def test_the_workflow_goes_down_the_chain_to_its_end(scheduler, calm, entry):
    called = []

    def invoke(function, payload, timeout_s):
        called.append(payload.get("strategy", function))
        if function == ANSWER:
            raise Failure("StreamBroken")
        return {"ended": True}

    workflow = Workflow(scheduler, calm, [], invoke=invoke, crashed=unexpected, tell=lambda *_: None)
    data = f'{{"subject": "mara", "requestId": "r", "strategy": "{entry}", "failures": {{}}}}'
    _, (task,) = run(scheduler, lambda: workflow.start_execution(stateMachineArn="machine", name="x", input=data))
    assert task.error is None
    assert called == [*longest_path(entry), EXHAUSTED]


def test_the_workflow_retries_a_throttle_and_ends_at_an_answer(scheduler, calm):
    called = []

    def invoke(function, payload, timeout_s):
        called.append(payload["strategy"])
        if len(called) < 3:
            raise Failure("Lambda.TooManyRequestsException")

    workflow = Workflow(scheduler, calm, [], invoke=invoke, crashed=unexpected, tell=lambda *_: None)
    data = '{"subject": "mara", "requestId": "r", "strategy": "rag", "failures": {}}'
    run(scheduler, lambda: workflow.start_execution(stateMachineArn="machine", name="x", input=data))
    assert called == ["rag", "rag", "rag"]
