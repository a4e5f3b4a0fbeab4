"""The catalogue of the deployment's own metrics.

All lie in one namespace and have one dimension, ``service``, whose value is the deployment's prefix: CloudWatch bills
each combination of name and dimensions as a metric of its own, and what lies behind a figure is asked of the logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NAMESPACE = "Cicada"
DIMENSION = "service"


@dataclass(frozen=True)
class Metric:
    """One metric of CloudWatch."""

    name: str
    unit: Literal["Count", "Milliseconds", "None"]
    tells: str
    """What it tells, for the documentation."""
    everyday: bool = False
    """Whether it has values in ordinary running. The others are billed only by the hours in which something happens."""


QUESTIONS = Metric("Questions", "Count", "questions that were accepted", everyday=True)
ANSWERS_COMPLETE = Metric("AnswersComplete", "Count", "answers that were completed", everyday=True)
ANSWERS_FELL_BACK = Metric(
    "AnswersFellBack",
    "Count",
    "1 for a completed answer that another strategy had failed to give before, 0 for every other completed answer; "
    "a look-up in the semantic cache that finds nothing is no failure",
    everyday=True,
)
REQUESTS_FAILED = Metric(
    "RequestsFailed",
    "Count",
    "requests that ended without an answer, or were not accepted, by a fault of the system: every strategy failed, the "
    "time or the room for an answer ran out, the workflow could not be started, the worker was lost twice, the table "
    "did not take the question. No fault: what was cancelled, refused by a limit, blocked, or limited to unknown names",
    everyday=True,
)
ATTEMPTS_FAILED = Metric("AttemptsFailed", "Count", "attempts that failed, the cache's misses aside", everyday=True)
FIRST_CHUNK = Metric("FirstChunk", "Milliseconds", "of a completed answer: from acceptance to its first text", True)
ANSWER_LATENCY = Metric("AnswerLatency", "Milliseconds", "of a completed answer: from acceptance to its end", True)
COST_USD = Metric(
    "CostUsd",
    "None",
    "US dollars that an attempt's calls to text models cost, failed attempts included, as far as prices are known and "
    "the worker lived to tell",
    everyday=True,
)
CACHE_HITS = Metric("CacheHits", "Count", "1 for a look-up in the semantic cache that found something, or 0", True)

BREAKER_OPENED = Metric("BreakerOpened", "Count", "circuit breakers that opened")
REQUESTS_RECOVERED = Metric(
    "RequestsRecovered", "Count", "requests that had lost their worker: taken up again, or ended"
)
LIMITS_REACHED = Metric("LimitsReached", "Count", "questions that a limit on use, or the switch, refused")
ISSUER_UNAVAILABLE = Metric(
    "IssuerUnavailable", "Count", "connections that failed because the issuer's keys could not be fetched"
)
CONNECTIONS_REFUSED = Metric(
    "ConnectionsRefused",
    "Count",
    "connections without a valid token, from another origin, or of users outside the required groups",
)
FRAMES_REFUSED = Metric("FramesRefused", "Count", "frames that are no message, or whose sender may not send them")
ANSWERS_BLOCKED = Metric("AnswersBlocked", "Count", "requests that a guardrail or a model's filter ended")
GUARDRAIL_FAILURES = Metric("GuardrailFailures", "Count", "texts that the guardrail failed to check")
ANSWERS_RATED_UP = Metric("AnswersRatedUp", "Count", "answers that users rated up")
ANSWERS_RATED_DOWN = Metric("AnswersRatedDown", "Count", "answers that users rated down")
POSTS_REJECTED = Metric(
    "PostsRejected",
    "Count",
    "frames for clients that API Gateway refused although their connection is not closed: a permission is missing",
)
DOCUMENTS_QUARANTINED = Metric("DocumentsQuarantined", "Count", "uploaded documents that a run set aside")
DOCUMENTS_NOT_PREPARED = Metric("DocumentsNotPrepared", "Count", "uploaded documents that a run could not prepare")

CATALOGUE = (
    QUESTIONS,
    ANSWERS_COMPLETE,
    ANSWERS_FELL_BACK,
    REQUESTS_FAILED,
    ATTEMPTS_FAILED,
    FIRST_CHUNK,
    ANSWER_LATENCY,
    COST_USD,
    CACHE_HITS,
    BREAKER_OPENED,
    REQUESTS_RECOVERED,
    LIMITS_REACHED,
    ISSUER_UNAVAILABLE,
    CONNECTIONS_REFUSED,
    FRAMES_REFUSED,
    ANSWERS_BLOCKED,
    GUARDRAIL_FAILURES,
    ANSWERS_RATED_UP,
    ANSWERS_RATED_DOWN,
    POSTS_REJECTED,
    DOCUMENTS_QUARANTINED,
    DOCUMENTS_NOT_PREPARED,
)
