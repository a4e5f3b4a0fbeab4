"""The items of one owner in the table: found by reading the whole table, and deleted.

An administrator asks for this rarely, so no index is kept for it, which every answer would pay for. A strongly
consistent Scan of 1 GB uses 262,144 read units: 0.033 US dollars (us-east-1, on demand).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from botocore.config import Config

from cicada.dynamodb import (
    CONDITION_FAILED,
    Item,
    TransactionCancelled,
    attributes,
    faults_as,
    read_item,
    scanned,
    transact,
)
from cicada.identity import owner_of

Kind = Literal[
    "requests",
    "requestEvents",
    "reservations",
    "conversations",
    "conversationRecords",
    "feedback",
    "profiles",
    "profileRecords",
    "cachedAnswers",
    "usage",
    "limits",
    "others",
]
"""What an item holds. A request's long events have items of their own, as has what it may use of the limits; a
conversation has one for its turns and one for its place in the list, a profile has two, a cached answer two of the same
kind. ``others`` are of a newer release."""

OF_A_REQUEST: tuple[Kind, ...] = ("requests", "requestEvents", "reservations")
"""Kinds whose items have a request's key."""

SCAN_CONFIG = Config(connect_timeout=3, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 5})
"""Of the DynamoDB client; time-outs in seconds."""
MAX_UNITS_PER_S = 1_000
"""Read units a second that a Scan uses at most: a partition has 3,000, which answers need meanwhile."""
DELETED_AT_ONCE = 9
"""Items that one transaction deletes, beside the progress: together at most 4 MB, DynamoDB's limit, at 400 KB each."""
PROGRESS_KEPT_S = 90 * 24 * 3600
"""How long an interrupted erasure can be taken up with its counts."""
_TRIES, _PAUSE_S = 8, 0.05
"""Of a transaction that conflicts with another write; the pause doubles."""
_REQUEST_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REQUEST_ID_CHARS = 36
_OF_EARLIER_RELEASES = {":session": "session#", ":cache": "cache#"}
"""Where items began that named no owner up to release 0.1.0."""
_OF_A_REQUEST: Mapping[str, Kind] = {"head": "requests", "reservation": "reservations"}
_PROFILES, _USAGE = "profiles#", "usage#user#"
_LIMITS, _LIMITS_OF_USER = "limits", "user#"
_BY_PREFIX: Mapping[str, Kind] = {
    "session": "conversations",
    "conversations": "conversationRecords",
    "feedback": "feedback",
    "cache": "cachedAnswers",
}
_NEEDED = "pk, sk, #owner, #state, lease_until, expires_at"
"""What an erasure needs of an item."""
_COUNT = "count_"


class PersonalDataFault(Exception):
    """The table could not be read or written, or another release wrote what was read."""


@dataclass(frozen=True)
class OwnedItem:
    """An item of the owner's."""

    kind: Kind
    item: Item

    @property
    def key(self) -> dict[str, Any]:
        """Its key."""
        return {name: self.item[name] for name in ("pk", "sk")}

    @property
    def request_id(self) -> str:
        """Of an item of a request."""
        return str(self.item["pk"]["S"][:_REQUEST_ID_CHARS])

    def number(self, name: str) -> int:
        """A numeric attribute; 0 where there is none."""
        return int(self.item.get(name, {}).get("N", 0))


@dataclass
class Nameless:
    """Conversations and cached answers, of anybody, that earlier releases stored without their owner."""

    items: int = 0
    expires_at: int = 0
    """When the last one does, in epoch seconds."""


