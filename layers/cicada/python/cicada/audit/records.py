"""Records of what administrators change: objects under ``audit/`` that are written once and never replaced.

A change leaves two objects: before it, what is about to be done and by whom; after it, how it ended. If the first
cannot be written, the change is not made. If the second is missing (the process died, or the store did not respond),
the change is listed with an unknown outcome: it may have been made, in whole or in part.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from cicada.concurrency import THREADS
from cicada.custom_resources import ResourceRequest
from cicada.errors import AuditUnavailable, CicadaError, IndexUnavailable
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed

logger = logging.getLogger(__name__)

AUDIT_PREFIX = "audit/"
"""Where the records lie in the bucket."""

Action = Literal[
    "limits_set",
    "limits_unset",
    "spending_stopped",
    "spending_started",
    "user_added",
    "user_removed",
    "user_groups_changed",
    "user_revoked",
    "user_exported",
    "user_erased",
    "version_published",
    "version_rolled_back",
    "access_changed",
    "settings_changed",
]
"""What is recorded. The names never change."""
ACTIONS: tuple[str, ...] = get_args(Action)

Ending = Literal["done", "failed", "unknown"]
"""How a change ended: it was made; it ended with an error, and may have been made in part; nobody wrote it down."""

MAX_DETAILS_BYTES = 8_192
"""Of a record's details as JSON. What exceeds it is replaced by its beginning."""
MAX_NAME_CHARS = 512
"""Of an actor or a subject; the rest is cut off."""
_FORMAT = 1
_ID_BYTES = 8
_READS_AT_ONCE = 16
MOST_DAYS = 90
"""Up to which a listing asks for each day by itself."""
UNREADABLE = "unreadable"
"""The action of a record that is none."""
_OUTCOME = "-outcome"
_TIME = "%Y%m%dT%H%M%S.%fZ"
_KEY = re.compile(
    rf"(?P<name>{AUDIT_PREFIX}\d{{4}}/\d\d/\d\d/\d{{8}}T\d{{6}}\.\d{{6}}Z-[0-9a-f]{{16}})(?P<end>{_OUTCOME})?\.json"
)


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def function_actor(requester: str | None = None) -> str:
    """How a deployed function is named as the one who changes something; ``requester`` caused its invocation."""
    name = f"function:{os.environ.get('AWS_LAMBDA_FUNCTION_NAME', 'unnamed')}"
    return name if requester is None else f"{name} for {requester}"


@dataclass
class Change:
    """A change under way. What :meth:`note` adds is written down with its outcome."""

    id: str
    noted: dict[str, Any] = field(default_factory=dict)
    subject: str | None = None
    """Whom or what it was about, where that is known only afterwards."""

    def note(self, **details: Any) -> None:
        """Add details that are known only now, as JSON values."""
        self.noted.update(details)


@contextmanager
def record(
    store: ObjectStore,
    action: Action,
    *,
    actor: str,
    subject: str | None = None,
    details: Mapping[str, Any] | None = None,
    now: Callable[[], datetime] = utc_now,
) -> Iterator[Change]:
    """Record a change that the block makes: what it is before the block runs, and how it ended after it.

        with record(store, "limits_set", actor=who, subject="user/5f0c…", details={"usdDay": 2}) as change:
            ...
            change.note(before=5)

    Args:
        store: of the deployment's bucket.
        action: what is done.
        actor: who does it: an ARN, or :func:`function_actor`.
        subject: whom or what it is about: a user by subject (not by e-mail), a collection, an account of limits.
        details: JSON values; neither secrets nor texts of users.
        now: the clock.

    Raises:
        AuditUnavailable: it could not be recorded. The block was not run.
    """
    began = _Begun(at=now(), id=secrets.token_hex(_ID_BYTES))
    body = {"action": action, "actor": actor[:MAX_NAME_CHARS], **_about(subject), "details": _bounded(details or {})}
    try:
        _write(store, began.key(), {"at": _told(began.at), **body})
    except IndexUnavailable as error:
        raise AuditUnavailable(f"{action} was not recorded, so it was not done: {error}") from error
    change = Change(began.id)
    try:
        yield change
    except BaseException as error:
        _end(store, began, change, now(), {"outcome": "failed", "fault": fault_of(error)})
        raise
    _end(store, began, change, now(), {"outcome": "done"})


def fault_of(error: BaseException) -> str:
    """The code of a failure, or the name of its class: never its text, which may quote what users wrote."""
    return error.code if isinstance(error, CicadaError) else type(error).__name__


@dataclass(frozen=True)
class _Begun:
    """What names a record's objects: when it was begun, and its id."""

    at: datetime
    id: str

    def key(self, end: str = "") -> str:
        at = self.at.astimezone(UTC)
        return f"{AUDIT_PREFIX}{at:%Y/%m/%d/%Y%m%dT%H%M%S.%f}Z-{self.id}{end}.json"


def _end(store: ObjectStore, began: _Begun, change: Change, at: datetime, outcome: Mapping[str, str]) -> None:
    body = {"at": _told(at), **outcome, **_about(change.subject), "details": _bounded(change.noted)}
    try:
        _write(store, began.key(_OUTCOME), body)
    except IndexUnavailable as error:  # what was begun is recorded, and is listed with an unknown outcome
        logger.error("the outcome of a recorded change was not recorded", extra={"audit": began.id, "why": str(error)})


