"""Metric math, the states of alarms with missing data, and embedded metrics, as CloudWatch documents them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from cicada_local.calls import QUOTA_TOKENS, Call
from cicada_local.cloudwatch import emf
from cicada_local.cloudwatch.alarm_config import read_alarm
from cicada_local.cloudwatch.alarms import next_state
from cicada_local.cloudwatch.clock import MetricClock
from cicada_local.cloudwatch.expressions import ExpressionInvalid, Scope, evaluate
from cicada_local.cloudwatch.metrics import Metric, MetricStore
from cicada_local.cloudwatch.queries import quota_of
from cicada_local.cloudwatch.sources import Samples, observe_calls

SCOPE = Scope({"a": {0: 1.0, 60: 2.0}, "b": {60: 4.0, 120: 0.0}}, (0, 60, 120), 60, {"a": 1000.0}, frozenset("ab"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + b", {60: 6}),
        ("a + 1", {0: 2, 60: 3}),
        ("a / b", {60: 0.5}),
        ("1 / b", {60: 0.25}),
        ("-a ^ 2", {0: 1, 60: 4}),
        ("2 + a * 3", {0: 5, 60: 8}),
        ("FILL(b, 0)", {0: 0, 60: 4, 120: 0}),
        ("FILL(a, REPEAT)", {0: 1, 60: 2, 120: 2}),
        ("FILL(a, b)", {0: 1, 60: 2, 120: 0}),
        ("a >= 2", {0: 0, 60: 1}),
        ("a >= 1 AND a < 2", {0: 1, 60: 0}),
        ("a > 1 || a == 1", {0: 1, 60: 1}),
        ("IF(a > 1, a)", {60: 2}),
        ("IF(a > 1, a, 7)", {0: 7, 60: 2}),
        ("SUM([a, b])", {0: 1, 60: 6, 120: 0}),
        ("MAX(METRICS())", {0: 1, 60: 4, 120: 0}),
        ("a / SUM(a)", {0: 1 / 3, 60: 2 / 3}),
        ("a * PERIOD(a)", {0: 60, 60: 120}),
        ("100 * a / SERVICE_QUOTA(a)", {0: 0.1, 60: 0.2}),
    ],
)
def test_expressions_give_what_cloudwatch_gives(expression: str, expected: dict[int, float]) -> None:
    assert evaluate(expression, SCOPE) == pytest.approx(expected)


@pytest.mark.parametrize(
    "expression",
    ["a +", "(a", "a b", "c", "RATE(a)", "FILL(1, 0)", "SERVICE_QUOTA(b)", "3", "[a, b]", "a $ b", "SUM(1)"],
)
def test_other_expressions_are_refused(expression: str) -> None:
    with pytest.raises(ExpressionInvalid):
        evaluate(expression, SCOPE)


def test_a_usage_metric_has_a_quota() -> None:
    usage = {"Service": "Lambda", "Type": "Resource", "Resource": "ConcurrentExecutions", "Class": "None"}
    assert quota_of(Metric.of("AWS/Usage", "ResourceCount", usage)) == 1000
    assert quota_of(Metric.of("AWS/Lambda", "Errors", usage)) is None


def config(missing: str, periods: int = 3, to_alarm: int = 3) -> Any:
    return read_alarm(
        {
            "AlarmName": "a",
            "Namespace": "Cicada",
            "MetricName": "m",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": periods,
            "DatapointsToAlarm": to_alarm,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": missing,
        }
    )


@pytest.mark.parametrize(
    ("points", "missing", "ignore", "breaching", "not_breaching"),
    [  # the User Guide's table for 3 out of 3: 0 is within, X breaches, - is missing; None keeps the state
        ("0-X-X", "OK", "OK", "OK", "OK"),
        ("0----", "OK", "OK", "OK", "OK"),
        ("-----", "INSUFFICIENT_DATA", None, "ALARM", "OK"),
        ("0XX-X", "ALARM", "ALARM", "ALARM", "ALARM"),
        ("--X--", "ALARM", None, "ALARM", "OK"),
    ],
)
def test_missing_data_counts_as_the_alarm_says(
    points: str, missing: str, ignore: str | None, breaching: str, not_breaching: str
) -> None:
    values = {"0": 0.0, "X": 5.0, "-": None}
    told = [(60 * place, values[sign]) for place, sign in enumerate(points)]
    states = [next_state(config(treated), told) for treated in ("missing", "ignore", "breaching", "notBreaching")]
    assert states == [missing, ignore, breaching, not_breaching]


@pytest.mark.parametrize("points", ["----X", "---X-"])
def test_an_alarm_is_not_premature(points: str) -> None:
    told = [(60 * place, 5.0 if sign == "X" else None) for place, sign in enumerate(points)]
    assert next_state(config("missing"), told) is None


def test_some_of_several_periods_suffice() -> None:
    told = [(60 * place, value) for place, value in enumerate((0.0, 0.0, 5.0, 0.0, 5.0))]
    assert next_state(config("missing", 3, 2), told) == "ALARM"
    assert next_state(config("missing", 3, 3), told) == "OK"


NOW = 1_795_262_400.0
REFUSED = web.Response(status=400, text="…ThrottlingException")


def line(**changes: Any) -> str:
    directive = {
        "Namespace": "Cicada",
        "Dimensions": [["service"]],
        "Metrics": [{"Name": "Questions", "Unit": "Count"}],
    }
    root = {
        "_aws": {"Timestamp": int(NOW * 1000), "CloudWatchMetrics": [{**directive, **changes.pop("directive", {})}]},
        "service": "cicada",
        "Questions": 1,
    }
    return json.dumps({**root, **changes})


def test_embedded_metrics_are_read() -> None:
    (found,) = emf.read(line(), NOW)
    assert found == emf.Reported(Metric.of("Cicada", "Questions", {"service": "cicada"}), (1.0,), "Count", NOW)
    assert emf.read('{"message": "no metrics"}', NOW) == emf.read('it says "_aws"', NOW) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"Questions": "1"},
        {"Questions": True},
        {"Questions": []},
        {"Questions": [1.0] * 101},
        {"service": 3},
        {"service": ""},
        {"service": "Zürich"},
        {"directive": {"Namespace": ""}},
        {"directive": {"Namespace": "AWS/Lambda"}},
        {"directive": {"Dimensions": ["service"]}},
        {"directive": {"Dimensions": [[f"d{place}" for place in range(31)]]}},
        {"directive": {"Metrics": [{"Name": "Questions", "Unit": "Questions"}]}},
        {"directive": {"Metrics": [{"Name": "Questions"}] * 101}},
        {"directive": {"Metrics": [{"Name": "Questions", "StorageResolution": 5}]}},
        {"_aws": {"CloudWatchMetrics": []}},
        {"_aws": {"Timestamp": int(NOW * 1000)}},
        {"_aws": {"Timestamp": int((NOW - 15 * 86_400) * 1000), "CloudWatchMetrics": []}},
        {"_aws": {"Timestamp": int((NOW + 3 * 3600) * 1000), "CloudWatchMetrics": []}},
    ],
)
def test_lines_against_the_specification_lose_their_metrics(changes: dict[str, Any]) -> None:
    with pytest.raises(emf.Invalid):
        emf.read(line(**changes), NOW)


def test_a_short_minute_makes_time_run_faster() -> None:
    real = [NOW]
    clock = MetricClock(0.5, now=lambda: real[0])
    real[0] += 1
    assert (clock.now(), clock.of(NOW + 2), clock.real_seconds(120)) == (NOW + 120, NOW + 240, 1.0)


def test_a_long_run_takes_little_room() -> None:
    store = MetricStore(MetricClock(now=lambda: NOW))
    metric = Metric.of("Cicada", "FirstChunk")
    for value in range(10_000, 20_000):
        store.record(metric, value / 7)
    (cell,) = store._cells[metric]["None"].values()
    assert cell.count == 10_000
    assert len(cell.values) <= 2_000
    (p95,) = store.statistic(metric, "p95", [int(NOW)], 60).values()
    assert p95 == pytest.approx(19_500 / 7, rel=0.001)


def test_executions_and_queues_are_counted_when_they_are_looked_at() -> None:
    real = [NOW]
    store = MetricStore(MetricClock(now=lambda: real[0]))
    executions = [{"executionArn": "e1", "stateMachineArn": "m", "status": "RUNNING"}]
    samples = Samples(store, lambda: executions, lambda: {"undelivered": 2})
    samples.take()
    executions[0] |= {"status": "FAILED"}
    executions.append({"executionArn": "e2", "stateMachineArn": "m", "status": "SUCCEEDED"})
    samples.take()
    samples.take()
    states = {"StateMachineArn": "m"}

    def total(namespace: str, name: str, dimensions: dict[str, str]) -> list[float]:
        return list(store.statistic(Metric.of(namespace, name, dimensions), "Sum", [int(NOW)], 60).values())

    names = ("ExecutionsStarted", "ExecutionsFailed", "ExecutionsSucceeded", "ExecutionsTimedOut")
    assert [total("AWS/States", name, states) for name in names] == [[2], [1], [1], []]
    assert total("AWS/SQS", "ApproximateNumberOfMessagesVisible", {"QueueName": "undelivered"}) == [2]


@pytest.mark.parametrize(
    ("call", "response", "metrics"),
    [
        (("dynamodb", "PutItem", "t"), web.Response(), {"SuccessfulRequestLatency"}),
        (("dynamodb", "PutItem", "t"), REFUSED, {"ThrottledRequests", "WriteThrottleEvents"}),
        (("dynamodb", "Query", "t"), REFUSED, {"ThrottledRequests", "ReadThrottleEvents"}),
        (("dynamodb", "PutItem", "t"), web.Response(status=500), {"SystemErrors"}),
        (("dynamodb", "PutItem", "t"), web.Response(status=400, text="ConditionalCheckFailedException"), set()),
        (("bedrock-runtime", "ConverseStream", "m"), web.Response(), {"Invocations", "InvocationLatency"}),
        (("bedrock-runtime", "ConverseStream", "m"), web.Response(status=429), {"InvocationThrottles"}),
        (("bedrock-runtime", "Converse", "m"), web.Response(status=400), {"InvocationClientErrors"}),
        (("bedrock-runtime", "Converse", "m"), web.Response(status=503), {"InvocationServerErrors"}),
        (("dynamodb", "BatchGetItem", ""), web.Response(), set()),
        (("s3", "PutObject", "b/k"), web.Response(), set()),
    ],
)
def test_calls_of_tables_and_models_are_counted_by_their_answers(
    call: tuple[str, str, str], response: web.Response, metrics: set[str]
) -> None:
    store = MetricStore(MetricClock(now=lambda: NOW))
    observe_calls(store)(Call(*call), response, 0.25)
    assert {one.name for one in store.metrics()} == metrics


def test_the_tokens_of_a_quota_are_counted_where_the_model_tells_them() -> None:
    store = MetricStore(MetricClock(now=lambda: NOW))
    response = web.Response()
    response[QUOTA_TOKENS] = 120
    observe_calls(store)(Call("bedrock-runtime", "Converse", "m"), response, 0.25)
    used = Metric.of("AWS/Bedrock", "EstimatedTPMQuotaUsage", {"ModelId": "m"})
    assert list(store.statistic(used, "Sum", [int(NOW)], 60).values()) == [120]
