"""What a CloudWatch dashboard shows: the queries of its widgets, and their values in a time, as plain JSON.

::

    {
      "title": "cicada", "start": 1795262400, "end": 1795264800,
      "body": {"widgets": […]},
      "results": {"0": [{"Id": "m1", "Label": "Questions", "Timestamps": [1795262400], "Values": [12.0]}]},
      "logs": {"3": [{"reason": "throttled", "count": "4"}]},
      "alarms": {"4": [{"name": "cicada-FirstTextSlow", "state": "OK"}]}
    }

``results``, ``logs`` and ``alarms`` are by the widget's place in the body; times are seconds since the epoch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

DEFAULT_PERIOD_S = 300
_MINUTE_S = 60
_AGO = re.compile(r"-P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?)?")

Widget = Mapping[str, Any]


def collect(
    client: Any,
    name: str,
    start: datetime,
    end: datetime,
    *,
    logs: Mapping[int, Sequence[Mapping[str, str]]] | None = None,
    period_s: int | None = None,
) -> dict[str, Any]:
    """A dashboard and its values.

    Args:
        client: a boto3 client of CloudWatch.
        name: the dashboard's.
        start: the first moment that is shown.
        end: the last one.
        logs: rows of log widgets, by their place in the body.
        period_s: in place of the widgets' own periods, for a time that is short for those. A widget with a time of its
            own keeps its periods.
    """
    body = json.loads(client.get_dashboard(DashboardName=name)["DashboardBody"])
    results, alarms = {}, {}
    for place, widget in enumerate(body["widgets"]):
        first = shown_from(widget, start.timestamp(), end.timestamp())
        own_s = None if "start" in widget["properties"] else period_s
        queries = list(widget_queries(widget, round(end.timestamp() - first), own_s))
        if queries:
            answer = client.get_metric_data(
                MetricDataQueries=queries,
                StartTime=datetime.fromtimestamp(first, UTC),
                EndTime=end,
                ScanBy="TimestampAscending",
            )
            results[str(place)] = [_plain(one) for one in answer["MetricDataResults"]]
        if widget["type"] == "alarm":
            alarms[str(place)] = _states(client, widget["properties"]["alarms"])
    return {
        "title": name,
        "start": start.timestamp(),
        "end": end.timestamp(),
        "body": body,
        "results": results,
        "logs": {str(place): [dict(row) for row in rows] for place, rows in (logs or {}).items()},
        "alarms": alarms,
    }


def shown_from(widget: Widget, start: float, end: float) -> float:
    """The first moment that a widget shows: the dashboard's, or one of its own, at the beginning of a period.

    Raises:
        ValueError: a time that is told in another way than by days, hours and minutes before now.
    """
    properties = widget["properties"]
    if "start" not in properties:
        return start
    found = _AGO.fullmatch(properties["start"])
    if found is None:
        raise ValueError(f"{properties['start']!r} cannot be shown")
    days, hours, minutes = (int(part or 0) for part in found.groups())
    first = end - (days * 24 * 60 + hours * 60 + minutes) * _MINUTE_S
    return first - first % _longest_period_s(widget)


def _longest_period_s(widget: Widget) -> int:
    shared: int = widget["properties"].get("period", DEFAULT_PERIOD_S)
    return max((options.get("period", shared) for _, options in widget_metrics(widget)), default=shared)


def _states(client: Any, arns: Sequence[str]) -> list[dict[str, str]]:
    """Alarms and their states, in the order that the widget has them."""
    names = [arn.rpartition(":")[2] for arn in arns]
    found = client.describe_alarms(AlarmNames=names)["MetricAlarms"]
    states = {alarm["AlarmName"]: alarm["StateValue"] for alarm in found}
    return [{"name": name, "state": states[name]} for name in names]


def _plain(result: Mapping[str, Any]) -> dict[str, Any]:
    times = [round(at.astimezone(UTC).timestamp()) for at in result["Timestamps"]]
    return {"Id": result["Id"], "Label": result["Label"], "Timestamps": times, "Values": list(result["Values"])}


def widget_queries(widget: Widget, range_s: int, period_s: int | None = None) -> Iterator[dict[str, Any]]:
    """A metric widget's queries, as ``GetMetricData`` takes them; none of another widget.

    Args:
        widget: one of the body's.
        range_s: the length of the time that is shown.
        period_s: in place of the widget's own period.
    """
    if widget["type"] != "metric":
        return
    properties = widget["properties"]
    whole = -(-range_s // _MINUTE_S) * _MINUTE_S
    shared_s = whole if properties.get("setPeriodToTimeRange") else period_s
    for place, (named, options) in enumerate(widget_metrics(widget)):
        query: dict[str, Any] = {"Id": options.get("id", f"q{place}"), "ReturnData": options.get("visible", True)}
        if "label" in options:
            query["Label"] = options["label"]
        period = shared_s or options.get("period", properties.get("period", DEFAULT_PERIOD_S))
        if "expression" in options:
            yield {**query, "Label": options.get("label", options["expression"]), "Expression": options["expression"]}
            continue
        dimensions = [{"Name": name, "Value": value} for name, value in zip(named[2::2], named[3::2], strict=True)]
        metric = {"Namespace": named[0], "MetricName": named[1], "Dimensions": dimensions}
        statistic = options.get("stat", properties.get("stat", "Average"))
        yield {**query, "MetricStat": {"Metric": metric, "Period": period, "Stat": statistic}}


def widget_metrics(widget: Widget) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    """A metric widget's metrics, each with its options; ``.`` and ``...`` repeat the metric before."""
    before: list[str] = []
    for metric in widget["properties"].get("metrics", ()):
        options = metric[-1] if isinstance(metric[-1], dict) else {}
        named = list(metric[:-1] if options else metric)
        if "..." in named:
            place = named.index("...")
            rest = named[place + 1 :]
            named = [*before[: len(before) - len(rest)], *rest]
        named = [before[place] if part == "." else part for place, part in enumerate(named)]
        before = named or before
        yield named, options
