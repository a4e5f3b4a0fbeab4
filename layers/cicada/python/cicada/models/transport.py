"""What a client of AWS raises when the connection, or what came over it, is broken."""

from __future__ import annotations

import http.client

import urllib3.exceptions
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.exceptions import HTTPClientError
from botocore.parsers import ResponseParserError

TRANSPORT_ERRORS = (
    BotoConnectionError,
    HTTPClientError,
    ResponseParserError,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
)
"""botocore wraps most of these, but not those of a body's reading."""
