"""Errors as Bedrock Runtime sends them."""

from __future__ import annotations

import uuid
from typing import ClassVar

from aiohttp import web


class AwsError(Exception):
    """An error response: its code goes into ``x-amzn-ErrorType``, its message into the body."""

    code: ClassVar[str] = "InternalServerException"
    status: ClassVar[int] = 500

    def response(self) -> web.Response:
        """The response that tells of it."""
        return error_response(self.code, self.status, str(self))


class ValidationFailed(AwsError):
    """The request breaks the API's rules, or the model's."""

    code, status = "ValidationException", 400


class ModelNotFound(AwsError):
    """No such model."""

    code, status = "ResourceNotFoundException", 404


class Unsigned(AwsError):
    """The request carries no signature."""

    code, status = "MissingAuthenticationTokenException", 403


def error_response(code: str, status: int, message: str) -> web.Response:
    """An error response. AWS adds a URI to the code, which clients have to cut off."""
    headers = {
        "x-amzn-ErrorType": f"{code}:http://internal.amazon.com/coral/com.amazon.bedrock/",
        "x-amzn-RequestId": str(uuid.uuid4()),
    }
    return web.json_response({"message": message}, status=status, headers=headers)
