"""Records of what administrators and uploaders change: objects under ``audit/``, written once and never replaced.

A change writes two objects: an intent before it (what, and by whom) and an outcome after it. If the first
cannot be written, the change is not made. If the second is missing (the process died, or the store did not respond),
the change is listed with an unknown outcome: it may have been made, in whole or in part.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from cicada.errors import AuditUnavailable, CicadaError, IndexUnavailable
from cicada.index.ports import ObjectStore, PreconditionFailed

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
    "index_restored",
    "table_restored",
    "access_changed",
    "settings_changed",
    "upload_begun",
    "upload_deleted",
]
"""What is recorded. The names never change."""
ACTIONS: tuple[str, ...] = get_args(Action)


MAX_DETAILS_BYTES = 8_192
"""Of a record's details as JSON. What exceeds it is replaced by its beginning."""
MAX_NAME_CHARS = 512
"""Of an actor or a subject; the rest is cut off."""
FORMAT = 1
_ID_BYTES = 8
OUTCOME = "-outcome"


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def function_actor(requester: str | None = None) -> str:
    """How a deployed function is named as the one who changes something; ``requester`` caused its invocation."""
    name = f"function:{os.environ.get('AWS_LAMBDA_FUNCTION_NAME', 'unnamed')}"
    return name if requester is None else f"{name} for {requester}"


@dataclass
class ChangeRecord:
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
) -> Iterator[ChangeRecord]:
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
        raise AuditUnavailable(f"{action} was not performed because it could not be recorded: {error}") from error
    change = ChangeRecord(began.id)
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


def _end(store: ObjectStore, began: _Begun, change: ChangeRecord, at: datetime, outcome: Mapping[str, str]) -> None:
    body = {"at": _told(at), **outcome, **_about(change.subject), "details": _bounded(change.noted)}
    try:
        _write(store, began.key(OUTCOME), body)
    except IndexUnavailable as error:  # what was begun is recorded, and is listed with an unknown outcome
        logger.error("the outcome of a recorded change was not recorded", extra={"audit": began.id, "why": str(error)})


def _write(store: ObjectStore, key: str, body: Mapping[str, Any]) -> None:
    data = json.dumps({"format": FORMAT, **body}, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed:
        logger.debug("the record was already written by an earlier try whose response was lost")  # the id is ours


def _about(subject: str | None) -> dict[str, str]:
    return {} if subject is None else {"subject": subject[:MAX_NAME_CHARS]}


def _bounded(details: Mapping[str, Any]) -> dict[str, Any]:
    written = json.dumps(dict(details), ensure_ascii=False, sort_keys=True)
    if len(written.encode()) <= MAX_DETAILS_BYTES:
        return dict(details)
    return {"tooLong": written.encode()[: MAX_DETAILS_BYTES // 2].decode(errors="ignore")}


def _told(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
