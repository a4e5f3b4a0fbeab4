"""The metrics that alarms and the dashboard watch."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from cicada.metrics import DIMENSION, NAMESPACE, Metric
from stacks.data import STAGE, DataStack

PERIOD = Duration.minutes(5)
"""Of what is watched, unless an objective has a longer one."""


def own_metric(
    prefix: str,
    metric: Metric,
    statistic: str = "Sum",
    *,
    period: Duration = PERIOD,
    label: str | None = None,
    color: str | None = None,
) -> cloudwatch.Metric:
    """A metric that the functions of a deployment report, over all of them."""
    return service_metric(
        NAMESPACE, metric.name, {DIMENSION: prefix}, statistic, period=period, label=label, color=color
    )


def service_metric(
    namespace: str,
    name: str,
    dimensions: Mapping[str, str],
    statistic: str = "Sum",
    *,
    period: Duration = PERIOD,
    label: str | None = None,
    color: str | None = None,
) -> cloudwatch.Metric:
    """A metric of an AWS service."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dict(dimensions),
        statistic=statistic,
        period=period,
        label=label,
        color=color,
    )


def running_functions(label: str | None = None) -> cloudwatch.Metric:
    """How many invocations run at once in the account. It is a usage metric: ``SERVICE_QUOTA`` knows its quota."""
    usage = {"Service": "Lambda", "Type": "Resource", "Resource": "ConcurrentExecutions", "Class": "None"}
    return service_metric("AWS/Usage", "ResourceCount", usage, "Maximum", label=label)


def table_metric(data: DataStack, name: str, label: str | None = None) -> cloudwatch.Metric:
    """A metric of the table."""
    return service_metric("AWS/DynamoDB", name, {"TableName": data.table.table_name}, label=label)


def stage_metric(data: DataStack, name: str, label: str | None = None, color: str | None = None) -> cloudwatch.Metric:
    """A metric of the API's stage."""
    return service_metric("AWS/ApiGateway", name, {"ApiId": data.api_id, "Stage": STAGE}, label=label, color=color)


def model_metric(model_id: str, name: str, *, period: Duration = PERIOD, label: str | None = None) -> cloudwatch.Metric:
    """A metric of one of Bedrock's models."""
    return service_metric("AWS/Bedrock", name, {"ModelId": model_id}, period=period, label=label)
