"""What a failed call to a model means for its caller."""

from __future__ import annotations

import http.client
from dataclasses import dataclass

import urllib3.exceptions
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError

from cicada.errors import ModelError


@dataclass(frozen=True)
class Failure:
    """A failed call."""

    error: ModelError
    retry: bool
    """Whether calling again at once, or after a short wait, can help."""
    invalid: bool = False
    """The service refuses this request; a different one may pass."""
    retry_after_s: float | None = None
    """How long the service asks the caller to wait, where it says so."""
    free: bool = False
    """Whether the call certainly cost nothing: it was refused, or never arrived. Any other may have been paid for."""


TRANSPORT_ERRORS = (
    BotoConnectionError,
    HTTPClientError,
    ResponseParserError,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
)
"""botocore wraps most of these, but not those raised while a body is read."""


def code_and_status(error: ClientError) -> tuple[str, int]:
    """An AWS error's code in upper camel case, and its HTTP status. Errors in a stream come in lower camel case."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code[:1].upper() + code[1:], int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
