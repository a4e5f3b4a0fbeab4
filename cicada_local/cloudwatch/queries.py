"""Queries of metric data, as ``GetMetricData`` and alarms have them: metrics with a statistic, and expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.cloudwatch.clock import MINUTE_S
from cicada_local.cloudwatch.errors import InvalidParameterCombination, InvalidParameterValue, ValidationError
from cicada_local.cloudwatch.expressions import Scope, evaluate, referred
from cicada_local.cloudwatch.metrics import Metric, MetricStore, Series, is_statistic

MAX_QUERIES = 500
QUOTAS: Mapping[tuple[str, str], float] = {("Lambda", "ConcurrentExecutions"): 1000.0}
"""Service quotas by ``Service`` and ``Resource`` of the ``AWS/Usage`` metrics; an account's defaults."""

_ID = re.compile(r"[a-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class MetricQuery:
    """A metric's statistic."""

    id: str
    label: str
    returned: bool
    metric: Metric
    statistic: str
    period_s: int
    unit: str | None = None


@dataclass(frozen=True)
class ExpressionQuery:
    """An expression over other queries."""

    id: str
    label: str
    returned: bool
    expression: str
    period_s: int | None = None


Query = MetricQuery | ExpressionQuery


def read_queries(asked: Sequence[Mapping[str, Any]]) -> list[Query]:
    """The queries of a request.

    Raises:
        CloudWatchError: they break the API's rules.
    """
    if not 1 <= len(asked) <= MAX_QUERIES:
        raise ValidationError(f"MetricDataQueries must have 1 to {MAX_QUERIES} members")
    queries = [_read(one) for one in asked]
    ids = [query.id for query in queries]
    if len(set(ids)) != len(ids):
        raise ValidationError("The values for parameter id in MetricDataQueries are not unique")
    if not any(query.returned for query in queries):
        raise ValidationError("At least one query must have ReturnData set to true")
    for query in queries:
        if isinstance(query, ExpressionQuery):
            _check_references(query, ids)
    return queries


def _check_references(query: ExpressionQuery, ids: Sequence[str]) -> None:
    unknown = referred(query.expression) - set(ids)
    if unknown or query.id in referred(query.expression):
        named = ", ".join(sorted(unknown)) or query.id
        raise ValidationError(f"Error in expression '{query.id}' [Expression refers to unknown id {named}]")


def _read(asked: Mapping[str, Any]) -> Query:
    id, returned = asked["Id"], asked.get("ReturnData", True)
    if not _ID.fullmatch(id):
        raise ValidationError(
            f"The value {id} for parameter Id is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$"
        )
    if ("MetricStat" in asked) == ("Expression" in asked):
        raise InvalidParameterCombination(f"The query {id} must have either MetricStat or Expression")
    if "Expression" in asked:
        expression = asked["Expression"]
        return ExpressionQuery(id, asked.get("Label", id), returned, expression, _period(asked.get("Period")))
    stat = asked["MetricStat"]
    metric = read_metric(stat["Metric"])
    if not is_statistic(stat["Stat"]):
        raise InvalidParameterValue(f"The value {stat['Stat']} for parameter Stat is not supported.")
    period_s = _period(stat["Period"])
    assert period_s is not None
    return MetricQuery(id, asked.get("Label", metric.name), returned, metric, stat["Stat"], period_s, stat.get("Unit"))


def read_metric(asked: Mapping[str, Any]) -> Metric:
    """A metric of a request.

    Raises:
        InvalidParameterValue: it has no name.
    """
    if not asked.get("MetricName") or not asked.get("Namespace"):
        raise InvalidParameterValue("A metric must have a Namespace and a MetricName.")
    dimensions = {one["Name"]: one["Value"] for one in asked.get("Dimensions", ())}
    return Metric.of(asked["Namespace"], asked["MetricName"], dimensions)


def _period(period_s: int | None) -> int | None:
    """A period; those of high resolution are not served.

    Raises:
        InvalidParameterValue: the metrics have none like it.
    """
    if period_s is not None and (period_s % MINUTE_S or period_s <= 0):
        raise InvalidParameterValue("Period must be a multiple of 60; metrics of high resolution are not served here")
    return period_s


def period_of(queries: Iterable[Query]) -> int:
    """The one period of some queries.

    Raises:
        ValidationError: they have several, which are not served together.
    """
    periods = {query.period_s for query in queries if query.period_s is not None}
    if len(periods) != 1:
        raise ValidationError("Metrics of one expression must have one period")
    return periods.pop()


def evaluate_queries(store: MetricStore, queries: Sequence[Query], start: int, end: int) -> dict[str, Series]:
    """Each query's time series, by its id.

    Args:
        store: has the metrics.
        queries: as :func:`read_queries` returns them.
        start: the first period's beginning, at a whole minute.
        end: periods that begin before it are told.
    """
    by_id = {query.id: query for query in queries}
    found: dict[str, Series] = {}

    def series(id: str, under_way: tuple[str, ...] = ()) -> Series:
        if id in under_way:
            raise ValidationError(f"Error in expression '{id}' [Expression refers to itself]")
        if id not in found:
            query = by_id[id]
            found[id] = (
                _of_metric(store, query, start, end)
                if isinstance(query, MetricQuery)
                else _of_expression(query, (*under_way, id))
            )
        return found[id]

    def _of_expression(query: ExpressionQuery, under_way: tuple[str, ...]) -> Series:
        metrics = [one for one in queries if isinstance(one, MetricQuery)]
        needed = referred(query.expression) | ({one.id for one in metrics} if "METRICS(" in query.expression else set())
        period_s = query.period_s or period_of(_metrics_below(needed, by_id))
        scope = Scope(
            {id: series(id, under_way) for id in needed},
            range(start, end, period_s),
            period_s,
            {one.id: quota for one in metrics if (quota := quota_of(one.metric)) is not None},
            frozenset(one.id for one in metrics),
        )
        return evaluate(query.expression, scope)

    for query in queries:
        series(query.id)
    return found


def _metrics_below(ids: Iterable[str], by_id: Mapping[str, Query]) -> list[Query]:
    """The metrics that some ids stand for, directly or by expressions."""
    found: list[Query] = []
    waiting, seen = list(ids), set[str]()
    while waiting:
        id = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        query = by_id[id]
        if isinstance(query, MetricQuery):
            found.append(query)
        else:
            waiting += referred(query.expression)
    return found


def _of_metric(store: MetricStore, query: MetricQuery, start: int, end: int) -> Series:
    starts = range(start, end, query.period_s)
    return store.statistic(query.metric, query.statistic, starts, query.period_s, query.unit)


def quota_of(metric: Metric) -> float | None:
    """The service quota that ``SERVICE_QUOTA`` finds for a usage metric."""
    if metric.namespace != "AWS/Usage":
        return None
    dimensions = dict(metric.dimensions)
    return QUOTAS.get((dimensions.get("Service", ""), dimensions.get("Resource", "")))
