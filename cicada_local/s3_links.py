"""Presigned links that download an object from S3, checked as S3 checks them: signature and expiry.

moto answers any link. Sources: Amazon S3 API reference, "Authenticating requests: using query parameters (AWS Signature
Version 4)"; Amazon S3 User Guide, "Sharing objects with presigned URLs". Without I/O.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

from aiohttp import web

_ALGORITHM = "AWS4-HMAC-SHA256"
_SIGNATURE = "X-Amz-Signature"
_MAX_EXPIRES_S = 7 * 24 * 3600
_FORMAT = "%Y%m%dT%H%M%SZ"


class LinkRefused(Exception):
    """S3 refuses a link."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def is_link(request: web.BaseRequest) -> bool:
    """Whether a request follows a presigned link to an object."""
    return request.method == "GET" and _SIGNATURE in request.query and request.path.count("/") > 1


def check_link(raw_path: str, host: str, secret_of: Callable[[str], str | None], now: datetime) -> None:
    """Check a link that signs the host alone. ``secret_of`` gives the secret of an access key. Raises LinkRefused."""
    path, _, text = raw_path.partition("?")
    query = dict(parse_qsl(text, keep_blank_values=True))
    access_key, *scope = query.get("X-Amz-Credential", "").split("/")
    try:
        signed_at = datetime.strptime(query.get("X-Amz-Date", ""), _FORMAT).replace(tzinfo=UTC)
        lasts_s = int(query.get("X-Amz-Expires", ""))
    except ValueError:
        signed_at, lasts_s = now, -1
    right = len(scope) == 4 and scope[2:] == ["s3", "aws4_request"] and query.get("X-Amz-Algorithm") == _ALGORITHM
    if not right or not 0 < lasts_s <= _MAX_EXPIRES_S or query.get("X-Amz-SignedHeaders") != "host":
        raise LinkRefused("AuthorizationQueryParametersError", "Query-string authentication parameters are not valid.")
    if now > signed_at + timedelta(seconds=lasts_s):
        raise LinkRefused("AccessDenied", "Request has expired")
    secret = secret_of(access_key)
    if secret is None:
        told = "The AWS Access Key Id you provided does not exist in our records."
        raise LinkRefused("InvalidAccessKeyId", told)
    if not hmac.compare_digest(_signature(path, host, query, scope, secret), query[_SIGNATURE]):
        told = "The request signature we calculated does not match the signature you provided."
        raise LinkRefused("SignatureDoesNotMatch", told)


def _signature(path: str, host: str, query: Mapping[str, str], scope: list[str], secret: str) -> str:
    encoded = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items() if name != _SIGNATURE
    )
    asked = "&".join(f"{name}={value}" for name, value in encoded)
    canonical = f"GET\n{path}\n{asked}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    told = "\n".join((_ALGORITHM, query["X-Amz-Date"], "/".join(scope), digest))
    return hmac.new(key, told.encode(), "sha256").hexdigest()
