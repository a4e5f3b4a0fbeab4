"""What the service's errors mean, before its stream and in it."""

from __future__ import annotations

from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from cicada.errors import AgentError, AgentUnavailable, CicadaError
from cicada.models.transport import TRANSPORT_ERRORS

_CODES: dict[str, tuple[type[AgentError], bool]] = {
    "ThrottlingException": (AgentUnavailable, True),
    "ModelNotReadyException": (AgentUnavailable, True),
    "ServiceQuotaExceededException": (AgentUnavailable, False),
    "InternalServerException": (AgentUnavailable, True),
    "BadGatewayException": (AgentUnavailable, True),
    "ConflictException": (AgentUnavailable, True),
    "DependencyFailedException": (AgentError, False),
    "AccessDeniedException": (AgentError, False),
    "ResourceNotFoundException": (AgentError, False),
    "ValidationException": (AgentError, False),
}
"""Errors of InvokeAgent by code: the class, and whether to call again before the run has begun. Any other code is read
by its status."""
_SERVER_ERROR = 500


@dataclass(frozen=True)
class Failure:
    """A failed call."""

    error: CicadaError
    retry: bool


def read_failure(error: Exception) -> Failure | None:
    """Read what a call to the service raised; None if it is none of its failures, but a bug.

    In-stream errors name their code in lower camel case (``throttlingException``), early ones in upper.
    """
    if isinstance(error, ClientError):
        return _read_client_error(error)
    if isinstance(error, TRANSPORT_ERRORS):
        return Failure(AgentUnavailable(f"the connection to the agent failed: {type(error).__name__}"), retry=True)
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return Failure(AgentError(str(error)), retry=False)
    return None


def _read_client_error(error: ClientError) -> Failure:
    code = str(error.response.get("Error", {}).get("Code", ""))
    code = code[:1].upper() + code[1:]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind, retry = _CODES.get(code, (AgentUnavailable, True) if status >= _SERVER_ERROR else (AgentError, False))
    return Failure(kind(str(error)), retry)
