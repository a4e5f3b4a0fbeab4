"""The saved queries of CloudWatch Logs Insights: one for every symptom that the runbooks speak of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_logs as logs
from constructs import Construct

from cicada.errors import CacheMiss
from cicada.request_trace import NOT_FAULTS, insights_query
from stacks.function import CicadaFunction

ACCESS_LOG = "access log"
"""Stands among the names of functions for the log group of the API's stage."""

REFUSED = "Unauthorized"
"""What the authorizer raises for a client that may not connect: API Gateway answers 401 then, and nothing failed."""

REQUEST_PLACEHOLDER = "PASTE-REQUEST-ID"
COLLECTION_PLACEHOLDER = "PASTE-COLLECTION"

MAX_CHARS, MAX_GROUPS = 10_000, 50
"""What CloudWatch keeps of a query at most, and how many log groups it reads."""
MOST_ROWS = 200

TELLERS = ("message_processor", "answer", "corpus", "exhausted", "recovery_sweep")
"""The functions whose lines carry the id of a request or a call."""
_INGEST = ("ingest_start", "ingest_plan", "ingest_document", "ingest_commit")
_INTEGRATORS = (
    "enrich_schema",
    "extract_citations",
    "facets",
    "get_document_summary",
    "graph_query",
    "index_document",
    "retrieve",
)
_ALL = (
    *TELLERS,
    *_INGEST,
    *_INTEGRATORS,
    *("agent_tools", "authorizer", "connection", "http", "index_maintenance", "uploads"),
)

_TRACE_FIELDS = (
    "function_name",
    "step",
    "message",
    "attempt",
    "strategy",
    "route",
    "outcome",
    "action",
    "by",
    "code",
    "why",
    "dependency",
    "similarity",
    "found",
    "used",
    "tool",
    "fault",
    "purpose",
    "model_id",
    "calls",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "took_ms",
    "first_piece_ms",
    "last_seq",
    "answered_by",
    "failed.0",
)
"""What the steps of :mod:`cicada.request_trace` say."""


@dataclass(frozen=True)
class SavedQuery:
    """A query that the operator finds in the console under ``<prefix>/<name>``."""

    id: str
    """The construct's."""
    name: str
    symptom: str
    """What it explains, in a sentence for the list of queries."""
    functions: tuple[str, ...]
    """Whose log groups it reads: folders below ``lambdas/``, or the access log."""
    text: str
    placeholder: str | None = None
    """What must be replaced before it is run."""
    level: Literal["INFO", "WARN", "ERROR"] = "WARN"
    """The quietest ``logLevel`` at which its lines are written."""


def _query(*commands: str) -> str:
    return "\n| ".join(commands)


