"""Errors as Bedrock Runtime sends them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from cicada_local.service_errors import RestJsonError

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_CLIENT_CLOSED = 499
"""nginx's status for it."""


class AwsError(RestJsonError):
    """An error response. AWS adds a URI to the code."""

    code_suffix = ":http://internal.amazon.com/coral/com.amazon.bedrock/"


class ValidationFailed(AwsError):
    """The request breaks the API's rules, or the model's."""

    code, status = "ValidationException", 400


class ModelNotFound(AwsError):
    """No such model."""

    code, status = "ResourceNotFoundException", 404


class Unsigned(AwsError):
    """The request carries no signature."""

    code, status = "MissingAuthenticationTokenException", 403


def with_aws_errors(handler: Handler, *, internal: str) -> Handler:
    """A handler whose errors are told as AWS tells them; ``internal`` is what AWS says of a bug of its own."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if "Authorization" not in request.headers:
                raise Unsigned("Missing Authentication Token")
            return await handler(request)
        except AwsError as error:
            return error.response()
        except ConnectionResetError:
            return web.Response(status=_CLIENT_CLOSED)  # which nobody receives
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception:
            logger.exception("stand-in: %s failed", request.path)
            return AwsError(internal).response()

    return handle
