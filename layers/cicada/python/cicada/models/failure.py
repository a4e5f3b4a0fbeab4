"""What a failed call to a model means for its caller, in the domain's words."""

from __future__ import annotations

import http.client
from dataclasses import dataclass

import urllib3.exceptions
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.exceptions import HTTPClientError
from botocore.parsers import ResponseParserError

from cicada.errors import ModelError


@dataclass(frozen=True)
class Failure:
    """A failed call."""

    error: ModelError
    retry: bool
    """Whether calling again at once, or after a short wait, can help."""
    invalid: bool = False
    """The request itself is refused: another one might not be."""
    retry_after_s: float | None = None
    """How long the service asks to be left alone, where it says so."""
    free: bool = False
    """Whether the call is known to cost nothing: it was turned away, or never arrived. What else fails may have been
    worked on, and paid for."""


TRANSPORT_ERRORS = (
    BotoConnectionError,
    HTTPClientError,
    ResponseParserError,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
)
"""botocore wraps most of these, but not those of a body's reading."""
