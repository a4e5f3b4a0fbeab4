"""Requests that are not answered: statuses, stable codes, and the document that OpenAI's clients read.

::

    {"error": {"code": "unauthorized", "message": "…", "type": "authentication_error"}}
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from cicada.errors import CicadaError, LimitReached, SpendingStopped
from cicada.errors import Unauthorized as SessionInvalid
from cicada.usage.limits import LimitState
from cicada_client.connection import TransportClosed
from cicada_client.errors import (
    AnswerFailed,
    ClientError,
    ConnectionRefused,
    InvalidQuestion,
    NotSignedIn,
    RequestRefused,
    Unauthorized,
)

RETRY_AFTER_S = 5
"""What a client is asked to wait where the server knows no better."""

_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_BAD_GATEWAY, _UNAVAILABLE, _TOO_MANY = 502, 503, 429


class HttpRefusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        """``code`` never changes; ``message`` is for people, and holds no secret."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        kind = _TYPES.get(self.status, "api_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"code": self.code, "message": self.message, "type": kind}}

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.document(), self.status, self.headers)

    @classmethod
    def of(cls, error: ClientError | TransportClosed) -> HttpRefusal:
        """The answer to a request on whose behalf the deployment was asked in vain."""
        match error:
            case Unauthorized(status=403):
                return cls(403, "forbidden", "This user may not use this deployment.")
            case Unauthorized() | NotSignedIn():
                return cls(401, "unauthorized", "The access token is missing, expired or not accepted.")
            case InvalidQuestion():
                return cls(400, "invalid_request", str(error))
            case RequestRefused():
                headers = {"Retry-After": str(_reset_s(error.limit))} if error.limit else {}
                return cls(_status_of(error.code), error.code, error.detail or error.message, headers)
            case AnswerFailed():
                return cls(_UNAVAILABLE if error.retryable else _BAD_GATEWAY, error.code, error.message)
            case TransportClosed(status=429):
                message = "Too many connections at the moment."
                return cls(_TOO_MANY, "throttled", message, {"Retry-After": str(RETRY_AFTER_S)})
            case ConnectionRefused():
                return cls(_BAD_GATEWAY, "deployment_unavailable", "The deployment does not take connections.")
        message = "The deployment cannot be reached at the moment."
        return cls(_UNAVAILABLE, "deployment_unavailable", message, {"Retry-After": str(RETRY_AFTER_S)})


def _reset_s(limit: LimitState) -> int:
    """In how many seconds a limit begins anew, or may have room: an open question ends at any time."""
    if limit.resets_at_ms is None:
        return RETRY_AFTER_S
    return max(1, math.ceil(limit.resets_at_ms / 1000 - time.time()))


def _status_of(code: str) -> int:
    """The status for what the deployment refuses with one of its codes."""
    if code in (LimitReached.code, SpendingStopped.code):
        return _TOO_MANY
    if code == CicadaError.code:
        return _BAD_GATEWAY
    return 401 if code == SessionInvalid.code else _UNAVAILABLE if code.endswith("_unavailable") else 400


async def answer_refusal(_: Request, error: Exception) -> JSONResponse:
    """Starlette's handler of :class:`HttpRefusal` and of the client's errors."""
    refusal = error if isinstance(error, HttpRefusal) else None
    if isinstance(error, ClientError | TransportClosed):
        refusal = HttpRefusal.of(error)
    return (refusal or HttpRefusal(500, CicadaError.code, CicadaError.told)).response()