@dataclass(frozen=True)
class ErasureProgress:
    """How far the erasure of an owner's data has come, over all its runs."""

    erasure_id: str
    begun_at_s: int
    runs: int
    quiet_at_s: int
    """When no worker of the owner's requests can be left, as far as known."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    """Items by kind."""


class OwnedItems:
    """An owner's items in the requests' table. Every method raises PersonalDataFault."""

    def __init__(
        self,
        client: Any,
        table: str,
        subject: str,
        tenant: str | None = None,
        *,
        now_s: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``client``: a DynamoDB client made with :data:`SCAN_CONFIG`."""
        self.owner = owner_of(subject, tenant)
        self.elsewhere: set[str] = set()
        """Other tenants in which the last :meth:`find` found items of the subject's."""
        self._subject = subject
        self.nameless = Nameless()
        """Found by the last :meth:`find`."""
        self._client = client
        self._table = table
        self._now_s = now_s
        self._sleep = sleep

    # --- finding ---

    def find(self, *, whole: bool = False) -> Iterator[OwnedItem]:
        """Every item of the owner's that the table has held since this began; ``whole``: with all attributes."""
        self.nameless = Nameless()
        self.elsewhere = set()
        for item in self._scanned(whole):
            owner, kind = owned(item) or (None, None)
            if kind is not None and owner == self.owner:
                yield OwnedItem(kind, item)
            elif owner is not None and owner.partition("/")[2] == self._subject:
                self.elsewhere.add(unquote(owner.partition("/")[0]))
            elif owner is None and item["pk"]["S"].startswith(tuple(_OF_EARLIER_RELEASES.values())):
                self.nameless.items += 1
                self.nameless.expires_at = max(self.nameless.expires_at, int(item.get("expires_at", {}).get("N", 0)))

    def _scanned(self, whole: bool) -> Iterator[Item]:
        values: dict[str, str] = {":subject": self._subject, **_OF_EARLIER_RELEASES}
        older = " OR ".join(f"begins_with(pk, {name})" for name in _OF_EARLIER_RELEASES)
        nameless = f"attribute_not_exists(#owner) AND ({older})"
        scan: dict[str, Any] = {
            "TableName": self._table,
            "FilterExpression": f"contains(pk, :subject) OR contains(sk, :subject) OR contains(#owner, :subject) OR "
            f"({nameless})",
            "ExpressionAttributeNames": {"#owner": "owner"} | ({} if whole else {"#state": "state"}),
            **({} if whole else {"ProjectionExpression": _NEEDED}),
            "ExpressionAttributeValues": attributes(**values),
            "ConsistentRead": True,
            "ReturnConsumedCapacity": "TOTAL",
        }
        begun = time.monotonic()

        def pace(page: Mapping[str, Any]) -> None:
            nonlocal begun
            units = page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
            self._sleep(max(0.0, units / MAX_UNITS_PER_S - (time.monotonic() - begun)))
            begun = time.monotonic()

        yield from scanned(self._client, PersonalDataFault, after_page=pace, **scan)

    # --- deleting ---

    def begin(self, erasure_id: str) -> ErasureProgress:
        """Begin an erasure under an id, or take one up that was interrupted."""
        now = int(self._now_s())
        with faults_as(PersonalDataFault):
            done = self._client.update_item(
                TableName=self._table,
                Key=self._progress_key,
                UpdateExpression="SET erasure_id = if_not_exists(erasure_id, :id), expires_at = :expires, "
                "begun_at = if_not_exists(begun_at, :now), quiet_at = if_not_exists(quiet_at, :now) ADD runs :one",
                ExpressionAttributeValues=attributes(**{":id": erasure_id})
                | attributes(**{":now": now, ":one": 1, ":expires": now + PROGRESS_KEPT_S}),
                ReturnValues="ALL_NEW",
            )
        return _progress(done["Attributes"])

    def quiet_from(self, quiet_at_s: int) -> None:
        """Note when no worker can be left. It must be known before the requests are deleted that tell it."""
        with faults_as(PersonalDataFault):
            self._client.update_item(
                TableName=self._table,
                Key=self._progress_key,
                UpdateExpression="SET quiet_at = :quiet",
                ExpressionAttributeValues=attributes(**{":quiet": quiet_at_s}),
            )

    def delete(self, owned: Sequence[OwnedItem]) -> None:
        """Delete items, and count them in the same transactions: an interruption loses no count."""
        for start in range(0, len(owned), DELETED_AT_ONCE):
            self._delete(owned[start : start + DELETED_AT_ONCE])

    def _delete(self, owned: Sequence[OwnedItem]) -> None:
        for wait in range(_TRIES):
            if not owned:
                return
            try:
                transact(self._client, PersonalDataFault, [*map(self._deletion, owned), self._counted(owned)])
                return
            except TransactionCancelled as cancelled:
                codes = cancelled.codes
                owned = [one for one, code in zip(owned, codes, strict=False) if code != CONDITION_FAILED]
                if CONDITION_FAILED not in codes:  # an item is being written; otherwise one had expired, or was erased
                    self._sleep(_PAUSE_S * 2**wait)
        raise PersonalDataFault("too many concurrent changes of the items")

    def _deletion(self, owned: OwnedItem) -> dict[str, Any]:
        return {
            "Delete": {
                "TableName": self._table,
                "Key": owned.key,
                "ConditionExpression": "attribute_exists(pk)",
            }
        }

    def _counted(self, owned: Sequence[OwnedItem]) -> dict[str, Any]:
        kinds = Counter(one.kind for one in owned)
        return {
            "Update": {
                "TableName": self._table,
                "Key": self._progress_key,
                "UpdateExpression": "ADD " + ", ".join(f"{_COUNT}{kind} :{kind}" for kind in kinds),
                "ExpressionAttributeValues": attributes(**{f":{kind}": count for kind, count in kinds.items()}),
            }
        }

    def progress(self) -> ErasureProgress:
        """How far the erasure has come."""
        return _progress(read_item(self._client, PersonalDataFault, self._table, self._progress_key) or {})

    def end(self) -> None:
        """Forget the progress of an erasure that is complete."""
        with faults_as(PersonalDataFault):
            self._client.delete_item(TableName=self._table, Key=self._progress_key)

    @property
    def _progress_key(self) -> dict[str, Any]:
        return attributes(pk=f"erasure#{hashlib.sha256(self.owner.encode()).hexdigest()}", sk="progress")


def owned(item: Item) -> tuple[str, Kind] | None:
    """An item's owner and kind; None if it has no owner."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    if _REQUEST_ID.fullmatch(pk[:_REQUEST_ID_CHARS]):
        return pk[_REQUEST_ID_CHARS + 1 :], _OF_A_REQUEST.get(sk, "requestEvents")
    if pk.startswith(_PROFILES):
        return pk.removeprefix(_PROFILES), "profiles" if sk.startswith("profile#") else "profileRecords"
    if pk.startswith(_USAGE):
        return pk.removeprefix(_USAGE), "usage"
    if pk == _LIMITS and sk.startswith(_LIMITS_OF_USER):
        return sk.removeprefix(_LIMITS_OF_USER), "limits"
    if "owner" in item:
        return item["owner"]["S"], _BY_PREFIX.get(pk.partition("#")[0], "others")
    return None


def _progress(item: Item) -> ErasureProgress:
    return ErasureProgress(
        erasure_id=item["erasure_id"]["S"],
        begun_at_s=int(item["begun_at"]["N"]),
        runs=int(item["runs"]["N"]),
        quiet_at_s=int(item["quiet_at"]["N"]),
        deleted={name.removeprefix(_COUNT): int(value["N"]) for name, value in item.items() if name.startswith(_COUNT)},
    )
