"""What the managed engines, Amazon S3 Vectors and Amazon Kendra, have in common: their calls, and how these fail."""

from __future__ import annotations

from http import HTTPStatus

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.errors import IndexFailure, IndexMismatch, IndexMissing, IndexUnavailable
from cicada.models.failure import TRANSPORT_ERRORS
from cicada.retrieval.ports import Degradation

CONNECT_TIMEOUT_S = 1.0

_PASSING = frozenset(
    {
        "InternalServerException",
        "RequestTimeoutException",
        "ServiceUnavailableException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes after which the same call can succeed a little later."""
_MISSING = frozenset({"NotFoundException", "ResourceNotFoundException"})


def query_config(budget_s: float) -> Config:
    """The client's configuration for searches: no call outlasts the budget, and one throttle or hiccup is retried."""
    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=budget_s,
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=16,
    )


def read_failure(engine: str, error: Exception) -> IndexFailure | None:
    """What boto3 raised for the named engine, as the domain's error; None if it is a bug, not an engine failure."""
    if isinstance(error, ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        told = f"{engine}: {error}"
        if code in _MISSING:
            return IndexMissing(told)
        return IndexMismatch(told) if code == "ValidationException" else IndexUnavailable(told)
    if isinstance(error, TRANSPORT_ERRORS):
        return IndexUnavailable(f"the connection to {engine} failed: {error}")
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return IndexUnavailable(f"{engine} cannot be called: {error}")
    return None


def may_pass(error: Exception) -> bool:
    """Whether the same call can succeed a little later: throttles, faults of the service, a broken connection."""
    if isinstance(error, ClientError):
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return (
            str(error.response.get("Error", {}).get("Code", "")) in _PASSING
            or status == HTTPStatus.TOO_MANY_REQUESTS
            or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )
    return isinstance(error, TRANSPORT_ERRORS)


def top_k_capped(engine: str, most: int) -> Degradation:
    """That an engine returns fewer passages than were asked for, whether or not it has found more."""
    return Degradation("top_k_capped", f"{engine} returns {most} passages a search at most: there may be more to find.")
