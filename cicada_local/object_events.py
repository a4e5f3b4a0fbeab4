"""S3's events on EventBridge's default bus: the deployed rules that match one have their functions invoked.

moto tells the bus of objects in a form of its own, not of all that happens to them, and invokes no functions. Here a
call of S3 that was answered is told as AWS tells it, to the functions that the rules name. Invocations are
asynchronous, as EventBridge's are. Source of the form: Amazon S3 User Guide, "EventBridge event message structure".
"""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, cast
from xml.etree import ElementTree

from cicada_local.calls import Call
from cicada_local.places import ACCOUNT_ID, REGION
from cicada_local.rule_targets import RuleTargets, Target

CREATED, DELETED = "Object Created", "Object Deleted"
_KINDS = {
    "PutObject": CREATED,
    "CopyObject": CREATED,
    "CompleteMultipartUpload": CREATED,
    "DeleteObject": DELETED,
    "DeleteObjects": DELETED,
}


class ObjectEvents:
    """Passes on what happens to objects. All methods belong to one event loop."""

    def __init__(self, targets: RuleTargets) -> None:
        """Take what hands events on to functions."""
        self._targets = targets
        self._sequence = itertools.count(1)
        self._under_way: set[asyncio.Task[None]] = set()

    def answered(self, call: Call, body: bytes, status: int) -> None:
        """Pass on what a call has done, if anybody is to be told."""
        kind = _KINDS.get(call.operation) if call.service == "s3" else None
        if kind is None or status >= HTTPStatus.MULTIPLE_CHOICES:
            return
        bucket, _, key = call.resource.partition("/")
        found = _bucket_with_events(bucket)
        if found is None:
            return
        for name in [key] if key else list(deleted_keys(body)):
            event = self._event(found, name, kind, call)
            for rule_arn, target in _targets(event):
                task = asyncio.ensure_future(self._targets.deliver(rule_arn, target, json.dumps(event).encode()))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)

    def _event(self, bucket: Any, key: str, kind: str, call: Call) -> dict[str, Any]:
        """The event as AWS sends it."""
        told: dict[str, Any] = {"key": key, "sequencer": f"{next(self._sequence):016X}"}
        detail: dict[str, Any] = {"reason": call.operation}
        if kind == CREATED:
            written = bucket.keys.get(key)
            if written is not None:
                told |= {"size": written.size, "etag": str(written.etag).strip('"')}
        else:
            detail |= {
                "reason": "DeleteObject",
                "deletion-type": "Delete Marker Created" if bucket.is_versioned else "Permanently Deleted",
            }
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": kind,
            "source": "aws.s3",
            "account": ACCOUNT_ID,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": [f"arn:aws:s3:::{bucket.name}"],
            "detail": {
                "version": "0",
                "bucket": {"name": bucket.name},
                "object": told,
                "request-id": uuid.uuid4().hex[:16].upper(),
                "requester": ACCOUNT_ID,
                "source-ip-address": "127.0.0.1",
                **detail,
            },
        }


def _bucket_with_events(name: str) -> Any:
    """The bucket, if it tells EventBridge of its objects; else None."""
    from moto.s3.models import s3_backends
    from moto.utilities.utils import get_partition

    bucket = s3_backends[ACCOUNT_ID][get_partition(REGION)].buckets.get(name)
    configuration = None if bucket is None else bucket.notification_configuration
    return bucket if configuration is not None and configuration.event_bridge is not None else None


def deleted_keys(body: bytes) -> Iterator[str]:
    """The keys that a DeleteObjects names."""
    for element in ElementTree.fromstring(body).iter():  # noqa: S314 - the local cloud's own user sent it
        if element.tag.rpartition("}")[2] == "Key" and element.text:
            yield element.text


def _targets(event: dict[str, Any]) -> list[tuple[str, Target]]:
    """The deployed rules that an event matches, each with a function that it invokes."""
    from moto.events.models import events_backends
    from moto.events.utils import EventMessageType

    bus = events_backends[ACCOUNT_ID][REGION].event_buses["default"]
    message = cast(EventMessageType, event)
    matching = (
        rule
        for rule in list(bus.rules.values())
        if rule.state == "ENABLED" and rule.event_pattern.get_pattern() and rule.event_pattern.matches_event(message)
    )
    return [
        (rule.arn, Target.of(target)) for rule in matching for target in rule.targets if ":lambda:" in target["Arn"]
    ]
