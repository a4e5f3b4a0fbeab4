"""The alarms: who is told, and when each of them fires, by the CloudWatch stand-in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cicada import metrics
from cicada_local.cloudwatch import Metric, MetricClock, MetricStore
from cicada_local.cloudwatch.alarms import Alarms
from stacks.alarms import runbook
from stacks.findings import flat
from stacks.settings import Settings
from tests.template.templates import ROOT, Synthesis

NOON = 1_795_262_400  # 2026-11-21 12:00:00 UTC
OBJECTIVES = Settings().objectives
OVER_A_QUARTER_HOUR = ("AnswersMissing", "AnswersFellBack", "FirstTextSlow")


def flattened(value: Any) -> Any:
    """A resource's properties as the API gets them; a reference as the name of what it refers to."""
    if isinstance(value, list):
        return [flattened(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
        return flat(value)
    return {key: flattened(inner) for key, inner in value.items()}


def asked(synthesis: Synthesis) -> dict[str, dict[str, Any]]:
    """What is asked of PutMetricAlarm, by the alarms' names without the prefix."""
    found = {}
    for alarm in synthesis.resources("AWS::CloudWatch::Alarm"):
        properties = flattened(alarm.properties) | {"AlarmActions": ["arn:aws:sns:us-east-1:123456789012:Topic"]}
        found[properties["AlarmName"].removeprefix(f"{synthesis.prefix}-")] = properties
    return found


class Watch:
    """An account with the alarms of a deployment, and the hand on its clock."""

    def __init__(self, synthesis: Synthesis, only: str = "") -> None:
        self.now = float(NOON)
        self.store = MetricStore(MetricClock(now=lambda: self.now))
        self.alarms = Alarms(self.store, lambda *_: None)
        self.metrics: dict[tuple[str, str, str], Metric] = {}
        for name, properties in asked(synthesis).items():
            if only not in name:
                continue
            self.alarms.put(properties)
            self.metrics |= {(name, one.namespace, one.name): one for one in watched(properties)}

    def pass_minutes(self, minutes: int, values: Mapping[tuple[str, str], float] | None = None) -> None:
        """Let time pass; each minute, values of an alarm's metric come in, by the alarm's and the metric's name."""
        for _ in range(minutes):
            for (alarm, name), value in (values or {}).items():
                self.record(alarm, name, value)
            self.now += 60
            self.alarms.evaluate_due(self.now)

    def record(self, alarm: str, name: str, *values: float) -> None:
        """Values of a metric that an alarm watches; of each, where it has several of that name."""
        unit = {"FirstChunk": "Milliseconds", "CostUsd": "None", "ResourceCount": "None"}.get(name, "Count")
        of_name = [metric for (watcher, _, each), metric in self.metrics.items() if (watcher, each) == (alarm, name)]
        assert of_name, f"{alarm} does not watch {name}"
        for metric in of_name:
            self.store.record(metric, *values, unit=unit, at=self.now)

    def fires(self) -> set[str]:
        return {alarm.config.name.partition("-")[2] for alarm in self.alarms.all() if alarm.state == "ALARM"}


def watched(properties: Mapping[str, Any]) -> Iterator[Metric]:
    """The metrics of an alarm."""
    stats = [query["MetricStat"]["Metric"] for query in properties.get("Metrics", ()) if "MetricStat" in query]
    for one in stats or [properties]:
        dimensions = {each["Name"]: each["Value"] for each in one.get("Dimensions", ())}
        yield Metric.of(one["Namespace"], one["MetricName"], dimensions)


@pytest.fixture(scope="module")
def deployed(make: Any, shipped_settings: dict[str, Any]) -> Synthesis:
    """The defaults, with alarms."""
    synthesis: Synthesis = make(shipped_settings | {"alarmEmail": "operator@example.org"})
    return synthesis


MODELS = ("us.amazon.nova-lite-v1:0", "us.amazon.nova-micro-v1:0")


@pytest.fixture(scope="module")
def other(make: Any, shipped_settings: dict[str, Any]) -> Synthesis:
    """With rare sweeps, and models whose quotas are known."""
    objectives = {"modelTokensMinute": dict.fromkeys(MODELS, 10_000)}
    more = {"alarmEmail": "operator@example.org", "objectives": objectives, "recovery": {"sweepMinutes": 60}}
    synthesis: Synthesis = make(shipped_settings | more)
    return synthesis


@pytest.fixture
def watch(deployed: Synthesis) -> Watch:
    return Watch(deployed)


def test_the_operator_is_told_when_asked_for(full: Synthesis, shipped: Synthesis) -> None:
    topic = full.one("AWS::SNS::Topic").id
    alarms = list(full.resources("AWS::CloudWatch::Alarm"))
    assert all(alarm.properties["AlarmActions"] == [{"Ref": topic}] for alarm in alarms)
    assert full.one("AWS::SNS::Subscription").properties["Endpoint"] == "operator@example.org"
    policy = full.one("AWS::SNS::TopicPolicy").properties["PolicyDocument"]["Statement"]
    assert {"Service": "cloudwatch.amazonaws.com"} in [s["Principal"] for s in policy if s["Effect"] == "Allow"]
    assert list(shipped.resources("AWS::CloudWatch::Alarm")) == []


def test_every_alarm_names_its_runbook(full: Synthesis, deployed: Synthesis) -> None:
    for synthesis, folder in ((full, "https://wiki.example.org/runbooks"), (deployed, "docs/runbooks")):
        for name, properties in asked(synthesis).items():
            sentence, _, page = properties["AlarmDescription"].partition(". Runbook: ")
            assert page == f"{folder}/{runbook(name)}"
            assert re.fullmatch(r"[A-Z][^.]+", sentence)
    assert runbook("AnswersFellBack") == "answers-fell-back.md"


def test_alarms_watch_metrics_that_are_reported(full: Synthesis) -> None:
    known = {metric.name for metric in metrics.CATALOGUE}
    own = [one for each in asked(full).values() for one in watched(each) if one.namespace == metrics.NAMESPACE]
    assert {one.name for one in own} <= known
    assert {one.dimensions for one in own} == {((metrics.DIMENSION, full.prefix),)}


def test_each_function_that_answers_frames_is_watched_where_there_is_one(full: Synthesis, deployed: Synthesis) -> None:
    functions = {synthesis: len(list(watched(asked(synthesis)["MessagesFailed"]))) for synthesis in (full, deployed)}
    assert functions == {full: 3, deployed: 2}  # message processor, corpus; uploads where users may upload


def test_in_a_new_deployment_that_nobody_uses_nothing_fires(watch: Watch) -> None:
    watch.record("SweepSilent", "Invocations", 1)  # it runs since before there are alarms
    for minute in range(3 * 60):
        watch.pass_minutes(1, {("SweepSilent", "Invocations"): 1} if minute % 2 else {})
        assert watch.fires() == set()


@pytest.mark.parametrize(
    ("alarm", "values"),
    [
        ("AnswersMissing", {"RequestsFailed": 1}),
        ("AnswersMissing", {"RequestsFailed": 1, "AnswersComplete": 18}),
        ("AnswersFellBack", {"AnswersFellBack": 1, "AnswersComplete": 3}),
        ("FirstTextSlow", {"FirstChunk": 12_000}),
        ("SpendingHigh", {"CostUsd": 4}),
        ("DeadLetters", {"ApproximateNumberOfMessagesVisible": 1}),
        ("ConcurrencyNearQuota", {"ResourceCount": 800}),
        ("ConcurrencyNearQuota", {"ResourceCount": 10, "Throttles": 1}),
        ("ModelNearQuota", {"InvocationThrottles": 1}),
        ("MessagesFailed", {"Errors": 1}),
        ("GatewayFailed", {"IntegrationError": 1}),
        ("GatewayFailed", {"PostsRejected": 1}),
        ("IssuerUnavailable", {"IssuerUnavailable": 1}),
        ("BreakersOpened", {"BreakerOpened": 1}),
        ("WorkersLost", {"RequestsRecovered": 1}),
        ("UpkeepFailed", {"Errors": 1}),
        ("TableThrottled", {"WriteThrottleEvents": 1}),
        ("TableThrottled", {"ReadThrottleEvents": 1}),
        ("IngestFailed", {"ExecutionsFailed": 1}),
        ("IngestFailed", {"ExecutionsTimedOut": 1}),
        ("DocumentsSetAside", {"DocumentsQuarantined": 1}),
        ("DocumentsSetAside", {"DocumentsNotPrepared": 1}),
        ("LimitsReached", {"LimitsReached": 1}),
    ],
)
def test_an_alarm_fires_and_comes_back(watch: Watch, alarm: str, values: dict[str, float]) -> None:
    named = {(alarm, name): value for name, value in values.items()}
    watch.pass_minutes(3, {("SweepSilent", "Invocations"): 1})
    watch.pass_minutes(3, named | {("SweepSilent", "Invocations"): 1})
    assert alarm in watch.fires()
    watch.now += 24 * 3600 if alarm == "SpendingHigh" else 0
    watch.pass_minutes(15 if alarm in OVER_A_QUARTER_HOUR else 5, {("SweepSilent", "Invocations"): 1})
    assert watch.fires() == set()


@pytest.mark.parametrize(
    ("alarm", "values"),
    [
        ("AnswersMissing", {"RequestsFailed": 1, "AnswersComplete": 20}),
        ("AnswersFellBack", {"AnswersFellBack": 1, "AnswersComplete": 5}),
        ("AnswersFellBack", {"AnswersFellBack": 0, "AnswersComplete": 1}),
        ("FirstTextSlow", {"FirstChunk": 9_000}),
        ("ConcurrencyNearQuota", {"ResourceCount": 700}),
        ("UpkeepFailed", {"Errors": 0}),
    ],
)
def test_within_the_objectives_nothing_fires(watch: Watch, alarm: str, values: dict[str, float]) -> None:
    named = {(alarm, name): value for name, value in values.items()}
    watch.pass_minutes(30, named | {("SweepSilent", "Invocations"): 1})
    assert alarm not in watch.fires()


@pytest.mark.parametrize(
    ("alarm", "name", "value"),
    [
        ("AnswersMissing", "RequestsFailed", 1),
        ("AnswersFellBack", "AnswersFellBack", 1),
        ("FirstTextSlow", "FirstChunk", 60_000),
    ],
)
def test_one_that_stands_alone_is_no_alarm(watch: Watch, alarm: str, name: str, value: float) -> None:
    assert OBJECTIVES.least_events == 2
    watch.record(alarm, name, value)
    if alarm == "AnswersFellBack":
        watch.record(alarm, "AnswersComplete", 1)
    watch.pass_minutes(20)
    assert alarm not in watch.fires()


def test_a_sweep_that_stops_is_told_after_a_quarter_of_an_hour(watch: Watch) -> None:
    watch.pass_minutes(30, {("SweepSilent", "Invocations"): 1})
    assert watch.fires() == set()
    watch.pass_minutes(14)
    assert watch.fires() == set()
    watch.pass_minutes(5)
    assert watch.fires() == {"SweepSilent"}
    watch.pass_minutes(6, {("SweepSilent", "Invocations"): 1})
    assert watch.fires() == set()


def test_a_rare_sweep_is_given_three_of_its_periods(other: Synthesis) -> None:
    assert asked(other)["SweepSilent"]["EvaluationPeriods"] * 5 == 180


def test_upkeep_that_stops_is_told_after_26_hours_of_a_deployment_at_work(deployed: Synthesis) -> None:
    watch = Watch(deployed, "MaintenanceSilent")
    of_alarm = watched(asked(deployed)["MaintenanceSilent"])
    maintenance, sweep = sorted(of_alarm, key=lambda metric: "Recovery" in str(metric.dimensions))

    def pass_hours(hours: int) -> None:
        for _ in range(hours):
            watch.store.record(sweep, 1, unit="Count", at=watch.now)
            watch.store.record(sweep, 1, unit="Count", at=watch.now)
            watch.now += 3600
            watch.alarms.evaluate_due(watch.now)

    pass_hours(24)
    assert "MaintenanceSilent" not in watch.fires()
    watch.store.record(maintenance, 1, unit="Count", at=watch.now - 60)
    pass_hours(24)
    assert "MaintenanceSilent" not in watch.fires()
    pass_hours(6)
    assert "MaintenanceSilent" in watch.fires()
    watch.store.record(maintenance, 1, unit="Count", at=watch.now)
    pass_hours(2)
    assert "MaintenanceSilent" not in watch.fires()


def test_the_tokens_of_a_models_quota_are_watched_where_it_is_named(other: Synthesis) -> None:
    metrics_watched = list(watched(asked(other)["ModelNearQuota"]))
    used = [metric for metric in metrics_watched if metric.name == "EstimatedTPMQuotaUsage"]
    assert [dict(metric.dimensions)["ModelId"] for metric in used] == list(MODELS)
    assert len(metrics_watched) <= 10
    for metric, tokens, fires in ((used[0], 7_900, set()), (used[1], 8_100, {"ModelNearQuota"})):
        watch = Watch(other, "ModelNearQuota")
        watch.store.record(metric, tokens, unit="Count", at=watch.now)
        watch.pass_minutes(1)
        assert watch.fires() == fires


def test_the_alarms_cost_what_the_documentation_says(deployed: Synthesis) -> None:
    alarms = asked(deployed)
    watches = sum(len(list(watched(properties))) for properties in alarms.values())
    assert (len(alarms), watches) == (19, 32)
    document = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert f"{len(alarms)} alarms that watch {watches} metrics" in document
