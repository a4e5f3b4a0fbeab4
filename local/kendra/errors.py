"""Errors as Amazon Kendra sends them: JSON with ``__type`` and ``Message``."""

from __future__ import annotations

from typing import ClassVar

from aiohttp import web

from local.aws_json import json_response


class KendraError(Exception):
    """An error response."""

    code: ClassVar[str] = "InternalServerException"
    status: ClassVar[int] = 500

    def response(self) -> web.Response:
        """The response that tells of it."""
        return error_response(self.code, self.status, str(self))


class ValidationFailed(KendraError):
    """The request breaks the API's rules."""

    code, status = "ValidationException", 400


class NotFound(KendraError):
    """No such index."""

    code, status = "ResourceNotFoundException", 400


class Throttled(KendraError):
    """More queries than the index has capacity for."""

    code, status = "ThrottlingException", 400


class Unsigned(KendraError):
    """The request carries no signature of this service's."""

    code, status = "MissingAuthenticationTokenException", 400


class Injected(KendraError):
    """An error that a fault switch asks for."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self._response = code, status, message

    def response(self) -> web.Response:
        """The response that the switch asks for."""
        return error_response(*self._response)


def error_response(code: str, status: int, message: str) -> web.Response:
    """An error response."""
    return json_response({"__type": code, "Message": message}, status=status)
