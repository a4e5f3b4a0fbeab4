"""Restores the table: a deleted one under its own name, a damaged one by copying items of its past back into it.

DynamoDB restores into a new table only, and a table cannot be renamed. A deleted table's name is free, so its last
backup is restored under it, where the functions and CloudFormation look for it. A table that exists is kept: its past
is restored into another table, whose items are copied back.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from cicada.audit.listing import UNREADABLE, list_records
from cicada.breakers.dynamodb import PARTITION as BREAKERS
from cicada.concurrency import THREADS
from cicada.dynamodb import ConditionFailed, Item, faults_as, read_items, scanned
from cicada.identity import asker_of
from cicada.index.ports import ObjectStore
from cicada.personal_data.items import PROGRESS_KEPT_S, Kind, owned

POLL_S = 5.0
"""Between two looks at a table that is being made."""
MOST_WAIT_S = 12 * 3600.0
"""For a table. AWS names no limit; restoring usually takes less than an hour."""
UNSEEN_S = 60.0
"""For which a table that is being made may not be found: DynamoDB describes tables eventually consistently."""
_SETTING_TRIES = 60
"""Of a setting that DynamoDB refuses while it still works on a new table."""
_COPIED_AT_ONCE, _WRITTEN_AT_ONCE = 100, 16
_REPLACED: frozenset[Kind] = frozenset(
    {
        "requests",
        "requestEvents",
        "conversations",
        "conversationRecords",
        "feedback",
        "profiles",
        "profileRecords",
        "cachedAnswers",
    }
)
"""What an earlier state may replace. Use must not fall, and limits and revocations are administrators' decisions."""
_NAMELESS = ("session#", "cache#")
_NOT_YET = ("ContinuousBackupsUnavailableException", "ResourceInUseException", "ResourceNotFoundException")

Code = Literal[
    "no_backup", "not_recoverable", "outside_window", "restore_in_use", "audit_unreadable", "table_unavailable"
]
_Outcome = Literal["put_back", "replaced", "kept"]
LeftOut = Literal["erased", "expired", "open", "nameless", "transient"]


class RestoreFault(Exception):
    """The table could not be restored; the message says what to do."""

    def __init__(self, message: str, code: Code = "table_unavailable") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class DeletedBackup:
    """What DynamoDB kept of a table with point-in-time recovery that was deleted."""

    arn: str
    created_at: datetime


@dataclass
class Copied:
    """What was copied back."""

    put_back: Counter[str] = field(default_factory=Counter)
    """Items that were missing, by kind."""
    replaced: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    """Items that the table has, and that were not replaced."""
    left_out: Counter[LeftOut] = field(default_factory=Counter)

    def count(self, kind: str, outcome: _Outcome) -> None:
        """Count an item."""
        match outcome:
            case "put_back":
                self.put_back[kind] += 1
            case "replaced":
                self.replaced[kind] += 1
            case "kept":
                self.kept += 1


