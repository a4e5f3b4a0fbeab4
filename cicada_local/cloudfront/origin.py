"""S3 as CloudFront's origin: what a bucket answers to a distribution whose requests are signed for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC
from email.utils import format_datetime
from typing import Any

from cicada_local.cloudfront.edge import EdgeResponse
from cicada_local.permissions.policies import Effect, Required, evaluate
from cicada_local.permissions.resources import policy_of
from cicada_local.places import ACCOUNT_ID

_TOLD = ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires")
SERVICE = "cloudfront.amazonaws.com"


class BucketOrigin:
    """Reads moto's buckets, as far as their policies allow a distribution to."""

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        """Read buckets; the lock is held while one is read."""
        self._lock = lock

    def __call__(self, distribution_arn: str, bucket: str, key: str) -> EdgeResponse:
        """What S3 answers: 403 too for what is not there, to those who may not list the bucket."""
        arn = f"arn:aws:s3:::{bucket}"
        if not _allows(distribution_arn, "s3:GetObject", f"{arn}/{key}"):
            return _failure(403, "AccessDenied", "Access Denied")
        with self._lock:
            found = _object(bucket, key)
            if found is not None:
                return _response(found)
        if _allows(distribution_arn, "s3:ListBucket", arn):
            return _failure(404, "NoSuchKey", "The specified key does not exist.")
        return _failure(403, "AccessDenied", "Access Denied")


def _allows(distribution_arn: str, action: str, resource: str) -> bool:
    """Whether a bucket's policy allows it to CloudFront, acting for this distribution, over TLS."""
    context = {"aws:sourcearn": (distribution_arn,), "aws:securetransport": ("true",), "s3:tlsversion": ("1.3",)}
    statements = (one for one in policy_of(resource) if one.names("Service", (SERVICE,)))
    return evaluate(statements, Required(action, resource, context)) is Effect.ALLOW


def _object(bucket: str, key: str) -> Any:
    from moto.s3.models import s3_backends

    buckets = s3_backends[ACCOUNT_ID]["aws"].buckets
    version = buckets[bucket].keys.get(key) if bucket in buckets else None
    return version if hasattr(version, "value") else None  # a delete marker has none


def _response(version: Any) -> EdgeResponse:
    told = {name.lower(): str(value) for name, value in version.metadata.items() if name.lower() in _TOLD}
    return EdgeResponse(
        200,
        {
            **told,
            "etag": f'"{version.etag.strip(chr(34))}"',
            "last-modified": format_datetime(version.last_modified.replace(tzinfo=UTC), usegmt=True),
            "server": "AmazonS3",
        },
        version.value,
    )


def _failure(status: int, code: str, message: str) -> EdgeResponse:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return EdgeResponse(status, {"content-type": "application/xml", "server": "AmazonS3"}, text.encode())
