"""What the Lambda API refuses, with the statuses and types that boto3 maps to its exceptions."""

from __future__ import annotations

import json
from typing import ClassVar


class LambdaApiError(Exception):
    """A call that the service refused before any function ran."""

    status: ClassVar[int] = 500
    type_: ClassVar[str] = "ServiceException"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason

    def body(self) -> bytes:
        """The error's JSON document, as ``rest-json`` services write it."""
        document = {"Type": "User" if self.status < 500 else "Service", "message": str(self), "Message": str(self)}
        if self.reason is not None:
            document["Reason"] = self.reason
        return json.dumps(document).encode()


class ResourceNotFound(LambdaApiError):
    """No such function, or no such version of it."""

    status, type_ = 404, "ResourceNotFoundException"


class TooManyRequests(LambdaApiError):
    """Throttled: no environment may be added."""

    status, type_ = 429, "TooManyRequestsException"


class RequestTooLarge(LambdaApiError):
    """The event is over its limit."""

    status, type_ = 413, "RequestTooLargeException"


class RoleRefused(LambdaApiError):
    """The function's role does not trust Lambda."""

    status, type_ = 403, "AccessDeniedException"


class InvalidRequestContent(LambdaApiError):
    """The event is no JSON."""

    status, type_ = 400, "InvalidRequestContentException"


class InvalidParameterValue(LambdaApiError):
    """A header or a name is none that the service knows."""

    status, type_ = 400, "InvalidParameterValueException"
