"""S3's live replication: what is written to a bucket with a replication configuration is copied to another, later.

moto keeps a configuration and copies nothing. Source: Amazon S3 User Guide, "Setting up live replication" and "What
does Amazon S3 replicate?".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from threading import Lock
from typing import Any

from cicada_local.calls import Call
from cicada_local.object_events import deleted_keys
from cicada_local.permissions.enforcement import role_allows
from cicada_local.permissions.policies import Required
from cicada_local.places import ACCOUNT_ID, REGION

logger = logging.getLogger(__name__)

DELAY_S = 60.0
"""Before an object is copied. AWS copies most within 15 minutes and promises nothing."""
_WRITES = frozenset({"PutObject", "CopyObject", "CompleteMultipartUpload"})
_DELETIONS = frozenset({"DeleteObject", "DeleteObjects"})
_READ = "s3:GetObjectVersionForReplication"


class ReplicationRefused(ValueError):
    """S3 would refuse the configuration."""


class Replication:
    """Copies what happens to objects. All methods belong to one event loop."""

    def __init__(self, lock: Lock, second_s: float = 1.0) -> None:
        """``lock`` is held while moto's buckets change; ``second_s`` real seconds are one of the cloud's."""
        self._lock = lock
        self._second_s = second_s
        self._under_way: set[asyncio.Task[None]] = set()

    def answered(self, call: Call, body: bytes, status: int) -> None:
        """Replicate what a call has done, if a rule says so."""
        if call.service != "s3" or status >= HTTPStatus.MULTIPLE_CHOICES:
            return
        if call.operation not in _WRITES | _DELETIONS:
            return
        bucket, _, key = call.resource.partition("/")
        configuration = _configuration(bucket)
        if configuration is None:
            return
        for name in [key] if key else list(deleted_keys(body)):
            rule = _rule(configuration, name)
            newest = _newest(bucket, name)
            if rule is not None and newest is not None:
                version = None if call.operation in _DELETIONS else newest.version_id
                if version is None and not _is_deletion(newest):
                    continue  # a version was deleted for good, which is not replicated
                task = asyncio.ensure_future(self._later(configuration["Role"], rule, bucket, name, version))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)

    async def _later(self, role: str, rule: Mapping[str, Any], bucket: str, key: str, version: str | None) -> None:
        await asyncio.sleep(DELAY_S * self._second_s)
        await asyncio.to_thread(self._replicate, role, rule, bucket, key, version)

    def _replicate(self, *what: Any) -> None:
        with self._lock:
            replicate(*what)


def replicate(role: str, rule: Mapping[str, Any], bucket: str, key: str, version: str | None) -> bool:
    """Copy a version of an object, or with None its deletion; whether that was done."""
    copies = str(rule["Destination"]["Bucket"])
    name = copies.rpartition(":")[2]
    target = _buckets().get(name)
    action = "s3:ReplicateObject" if version is not None else "s3:ReplicateDelete"
    needed = [Required(action, f"{copies}/{key}")]
    if version is not None:
        needed.append(Required(_READ, f"arn:aws:s3:::{bucket}/{key}"))
    elif rule.get("DeleteMarkerReplication", {}).get("Status") != "Enabled":
        return False
    if target is None or not target.is_versioned or not role_allows(role, *needed):
        logger.warning("s3://%s/%s was not replicated: %s cannot be written to in %s", bucket, key, name, role)
        return False
    backend = _backend()
    if version is None:
        backend.delete_object(name, key)
        return True
    source = backend.get_object(bucket, key, version_id=version)
    if source is None:
        return False
    backend.put_object(name, key, source.value)
    return True


def check(configuration: Mapping[str, Any]) -> None:
    """Raises ReplicationRefused for a configuration that S3 does not take."""
    for rule in configuration["Rules"]:
        target = _buckets().get(str(rule["Destination"]["Bucket"]).rpartition(":")[2])
        if target is None:
            raise ReplicationRefused("Destination bucket must exist.")
        if not target.is_versioned:
            raise ReplicationRefused("Destination bucket must have versioning enabled.")
        if "Filter" in rule and "DeleteMarkerReplication" not in rule:
            raise ReplicationRefused("DeleteMarkerReplication must be specified for this version of the schema")


def _rule(configuration: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """The rule that holds for an object: of several, that of the highest priority."""
    matching = [
        rule
        for rule in configuration["Rule"]
        if rule["Status"] == "Enabled" and key.startswith(rule.get("Filter", {}).get("Prefix", ""))
    ]
    return max(matching, key=lambda rule: int(rule["Priority"]), default=None)


def _newest(bucket: str, key: str) -> Any:
    """The newest version of an object, or its delete marker; None if nothing is left."""
    return next(iter(_buckets()[bucket].keys.getlist(key, [])[-1:]), None)


def _is_deletion(version: Any) -> bool:
    from moto.s3.models import FakeDeleteMarker

    return isinstance(version, FakeDeleteMarker)


def _configuration(bucket: str) -> Mapping[str, Any] | None:
    found = _buckets().get(bucket)
    configuration: Mapping[str, Any] | None = getattr(found, "replication", None)
    return configuration if found is not None and found.is_versioned else None


def _buckets() -> dict[str, Any]:
    buckets: dict[str, Any] = _backend().buckets
    return buckets


def _backend() -> Any:
    from moto.s3.models import s3_backends
    from moto.utilities.utils import get_partition

    return s3_backends[ACCOUNT_ID][get_partition(REGION)]
