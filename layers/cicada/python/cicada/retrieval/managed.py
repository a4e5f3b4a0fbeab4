"""What Amazon S3 Vectors and Amazon Kendra share: the client's configuration, and the reading of failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.errors import IndexFailure, IndexMismatch, IndexMissing, IndexUnavailable
from cicada.models.failure import TRANSPORT_ERRORS, code_and_status
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
"""Codes after which a retry can help."""
_MISSING = frozenset({"NotFoundException", "ResourceNotFoundException"})


def query_config(budget_s: float) -> Config:
    """The client's configuration for searches: no read outlasts the budget, and botocore retries once."""
    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=budget_s,
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=16,
    )


def read_failure(engine: str, error: Exception) -> IndexFailure | None:
    """An exception of boto3 as the domain's error; None for a bug."""
    if isinstance(error, ClientError):
        code, told = code_and_status(error)[0], f"{engine}: {error}"
        if code in _MISSING:
            return IndexMissing(told)
        return IndexMismatch(told) if code == "ValidationException" else IndexUnavailable(told)
    if isinstance(error, TRANSPORT_ERRORS):
        return IndexUnavailable(f"the connection to {engine} failed: {error}")
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return IndexUnavailable(f"{engine} cannot be called: {error}")
    return None


@contextmanager
def reading_failures(engine: str) -> Iterator[None]:
    """Raise the block's failures of an engine as :func:`read_failure` reads them."""
    try:
        yield
    except Exception as error:
        failure = read_failure(engine, error)
        if failure is None:
            raise
        raise failure from error


def may_pass(error: Exception) -> bool:
    """Whether a retry can help: throttles, faults of the service, a broken connection."""
    if isinstance(error, ClientError):
        code, status = code_and_status(error)
        busy = code in _PASSING or status == HTTPStatus.TOO_MANY_REQUESTS
        return busy or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return isinstance(error, TRANSPORT_ERRORS)


def top_k_capped(engine: str, most: int) -> Degradation:
    """The engine returns fewer passages than were asked for."""
    return Degradation("top_k_capped", f"{engine} returns {most} passages a search at most: there may be more to find.")
