"""The log groups of a deployment, and queries of CloudWatch Logs Insights over them."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada_cli.deployment import DEFAULT_STACK_PREFIX, STACK_PARTS, Deployment, stack_names
from cicada_cli.request_trace import LogLine

CLIENT_CONFIG = Config(connect_timeout=3, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
"""Time-outs in seconds."""
QUERY_TIMEOUT_S = 120.0
"""How long a query may run before it is stopped; CloudWatch's own limit is an hour."""
FIRST_POLL_S = 0.25
LONGEST_POLL_S = 4.0
POLL_GROWTH = 1.6
"""Factor by which each wait for the results grows."""

COLUMNS = ("@message", "@log")
"""Fields to read of each line, besides its time."""

_TOOLKIT_STACK = "CDKToolkit"
_NOT_OF_FUNCTIONS = "/aws/vendedlogs/"
"""Groups of the workflow and the gateway: their lines name no request."""
_RUNNING = ("Scheduled", "Running", "Unknown")


class LogsUnavailable(Exception):
    """The logs cannot be read; the message says why."""


def log_groups(deployment: Deployment) -> list[str]:
    """The log groups of a deployment's functions.

    Raises:
        LogsUnavailable: a call to AWS failed.
    """
    with _faults():
        cloudformation = deployment.aws.client("cloudformation", CLIENT_CONFIG)
        groups = [
            resource["PhysicalResourceId"]
            for stack in _stacks(cloudformation, deployment.stack_prefix)
            for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
            for resource in page["StackResourceSummaries"]
            if resource["ResourceType"] == "AWS::Logs::LogGroup" and resource.get("PhysicalResourceId")
        ]
    return sorted(name for name in set(groups) if not name.startswith(_NOT_OF_FUNCTIONS))


def stack_prefix(groups: Sequence[str]) -> str:
    """The prefix of the stacks of these log groups; CloudFormation names a group after its stack."""
    named = re.compile(rf"(.+?)-(?:{'|'.join(STACK_PARTS)})-")
    return next((match[1] for group in groups if (match := named.match(group))), DEFAULT_STACK_PREFIX)


def _stacks(cloudformation: Any, prefix: str | None) -> list[str]:
    names = [
        stack["StackName"]
        for page in cloudformation.get_paginator("describe_stacks").paginate()
        for stack in page["Stacks"]
    ]
    if prefix is None:
        return [name for name in names if name != _TOOLKIT_STACK]
    return [name for name in names if name in stack_names(prefix)]


class Insights:
    """Runs queries and waits for their results."""

    def __init__(
        self,
        client: Any,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``client``: a CloudWatch Logs client made with :data:`CLIENT_CONFIG`."""
        self._client = client
        self._monotonic = monotonic
        self._sleep = sleep

    def lines(self, groups: Sequence[str], query: str, *, start_s: float, end_s: float) -> list[LogLine]:
        """The result of a query whose fields are the time and :data:`COLUMNS`.

        Args:
            groups: log groups, at most 50.
            query: its text.
            start_s: start of the period, epoch seconds.
            end_s: its end.

        Raises:
            LogsUnavailable: the query failed or timed out.
        """
        with _faults():
            query_id: str = self._client.start_query(
                logGroupNames=list(groups), startTime=int(start_s), endTime=int(end_s) + 1, queryString=query
            )["queryId"]
            try:
                rows = self._results(query_id)
            except BaseException:
                self._stop(query_id)
                raise
        return [_line({cell["field"]: cell.get("value", "") for cell in row}) for row in rows]

    def _results(self, query_id: str) -> list[list[Mapping[str, str]]]:
        deadline = self._monotonic() + QUERY_TIMEOUT_S
        wait_s = FIRST_POLL_S
        while True:
            answer = self._client.get_query_results(queryId=query_id)
            status = answer["status"]
            if status == "Complete":
                rows: list[list[Mapping[str, str]]] = answer["results"]
                return rows
            if status not in _RUNNING:
                raise LogsUnavailable(f"the query ended with {status}")
            if self._monotonic() + wait_s > deadline:
                raise LogsUnavailable(f"the query timed out after {QUERY_TIMEOUT_S:.0f} s: use a shorter --since")
            self._sleep(wait_s)
            wait_s = min(LONGEST_POLL_S, wait_s * POLL_GROWTH)

    def _stop(self, query_id: str) -> None:
        """Stop a query, which may have ended already."""
        with suppress(ClientError, BotoCoreError):
            self._client.stop_query(queryId=query_id)


def _line(cells: Mapping[str, str]) -> LogLine:
    at = datetime.strptime(cells["@timestamp"], "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
    group = cells.get("@log", "").partition(":")[2]  # after the account id
    return LogLine(round(at.timestamp() * 1000), group, _fields(cells.get("@message", "")))


def _fields(message: str) -> Mapping[str, Any]:
    try:
        found = json.loads(message, parse_float=_finite, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"message": message.strip()}


def _finite(digits: str) -> float | None:
    """A number; None if it is out of range."""
    number = float(digits)
    return number if math.isfinite(number) else None


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise LogsUnavailable(str(error)) from error
