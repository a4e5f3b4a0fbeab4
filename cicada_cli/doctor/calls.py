"""Calls AWS for the checks, and classifies failures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from cicada_cli.exits import UsageError

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 15
ATTEMPTS = 2
"""Calls of one operation, retries included."""


class Failure(StrEnum):
    """Why a call failed."""

    CREDENTIALS = "credentials"
    """There are none, or they cannot be loaded."""
    EXPIRED = "expired"
    INVALID = "invalid"
    """AWS rejects them in this Region."""
    DENIED = "denied"
    THROTTLED = "throttled"
    UNREACHABLE = "unreachable"
    REGION = "region"
    """No Region is set."""
    REFUSED = "refused"
    """The service refused; its code says why."""


_CODES = {
    Failure.EXPIRED: {"ExpiredToken", "ExpiredTokenException", "RequestExpired"},
    Failure.INVALID: {
        *("InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException"),
        *("AuthFailure", "InvalidAccessKeyId", "InvalidToken", "OptInRequired", "SubscriptionRequiredException"),
    },
    Failure.DENIED: {
        *("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"),
        *("AuthorizationErrorException", "403", "Forbidden"),
    },
    Failure.THROTTLED: {
        *("Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException", "SlowDown"),
        *("RequestLimitExceeded", "ProvisionedThroughputExceededException"),
    },
}
_EXCEPTIONS = {
    Failure.CREDENTIALS: {
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "ProfileNotFound",
    },
    Failure.EXPIRED: {"SSOTokenLoadError", "UnauthorizedSSOTokenError", "TokenRetrievalError", "LoginRefreshRequired"},
    Failure.REGION: {"NoRegionError", "InvalidRegionError"},
}
_PERMISSIONS = {
    "bedrock-runtime.Converse": "bedrock:InvokeModel",
    "apigateway.GetAccount": "apigateway:GET",
    "s3.ListBuckets": "s3:ListAllMyBuckets",
    "s3.HeadBucket": "s3:ListBucket",
    "stepfunctions.ListStateMachines": "states:ListStateMachines",
}
_PREFIXES = {"bedrock-runtime": "bedrock", "stepfunctions": "states"}


class CallFailed(Exception):
    """A failed call of AWS."""

    def __init__(self, failure: Failure, service: str, operation: str, code: str, message: str) -> None:
        """``code`` is the service's, or the name of the SDK's exception."""
        super().__init__(message)
        self.failure = failure
        self.operation = operation
        self.service = service
        self.code = code

    @property
    def permission(self) -> str:
        """The IAM action that the call needs."""
        known = _PERMISSIONS.get(f"{self.service}.{self.operation}")
        return known or f"{_PREFIXES.get(self.service, self.service)}:{self.operation}"


class Calls(Protocol):
    """Calls AWS. The checks only read, or call a model for one token."""

    def __call__(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Call an operation, by its names in boto3 and in the API: ``"lambda"``, ``"GetAccountSettings"``.

        Raises:
            CallFailed: the call failed.
        """
        ...


class AwsCalls:
    """The port over boto3; safe to use from several threads."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        """``client`` makes a boto3 client of a service; it is called once for each, one at a time."""
        self._make = client
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """See :class:`Calls`."""
        from botocore import xform_name
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            with self._lock:
                client = self._clients.get(service) or self._clients.setdefault(service, self._make(service))
            answer: Mapping[str, Any] = getattr(client, xform_name(operation))(**params)
        except ClientError as error:
            told = error.response.get("Error", {})
            code, message = str(told.get("Code", "")), str(told.get("Message", "")) or str(error)
            raise CallFailed(_of_code(code), service, operation, code, message) from error
        except (BotoCoreError, ResponseParserError, UsageError, ValueError) as error:
            name = type(error.__cause__ if isinstance(error, UsageError) else error).__name__
            raise CallFailed(_of_exception(name), service, operation, name, str(error)) from error
        return answer


def _of_code(code: str) -> Failure:
    return next((failure for failure, codes in _CODES.items() if code in codes), Failure.REFUSED)


def _of_exception(name: str) -> Failure:
    return next((failure for failure, names in _EXCEPTIONS.items() if name in names), Failure.UNREACHABLE)
