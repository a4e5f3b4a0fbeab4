"""Alarms as they are asked for, and refused where CloudWatch refuses them.

Source: Amazon CloudWatch API Reference, ``PutMetricAlarm``; its model in botocore.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cicada_local.cloudwatch.clock import MINUTE_S
from cicada_local.cloudwatch.errors import InvalidParameterCombination, InvalidParameterValue, ValidationError
from cicada_local.cloudwatch.metrics import is_statistic
from cicada_local.cloudwatch.queries import ExpressionQuery, MetricQuery, Query, period_of, read_queries

HOUR_S, DAY_S = 3600, 86_400
MAX_RANGE_S, MAX_LONG_RANGE_S = DAY_S, 7 * DAY_S
"""Period times evaluation periods, at most: with periods below an hour, and from an hour on."""
MAX_METRICS = 10
"""Metrics of an alarm's expression; and as many expressions."""
TREATMENTS = ("breaching", "notBreaching", "ignore", "missing")
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_NOT_SERVED = ("ThresholdMetricId", "EvaluationWindow", "EvaluationCriteria", "EvaluationInterval")
_THE_METRIC = "m1"
_IGNORING = "AWS/DynamoDB"
"""Alarms on its metrics ignore missing data even if they choose another option."""


@dataclass(frozen=True)
class AlarmConfig:
    """What an alarm watches, and when it is to fire."""

    asked: Mapping[str, Any]
    """As it was asked for."""
    queries: tuple[Query, ...]
    watched: str
    """The id of the query whose values are compared."""
    period_s: int
    periods: int
    to_alarm: int
    """Of so many periods, as many as must breach."""
    threshold: float
    comparison: str
    missing: str
    """What a missing value counts as; whatever was asked for, alarms on DynamoDB's own metrics ignore it."""

    def breaches(self, value: float) -> bool:
        """Whether a value is on the wrong side of the threshold."""
        return COMPARISONS[self.comparison](value, self.threshold)

    @property
    def name(self) -> str:
        """The alarm's."""
        return str(self.asked["AlarmName"])


def read_alarm(asked: Mapping[str, Any]) -> AlarmConfig:
    """An alarm's configuration.

    Raises:
        CloudWatchError: CloudWatch would refuse it, or it has something that is not served.
    """
    unserved = [name for name in _NOT_SERVED if name in asked]
    if unserved:
        raise ValidationError(f"{', '.join(unserved)} is not served here")
    comparison, threshold = _member(asked, "ComparisonOperator"), float(_member(asked, "Threshold"))
    if comparison not in COMPARISONS:
        raise ValidationError(
            f"The ComparisonOperator {comparison} needs a ThresholdMetricId, which is not served here"
        )
    periods = int(_member(asked, "EvaluationPeriods"))
    to_alarm = int(asked.get("DatapointsToAlarm", periods))
    if to_alarm > periods:
        raise ValidationError("DatapointsToAlarm must be less than or equal to EvaluationPeriods")
    missing = asked.get("TreatMissingData", "missing")
    if missing not in TREATMENTS:
        raise ValidationError(
            f"Invalid value {missing} for TreatMissingData: it must be one of {', '.join(TREATMENTS)}"
        )
    _check_actions(asked)
    queries, watched = _of_metrics(asked) if "Metrics" in asked else _of_metric(asked)
    period_s = period_of(queries)
    _check_range(period_s, periods)
    if any(isinstance(query, MetricQuery) and query.metric.namespace == _IGNORING for query in queries):
        missing = "ignore"
    return AlarmConfig(
        asked, tuple(queries), watched, period_s, periods, to_alarm, threshold, str(comparison), str(missing)
    )


def _member(asked: Mapping[str, Any], name: str) -> Any:
    if asked.get(name) is None:
        raise ValidationError(f"The parameter {name} is required")
    return asked[name]


def _check_actions(asked: Mapping[str, Any]) -> None:
    for name in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        for action in asked.get(name, ()):
            if not action.startswith("arn:"):
                raise ValidationError(f"Invalid arn syntax: {action}")
            if ":sns:" not in action:
                raise ValidationError(f"Actions but those of Amazon SNS are not served here: {action}")


def _check_range(period_s: int, periods: int) -> None:
    most = MAX_LONG_RANGE_S if period_s >= HOUR_S else MAX_RANGE_S
    if period_s * periods > most:
        raise ValidationError(
            f"Metrics cannot be checked across more than {most // DAY_S} day{'s' if most > DAY_S else ''} "
            f"(EvaluationPeriods * Period must be <= {most})"
        )


def _of_metric(asked: Mapping[str, Any]) -> tuple[list[Query], str]:
    """An alarm's only metric, as a query."""
    if ("Statistic" in asked) == ("ExtendedStatistic" in asked):
        raise InvalidParameterCombination("An alarm must have either Statistic or ExtendedStatistic")
    statistic = asked.get("Statistic") or asked["ExtendedStatistic"]
    if not is_statistic(statistic):
        raise InvalidParameterValue(f"The value {statistic} for parameter ExtendedStatistic is not supported.")
    metric = {name: asked[name] for name in ("Namespace", "MetricName", "Dimensions") if name in asked}
    stat = {"Metric": metric, "Period": int(_member(asked, "Period")), "Stat": statistic}
    unit = {"Unit": asked["Unit"]} if "Unit" in asked else {}
    return read_queries([{"Id": _THE_METRIC, "MetricStat": {**stat, **unit}}]), _THE_METRIC


def _of_metrics(asked: Mapping[str, Any]) -> tuple[list[Query], str]:
    """The metrics and expressions of an alarm, and the one that it watches."""
    alone = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Dimensions", "Period", "Unit")
    both = [name for name in alone if name in asked]
    if both:
        raise InvalidParameterCombination(f"Metrics cannot be combined with {', '.join(both)}")
    queries = read_queries(asked["Metrics"])
    for kind, named in ((MetricQuery, "metrics"), (ExpressionQuery, "expressions")):
        if sum(isinstance(query, kind) for query in queries) > MAX_METRICS:
            raise ValidationError(f"An alarm can have at most {MAX_METRICS} {named}")
    returned = [query.id for query in queries if query.returned]
    if len(returned) != 1:
        raise ValidationError("Exactly one element of Metrics must return data")
    return queries, returned[0]


def is_hourly(config: AlarmConfig) -> bool:
    """Whether an alarm is evaluated once an hour, as those are that look back over more than a day."""
    return config.period_s * config.periods > DAY_S


def interval_s(config: AlarmConfig) -> int:
    """How often an alarm is evaluated."""
    return HOUR_S if is_hourly(config) else MINUTE_S
