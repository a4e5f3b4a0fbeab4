"""Answers a call of a function for integrators: JSON object in, JSON object out, also for failures."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from cicada.errors import CicadaError, DocumentRefused, DocumentUnknown, ResponseTooLarge, RetrievalInvalid
from cicada.index.access_rules import AccessRulesStore
from cicada.retrieval.pipelines.api import ApiModel, ErrorBody, ReadingRequest, problems_of
from cicada.rights import Readable

logger = logging.getLogger(__name__)

Request = TypeVar("Request", bound=BaseModel)
ReadingRequestOf = TypeVar("ReadingRequestOf", bound=ReadingRequest)

_PLAIN = (RetrievalInvalid, DocumentRefused, DocumentUnknown)
"""Errors in the request: their messages help the caller, and name nothing of other owners."""
MAX_RESPONSE_BYTES = 6 * 2**20 - 64 * 2**10
"""Of a response as JSON. Lambda returns at most 6 MB, and reports a larger response as a fault of the function."""


class FailedCall(ApiModel):
    """What a function answers where it has no result."""

    success: Literal[False] = False
    error: ErrorBody


def respond(
    event: object, parse: Callable[[object], Request], function: Callable[[Request], BaseModel]
) -> dict[str, Any]:
    """The function's response or a :class:`FailedCall`, as plain JSON.

    An exception that is not a :class:`~cicada.errors.CicadaError` is a bug, and fails the invocation.
    """
    try:
        response = function(parse(event)).model_dump(mode="json")
        if (size := len(json.dumps(response, ensure_ascii=False).encode())) > MAX_RESPONSE_BYTES:
            raise ResponseTooLarge(f"{size} bytes exceed the limit of {MAX_RESPONSE_BYTES}")
        return response
    except CicadaError as error:
        logger.warning("call failed", extra={"code": error.code})
        message = f"{error.told.rstrip('.')}: {error}" if isinstance(error, _PLAIN) else error.told
        failure = ErrorBody(code=error.code, message=message, retryable=error.retryable)
        return FailedCall(error=failure).model_dump(mode="json")


def for_groups(
    function: Callable[[ReadingRequestOf, Readable], BaseModel], access: AccessRulesStore
) -> Callable[[ReadingRequestOf], BaseModel]:
    """A function of what members of the request's groups may read, by the rules of the moment.

    It raises IndexUnavailable or IndexCorrupt if the rules cannot be read.
    """
    return lambda request: function(request, access.rules().readable(request.groups))


def reading(request: type[Request]) -> Callable[[object], Request]:
    """A parser of one kind of requests. It raises RetrievalInvalid with :func:`problems_of` the request."""

    def read(event: object) -> Request:
        try:
            return request.model_validate(event)
        except ValidationError as error:
            raise RetrievalInvalid(problems_of(error)) from None

    return read
