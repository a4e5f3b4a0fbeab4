"""Signing GET requests to S3: the credentials, the bucket's address, and Signature Version 4.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from cicada.errors import IndexUnavailable, SettingsInvalid

NO_BODY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Credentials:
    """The credentials of a request."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def encoded_path(*parts: str) -> str:
    """The URL path of a bucket and key, or of a key, encoded as in the signature."""
    return "/" + "/".join(quote(part, safe="/~") for part in parts)


class Signer:
    """Signs GET requests to a bucket of one region. Thread-safe."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._key: tuple[tuple[str, str], bytes] = (("", ""), b"")

    def headers(
        self, host: str, path: str, headers: Mapping[str, str], credentials: Credentials, now: datetime
    ) -> dict[str, str]:
        """All headers of a GET request without a query, including its signature.

        ``host`` has the port unless it is the scheme's default; ``path`` is from :func:`encoded_path`; ``headers`` have
        lower-case names, and all are signed; ``now`` is in UTC.
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
        """Derived once per day and secret. Two threads may both derive it, with the same result."""
        known_for, key = self._key
        if known_for != (secret, date):
            key = f"AWS4{secret}".encode()
            for part in (date, self._region, "s3", "aws4_request"):
                key = _hmac(key, part)
            self._key = ((secret, date), key)
        return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


class CredentialSource:
    """The environment's credentials, as in Lambda, else those of the SDK's chain. Thread-safe.

    The environment is read for each request. The chain (profiles, SSO, roles, containers) refreshes itself; only it
    imports the SDK.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._chain: Any = None
        self._lock = threading.Lock()

    def current(self) -> Credentials:
        """The current credentials. Raises IndexUnavailable if there are none."""
        key_id, secret = (self._environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        if key_id and secret:
            return Credentials(key_id, secret, self._environ.get("AWS_SESSION_TOKEN"))
        return self._from_chain()

    def renewed(self, refused: Credentials) -> Credentials | None:
        """Credentials other than the refused, expired ones, or None. Raises IndexUnavailable."""
        with self._lock:
            self._chain = None
        found = self.current()
        return None if found == refused else found

    def _from_chain(self) -> Credentials:
        from botocore.exceptions import BotoCoreError  # slow to import, and not needed in Lambda
        from botocore.session import get_session

        with self._lock:
            try:
                if self._chain is None:
                    self._chain = get_session().get_credentials()
                frozen = self._chain.get_frozen_credentials() if self._chain is not None else None
            except (BotoCoreError, OSError) as error:
                raise IndexUnavailable(f"AWS credentials cannot be loaded: {error}") from error
        if frozen is None:
            raise IndexUnavailable("no AWS credentials were found")
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)


DOMAINS = {
    "cn-": "amazonaws.com.cn",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "us-isof-": "csp.hci.ic.gov",
    "eusc-": "amazonaws.eu",
}
"""The domains of AWS's other partitions, by the beginning of their regions' names."""
DEFAULT_DOMAIN = "amazonaws.com"


@dataclass(frozen=True)
class BucketEndpoint:
    """A bucket's address."""

    secure: bool
    host: str  # to connect to
    port: int
    named: str  # the ``Host`` header: with the port, unless it is the scheme's default
    bucket_in_path: str  # the bucket for path-style requests; empty if it is part of the host's name

    def path(self, key: str) -> str:
        """The path of an object."""
        return encoded_path(self.bucket_in_path, key) if self.bucket_in_path else encoded_path(key)


def region_of(environ: Mapping[str, str]) -> str:
    """The region of the environment. Raises SettingsInvalid if there is none."""
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise SettingsInvalid("AWS_REGION is not set")
    return region


def endpoint_of(bucket: str, region: str, environ: Mapping[str, str]) -> BucketEndpoint:
    """A bucket's address in its region, or at the environment's endpoint. Raises SettingsInvalid."""
    instead = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if instead and environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        return _custom_endpoint(bucket, instead)
    suffix = next((suffix for start, suffix in DOMAINS.items() if region.startswith(start)), DEFAULT_DOMAIN)
    fips = "-fips" if environ.get("AWS_USE_FIPS_ENDPOINT", "").lower() == "true" else ""
    dual = ".dualstack" if environ.get("AWS_USE_DUALSTACK_ENDPOINT", "").lower() == "true" else ""
    service = f"s3{fips}{dual}.{region}.{suffix}"
    if "." in bucket:  # S3's certificate covers one label before its name, and such a bucket has several
        return BucketEndpoint(True, service, 443, service, bucket)
    own = f"{bucket}.{service}"
    return BucketEndpoint(True, own, 443, own, "")


def _custom_endpoint(bucket: str, url: str) -> BucketEndpoint:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}
    try:
        port = parts.port or usual[parts.scheme]
    except (KeyError, ValueError) as error:
        raise SettingsInvalid(f"invalid S3 endpoint {url!r}: it must be an http or https URL") from error
    if not parts.hostname:
        raise SettingsInvalid(f"invalid S3 endpoint {url!r}: it has no host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    named = host if port == usual[parts.scheme] else f"{host}:{port}"
    in_path = f"{parts.path.strip('/')}/{bucket}".lstrip("/")
    return BucketEndpoint(parts.scheme == "https", parts.hostname, port, named, in_path)
