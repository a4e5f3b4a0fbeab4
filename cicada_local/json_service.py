"""What stand-ins of services that speak AWS JSON 1.1 share: all requests of a service come to one path."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from aiohttp import web

from cicada_local import service_model
from cicada_local.aws_json import json_response
from cicada_local.service_errors import AwsJsonError

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = dict[str, Any]


class JsonService:
    """A service, told by the target header alone. Its errors are classes of its own, with its codes."""

    name: ClassVar[str]
    """In the SDK's models."""
    prefix: ClassVar[str]
    """Of the target header, before the operation."""
    signed_for: ClassVar[str]
    """The service's name in a signature."""
    failed: ClassVar[AwsJsonError]
    """Told of a bug of the stand-in's own, as AWS tells of one of the service's."""
    unsigned: ClassVar[type[AwsJsonError]]
    invalid: ClassVar[type[AwsJsonError]]
    """Told of what breaks the service's model."""

    def __init__(self) -> None:
        self._model = service_model.load(self.name)

    def serves(self, operation: str) -> bool:  # noqa: ARG002
        """Whether an operation is answered here, and not by another: all are unless a service says otherwise."""
        return True

    async def answer(self, operation: str, body: bytes) -> Answer:
        """Answer an operation. Raises AwsJsonError."""
        raise NotImplementedError

    def add_routes(self, app: web.Application) -> None:
        """Answer what is meant for the service, whatever its path."""

        @web.middleware
        async def ours(request: web.Request, handler: Handler) -> web.StreamResponse:
            target = request.headers.get("X-Amz-Target", "")
            operation = target.removeprefix(self.prefix)
            if operation == target or not self.serves(operation):
                return await handler(request)
            return await self._handle(operation, request)

        app.middlewares.append(ours)

    async def _handle(self, operation: str, request: web.Request) -> web.Response:
        try:
            body = await request.read()
            if f"/{self.signed_for}/aws4_request" not in request.headers.get("Authorization", ""):
                raise self.unsigned("Request is missing Authentication Token")
            return json_response(await self.answer(operation, body))
        except AwsJsonError as error:
            return error.response()
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception:
            logger.exception("%s stand-in: %s failed", self.name, operation)
            return self.failed.response()

    def read(self, operation: str, body: bytes) -> dict[str, Any]:
        """An operation's members, checked by the service's model."""
        try:
            return service_model.read_input(self._model.operation_model(operation).input_shape, body)
        except service_model.Refused as refused:
            raise self.invalid(str(refused)) from refused