@dataclass(frozen=True)
class Table:
    """A table under restoration. Every method raises RestoreFault."""

    client: Any
    """Of DynamoDB, made with :data:`cicada.personal_data.items.SCAN_CONFIG`."""
    name: str
    _: KW_ONLY
    sleep: Callable[[float], None] = time.sleep
    now_s: Callable[[], float] = time.time

    def status(self) -> str | None:
        """Its status; None if there is no such table."""
        try:
            return str(self.client.describe_table(TableName=self.name)["Table"]["TableStatus"])
        except ClientError as error:
            if _code(error) == "ResourceNotFoundException":
                return None
            raise RestoreFault(str(error)) from error
        except BotoCoreError as error:
            raise RestoreFault(str(error)) from error

    def wait(self, on_wait: Callable[[float], None] = lambda _seconds: None) -> None:
        """Wait until it is active. ``on_wait`` is called with the seconds that it has taken so far."""
        waited = 0.0
        while (status := self.status()) != "ACTIVE":
            if waited >= (MOST_WAIT_S if status else UNSEEN_S):
                raise RestoreFault(f"{self.name} is not active after {waited:.0f} s: {status or 'it does not exist'}")
            self.sleep(POLL_S)
            waited += POLL_S
            on_wait(waited)

    def window(self) -> tuple[datetime, datetime]:
        """The earliest and the latest time that it can be restored to."""
        told = self._call("describe_continuous_backups", TableName=self.name)["ContinuousBackupsDescription"]
        recovery = told.get("PointInTimeRecoveryDescription", {})
        if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
            raise RestoreFault(
                "point-in-time recovery is off: enable pointInTimeRecovery, which covers changes from then on",
                "not_recoverable",
            )
        return recovery["EarliestRestorableDateTime"], recovery["LatestRestorableDateTime"]

    def as_of(self, at: datetime) -> Table:
        """The table with this one's state at a time; begins to make it, or finds the one that was begun."""
        earliest, latest = self.window()
        past = Table(self.client, f"{self.name}-{at:%Y%m%dT%H%M%SZ}", sleep=self.sleep, now_s=self.now_s)
        if past.status() is None:
            if not earliest <= at <= latest:
                raise RestoreFault(
                    f"{at.isoformat()} is not between {earliest.isoformat()} and {latest.isoformat()}", "outside_window"
                )
            self._call(
                "restore_table_to_point_in_time",
                SourceTableName=self.name,
                TargetTableName=past.name,
                RestoreDateTime=at,
                BillingModeOverride="PAY_PER_REQUEST",
                GlobalSecondaryIndexOverride=[],  # items are only read, and without an index it is made sooner
            )
        return past

    def deleted_backup(self) -> DeletedBackup:
        """The newest backup that DynamoDB made when the table was deleted."""
        found: list[DeletedBackup] = []
        asked: dict[str, Any] = {"TableName": self.name, "BackupType": "SYSTEM"}
        while True:
            page = self._call("list_backups", **asked)
            found += [
                DeletedBackup(one["BackupArn"], one["BackupCreationDateTime"])
                for one in page["BackupSummaries"]
                if one["TableName"] == self.name and one["BackupStatus"] == "AVAILABLE"
            ]
            if "LastEvaluatedBackupArn" not in page:
                break
            asked["ExclusiveStartBackupArn"] = page["LastEvaluatedBackupArn"]
        if not found:
            raise RestoreFault(
                f"no backup from the deletion of {self.name} exists: use --empty to create an empty table",
                "no_backup",
            )
        return max(found, key=lambda one: one.created_at)

    def restore_deleted(self, backup: DeletedBackup, declared: Mapping[str, Any]) -> None:
        """Begin to restore a deleted table under its own name."""
        self._call(
            "restore_table_from_backup",
            TargetTableName=self.name,
            BackupArn=backup.arn,
            BillingModeOverride="PAY_PER_REQUEST",
            **_overrides(declared),
        )

    def create(self, declared: Mapping[str, Any]) -> None:
        """Begin to make an empty table as the stack declares it."""
        encryption = _encryption(declared)
        throughput = declared.get("OnDemandThroughput")
        self._call(
            "create_table",
            TableName=self.name,
            **{name: declared[name] for name in ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes")},
            BillingMode="PAY_PER_REQUEST",
            **({"SSESpecification": encryption} if encryption else {}),
            **({"OnDemandThroughput": throughput} if throughput else {}),
        )

    def settle(self, declared: Mapping[str, Any]) -> None:
        """Set what DynamoDB does not restore: time to live, recovery, protection against deletion, tags."""
        wanted = declared["TimeToLiveSpecification"]
        told = self._call("describe_time_to_live", TableName=self.name)["TimeToLiveDescription"]
        if told["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
            self._set("update_time_to_live", TableName=self.name, TimeToLiveSpecification=wanted)
        recovery = declared.get("PointInTimeRecoverySpecification")
        if recovery is not None and recovery["PointInTimeRecoveryEnabled"]:
            self._set("update_continuous_backups", TableName=self.name, PointInTimeRecoverySpecification=recovery)
        if tags := declared.get("Tags"):
            arn = self._call("describe_table", TableName=self.name)["Table"]["TableArn"]
            self._set("tag_resource", ResourceArn=arn, Tags=tags)
        if declared.get("DeletionProtectionEnabled"):
            self._set("update_table", TableName=self.name, DeletionProtectionEnabled=True)

    def drop(self) -> None:
        """Delete the table. It holds what it was made of, erased people's data among it."""
        self._call("delete_table", TableName=self.name)

    # --- items ---

    def copy_from(self, past: Table, *, erased: Collection[str], replace: bool) -> Copied:
        """Put back what a table with this one's past has and this one has not.

        ``erased``: askers whose erasure may be later than that state. ``replace``: items that differ are replaced too.
        """
        done, open_requests = Copied(), past.open_requests()
        batch: list[tuple[Kind | None, Item]] = []
        for item in past.items():
            reason = _left_out(item, erased, open_requests, self.now_s())
            if reason is not None:
                done.left_out[reason] += 1
                continue
            found = owned(item)
            batch.append((found[1] if found else None, item))
            if len(batch) == _COPIED_AT_ONCE:
                self._copy(batch, replace, done)
                batch = []
        self._copy(batch, replace, done)
        return done

    def forget(self, erased: Collection[str]) -> int:
        """Delete what is owned by these askers; returns how many items."""
        found = [
            {name: item[name] for name in ("pk", "sk")}
            for item in self.items()
            if (owner := owned(item)) is not None and asker_of(owner[0]) in erased
        ]
        for key in found:
            self._call("delete_item", TableName=self.name, Key=key)
        return len(found)

    def items(self) -> Iterator[Item]:
        """Every item."""
        return scanned(self.client, RestoreFault, TableName=self.name, ConsistentRead=True)

    def open_requests(self) -> frozenset[str]:
        """The partitions of requests that are not finished."""
        asked: dict[str, Any] = {"FilterExpression": "attribute_exists(open_in)", "ProjectionExpression": "pk"}
        found = scanned(self.client, RestoreFault, TableName=self.name, ConsistentRead=True, **asked)
        return frozenset(item["pk"]["S"] for item in found)

    def _copy(self, batch: Sequence[tuple[Kind | None, Item]], replace: bool, done: Copied) -> None:
        keys = [(item["pk"]["S"], item["sk"]["S"]) for _, item in batch]
        here = read_items(self.client, RestoreFault, self.name, keys, sleep=self.sleep)

        def put(one: tuple[Kind | None, Item]) -> tuple[str, _Outcome]:
            kind, item = one
            present = here.get((item["pk"]["S"], item["sk"]["S"]))
            if present is not None and (present == item or not replace or kind not in _REPLACED):
                return kind or "others", "kept"
            return kind or "others", self._put(item, new=present is None)

        for start in range(0, len(batch), _WRITTEN_AT_ONCE):
            for kind, outcome in THREADS.each(put, batch[start : start + _WRITTEN_AT_ONCE]):
                done.count(kind, outcome)

    def _put(self, item: Item, *, new: bool) -> _Outcome:
        condition = {"ConditionExpression": "attribute_not_exists(pk)"} if new else {}
        try:
            with faults_as(RestoreFault):
                self.client.put_item(TableName=self.name, Item=item, **condition)
        except ConditionFailed:
            return "kept"  # written meanwhile
        return "put_back" if new else "replaced"

    # --- calls ---

    def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            return getattr(self.client, operation)(**parameters)
        except ClientError as error:
            busy = _code(error) in ("TableAlreadyExistsException", "TableInUseException", "ResourceInUseException")
            raise RestoreFault(str(error), "restore_in_use" if busy else "table_unavailable") from error
        except BotoCoreError as error:
            raise RestoreFault(str(error)) from error

    def _set(self, operation: str, **parameters: Any) -> None:
        """Make a call that DynamoDB refuses for a while after a table was made."""
        for left in reversed(range(_SETTING_TRIES)):
            try:
                self._call(operation, **parameters)
                return
            except RestoreFault as fault:
                cause = fault.__cause__
                if not left or not isinstance(cause, ClientError) or _code(cause) not in _NOT_YET:
                    raise
                self.sleep(POLL_S)


def erased_since(store: ObjectStore, at: datetime) -> frozenset[str]:
    """The askers whose erasure had not ended at a time: a state of that time may hold data of theirs.

    Raises RestoreFault if an audit record cannot be read, which could be an erasure; IndexUnavailable.
    """
    found: set[str] = set()
    for record in list_records(store, since=at - timedelta(seconds=PROGRESS_KEPT_S)):
        if record.ended_at is not None and record.ended_at < at and record.outcome == "done":
            continue
        if record.action == UNREADABLE:
            raise RestoreFault(
                f"cannot parse the audit record {record.id}, which may be an erasure", "audit_unreadable"
            )
        if record.action == "user_erased" and record.subject is not None:
            found.add(record.subject.removeprefix("asker/"))
    return frozenset(found)


def _left_out(item: Item, erased: Collection[str], open_requests: Collection[str], now_s: float) -> LeftOut | None:
    pk = item["pk"]["S"]
    found = owned(item)
    if found is not None and asker_of(found[0]) in erased:
        return "erased"
    if int(item.get("expires_at", {}).get("N", now_s + 1)) <= now_s:
        return "expired"
    if pk in open_requests:
        return "open"
    if pk.startswith(("erasure#", BREAKERS)) or (found is not None and found[1] == "reservations"):
        return "transient"
    if found is None and pk.startswith(_NAMELESS):
        return "nameless"
    return None


def _overrides(declared: Mapping[str, Any]) -> dict[str, Any]:
    encryption, throughput = _encryption(declared), declared.get("OnDemandThroughput")
    return {
        "GlobalSecondaryIndexOverride": declared["GlobalSecondaryIndexes"],
        **({"SSESpecificationOverride": encryption} if encryption else {}),
        **({"OnDemandThroughputOverride": throughput} if throughput else {}),
    }


def _encryption(declared: Mapping[str, Any]) -> dict[str, Any] | None:
    """The template's encryption in the API's words."""
    found = declared.get("SSESpecification")
    if not found or not found.get("SSEEnabled"):
        return None
    return {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": found["KMSMasterKeyId"]}


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def restorable_second(at: datetime) -> datetime:
    """A time in UTC, to the second, as DynamoDB restores."""
    return at.astimezone(UTC).replace(microsecond=0)
