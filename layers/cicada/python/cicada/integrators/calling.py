"""How a function for integrators is called: an object in, an object out, whatever happens."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cicada.errors import CicadaError, DocumentRefused, DocumentUnknown, RetrievalInvalid
from cicada.retrieval.pipelines.api import ErrorBody, problems_of

logger = logging.getLogger(__name__)

Request = TypeVar("Request", bound=BaseModel)

_PLAIN = (RetrievalInvalid, DocumentRefused, DocumentUnknown)
"""What is wrong with what the caller sent: the message says more, and names nothing of anybody else's."""


def respond(
    event: object, parse: Callable[[object], Request], function: Callable[[Request], BaseModel]
) -> dict[str, Any]:
    """Answer a call: the function's response, or ``{"success": false, "error": {code, message, retryable}}``.

    A failure that is no :class:`~cicada.errors.CicadaError` is a bug, and fails the invocation.

    Args:
        event: what the caller sent.
        parse: reads the request in it, as :func:`reading` makes one.
        function: what is done about it.
    """
    try:
        response = function(parse(event))
    except CicadaError as error:
        logger.warning("a call failed", extra={"code": error.code})
        return {"success": False, "error": error_body(error).model_dump(mode="json")}
    return response.model_dump(mode="json")


def reading(request: type[Request]) -> Callable[[object], Request]:
    """What reads requests of one kind.

    It raises RetrievalInvalid for an event that is none; the message names each field that is wrong, and never repeats
    its value.
    """

    def read(event: object) -> Request:
        try:
            return request.model_validate(event)
        except ValidationError as error:
            raise RetrievalInvalid(problems_of(error)) from None

    return read


def error_body(error: CicadaError) -> ErrorBody:
    """A failure, as callers are told of it."""
    told = f"{error.told} {error}" if isinstance(error, _PLAIN) else error.told
    return ErrorBody(code=error.code, message=told, retryable=error.retryable)