FALLBACKS = SavedQuery(
    "FallbacksQuery",
    "Why answers fell back",
    "What the strategies failed by before another one answered, with a request to look at",
    ("answer",),
    _query(
        'filter step = "complete" and ispresent(failed.0)',
        f"filter failed.0 not like /{CacheMiss.code}/ or ispresent(failed.1)",
        "stats count(*) as answers, latest(request_id) as example by failed.0, failed.1, failed.2, answered_by",
        "sort answers desc",
        f"limit {MOST_ROWS}",
    ),
)
SPENDING = SavedQuery(
    "SpendingQuery",
    "Spending by model",
    "What each model cost, and what it was called for",
    ("answer",),
    _query(
        'filter step = "model_call"',
        "stats sum(cost_usd) as usd, sum(calls) as model_calls, sum(input_tokens) as tokens_in, "
        "sum(output_tokens) as tokens_out, count_distinct(request_id) as requests by model_id, purpose",
        "sort usd desc",
        f"limit {MOST_ROWS}",
    ),
    level="INFO",
)
VERSIONS = SavedQuery(
    "VersionsQuery",
    "Index versions searched",
    "Which versions of the index were searched, when last, how long it took, and with how many passages found",
    ("answer",),
    _query(
        'filter step = "retrieved"',
        "stats count(*) as searches, avg(found) as passages, pct(took_ms, 95) as p95_ms, "
        "latest(@timestamp) as last_at by index_version, engine",
        "sort last_at desc",
        f"limit {MOST_ROWS}",
    ),
    level="INFO",
)
CATALOGUE = (
    SavedQuery(
        "Trace",
        "Story of a request",
        "All that is known of one request, in the order of time; `cicada trace` shows the same as a timeline",
        TELLERS,
        insights_query(REQUEST_PLACEHOLDER, _TRACE_FIELDS),
        REQUEST_PLACEHOLDER,
        level="INFO",
    ),
    SavedQuery(
        "UnansweredQuery",
        "Requests without an answer",
        "Which requests ended, or were turned away, without an answer by a fault of the system, and what was tried",
        TELLERS,
        _query(
            "fields @timestamp, request_id, code, why, failed.0, failed.1, failed.2, failed.3, attempt, release",
            f'filter (step = "ended" and code not in {list(NOT_FAULTS)})'.replace("'", '"')
            + ' or message = "question not taken"',
            "sort @timestamp desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    FALLBACKS,
    SavedQuery(
        "SlowQuery",
        "Slow first texts",
        "The answers that began latest, with what their search, their look-up and their attempt took",
        ("answer",),
        _query(
            "fields @timestamp, request_id, first_chunk_ms, latency_ms, attempt_ms, retrieval_latency_ms, "
            "cache_latency_ms, answered_by, failed.0, model_id, model_calls, release",
            'filter step = "complete"',
            "sort first_chunk_ms desc",
            f"limit {MOST_ROWS}",
        ),
        level="INFO",
    ),
    SPENDING,
    SavedQuery(
        "ModelFaultsQuery",
        "Failed model calls",
        "Which models failed, for which purpose and by which code; `model_busy` is a quota",
        ("answer",),
        _query(
            'filter step = "model_call" and ispresent(fault) and fault != "stopped"',
            "stats count(*) as failures, max(took_ms) as longest_ms, latest(request_id) as example "
            "by model_id, purpose, fault",
            "sort failures desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "FaultsQuery",
        "Faults by dependency",
        "What failed on the way of answers, by dependency and code; without a dependency the attempt itself failed",
        TELLERS,
        _query(
            'filter step = "fault" and level != "INFO"',
            "stats count(*) as faults, earliest(@timestamp) as first_at, latest(@timestamp) as last_at, "
            "latest(why) as reason, latest(request_id) as example by dependency, code, message",
            "sort faults desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "FramesQuery",
        "Refused frames",
        "Which frames were refused and why: no message of the protocol, or a session that is no longer valid",
        ("message_processor", "corpus", "uploads"),
        _query(
            'filter message = "frame refused"',
            "stats count(*) as frames, count_distinct(connection_id) as connections, latest(@timestamp) as last_at "
            "by code, why",
            "sort frames desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "ConnectionsQuery",
        "Refused connections",
        "Why the authorizer let nobody in: tokens, origins, groups, or an issuer whose keys cannot be fetched",
        ("authorizer",),
        _query(
            'filter level in ["WARNING", "ERROR"] and not ispresent(errorType)',
            "stats count(*) as times, earliest(@timestamp) as first_at, latest(@timestamp) as last_at by message, why",
            "sort times desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "LimitsQuery",
        "Refused by limits",
        "Which limit, or the switch, refused questions, and of how many askers",
        ("message_processor",),
        _query(
            'filter message = "question refused by a limit"',
            "stats count(*) as questions, count_distinct(asker) as askers, latest(request_id) as example by code, why",
            "sort questions desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "RecoveriesQuery",
        "Lost workers",
        "Which requests had lost their worker, and what became of them; or could not be recovered",
        ("message_processor", "recovery_sweep"),
        _query(
            "fields @timestamp, request_id, message, why, action, by, attempt, code",
            'filter step = "recovered" or message = "request not recovered"',
            "sort @timestamp desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    VERSIONS,
    SavedQuery(
        "UpkeepQuery",
        "Upkeep of the index",
        "What the daily maintenance merged and deleted, put off or failed at",
        ("index_maintenance",),
        _query(
            "fields @timestamp, level, message, collection, merged, publications, collected_objects, put_off.0, "
            "too_large.0, exception_name, errorType, errorMessage",
            'filter message = "index maintained" or level in ["WARNING", "ERROR"]',
            "sort @timestamp desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "GuardrailQuery",
        "Guardrail interventions",
        "What the guardrail blocked or masked, and why it failed",
        ("answer",),
        _query(
            'filter step = "guardrail"',
            "stats count(*) as texts, latest(request_id) as example, latest(@timestamp) as last_at "
            "by outcome, blocked.0, masked.0, why",
            "sort texts desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "SetAsideQuery",
        "Documents set aside",
        "Which documents a run set aside or could not prepare, by collection and code",
        ("ingest_document",),
        _query(
            'filter message in ["document quarantined", "a document was not prepared"]',
            "stats count(*) as documents, latest(run) as last_run, latest(@timestamp) as last_at "
            "by collection, code, message",
            "sort documents desc",
            f"limit {MOST_ROWS}",
        ),
    ),
    SavedQuery(
        "UploadsQuery",
        "Failed uploads",
        "What failed on the way of uploads: events that started no run, and steps of runs",
        _INGEST,
        _query(
            "fields @timestamp, @log, errorType, errorMessage, record.status, record.errorType, "
            "record.metrics.durationMs, record.metrics.maxMemoryUsedMB",
            'filter ispresent(errorType) or record.status = "timeout" or record.errorType like /^Runtime[.]/',
            "sort @timestamp desc",
            f"limit {MOST_ROWS}",
        ),
        level="ERROR",
    ),
    SavedQuery(
        "Runs",
        "Runs over uploads",
        "All that the runs over one collection's uploads did, in the order of time",
        _INGEST,
        _query(
            "fields @timestamp, run, batch, level, message, documents, gone, prepared, quarantined, loaded, unchanged, "
            "not_prepared, removed, code, version",
            f'filter collection = "{COLLECTION_PLACEHOLDER}"',
            "sort @timestamp asc",
            "limit 10000",
        ),
        COLLECTION_PLACEHOLDER,
        level="INFO",
    ),
    SavedQuery(
        "FailuresQuery",
        "Functions that failed",
        "Invocations that ended with an error, ran out of time or memory, or whose process died",
        _ALL,
        _query(
            "fields @timestamp, @log, errorType, errorMessage, record.status, record.errorType, "
            "record.metrics.durationMs, record.metrics.maxMemoryUsedMB, record.metrics.memorySizeMB, record.requestId",
            f'filter (ispresent(errorType) and errorType != "{CacheMiss.__name__}" and errorMessage != "{REFUSED}") '
            'or record.status = "timeout" or record.errorType like /^Runtime[.]/',
            "sort @timestamp desc",
            f"limit {MOST_ROWS}",
        ),
        level="ERROR",
    ),
    SavedQuery(
        "GatewayQuery",
        "Gateway errors",
        "Which connects and frames the API answered with an error, and whose error it was",
        (ACCESS_LOG,),
        _query(
            "filter status >= 400 or integrationStatus >= 400 or functionStatus >= 400",
            "stats count(*) as times, latest(connectionId) as example, latest(@timestamp) as last_at "
            "by eventType, routeKey, status, integrationStatus, functionStatus, authorizerStatus, error",
            "sort times desc",
            f"limit {MOST_ROWS}",
        ),
        level="ERROR",
    ),
    SavedQuery(
        "StartsQuery",
        "Slow starts",
        "How many new environments each function started, and how long that took",
        _ALL,
        _query(
            'filter type = "platform.report" and ispresent(record.metrics.initDurationMs)',
            "stats count(*) as starts, avg(record.metrics.initDurationMs) as mean_ms, "
            "pct(record.metrics.initDurationMs, 95) as p95_ms, max(record.metrics.maxMemoryUsedMB) as memory_mb "
            "by @log",
            "sort p95_ms desc",
            f"limit {MOST_ROWS}",
        ),
        level="ERROR",
    ),
    SavedQuery(
        "ReleasesQuery",
        "Releases at work",
        "Which release each function ran, and when it last wrote a line",
        _ALL,
        _query(
            "filter ispresent(release)",
            "stats count(*) as lines, earliest(@timestamp) as first_at, latest(@timestamp) as last_at "
            "by function_name, release",
            "sort last_at desc",
            f"limit {MOST_ROWS}",
        ),
        level="INFO",
    ),
)


def log_groups(scope: Construct, access_log: logs.ILogGroup) -> dict[str, str]:
    """The log groups of the app's functions that there are, by their folders, and that of the API's stage.

    Args:
        scope: the stack that is deployed last.
        access_log: the log group of the API's stage.
    """
    return {ACCESS_LOG: access_log.log_group_name} | {
        found.folder: found.logs.log_group_name
        for found in scope.node.root.node.find_all()
        if isinstance(found, CicadaFunction)
    }


def save_queries(scope: Construct, *, prefix: str, groups: Mapping[str, str]) -> None:
    """Save every query.

    Args:
        scope: the stack that is deployed last.
        prefix: the deployment's; the console shows it as a folder.
        groups: as :func:`log_groups` finds them.
    """
    for query in CATALOGUE:
        logs.CfnQueryDefinition(
            scope,
            query.id,
            name=full_name(prefix, query),
            query_string=query.text,
            log_group_names=read_by(query, groups),
        )


def read_by(query: SavedQuery, groups: Mapping[str, str]) -> list[str]:
    """The log groups that a query reads, of those that there are."""
    return [groups[name] for name in query.functions if name in groups]


def full_name(prefix: str, query: SavedQuery) -> str:
    """The name that the console shows."""
    return f"{prefix}/{query.name}"
