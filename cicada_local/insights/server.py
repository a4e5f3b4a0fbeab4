"""CloudWatch Logs Insights as far as Cicada and its operator call it: queries, and those that are saved.

moto keeps queries, and leaves their filters out. A stand-in that is kinder than AWS is a defect. What AWS does, and
where each line is tested (``tests/wire/test_trace_insights.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
L01    Requests are JSON 1.1 with ``X-Amz-Target: Logs_20140328.<Operation>``; an error has ``__type`` and ``message``.
       Other operations of the service are another's: here moto's.
L02    A request without a signature is refused. The signature itself is not checked.
L03    Members that break the service's model, and a window that ends before it begins, are an
       InvalidParameterException, as are more than 50 log groups.
L04    An unknown log group, and an unknown query, are a ResourceNotFoundException.
L05    A query that cannot be read is a MalformedQueryException.
L06    A query runs beside the calls: its results are polled, and there are none while its status is Running.
L07    The window is in epoch seconds, both ends within it.
L08    Fields of a JSON message are found by themselves: nested ones by their path, those of lists by their place. A row
       has those columns that its event has, and ``@ptr``. All values are text.
L09    Without a ``sort`` the newest come first; without a ``limit`` 10,000 come at most.
L10    StopQuery ends a query that runs, which is Cancelled then; one that has ended is an InvalidParameterException.
L11    DescribeQueryDefinitions tells the saved queries by the beginning of their name, deployed ones too, in pages.
L12    ``stats`` makes a row for each group of events: columns of ``by`` first, fields and ``bin``, then those of count,
       count_distinct, sum, avg, min, max, pct, earliest and latest, named by ``as`` or as they are written. The rows
       have no ``@ptr``. Text that is no number is left out of sums.
=====  ===========================================================================================================

Not served, and refused: every command but fields, display, filter, stats, sort and limit; after ``stats`` all but sort
and limit, of its own columns; functions but ``ispresent`` and those of L12; log groups by ARN; limits above 10,000, and
so pages of results. The statistics of a query itself are left out. Chosen here: the first poll always
finds the query running. On AWS a line can be found some seconds after it was written; here at once.

Fault switches (``cicada_local.faults``; ``operation`` limits the first to one operation):

``logs.throttle``      ThrottlingException
``logs.limit``         StartQuery: LimitExceededException, as when too many queries run at once
``logs.fail_query``    the query ends as ``status``, Failed unless told
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cicada_local.faults import Faults
from cicada_local.insights.errors import InvalidParameter, LimitExceeded, LogsError, NotFound, Throttled, Unsigned
from cicada_local.insights.events import fields_of, read_events
from cicada_local.insights.query import MAX_LIMIT, Query, parse
from cicada_local.insights.saved import SAVED_QUERIES, named, saved_query
from cicada_local.json_service import Answer, JsonService
from cicada_local.places import ACCOUNT_ID

logger = logging.getLogger(__name__)

MAX_GROUPS = 50
KEPT_QUERIES = 100
MAX_SAVED_PAGE = 1000


@dataclass
class _Running:
    """A query, and what came of it."""

    work: asyncio.Future[list[dict[str, str]]]
    status: str | None = None
    """How it ended; None while that is still open."""
    polled: bool = False
    rows: list[dict[str, str]] = field(default_factory=list)


class Insights(JsonService):
    """Queries over the functions' log files."""

    name, prefix, signed_for = "logs", "Logs_20140328.", "logs"
    failed = LogsError("The service cannot complete the request")
    unsigned, invalid = Unsigned, InvalidParameter

    def __init__(self, groups: Callable[[], Mapping[str, tuple[Path, ...]]], faults: Faults) -> None:
        """Serve queries.

        Args:
            groups: the log groups that there are now, each with its log files.
            faults: may make the service fail.
        """
        super().__init__()
        self._groups = groups
        self._faults = faults
        self._queries: dict[str, _Running] = {}
        self._operations: dict[str, Callable[[Mapping[str, Any]], Awaitable[Answer]]] = {
            "StartQuery": self._start,
            "GetQueryResults": self._results,
            "StopQuery": self._stop,
            "PutQueryDefinition": self._save,
            "DescribeQueryDefinitions": self._saved,
            "DeleteQueryDefinition": self._forget,
        }

    def serves(self, operation: str) -> bool:
        """See the base: moto answers the others."""
        return operation in self._operations

    async def answer(self, operation: str, body: bytes) -> Answer:
        """See the base."""
        if self._faults.take("logs.throttle", operation=operation) is not None:
            raise Throttled("Rate exceeded")
        return await self._operations[operation](self.read(operation, body))

    # --- operations ---

    async def _start(self, asked: Mapping[str, Any]) -> Answer:
        if self._faults.take("logs.limit") is not None:
            raise LimitExceeded("Too many queries are running")
        names = asked.get("logGroupNames") or ([asked["logGroupName"]] if "logGroupName" in asked else [])
        if not 1 <= len(names) <= MAX_GROUPS:
            raise InvalidParameter(f"Between 1 and {MAX_GROUPS} log groups must be named by logGroupNames")
        if asked["endTime"] < asked["startTime"]:
            raise InvalidParameter("End time must not be before the start time")
        query = parse(asked["queryString"])
        if asked.get("limit", 1) > MAX_LIMIT:
            raise InvalidParameter(f"Limits above {MAX_LIMIT} are not served here")
        query.limit = min(query.limit, asked.get("limit", query.limit))
        known = self._groups()
        for name in names:
            if name not in known:
                raise NotFound(f"Log group '{name}' does not exist for account ID '{ACCOUNT_ID}'")
        fault = self._faults.take("logs.fail_query")
        window_ms = asked["startTime"] * 1000, asked["endTime"] * 1000 + 999
        work = asyncio.ensure_future(
            asyncio.to_thread(run, query, {name: known[name] for name in dict.fromkeys(names)}, window_ms)
        )
        query_id = str(uuid.uuid4())
        self._queries[query_id] = _Running(work, fault.get("status", "Failed") if fault is not None else None)
        for old in list(itertools.islice(self._queries, max(0, len(self._queries) - KEPT_QUERIES))):
            del self._queries[old]
        return {"queryId": query_id}

    async def _results(self, asked: Mapping[str, Any]) -> Answer:
        query = self._query(asked)
        if not query.polled:
            query.polled = True
            return _told("Running", [])
        if query.status is None:
            if not query.work.done():
                return _told("Running", [])
            try:
                query.rows, query.status = query.work.result(), "Complete"
            except Exception:  # as AWS tells of a bug of its own
                logger.exception("insights stand-in: a query failed")
                query.status = "Failed"
        return _told(query.status, query.rows)

    async def _stop(self, asked: Mapping[str, Any]) -> Answer:
        query = self._query(asked)
        if query.status is not None or (query.polled and query.work.done()):
            raise InvalidParameter("The specified query is not running")
        query.work.cancel()
        query.polled, query.status = True, "Cancelled"
        return {"success": True}

    async def _save(self, asked: Mapping[str, Any]) -> Answer:
        id = asked.get("queryDefinitionId", "")
        if id and id not in SAVED_QUERIES:
            raise NotFound(f"Query definition {id} does not exist")
        groups = asked.get("logGroupNames", ())
        return {
            "queryDefinitionId": saved_query(asked["name"], asked["queryString"], groups, id=id or str(uuid.uuid4()))
        }

    async def _saved(self, asked: Mapping[str, Any]) -> Answer:
        found = named(asked.get("queryDefinitionNamePrefix", ""))
        token, size = asked.get("nextToken", "0"), asked.get("maxResults", MAX_SAVED_PAGE)
        if not token.isdigit():
            raise InvalidParameter("The specified nextToken is invalid.")
        end = int(token) + size
        more = {"nextToken": str(end)} if end < len(found) else {}
        return {"queryDefinitions": found[int(token) : end], **more}

    async def _forget(self, asked: Mapping[str, Any]) -> Answer:
        if SAVED_QUERIES.pop(asked["queryDefinitionId"], None) is None:
            raise NotFound(f"Query definition {asked['queryDefinitionId']} does not exist")
        return {"success": True}

    def _query(self, asked: Mapping[str, Any]) -> _Running:
        try:
            return self._queries[asked["queryId"]]
        except KeyError:
            raise NotFound(f"Query {asked['queryId']} does not exist") from None


def run(query: Query, groups: Mapping[str, tuple[Path, ...]], window_ms: tuple[int, int]) -> list[dict[str, str]]:
    """Run a query over the log files of some groups.

    Args:
        query: what to find.
        groups: log files by log group.
        window_ms: the first and the last millisecond of the window.
    """
    start_ms, end_ms = window_ms
    found: list[dict[str, str]] = []
    for group, paths in groups.items():
        for event in read_events(group, paths, start_ms=start_ms, end_ms=end_ms, needles=query.needles):
            fields = fields_of(event, ACCOUNT_ID)
            if query.passes(fields):
                found.append({**fields, "@ptr": f"{group}#{event.stream}#{event.place}"})
    if query.stats is None:
        query.fields = tuple(dict.fromkeys((*query.fields, "@ptr")))
    return query.results(found)


def _told(status: str, rows: list[dict[str, str]]) -> Answer:
    return {
        "queryLanguage": "CWLI",
        "status": status,
        "results": [[{"field": name, "value": value} for name, value in row.items()] for row in rows],
    }
