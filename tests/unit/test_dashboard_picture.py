"""A dashboard's values are asked for as its widgets say, and drawn the same each time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.dashboard_data import collect, shown_from, widget_queries
from benchmarks.dashboard_picture import main, render

NOON = 1_795_262_400
SERVICE = ["service", "cicada"]
VALUES = [1, 2500, 3]
BODY = {
    "widgets": [
        {"type": "text", "width": 24, "height": 1, "properties": {"markdown": "# Answers & delivery"}},
        {
            "type": "metric",
            "x": 0,
            "y": 1,
            "width": 12,
            "height": 6,
            "properties": {
                "title": "Requests",
                "region": "us-east-1",
                "period": 60,
                "stat": "Sum",
                "metrics": [
                    ["Cicada", "AnswersComplete", *SERVICE, {"id": "complete", "label": "Complete"}],
                    [".", "RequestsFailed", ".", ".", {"id": "failed", "visible": False}],
                    ["...", {"stat": "p95", "yAxis": "right"}],
                    [{"expression": "100 * failed / complete", "label": "Failed, %", "id": "e1", "yAxis": "right"}],
                ],
                "annotations": {"horizontal": [{"label": "Objective", "value": 2, "yAxis": "right"}]},
            },
        },
        {
            "type": "metric",
            "x": 12,
            "y": 1,
            "properties": {
                "title": "Cost",
                "region": "us-east-1",
                "view": "singleValue",
                "setPeriodToTimeRange": True,
                "metrics": [["Cicada", "CostUsd", *SERVICE, {"stat": "Sum", "label": "USD"}]],
            },
        },
        {"type": "log", "y": 7, "properties": {"title": "Why", "region": "us-east-1", "query": "fields reason"}},
        {"type": "log", "x": 6, "y": 7, "properties": {"title": "None", "region": "us-east-1", "query": "fields x"}},
        {"type": "alarm", "x": 12, "y": 7, "properties": {"title": "Alarms", "alarms": ["arn:aws:…:alarm:cicada-A"]}},
        {
            "type": "metric",
            "y": 13,
            "properties": {
                "title": "By the day",
                "region": "us-east-1",
                "start": "-P2DT6H",
                "metrics": [["Cicada", "CostUsd", *SERVICE, {"period": 86_400}]],
            },
        },
    ]
}


class Client:
    """CloudWatch with three minutes of values."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def get_dashboard(self, **asked: str) -> dict[str, str]:
        assert asked == {"DashboardName": "cicada"}
        return {"DashboardBody": json.dumps(BODY)}

    def describe_alarms(self, **asked: list[str]) -> dict[str, Any]:
        return {"MetricAlarms": [{"AlarmName": name, "StateValue": "ALARM"} for name in asked["AlarmNames"]]}

    def get_metric_data(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        times = [datetime.fromtimestamp(NOON + 60 * minute, UTC) for minute in (0, 1, 4)]
        return {
            "MetricDataResults": [
                {
                    "Id": query["Id"],
                    "Label": query.get("Label", query["Id"]),
                    "Timestamps": times,
                    "Values": [1, 2500, 3],
                }
                for query in asked["MetricDataQueries"]
                if query["ReturnData"]
            ]
        }


@pytest.fixture
def data() -> dict[str, Any]:
    window = datetime.fromtimestamp(NOON, UTC), datetime.fromtimestamp(NOON + 600, UTC)
    return collect(Client(), "cicada", *window, logs={3: [{"reason": "throttled <once>", "count": "4"}]})


def test_a_widgets_metrics_become_queries() -> None:
    complete, failed, tail, share = widget_queries(BODY["widgets"][1], 600)
    assert complete["MetricStat"] == {
        "Metric": {
            "Namespace": "Cicada",
            "MetricName": "AnswersComplete",
            "Dimensions": [{"Name": "service", "Value": "cicada"}],
        },
        "Period": 60,
        "Stat": "Sum",
    }
    assert (failed["MetricStat"]["Metric"]["MetricName"], failed["ReturnData"]) == ("RequestsFailed", False)
    assert (tail["MetricStat"]["Metric"], tail["MetricStat"]["Stat"]) == (failed["MetricStat"]["Metric"], "p95")
    assert (share["Expression"], share["Label"]) == ("100 * failed / complete", "Failed, %")


def test_a_number_is_of_the_whole_time() -> None:
    (cost,) = widget_queries(BODY["widgets"][2], 599)
    assert cost["MetricStat"]["Period"] == 600


def test_a_widget_may_show_a_time_of_its_own() -> None:
    client = Client()
    window = datetime.fromtimestamp(NOON, UTC), datetime.fromtimestamp(NOON + 600, UTC)
    collect(client, "cicada", *window, period_s=60)
    first, *_, last = client.asked
    assert (first["StartTime"], last["EndTime"]) == window
    assert last["StartTime"] == datetime(2026, 11, 19, tzinfo=UTC)  # at the beginning of a period
    periods = [asked["MetricDataQueries"][0]["MetricStat"]["Period"] for asked in (first, last)]
    assert periods == [60, 86_400]
    graph = {"type": "metric", "properties": {"start": "-P3M"}}
    with pytest.raises(ValueError, match="-P3M"):
        shown_from(graph, NOON, NOON + 600)


def test_a_dashboard_is_drawn_from_plain_data(data: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps(data), encoding="utf-8")
    assert main([str(tmp_path / "data.json"), str(tmp_path / "picture.svg")]) == 0
    picture = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert picture == render(json.loads(json.dumps(data)))
    told = {element.text for element in ElementTree.fromstring(picture).iter() if element.text}
    assert {"cicada", "Answers & delivery", "Requests", "Complete", "Failed, %", "Objective", "2k", "12:05"} <= told
    assert {"3", "USD", "throttled <once>", "4", "No results", "cicada-A"} <= told


def test_a_gap_breaks_a_line(data: dict[str, Any]) -> None:
    picture = render(data)
    assert picture.count("<polyline") == picture.count("<circle") == 4


def test_a_stacked_graph_adds_up(data: dict[str, Any]) -> None:
    data["body"]["widgets"][1]["properties"]["stacked"] = True
    assert render(data) != render({**data, "body": BODY})


def test_a_graph_without_values_is_drawn(data: dict[str, Any]) -> None:
    assert "Requests" in render({**data, "results": {}})
