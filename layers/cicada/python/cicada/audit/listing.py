"""Lists the records of what administrators changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from cicada.audit.records import AUDIT_PREFIX, FORMAT, OUTCOME, utc_now
from cicada.concurrency import THREADS
from cicada.index.ports import ObjectMissing, ObjectStore

Ending = Literal["done", "failed", "unknown"]
"""``done``; ``failed``: with an error, and perhaps made in part; ``unknown``: no outcome was recorded."""
_READS_AT_ONCE = 16
MOST_DAYS = 90
"""Up to which a listing asks for each day by itself."""
UNREADABLE = "unreadable"
"""The action of a record that is none."""
_TIME = "%Y%m%dT%H%M%S.%fZ"
_KEY = re.compile(
    rf"(?P<name>{AUDIT_PREFIX}\d{{4}}/\d\d/\d\d/\d{{8}}T\d{{6}}\.\d{{6}}Z-[0-9a-f]{{16}})(?P<end>{OUTCOME})?\.json"
)


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


def list_records(
    store: ObjectStore, *, since: datetime | None = None, now: datetime | None = None
) -> Iterator[Recorded]:
    """The recorded changes, newest first by their writers' clocks.

    ``since`` leaves out earlier ones. A record that cannot be read as one is listed with the action ``unreadable``.
    Raises IndexUnavailable.
    """
    for prefix in _prefixes(since, now or utc_now()):
        found = _names(store, prefix)
        for start in range(0, len(found), _READS_AT_ONCE):
            for one in THREADS.each(lambda each: _read(store, *each), found[start : start + _READS_AT_ONCE]):
                if since is None or one.at >= since:
                    yield one


def _names(store: ObjectStore, prefix: str) -> list[tuple[str, bool]]:
    """The names of the records, newest first, and whether each has an outcome."""
    found = [match for entry in store.entries(prefix) if (match := _KEY.fullmatch(entry.key))]
    ended = {match["name"] for match in found if match["end"]}
    begun = sorted((match["name"] for match in found if not match["end"]), reverse=True)
    return [(name, name in ended) for name in begun]


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
        outcome = _object(store, f"{name}{OUTCOME}.json") if ended else {}
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
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"invalid record {key}")
    return found
