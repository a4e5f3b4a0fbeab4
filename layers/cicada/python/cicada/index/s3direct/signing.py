"""Signature version 4 for GET requests to S3.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

NO_BODY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Credentials:
    """What requests are signed with."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def encoded_path(*parts: str) -> str:
    """The path of a bucket and key, or of a key alone, as requests and their signatures write it."""
    return "/" + "/".join(quote(part, safe="/~") for part in parts)


class Signer:
    """Signs GET requests for one region. Safe for several threads."""

    def __init__(self, region: str) -> None:
        """Take the region that the bucket lies in."""
        self._region = region
        self._key: tuple[tuple[str, str], bytes] = (("", ""), b"")

    def headers(
        self, host: str, path: str, headers: Mapping[str, str], credentials: Credentials, now: datetime
    ) -> dict[str, str]:
        """All headers of a GET request, its signature among them.

        Args:
            host: with the port, unless it is the scheme's own.
            path: as :func:`encoded_path` writes it; there is no query.
            headers: the request's own, names in lower case. All of them are signed.
            credentials: whose signature it is.
            now: in UTC.
        """
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        date = stamp[:8]
        signed = dict(headers) | {"host": host, "x-amz-content-sha256": NO_BODY_SHA256, "x-amz-date": stamp}
        if credentials.session_token:
            signed["x-amz-security-token"] = credentials.session_token
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed))
        request = f"GET\n{path}\n\n{lines}\n{names}\n{NO_BODY_SHA256}"
        scope = f"{date}/{self._region}/s3/aws4_request"
        to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = _hmac(self._signing_key(credentials.secret_access_key, date), to_sign).hex()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return signed

    def _signing_key(self, secret: str, date: str) -> bytes:
        """Derived once a day and secret; threads that meet derive the same one twice."""
        known_for, key = self._key
        if known_for != (secret, date):
            key = f"AWS4{secret}".encode()
            for part in (date, self._region, "s3", "aws4_request"):
                key = _hmac(key, part)
            self._key = ((secret, date), key)
        return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
