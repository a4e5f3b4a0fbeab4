"""Errors of the services that stand-ins play, told as each service tells them."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from aiohttp import web

from cicada_local.aws_json import json_response


class ServiceError(Exception):
    """An error response; of a class of its own where a service has a meaning of its own for it."""

    code: str = "InternalServerException"
    status: int = 500

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        """``code`` and ``status`` are the class's unless given, as a fault switch asks for them."""
        super().__init__(message)
        self.code = code or self.code
        self.status = status or self.status

    def response(self) -> web.Response:
        """The response that tells of it."""
        raise NotImplementedError


class AwsJsonError(ServiceError):
    """In AWS JSON 1.1: code and message are in the body."""

    message_member: ClassVar[str] = "message"
    """What the service calls the message."""

    def type(self) -> str:
        """What the body calls it: the code, unless the service's model has another name for it."""
        return self.code

    def response(self) -> web.Response:
        """See the base."""
        return json_response({"__type": self.type(), self.message_member: str(self)}, status=self.status)


class RestJsonError(ServiceError):
    """Of services whose operations have paths: the code is in ``x-amzn-ErrorType``, the message in the body."""

    code_suffix: ClassVar[str] = ""
    """What the service adds to the code, and clients have to cut off."""

    def body(self) -> dict[str, Any]:
        """What the response holds."""
        return {"message": str(self)}

    def response(self) -> web.Response:
        """See the base."""
        headers = {"x-amzn-ErrorType": self.code + self.code_suffix, "x-amzn-RequestId": str(uuid.uuid4())}
        return web.json_response(self.body(), status=self.status, headers=headers)
