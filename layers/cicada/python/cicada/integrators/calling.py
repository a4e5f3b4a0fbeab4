"""How a function for integrators is called: an object in, an object out, whatever happens."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from cicada.errors import CicadaError, DocumentRefused, DocumentUnknown, ResponseTooLarge, RetrievalInvalid
from cicada.retrieval.pipelines.api import ApiModel, ErrorBody, problems_of

logger = logging.getLogger(__name__)

Request = TypeVar("Request", bound=BaseModel)

_PLAIN = (RetrievalInvalid, DocumentRefused, DocumentUnknown)
"""What is wrong with what the caller sent: the message says more, and names nothing of anybody else's."""
MAX_RESPONSE_BYTES = 6 * 2**20 - 64 * 2**10
"""Of a response as JSON. Lambda gives back 6 MB: past it the caller would be told of a fault of the function."""


class FailedCall(ApiModel):
    """What a function answers where it has no result."""

    success: Literal[False] = False
    error: ErrorBody


def respond(
    event: object, parse: Callable[[object], Request], function: Callable[[Request], BaseModel]
) -> dict[str, Any]:
    """Answer a call: the function's response, or a :class:`FailedCall`; as plain JSON.

    A failure that is not a :class:`~cicada.errors.CicadaError` is a bug, and fails the invocation.
    """
    try:
        return _bounded(function(parse(event)).model_dump(mode="json"))
    except CicadaError as error:
        logger.warning("a call failed", extra={"code": error.code})
        return FailedCall(error=error_body(error)).model_dump(mode="json")


def reading(request: type[Request]) -> Callable[[object], Request]:
    """A parser of requests of one kind; see :func:`problems_of` for what its RetrievalInvalid says."""

    def read(event: object) -> Request:
        try:
            return request.model_validate(event)
        except ValidationError as error:
            raise RetrievalInvalid(problems_of(error)) from None

    return read


def _bounded(response: dict[str, Any]) -> dict[str, Any]:
    size = len(json.dumps(response, ensure_ascii=False).encode())
    if size > MAX_RESPONSE_BYTES:
        raise ResponseTooLarge(f"{size} bytes are more than {MAX_RESPONSE_BYTES}")
    return response


def error_body(error: CicadaError) -> ErrorBody:
    """A failure, as callers are told of it."""
    told = f"{error.told.rstrip('.')}: {error}" if isinstance(error, _PLAIN) else error.told
    return ErrorBody(code=error.code, message=told, retryable=error.retryable)