def _write(store: ObjectStore, key: str, body: Mapping[str, Any]) -> None:
    data = json.dumps({"format": _FORMAT, **body}, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed:
        logger.debug("a record was written by an attempt whose response was lost")  # nobody else knows its id


def _about(subject: str | None) -> dict[str, str]:
    return {} if subject is None else {"subject": subject[:MAX_NAME_CHARS]}


def _bounded(details: Mapping[str, Any]) -> dict[str, Any]:
    written = json.dumps(dict(details), ensure_ascii=False, sort_keys=True)
    if len(written.encode()) <= MAX_DETAILS_BYTES:
        return dict(details)
    return {"tooLong": written.encode()[: MAX_DETAILS_BYTES // 2].decode(errors="ignore")}


def _told(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- settings ---

SETTINGS = "Custom::RecordedSettings"
"""The type of the stacks' custom resource."""
ACCESS_ATTEMPTS = 6
ACCESS_PAUSE_S = 5.0
"""A policy that was created a moment ago may not be known everywhere yet: the first write is repeated for so long."""


class SettingsRecorder:
    """Records which settings a deployment changes, as a custom resource's properties tell by digests."""

    def __init__(self, store: ObjectStore, actor: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Write to the deployment's bucket."""
        self._store = store
        self._actor = actor
        self._sleep = sleep

    def handle(self, request: ResourceRequest) -> None:
        """Carry out a request: CloudFormation makes one when a digest has changed, before what uses the settings.

        Raises:
            AuditUnavailable: it could not be recorded. CloudFormation then rolls the change back.
        """
        if request.kind == "Delete":
            return
        before, after = (each.get("Settings", {}) for each in (request.old_properties, request.properties))
        changed = {
            name: {"before": before.get(name), "after": after.get(name)}
            for name in sorted({*before, *after})
            if before.get(name) != after.get(name)
        }
        details = {"changed": changed} if request.kind == "Update" else {"deployed": after}
        for attempt in range(1, ACCESS_ATTEMPTS + 1):
            try:
                with record(self._store, "settings_changed", actor=self._actor, details=details):
                    return
            except AuditUnavailable:
                if attempt == ACCESS_ATTEMPTS:
                    raise
            self._sleep(ACCESS_PAUSE_S)


# --- reading ---


@dataclass(frozen=True)
class Recorded:
    """A recorded change as it is listed."""

    id: str
    at: datetime
    action: str
    actor: str
    subject: str | None
    details: Mapping[str, Any]
    """What was known before, and after: the latter wins."""
    outcome: Ending = "unknown"
    fault: str | None = None
    """Why it failed."""
    ended_at: datetime | None = None


def recorded(store: ObjectStore, *, since: datetime | None = None, now: datetime | None = None) -> Iterator[Recorded]:
    """The recorded changes, newest first, by the clock of whoever made them.

    ``since`` leaves out earlier ones. A record that cannot be read as one is listed with the action ``unreadable``.
    Raises IndexUnavailable.
    """
    for prefix in _prefixes(since, now or utc_now()):
        found = [match for entry in store.entries(prefix) if (match := _KEY.fullmatch(entry.key))]
        ended = {match["name"] for match in found if match["end"]}
        begun = sorted((match["name"] for match in found if not match["end"]), reverse=True)
        for start in range(0, len(begun), _READS_AT_ONCE):
            read = [(name, name in ended) for name in begun[start : start + _READS_AT_ONCE]]
            for one in THREADS.each(lambda each: _read(store, *each), read):
                if since is None or one.at >= since:
                    yield one


def _prefixes(since: datetime | None, now: datetime) -> Iterator[str]:
    """The listings that hold all records since then, newest first: by day, unless there are many days."""
    if since is None or now - since > timedelta(days=MOST_DAYS):
        yield AUDIT_PREFIX
        return
    day = now.astimezone(UTC).date() + timedelta(days=1)  # somebody's clock may be ahead
    while day >= since.astimezone(UTC).date():
        yield f"{AUDIT_PREFIX}{day:%Y/%m/%d}/"
        day -= timedelta(days=1)


def _read(store: ObjectStore, name: str, ended: bool) -> Recorded:
    id = name.rpartition("-")[2]
    at = datetime.strptime(name.rpartition("/")[2].partition("-")[0], _TIME).replace(tzinfo=UTC)
    try:
        begun = _object(store, f"{name}.json")
        outcome = _object(store, f"{name}{_OUTCOME}.json") if ended else {}
        return Recorded(
            id=id,
            at=at,
            action=str(begun["action"]),
            actor=str(begun["actor"]),
            subject=outcome.get("subject", begun.get("subject")),
            details={**begun["details"], **outcome.get("details", {})},
            outcome=outcome.get("outcome", "unknown"),
            fault=outcome.get("fault"),
            ended_at=datetime.fromisoformat(outcome["at"]) if ended else None,
        )
    except (KeyError, TypeError, ValueError, ObjectMissing) as error:
        return Recorded(id, at, UNREADABLE, "", None, {"why": type(error).__name__})


def _object(store: ObjectStore, key: str) -> dict[str, Any]:
    found = json.loads(store.read(key).data)
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"{key} is no record")
    return found
