"""AWS's own metrics, as far as alarms and dashboards use them, from what the stand-ins do.

Sources: the services' guides, each "Monitoring … with CloudWatch".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from cicada_local.calls import QUOTA_TOKENS, Call
from cicada_local.cloudwatch.clock import MINUTE_S
from cicada_local.cloudwatch.metrics import Metric, MetricStore

_THROTTLES = (b"ProvisionedThroughputExceededException", b"ThrottlingException", b"RequestLimitExceeded")
_ENDS = {"SUCCEEDED": "ExecutionsSucceeded", "FAILED": "ExecutionsFailed", "TIMED_OUT": "ExecutionsTimedOut"}
_READS = ("BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems")
_INVOKES = ("Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream")


class LambdaMetrics:
    """``AWS/Lambda``, by ``FunctionName``; and how many run at once in the account, there and in ``AWS/Usage``."""

    def __init__(self, store: MetricStore) -> None:
        """Report to a store."""
        self._store = store

    def concluded(self, function: str, duration_ms: float, *, failed: bool) -> None:
        """An invocation has ended."""
        self._count("Invocations", function)
        self._count("Errors", function, float(failed))
        metric = Metric.of("AWS/Lambda", "Duration", {"FunctionName": function})
        self._store.record(metric, duration_ms, unit="Milliseconds")

    def throttled(self, function: str) -> None:
        """An invocation was refused for its function's or the account's concurrency."""
        self._count("Throttles", function)

    def running(self, function: str, own: int, all: int) -> None:
        """So many invocations run now: of a function, and of all."""
        self._count("ConcurrentExecutions", function, own)
        self._store.count("AWS/Lambda", "ConcurrentExecutions", {}, all)
        usage = {"Service": "Lambda", "Type": "Resource", "Resource": "ConcurrentExecutions", "Class": "None"}
        self._store.record(Metric.of("AWS/Usage", "ResourceCount", usage), all, unit="None")

    def event(self, name: str, function: str) -> None:
        """Something happened to an asynchronous event; ``name`` is the metric's."""
        self._count(name, function)

    def _count(self, name: str, function: str, value: float = 1) -> None:
        self._store.count("AWS/Lambda", name, {"FunctionName": function}, value)


class GatewayMetrics:
    """``AWS/ApiGateway`` of WebSocket APIs, by ``ApiId`` and by ``ApiId`` and ``Stage``."""

    def __init__(self, store: MetricStore) -> None:
        """Report to a store."""
        self._store = store

    def __call__(self, name: str, api_id: str, stage: str) -> None:
        """Count one."""
        for dimensions in ({"ApiId": api_id}, {"ApiId": api_id, "Stage": stage}):
            self._store.count("AWS/ApiGateway", name, dimensions)


def observe_calls(store: MetricStore) -> Callable[[Call, web.StreamResponse, float], None]:
    """What counts the calls of DynamoDB and of Bedrock's models, as they are answered."""

    def answered(call: Call, response: web.StreamResponse, took_s: float) -> None:
        if not call.resource:
            return  # a batch names its tables each for itself
        if call.service == "dynamodb":
            _table(store, call, response, took_s)
        elif call.service == "bedrock-runtime" and call.operation in _INVOKES:
            _model(store, call, response, took_s)

    return answered


def _table(store: MetricStore, call: Call, response: web.StreamResponse, took_s: float) -> None:
    dimensions = {"TableName": call.resource.rpartition("/")[2], "Operation": call.operation}
    if response.status < 300:
        metric = Metric.of("AWS/DynamoDB", "SuccessfulRequestLatency", dimensions)
        store.record(metric, took_s * 1000, unit="Milliseconds")
        return
    body = response.body if isinstance(response, web.Response) else None
    if response.status >= 500:
        store.count("AWS/DynamoDB", "SystemErrors", dimensions)
    elif isinstance(body, bytes) and any(name in body for name in _THROTTLES):
        store.count("AWS/DynamoDB", "ThrottledRequests", dimensions)
        kind = "Read" if call.operation in _READS else "Write"
        store.count("AWS/DynamoDB", f"{kind}ThrottleEvents", {"TableName": dimensions["TableName"]})


def _model(store: MetricStore, call: Call, response: web.StreamResponse, took_s: float) -> None:
    dimensions = {"ModelId": call.resource}
    status = response.status
    if status < 300:
        store.count("AWS/Bedrock", "Invocations", dimensions)
        metric = Metric.of("AWS/Bedrock", "InvocationLatency", dimensions)
        store.record(metric, took_s * 1000, unit="Milliseconds")
        if QUOTA_TOKENS in response:
            store.count("AWS/Bedrock", "EstimatedTPMQuotaUsage", dimensions, response[QUOTA_TOKENS])
    elif status == 429:
        store.count("AWS/Bedrock", "InvocationThrottles", dimensions)
    else:
        name = "InvocationClientErrors" if status < 500 else "InvocationServerErrors"
        store.count("AWS/Bedrock", name, dimensions)


class Samples:
    """What is looked at from time to time: workflows' executions, and how many messages queues hold."""

    def __init__(
        self,
        store: MetricStore,
        executions: Callable[[], Iterable[Mapping[str, Any]]],
        queues: Callable[[], Mapping[str, int]],
    ) -> None:
        """Report to a store.

        Args:
            store: takes it in.
            executions: the latest, as :func:`cicada_local.interpreter.executions` tells them.
            queues: the visible messages of each queue.
        """
        self._store = store
        self._executions = executions
        self._queues = queues
        self._known: dict[str, str] = {}
        self._minute = 0

    def take(self) -> None:
        """Report the executions that began or ended since the last look, and once a minute what queues hold."""
        before, self._known = self._known, {}
        for execution in self._executions():
            arn, status = execution["executionArn"], execution["status"]
            self._known[arn] = status
            dimensions = {"StateMachineArn": execution["stateMachineArn"]}
            if arn not in before:
                self._store.count("AWS/States", "ExecutionsStarted", dimensions)
            if status in _ENDS and before.get(arn) != status:
                self._store.count("AWS/States", _ENDS[status], dimensions)
        minute = int(self._store.clock.now() // MINUTE_S)
        if minute == self._minute:
            return
        self._minute = minute
        for queue, messages in self._queues().items():
            name = "ApproximateNumberOfMessagesVisible"
            self._store.count("AWS/SQS", name, {"QueueName": queue}, messages)


def queue_lengths() -> dict[str, int]:
    """The visible messages of each queue, by its name."""
    from moto.sqs.models import sqs_backends

    from cicada_local.places import ACCOUNT_ID, REGION

    queues = list(sqs_backends[ACCOUNT_ID][REGION].queues.values())
    return {queue.name: queue.approximate_number_of_messages for queue in queues}
