"""Where a bucket is found.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from cicada.errors import SettingsInvalid
from cicada.index.s3direct.signing import encoded_path

SUFFIXES = {
    "cn-": "amazonaws.com.cn",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "us-isof-": "csp.hci.ic.gov",
    "eusc-": "amazonaws.eu",
}
"""By what a region's name begins with, AWS's partitions that do not lie under :data:`SUFFIX`."""
SUFFIX = "amazonaws.com"


@dataclass(frozen=True)
class Endpoint:
    """A bucket's address."""

    secure: bool
    host: str
    """To connect to."""
    port: int
    named: str
    """What the ``Host`` header says: with the port, unless it is the scheme's own."""
    bucket_in_path: str
    """The bucket, where it is no part of the host's name; else empty."""

    def path(self, key: str) -> str:
        """The path of an object."""
        return encoded_path(self.bucket_in_path, key) if self.bucket_in_path else encoded_path(key)


def region_of(environ: Mapping[str, str]) -> str:
    """The region that the environment names.

    Raises:
        SettingsInvalid: it names none.
    """
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise SettingsInvalid("AWS_REGION is not set")
    return region


def endpoint_of(bucket: str, region: str, environ: Mapping[str, str]) -> Endpoint:
    """Where a bucket is found: in its region, or at the endpoint that the environment puts in S3's place.

    Raises:
        SettingsInvalid: that endpoint is no URL.
    """
    instead = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if instead and environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        return _elsewhere(bucket, instead)
    suffix = next((suffix for start, suffix in SUFFIXES.items() if region.startswith(start)), SUFFIX)
    fips = "-fips" if environ.get("AWS_USE_FIPS_ENDPOINT", "").lower() == "true" else ""
    dual = ".dualstack" if environ.get("AWS_USE_DUALSTACK_ENDPOINT", "").lower() == "true" else ""
    service = f"s3{fips}{dual}.{region}.{suffix}"
    if "." in bucket:  # no certificate covers such a bucket's own name
        return Endpoint(True, service, 443, service, bucket)
    own = f"{bucket}.{service}"
    return Endpoint(True, own, 443, own, "")


def _elsewhere(bucket: str, url: str) -> Endpoint:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}
    try:
        port = parts.port or usual[parts.scheme]
    except (KeyError, ValueError) as error:
        raise SettingsInvalid(f"{url!r} is no endpoint of S3: it must be an http or https URL") from error
    if not parts.hostname:
        raise SettingsInvalid(f"{url!r} is no endpoint of S3: it names no host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    named = host if port == usual[parts.scheme] else f"{host}:{port}"
    in_path = f"{parts.path.strip('/')}/{bucket}".lstrip("/")
    return Endpoint(parts.scheme == "https", parts.hostname, port, named, in_path)
