"""Errors as Amazon S3 Vectors sends them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

from aiohttp import web

from local.service_model import Problem


class S3VectorsError(Exception):
    """An error response: its code goes into ``x-amzn-ErrorType``, its message into the body."""

    code: ClassVar[str] = "InternalServerException"
    status: ClassVar[int] = 500

    def response(self) -> web.Response:
        """The response that tells of it."""
        return error_response(self.code, self.status, {"message": str(self)})


class ValidationFailed(S3VectorsError):
    """The request breaks the API's rules."""

    code, status = "ValidationException", 400

    def __init__(self, message: str, fields: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self._fields = fields

    def response(self) -> web.Response:
        """The response, with the members that it is about."""
        listed = [{"path": field.path, "message": field.message} for field in self._fields]
        return error_response(self.code, self.status, {"message": str(self), "fieldList": listed})


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


class Injected(S3VectorsError):
    """An error that a fault switch asks for."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self._response = code, status, {"message": message}

    def response(self) -> web.Response:
        """The response that the switch asks for."""
        return error_response(*self._response)


def error_response(code: str, status: int, body: dict[str, Any]) -> web.Response:
    """An error response."""
    return web.json_response(
        body, status=status, headers={"x-amzn-ErrorType": code, "x-amzn-RequestId": str(uuid.uuid4())}
    )
