"""The CloudWatch stand-in does what CloudWatch does: each line of its conformance list, by a boto3 client over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from cicada_local.cloudwatch import CloudWatch, Metric, MetricClock, MetricStore
from tests.wire.engine_services import EngineService, serving

NOON = 1_795_262_400  # 2026-11-21 12:00:00 UTC
TOPIC = "arn:aws:sns:us-east-1:123456789012:Operators"
GRAPH = {"region": "us-east-1", "metrics": [["Cicada", "Questions"]]}


class House:
    """The service, its client, and the hand on its clock."""

    def __init__(self) -> None:
        self.real = float(NOON)
        self.store = MetricStore(MetricClock(now=lambda: self.real))
        self.published: list[tuple[str, str, str]] = []
        self.refusal: str | None = None
        self.service = EngineService()
        self.cloudwatch = CloudWatch(self.store, self.service.faults, self._publish)
        self.client: Any = None

    def _publish(self, topic: str, subject: str, text: str) -> str | None:
        if self.refusal is None:
            self.published.append((topic, subject, text))
        return self.refusal

    def pass_minutes(self, minutes: int) -> None:
        self.real += 60 * minutes
        self.cloudwatch.alarms.evaluate_due(self.real)

    def alarm(self, **changes: Any) -> None:
        given = {
            "AlarmName": "cicada-Failed",
            "Namespace": "Cicada",
            "MetricName": "RequestsFailed",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "notBreaching",
            **changes,
        }
        self.client.put_metric_alarm(**{name: value for name, value in given.items() if value is not None})

    def described(self, name: str = "cicada-Failed") -> dict[str, Any]:
        (alarm,) = self.client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        found: dict[str, Any] = alarm
        return found

    def data(self, *queries: Mapping[str, Any], minutes: int = 10, **asked: Any) -> dict[str, list[float]]:
        answer = self.client.get_metric_data(
            MetricDataQueries=list(queries),
            StartTime=datetime.fromtimestamp(NOON, UTC),
            EndTime=datetime.fromtimestamp(NOON + 60 * minutes, UTC),
            ScanBy="TimestampAscending",
            **asked,
        )
        return {one["Id"]: one["Values"] for one in answer["MetricDataResults"]}


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    with serving(house.service, house.cloudwatch):
        house.client = house.service.client("cloudwatch", parameter_validation=False)
        yield house


def metric(id: str, name: str, stat: str = "Sum", **more: Any) -> dict[str, Any]:
    named = {"Namespace": "Cicada", "MetricName": name, "Dimensions": [{"Name": "service", "Value": "cicada"}]}
    return {"Id": id, "MetricStat": {"Metric": named, "Period": 60, "Stat": stat}, **more}


def record(house: House, name: str, *values: float, minute: int = 0, unit: str = "Count") -> None:
    at = NOON + 60 * minute + 7
    house.store.record(Metric.of("Cicada", name, {"service": "cicada"}), *values, unit=unit, at=at)


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    found: str = error.value.response["Error"]["Code"]
    return found


# --- requests ---


def test_an_unsigned_request_is_refused(house: House) -> None:
    client = house.service.client("cloudwatch", config=Config(signature_version=UNSIGNED))
    with pytest.raises(ClientError) as error:
        client.list_dashboards()
    assert code(error) == "MissingAuthenticationToken"


def test_members_outside_the_model_are_refused(house: House) -> None:
    with pytest.raises(ClientError) as error:
        house.client.describe_alarms(MaxRecords=101)
    assert code(error) == "ValidationError"


def test_throttles_come_as_throttling(house: House) -> None:
    house.service.faults.arm("cloudwatch.throttle", times=1)
    with pytest.raises(ClientError) as error:
        house.client.list_metrics()
    assert code(error) == "Throttling"


# --- metrics ---


def test_values_are_aggregated_by_the_period(house: House) -> None:
    record(house, "FirstChunk", 100, 200, 300, 400)
    record(house, "FirstChunk", 50, minute=1)
    stats = ("SampleCount", "Sum", "Average", "Minimum", "Maximum", "p50", "p95")
    found = house.data(*(metric(f"s{place}", "FirstChunk", stat) for place, stat in enumerate(stats)))
    assert list(found.values()) == [[4, 1], [1000, 50], [250, 50], [100, 50], [400, 50], [200, 50], [400, 50]]


def test_the_newest_values_come_first_unless_asked_otherwise(house: House) -> None:
    record(house, "Questions", 1)
    record(house, "Questions", 2, minute=1)
    window = {"StartTime": NOON, "EndTime": NOON + 600}
    (found,) = house.client.get_metric_data(MetricDataQueries=[metric("q", "Questions")], **window)["MetricDataResults"]
    assert (found["Values"], found["Label"], found["StatusCode"]) == ([2, 1], "Questions", "Complete")
    assert [at.timestamp() for at in found["Timestamps"]] == [NOON + 60, NOON]


def test_another_set_of_dimensions_is_another_metric(house: House) -> None:
    record(house, "Questions", 1)
    bare = {"Id": "q", "MetricStat": {"Metric": {"Namespace": "Cicada", "MetricName": "Questions"}, "Period": 60}}
    bare["MetricStat"]["Stat"] = "Sum"  # type: ignore[index]
    assert house.data(bare) == {"q": []}


def test_another_unit_leaves_values_out(house: House) -> None:
    record(house, "Questions", 1)
    query = metric("q", "Questions")
    query["MetricStat"]["Unit"] = "Seconds"
    assert house.data(query) == {"q": []}


def test_expressions_are_evaluated_and_only_what_returns_data_is_told(house: House) -> None:
    record(house, "RequestsFailed", 1)
    record(house, "AnswersComplete", 3)
    record(house, "AnswersComplete", 5, minute=1)
    queries = (
        metric("failed", "RequestsFailed", ReturnData=False),
        metric("complete", "AnswersComplete", ReturnData=False),
        {"Id": "share", "Expression": "100 * FILL(failed, 0) / (FILL(failed, 0) + complete)"},
    )
    assert house.data(*queries, minutes=2) == {"share": [25, 0]}


@pytest.mark.parametrize(
    "queries",
    [
        [{"Id": "M1", "Expression": "1"}],
        [metric("m1", "A"), metric("m1", "B")],
        [metric("m1", "A", ReturnData=False)],
        [metric("m1", "A"), {"Id": "e1", "Expression": "m2 * 2"}],
        [metric("m1", "A"), {"Id": "e1", "Expression": "ANOMALY_DETECTION_BAND(m1)"}],
        [metric("m1", "A"), {"Id": "e1", "Expression": "1 + 1"}],
        [metric("m1", "A"), {"Id": "e1", "Expression": "SERVICE_QUOTA(m1)"}],
        [{"Id": "m1"}],
    ],
)
def test_queries_that_cannot_be_evaluated_are_refused(house: House, queries: list[dict[str, Any]]) -> None:
    with pytest.raises(ClientError) as error:
        house.data(*queries)
    assert code(error) in ("ValidationError", "InvalidParameterCombination")


def test_a_window_must_end_after_it_begins(house: House) -> None:
    with pytest.raises(ClientError, match="StartTime must be less than"):
        house.data(metric("m1", "A"), minutes=0)


def test_an_unknown_statistic_is_refused(house: House) -> None:
    with pytest.raises(ClientError) as error:
        house.data(metric("m1", "A", "p101"))
    assert code(error) == "InvalidParameterValue"


def test_metrics_are_listed_by_what_they_are_named(house: House) -> None:
    record(house, "Questions", 1)
    record(house, "AnswersComplete", 1)
    house.store.count("AWS/Lambda", "Errors", {"FunctionName": "answer"})
    found = house.client.list_metrics(Namespace="Cicada", Dimensions=[{"Name": "service"}])["Metrics"]
    assert [one["MetricName"] for one in found] == ["AnswersComplete", "Questions"]
    assert found[0]["Dimensions"] == [{"Name": "service", "Value": "cicada"}]


def test_metrics_can_be_put(house: House) -> None:
    datum = {"MetricName": "Questions", "Values": [2.0, 3.0], "Counts": [1, 2], "Unit": "Count", "Timestamp": NOON}
    house.client.put_metric_data(Namespace="Other", MetricData=[datum])
    found = house.client.get_metric_statistics(
        Namespace="Other", MetricName="Questions", StartTime=NOON, EndTime=NOON + 60, Period=60, Statistics=["Sum"]
    )
    assert [point["Sum"] for point in found["Datapoints"]] == [8.0]


def test_lines_of_logs_become_metrics_in_stretched_time(house: House) -> None:
    house.store.clock.minute_s = 1.0
    line = {
        "_aws": {
            "Timestamp": (NOON + 1) * 1000,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Cicada",
                    "Dimensions": [["service"]],
                    "Metrics": [{"Name": "Questions", "Unit": "Count"}],
                }
            ],
        },
        "service": "cicada",
        "Questions": [1, 1],
    }
    house.real = NOON + 1.0
    house.cloudwatch.log_line("answer", json.dumps(line))
    house.cloudwatch.log_line("answer", json.dumps({**line, "service": ""}))
    assert house.data(metric("q", "Questions"), minutes=3) == {"q": [2]}
    (dropped,) = house.client.list_metrics(Namespace="AWS/Logs")["Metrics"]
    assert dropped["MetricName"] == "EMFValidationErrors"


def test_a_line_by_a_clock_that_is_late_becomes_a_metric_of_that_time(house: House) -> None:
    house.store.clock.minute_s = 1.0
    house.real = NOON + 1.0
    about = {"Namespace": "Cicada", "Dimensions": [["service"]], "Metrics": [{"Name": "Questions", "Unit": "Count"}]}
    line = {"_aws": {"Timestamp": (NOON - 30) * 1000, "CloudWatchMetrics": [about]}, "service": "cicada"}
    house.cloudwatch.log_line("answer", json.dumps(line | {"Questions": 1}))
    house.real = NOON + 2.0
    assert house.data(metric("q", "Questions"), minutes=3) == {"q": [1]}


# --- alarms ---


def test_an_alarm_begins_without_data_and_goes_where_its_metric_is(house: House) -> None:
    metric_of = {"Dimensions": [{"Name": "service", "Value": "cicada"}]}
    house.alarm(**metric_of, AlarmActions=[TOPIC], AlarmDescription="Requests fail.")
    assert house.described()["StateValue"] == "INSUFFICIENT_DATA"
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "OK"
    record(house, "RequestsFailed", 2, minute=1)
    house.pass_minutes(1)
    described = house.described()
    assert described["StateValue"] == "ALARM"
    assert described["StateReason"].startswith(
        "Threshold Crossed: 1 out of the last 1 datapoint [2.0 (21/11/26 12:01:00)]"
    )
    ((topic, subject, text),) = house.published
    assert (topic, subject) == (TOPIC, 'ALARM: "cicada-Failed" in US East (N. Virginia)')
    told = json.loads(text)
    assert (told["OldStateValue"], told["NewStateValue"], told["AlarmDescription"]) == ("OK", "ALARM", "Requests fail.")
    house.pass_minutes(3)
    assert house.described()["StateValue"] == "OK"
    items = house.client.describe_alarm_history(AlarmName="cicada-Failed", ScanBy="TimestampAscending")
    assert [(item["HistoryItemType"], item["HistorySummary"]) for item in items["AlarmHistoryItems"]] == [
        ("ConfigurationUpdate", 'Alarm "cicada-Failed" created'),
        ("StateUpdate", "Alarm updated from INSUFFICIENT_DATA to OK"),
        ("StateUpdate", "Alarm updated from OK to ALARM"),
        ("Action", f"Successfully executed action {TOPIC}"),
        ("StateUpdate", "Alarm updated from ALARM to OK"),
    ]


def test_a_topic_that_refuses_is_told_in_the_history(house: House) -> None:
    house.refusal = "CloudWatch Alarms is not authorized"
    house.alarm(TreatMissingData="breaching", AlarmActions=[TOPIC])
    house.pass_minutes(1)
    (item,) = house.client.describe_alarm_history(HistoryItemType="Action")["AlarmHistoryItems"]
    assert item["HistorySummary"].startswith("Failed to execute action")
    assert house.published == []


def test_actions_can_be_switched_off(house: House) -> None:
    house.alarm(TreatMissingData="breaching", AlarmActions=[TOPIC], ActionsEnabled=False)
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "ALARM"
    assert house.published == []


def test_an_alarm_can_watch_an_expression(house: House) -> None:
    metrics = [
        metric("failed", "RequestsFailed", ReturnData=False),
        metric("complete", "AnswersComplete", ReturnData=False),
        {"Id": "share", "Expression": "IF(failed + complete >= 4, 100 * failed / (failed + complete))"},
    ]
    alone = dict.fromkeys(("Namespace", "MetricName", "Statistic", "Period"))
    house.alarm(**alone, Metrics=metrics, Threshold=20)
    for failed, complete in ((1, 2), (1, 3)):
        minute = int(house.real - NOON) // 60
        record(house, "RequestsFailed", failed, minute=minute)
        record(house, "AnswersComplete", complete, minute=minute)
        house.pass_minutes(1)
    assert house.described()["StateValue"] == "ALARM"
    changes = house.client.describe_alarm_history(HistoryItemType="StateUpdate")["AlarmHistoryItems"]
    assert len(changes) == 2


def test_alarms_on_dynamodbs_metrics_ignore_missing_data_whatever_they_ask_for(house: House) -> None:
    house.alarm(Namespace="AWS/DynamoDB", MetricName="ThrottledRequests")
    house.pass_minutes(2)
    assert house.described()["StateValue"] == "INSUFFICIENT_DATA"
    metric = Metric.of("AWS/DynamoDB", "ThrottledRequests")
    house.store.record(metric, 1, unit="Count", at=house.real)
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "ALARM"
    house.pass_minutes(9)
    described = house.described()
    assert (described["StateValue"], described["TreatMissingData"]) == ("ALARM", "notBreaching")


def test_a_filled_expression_over_dynamodbs_metrics_comes_back(house: House) -> None:
    named = {"Namespace": "AWS/DynamoDB", "MetricName": "ThrottledRequests"}
    throttled = {"Id": "m1", "MetricStat": {"Metric": named, "Period": 60, "Stat": "Sum"}, "ReturnData": False}
    alone = dict.fromkeys(("Namespace", "MetricName", "Statistic", "Period"))
    house.alarm(**alone, Metrics=[throttled, {"Id": "e1", "Expression": "FILL(m1, 0)"}])
    house.store.record(Metric.of("AWS/DynamoDB", "ThrottledRequests"), 1, unit="Count", at=house.real)
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "ALARM"
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "OK"


def test_an_alarm_over_more_than_a_day_is_evaluated_once_an_hour(house: House) -> None:
    house.alarm(Dimensions=[{"Name": "service", "Value": "cicada"}], Period=86_400, EvaluationPeriods=2)
    house.pass_minutes(59)
    assert house.described()["StateValue"] == "INSUFFICIENT_DATA"
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "OK"


def test_a_period_over_a_minute_slides_by_the_minute(house: House) -> None:
    house.alarm(Dimensions=[{"Name": "service", "Value": "cicada"}], Period=300, Threshold=2)
    record(house, "RequestsFailed", 1, minute=2)
    record(house, "RequestsFailed", 1, minute=6)
    house.pass_minutes(6)
    assert house.described()["StateValue"] == "OK"
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "ALARM"


@pytest.mark.parametrize(
    "changes",
    [
        {"Period": 300, "EvaluationPeriods": 289},
        {"Period": 3600, "EvaluationPeriods": 169},
        {"EvaluationPeriods": 2, "DatapointsToAlarm": 3},
        {"TreatMissingData": "good"},
        {"Period": 90},
        {"Statistic": None},
        {"ExtendedStatistic": "p95"},
        {"Threshold": None},
        {"ComparisonOperator": "GreaterThanUpperThreshold"},
        {"AlarmActions": ["operators"]},
        {"Metrics": [metric("m1", "A")]},
        {"AlarmDescription": "x" * 1025},
    ],
)
def test_an_alarm_that_cloudwatch_refuses_is_refused(house: House, changes: dict[str, Any]) -> None:
    with pytest.raises(ClientError):
        house.alarm(**changes)


def test_the_longest_ranges_are_accepted(house: House) -> None:
    house.alarm(Period=300, EvaluationPeriods=288)
    house.alarm(Period=86_400, EvaluationPeriods=7)


def test_alarms_are_found_by_state_and_by_the_beginning_of_their_names_in_pages(house: House) -> None:
    for name in ("cicada-A", "cicada-B", "other"):
        house.alarm(AlarmName=name)
    first = house.client.describe_alarms(AlarmNamePrefix="cicada-", StateValue="INSUFFICIENT_DATA", MaxRecords=1)
    second = house.client.describe_alarms(AlarmNamePrefix="cicada-", MaxRecords=1, NextToken=first["NextToken"])
    names = [one["AlarmName"] for page in (first, second) for one in page["MetricAlarms"]]
    assert names == ["cicada-A", "cicada-B"]
    assert "NextToken" not in second
    house.client.delete_alarms(AlarmNames=["other"])
    assert house.client.describe_alarms(AlarmNames=["other"])["MetricAlarms"] == []


def test_a_state_that_is_set_lasts_until_the_next_evaluation(house: House) -> None:
    house.alarm()
    house.client.set_alarm_state(AlarmName="cicada-Failed", StateValue="ALARM", StateReason="a trial")
    assert house.described()["StateReason"] == "a trial"
    house.pass_minutes(1)
    assert house.described()["StateValue"] == "OK"


# --- dashboards ---


def test_dashboards_are_kept_and_listed(house: House) -> None:
    text = {"type": "text", "width": 6, "height": 1, "properties": {"markdown": "# Cicada"}}
    graph = {"type": "metric", "properties": {**GRAPH, "start": "-P14D"}}
    shown = {"start": "-PT3H", "periodOverride": "inherit"}
    body = json.dumps({"widgets": [text, graph], **shown})
    assert house.client.put_dashboard(DashboardName="cicada", DashboardBody=body)["DashboardValidationMessages"] == []
    found = house.client.get_dashboard(DashboardName="cicada")
    assert (found["DashboardBody"], found["DashboardArn"]) == (
        body,
        "arn:aws:cloudwatch::123456789012:dashboard/cicada",
    )
    (entry,) = house.client.list_dashboards(DashboardNamePrefix="cic")["DashboardEntries"]
    assert entry["Size"] == len(body)
    house.client.delete_dashboards(DashboardNames=["cicada"])
    with pytest.raises(ClientError) as error:
        house.client.get_dashboard(DashboardName="cicada")
    assert code(error) == "ResourceNotFound"


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        json.dumps({}),
        json.dumps({"widgets": [{"type": "text", "properties": {"markdown": "x"}}] * 501}),
        json.dumps({"widgets": [{"type": "map", "properties": {}}]}),
        json.dumps({"widgets": [{"type": "text", "x": 24, "properties": {"markdown": "x"}}]}),
        json.dumps({"widgets": [{"type": "log", "properties": {"query": "fields @message"}}]}),
        json.dumps({"widgets": [{"type": "metric", "properties": {"region": "us-east-1"}}]}),
        json.dumps({"widgets": [{"type": "metric", "properties": {"region": "us-east-1", "metrics": [["Cicada"]]}}]}),
        json.dumps({"widgets": [], "periodOverride": "never"}),
        json.dumps({"widgets": [], "start": "3 hours ago"}),
        json.dumps({"widgets": [], "end": "2026-11-21T12:00:00Z"}),
        json.dumps({"widgets": [{"type": "metric", "properties": {**GRAPH, "start": "-P"}}]}),
        json.dumps({"widgets": [{"type": "metric", "properties": {**GRAPH, "start": "-P1D", "end": "-PT3H"}}]}),
    ],
)
def test_a_dashboard_that_cannot_be_shown_is_refused(house: House, body: str) -> None:
    with pytest.raises(ClientError) as error:
        house.client.put_dashboard(DashboardName="cicada", DashboardBody=body)
    assert code(error) == "InvalidParameterInput"
