"""CloudWatch's API, as far as Cicada's operator calls it; ``CONFORMANCE.md`` beside this file lists what is served.

Fault switch (``cicada_local.faults``): ``cloudwatch.throttle`` answers ``Throttling``; ``operation`` limits it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from aiohttp import web

from cicada_local.cloudwatch import emf
from cicada_local.cloudwatch.alarms import Alarm, Alarms, HistoryItem, notification
from cicada_local.cloudwatch.clock import MINUTE_S
from cicada_local.cloudwatch.dashboards import Dashboards
from cicada_local.cloudwatch.errors import (
    CloudWatchError,
    InvalidNextToken,
    InvalidParameterValue,
    Throttled,
    Unsigned,
    ValidationError,
)
from cicada_local.cloudwatch.metrics import Metric, MetricStore, Series
from cicada_local.cloudwatch.queries import MetricQuery, evaluate_queries, read_queries
from cicada_local.cloudwatch.sources import Samples
from cicada_local.faults import Faults
from cicada_local.json_service import Answer, JsonService

logger = logging.getLogger(__name__)

MAX_DATA_POINTS = 100_800
PAGE = 500
"""Metrics of a page of ``ListMetrics``."""
ALARM_PAGE = 50
KEPT_NOTIFICATIONS = 200
LEAST_TICK_S, LONGEST_TICK_S = 0.05, 5.0
"""Real seconds between two looks at the clock."""

Publish = Callable[[str, str, str], str | None]
"""Publishes subject and text to a topic; what went wrong, if anything."""


def publish_nowhere(topic_arn: str, subject: str, text: str) -> str | None:  # noqa: ARG001
    """For a CloudWatch without topics."""
    return None


class CloudWatch(JsonService):
    """Metrics, alarms and dashboards. All methods belong to one event loop."""

    name, prefix, signed_for = "cloudwatch", "GraniteServiceVersion20100801.", "monitoring"
    failed = CloudWatchError("The service cannot complete the request")
    unsigned, invalid = Unsigned, ValidationError

    def __init__(self, store: MetricStore, faults: Faults, publish: Publish = publish_nowhere) -> None:
        """Serve what a store holds.

        Args:
            store: has the metrics.
            faults: may make the service fail.
            publish: publishes to a topic.
        """
        super().__init__()
        self.store = store
        self.alarms = Alarms(store, self._act)
        self.dashboards = Dashboards()
        self._notifications: deque[dict[str, Any]] = deque(maxlen=KEPT_NOTIFICATIONS)
        self.samples: Samples | None = None
        """Looks from time to time at what tells nothing by itself."""
        self._faults = faults
        self._publish = publish
        self._operations: dict[str, Callable[[Mapping[str, Any]], Answer]] = {
            "GetMetricData": self._get_metric_data,
            "GetMetricStatistics": self._get_metric_statistics,
            "ListMetrics": self._list_metrics,
            "PutMetricData": self._put_metric_data,
            "PutMetricAlarm": self._put_metric_alarm,
            "DeleteAlarms": self._delete_alarms,
            "DescribeAlarms": self._describe_alarms,
            "DescribeAlarmHistory": self._describe_alarm_history,
            "SetAlarmState": self._set_alarm_state,
            "PutDashboard": self._put_dashboard,
            "GetDashboard": self._get_dashboard,
            "ListDashboards": self._list_dashboards,
            "DeleteDashboards": self._delete_dashboards,
        }

    async def run(self) -> None:
        """Take samples, and evaluate the alarms at the end of each minute, until cancelled."""
        clock = self.store.clock
        while True:
            left_s = clock.real_seconds(MINUTE_S - clock.now() % MINUTE_S)
            await asyncio.sleep(min(max(left_s, LEAST_TICK_S), LONGEST_TICK_S))
            try:
                if self.samples is not None:
                    self.samples.take()
                self.alarms.evaluate_due(clock.now())
            except Exception:
                logger.exception("the alarms could not be evaluated")

    def log_line(self, function: str, message: str) -> None:
        """Take in the metrics of a line that a function logged."""
        clock = self.store.clock
        try:
            for one in emf.read(message, clock.real_now()):
                self.store.record(one.metric, *one.values, unit=one.unit, at=clock.as_long_ago(one.at))
        except emf.Invalid as error:
            logger.warning("%s reported metrics that CloudWatch drops: %s", function, error)
            self.store.count("AWS/Logs", "EMFValidationErrors", {"LogGroupName": f"/aws/lambda/{function}"})

    def describe(self) -> dict[str, Any]:
        """The time here, how long a minute takes, and what topics were told, as plain data."""
        clock = self.store.clock
        return {"now": clock.now(), "minuteSeconds": clock.minute_s, "notifications": list(self._notifications)}

    def add_routes(self, app: web.Application) -> None:
        """See the base; the local cloud's own control lies beside it."""
        super().add_routes(app)
        app.router.add_get("/_cicada/cloudwatch", self._get_description)

    async def _get_description(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response(self.describe())

    async def answer(self, operation: str, body: bytes) -> Answer:
        """See the base."""
        if self._faults.take("cloudwatch.throttle", operation=operation) is not None:
            raise Throttled("Rate exceeded")
        if operation not in self._operations:
            raise ValidationError(f"The operation {operation} is not served here")
        return self._operations[operation](self.read(operation, body))

    # --- metrics ---

    def _get_metric_data(self, asked: Mapping[str, Any]) -> Answer:
        queries = read_queries(asked["MetricDataQueries"])
        start, end = _window(asked["StartTime"], asked["EndTime"])
        if "NextToken" in asked:
            raise InvalidNextToken("All data points come on the first page here")
        shortest = min((query.period_s for query in queries if isinstance(query, MetricQuery)), default=MINUTE_S)
        if (end - start) / shortest * len(queries) > min(MAX_DATA_POINTS, asked.get("MaxDatapoints", MAX_DATA_POINTS)):
            raise ValidationError("Pages of data points are not served here: ask for a shorter time, or longer periods")
        found = evaluate_queries(self.store, queries, start, end)
        oldest_first = asked.get("ScanBy") == "TimestampAscending"
        return {
            "MetricDataResults": [
                {
                    "Id": query.id,
                    "Label": query.label,
                    **_in_order(found[query.id], oldest_first=oldest_first),
                    "StatusCode": "Complete",
                }
                for query in queries
                if query.returned
            ],
            "Messages": [],
        }

    def _get_metric_statistics(self, asked: Mapping[str, Any]) -> Answer:
        statistics = [*asked.get("Statistics", ()), *asked.get("ExtendedStatistics", ())]
        metric = {name: asked[name] for name in ("Namespace", "MetricName", "Dimensions") if name in asked}
        unit = {"Unit": asked["Unit"]} if "Unit" in asked else {}
        queries = read_queries(
            [
                {"Id": f"s{place}", "MetricStat": {"Metric": metric, "Period": asked["Period"], "Stat": one, **unit}}
                for place, one in enumerate(statistics)
            ]
        )
        start, end = _window(asked["StartTime"], asked["EndTime"])
        found = evaluate_queries(self.store, queries, start, end)
        points: dict[int, Answer] = {}
        for statistic, query in zip(statistics, queries, strict=True):
            for at, value in found[query.id].items():
                point = points.setdefault(at, {"Timestamp": at, "Unit": asked.get("Unit", "Count")})
                named = (
                    point if statistic in asked.get("Statistics", ()) else point.setdefault("ExtendedStatistics", {})
                )
                named[statistic] = value
        return {"Label": asked["MetricName"], "Datapoints": list(points.values())}

    def _list_metrics(self, asked: Mapping[str, Any]) -> Answer:
        found = [metric for metric in self.store.metrics() if _matches(metric, asked)]
        page, token = _page(found, asked, PAGE)
        told = [
            {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
            }
            for metric in page
        ]
        return {"Metrics": told, **token}

    def _put_metric_data(self, asked: Mapping[str, Any]) -> Answer:
        namespace = asked["Namespace"]
        if namespace.startswith("AWS/"):
            raise InvalidParameterValue("The value AWS/ for parameter Namespace is invalid.")
        for datum in asked.get("MetricData", ()):
            if "StatisticValues" in datum or not ("Value" in datum or "Values" in datum):
                raise ValidationError("Data with Value or Values are served here, others are not")
            values = datum.get("Values", [datum.get("Value")])
            counts = [int(count) for count in datum.get("Counts", [1] * len(values))]
            dimensions = {one["Name"]: one["Value"] for one in datum.get("Dimensions", ())}
            repeated = [float(value) for value, count in zip(values, counts, strict=True) for _ in range(count)]
            at = None if "Timestamp" not in datum else _seconds(datum["Timestamp"])
            metric = Metric.of(namespace, datum["MetricName"], dimensions)
            self.store.record(metric, *repeated, unit=datum.get("Unit", "None"), at=at)
        return {}

    # --- alarms ---

    def _put_metric_alarm(self, asked: Mapping[str, Any]) -> Answer:
        self.alarms.put(asked)
        return {}

    def _delete_alarms(self, asked: Mapping[str, Any]) -> Answer:
        for name in asked["AlarmNames"]:
            self.alarms.delete(name)
        return {}

    def _describe_alarms(self, asked: Mapping[str, Any]) -> Answer:
        if "AlarmNames" in asked and "AlarmNamePrefix" in asked:
            raise ValidationError("AlarmNames and AlarmNamePrefix cannot be combined")
        if "MetricAlarm" not in asked.get("AlarmTypes", ["MetricAlarm"]):
            return {"MetricAlarms": [], "CompositeAlarms": []}
        found = [
            alarm
            for alarm in self.alarms.all()
            if alarm.config.name in asked.get("AlarmNames", [alarm.config.name])
            and alarm.config.name.startswith(asked.get("AlarmNamePrefix", ""))
            and alarm.state == asked.get("StateValue", alarm.state)
            and _has_action(alarm, asked.get("ActionPrefix"))
        ]
        page, token = _page(found, asked, asked.get("MaxRecords", ALARM_PAGE))
        return {"MetricAlarms": [_told_alarm(alarm) for alarm in page], "CompositeAlarms": [], **token}

    def _describe_alarm_history(self, asked: Mapping[str, Any]) -> Answer:
        begin, end = _seconds(asked.get("StartDate", 0)), _seconds(asked.get("EndDate", math.inf))
        found = [
            item
            for item in self.alarms.history()
            if item.alarm == asked.get("AlarmName", item.alarm)
            and item.kind == asked.get("HistoryItemType", item.kind)
            and begin <= item.at <= end
        ]
        if asked.get("ScanBy") != "TimestampAscending":
            found.reverse()
        page, token = _page(found, asked, asked.get("MaxRecords", 100))
        return {"AlarmHistoryItems": [_told_item(item) for item in page], **token}

    def _set_alarm_state(self, asked: Mapping[str, Any]) -> Answer:
        try:
            data = json.loads(asked.get("StateReasonData", "{}"))
        except ValueError as error:
            raise ValidationError("StateReasonData is to be JSON") from error
        self.alarms.set_state(asked["AlarmName"], asked["StateValue"], asked["StateReason"], data)
        return {}

    def _act(self, alarm: Alarm, action: str, before: str) -> str | None:
        subject, text = notification(alarm, before)
        failure = self._publish(action, subject, text)
        if failure is None:
            told = {"topic": action, "subject": subject, "message": text, "at": alarm.transitioned_at}
            self._notifications.append(told)
        return failure

    # --- dashboards ---

    def _put_dashboard(self, asked: Mapping[str, Any]) -> Answer:
        self.dashboards.put(asked["DashboardName"], asked["DashboardBody"], self.store.clock.now())
        return {"DashboardValidationMessages": []}

    def _get_dashboard(self, asked: Mapping[str, Any]) -> Answer:
        found = self.dashboards.get(asked["DashboardName"])
        return {"DashboardArn": found.arn, "DashboardBody": found.body, "DashboardName": found.name}

    def _list_dashboards(self, asked: Mapping[str, Any]) -> Answer:
        found = self.dashboards.named(asked.get("DashboardNamePrefix", ""))
        page, token = _page(found, asked, 1000)
        told = [
            {
                "DashboardName": one.name,
                "DashboardArn": one.arn,
                "LastModified": one.modified_at,
                "Size": len(one.body.encode()),
            }
            for one in page
        ]
        return {"DashboardEntries": told, **token}

    def _delete_dashboards(self, asked: Mapping[str, Any]) -> Answer:
        self.dashboards.delete(*asked["DashboardNames"])
        return {}


def _window(start_time: Any, end_time: Any) -> tuple[int, int]:
    start = int(_seconds(start_time) // MINUTE_S) * MINUTE_S
    end = math.ceil(_seconds(end_time))
    if end <= start:
        raise ValidationError("The parameter StartTime must be less than the parameter EndTime.")
    return start, end


def _seconds(time: Any) -> float:
    """A time of a request: seconds since the epoch, or ISO 8601."""
    if isinstance(time, int | float):
        return float(time)
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError as error:
        raise InvalidParameterValue(f"{time!r} is no time") from error


def _in_order(series: Series, *, oldest_first: bool) -> Answer:
    times = sorted(series, reverse=not oldest_first)
    return {"Timestamps": times, "Values": [series[at] for at in times]}


def _matches(metric: Metric, asked: Mapping[str, Any]) -> bool:
    """Whether a metric has all that is asked for; a dimension without a value stands for all of its values."""
    dimensions = dict(metric.dimensions)
    return (
        metric.namespace == asked.get("Namespace", metric.namespace)
        and metric.name == asked.get("MetricName", metric.name)
        and all(
            one["Name"] in dimensions and one.get("Value", dimensions[one["Name"]]) == dimensions[one["Name"]]
            for one in asked.get("Dimensions", ())
        )
    )


def _page(found: Sequence[Any], asked: Mapping[str, Any], size: int) -> tuple[Sequence[Any], Answer]:
    token = asked.get("NextToken", "0")
    if not token.isdigit():
        raise InvalidNextToken("The token was not given out by this service")
    end = int(token) + size
    return found[int(token) : end], ({"NextToken": str(end)} if end < len(found) else {})


def _has_action(alarm: Alarm, prefix: str | None) -> bool:
    names = ("AlarmActions", "OKActions", "InsufficientDataActions")
    actions = [action for name in names for action in alarm.config.asked.get(name, ())]
    return prefix is None or any(action.startswith(prefix) for action in actions)


def _told_alarm(alarm: Alarm) -> Answer:
    told = {name: value for name, value in alarm.config.asked.items() if name != "Tags"}
    return {
        "ActionsEnabled": True,
        "OKActions": [],
        "AlarmActions": [],
        "InsufficientDataActions": [],
        **({} if "Metrics" in told else {"Dimensions": []}),
        **told,
        "AlarmArn": alarm.arn,
        "AlarmConfigurationUpdatedTimestamp": alarm.configured_at,
        "StateValue": alarm.state,
        "StateReason": alarm.reason,
        "StateReasonData": json.dumps(alarm.reason_data),
        "StateUpdatedTimestamp": alarm.updated_at,
        "StateTransitionedTimestamp": alarm.transitioned_at,
        **({"EvaluationState": "EVALUATION_ERROR"} if alarm.evaluation_error else {}),
    }


def _told_item(item: HistoryItem) -> Answer:
    return {
        "AlarmName": item.alarm,
        "AlarmType": "MetricAlarm",
        "Timestamp": item.at,
        "HistoryItemType": item.kind,
        "HistorySummary": item.summary,
        "HistoryData": json.dumps(item.data)[:4095],
    }
