"""Errors as Amazon S3 Vectors sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cicada_local.service_errors import RestJsonError
from cicada_local.service_model import Problem


class S3VectorsError(RestJsonError):
    """An error response."""


class ValidationFailed(S3VectorsError):
    """The request breaks the API's rules."""

    code, status = "ValidationException", 400

    def __init__(self, message: str, fields: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self._fields = fields

    def body(self) -> dict[str, Any]:
        """The message, with the members that it is about."""
        listed = [{"path": field.path, "message": field.message} for field in self._fields]
        return {**super().body(), "fieldList": listed}


class NotFound(S3VectorsError):
    """No such vector bucket, or index."""

    code, status = "NotFoundException", 404


class Conflict(S3VectorsError):
    """The name is taken, or the bucket is not empty."""

    code, status = "ConflictException", 409


class TooManyRequests(S3VectorsError):
    """More calls or vectors a second than an index takes."""

    code, status = "TooManyRequestsException", 429


class Unsigned(S3VectorsError):
    """The request carries no signature of this service's."""

    code, status = "AccessDeniedException", 403
