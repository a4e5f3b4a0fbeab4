"""DynamoDB's backups as on AWS, where moto copies a table's present items whatever it is asked.

Source: Amazon DynamoDB Developer Guide, "Point-in-time backups" and "Restoring a DynamoDB table from a backup".
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.dynamodb.exceptions import DynamodbException
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Backup, RestoredPITTable, RestoredTable, Table
from moto.dynamodb.responses import DynamoHandler

LAG_S = 300.0
"""The latest restorable time is so long ago, typically."""
RESTORE_S = 60.0
"""For which a restored table is being made. AWS takes 20 minutes at least for a point in time."""
MAX_CHANGES = 100_000
"""Changes of a table that are remembered; with more, the earliest restorable time moves."""


class _Refused(DynamodbException):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"com.amazonaws.dynamodb.v20120810#{code}", message)


@dataclass
class _Past:
    """What a table's items were before each of its changes."""

    since: float
    changes: deque[tuple[float, tuple[Any, Any], Any]] = field(default_factory=deque)

    def note(self, at: float, table: Table, hash_key: Any, range_key: Any) -> None:
        before = copy.deepcopy(table.items.get(hash_key, {}).get(range_key))
        self.changes.append((at, (hash_key, range_key), before))
        if len(self.changes) > MAX_CHANGES:
            self.since = self.changes.popleft()[0]

    def undo(self, table: Table, at: float) -> None:
        """Give a copy of the table the items of a time."""
        for changed_at, (hash_key, range_key), before in reversed(self.changes):
            if changed_at <= at:
                break
            if before is None:
                table.items.get(hash_key, {}).pop(range_key, None)
            else:
                table.items[hash_key][range_key] = copy.deepcopy(before)


class TableBackups:
    """Installs itself into moto, for all of its tables."""

    def __init__(self, second_s: float = 1.0, clock: Callable[[], float] = time.time) -> None:
        """Take the real seconds that are one of the cloud's."""
        self._second_s = second_s
        self._clock = clock
        self._pasts: dict[str, _Past] = {}
        """By the table's ARN: moto puts a copy in a table's place when a transaction fails."""

    def install(self) -> None:
        """Replace what moto does. The last to be installed holds."""
        made = {name: _ORIGINAL[name] for name in ("put_item", "update_item", "delete_item")}

        def noting(name: str) -> Callable[..., Any]:
            def changed(backend: DynamoDBBackend, *args: Any, **kwargs: Any) -> Any:
                given = [*args[:2], *(kwargs[name] for name in ("table_name", "item_attrs", "key") if name in kwargs)]
                self._note(backend, given[0], given[1])
                return made[name](backend, *args, **kwargs)

            return changed

        backend: Any = DynamoDBBackend
        backend.put_item = noting("put_item")
        backend.delete_item = noting("delete_item")
        backend.update_item = noting("update_item")
        backend.delete_table = _method(self._deleted)
        backend.update_continuous_backups = _method(self._switched)
        backend.describe_continuous_backups = _method(self._described)
        handler: Any = DynamoHandler
        handler.restore_table_to_point_in_time = _method(self._to_point_in_time)
        handler.restore_table_from_backup = _method(self._from_backup)
        handler.list_backups = _list_backups
        restored: Any
        for restored in (RestoredTable, RestoredPITTable):
            restored.describe = self._describing(_ORIGINAL[restored.__name__])

    # --- the past ---

    def _note(self, backend: Any, table_name: str, item: dict[str, Any]) -> None:
        table = backend.tables.get(table_name.rpartition("/")[2])
        past = None if table is None else self._pasts.get(table.table_arn)
        if past is None:
            return
        keys = []
        for name in (table.hash_key_attr, table.range_key_attr):
            value = item.get(name)
            keys.append(_dynamo_type(value) if value is not None else None)
        past.note(self._clock(), table, *keys)

    def _switched(self, backend: Any, name: str, spec: dict[str, Any]) -> Any:
        told = _ORIGINAL["update_continuous_backups"](backend, name, spec)
        table = backend.get_table(name)
        if not spec["PointInTimeRecoveryEnabled"]:
            self._pasts.pop(table.table_arn, None)
        else:
            self._pasts.setdefault(table.table_arn, _Past(self._clock()))
        return told

    def _described(self, backend: Any, name: str) -> Any:
        told = copy.deepcopy(_ORIGINAL["describe_continuous_backups"](backend, name))
        past = self._pasts.get(backend.get_table(name).table_arn)
        if past is not None:
            latest = max(past.since, self._clock() - LAG_S * self._second_s)
            told["PointInTimeRecoveryDescription"] |= {
                "EarliestRestorableDateTime": past.since,
                "LatestRestorableDateTime": latest,
            }
        return told

    def _deleted(self, backend: Any, name: str) -> Any:
        table = _ORIGINAL["delete_table"](backend, name)
        if self._pasts.pop(table.table_arn, None) is not None:
            name = f"{table.name}$DeletedTableBackup"
            kept = Backup(backend.account_id, backend.region_name, name, table, type_="SYSTEM")
            backend.backups[kept.arn] = kept
        return table

    # --- restoring ---

    def _to_point_in_time(self, handler: Any) -> Any:
        backend, body = handler.dynamodb_backend, handler.body
        source = backend.tables.get(body.get("SourceTableName", ""))
        if source is None:
            raise _Refused("SourceTableNotFoundException", f"Source table not found: {body.get('SourceTableName')}")
        past = self._pasts.get(source.table_arn)
        if past is None:
            raise _Refused(
                "PointInTimeRecoveryUnavailableException",
                f"Point in time recovery is not enabled for table '{source.name}'",
            )
        latest = max(past.since, self._clock() - LAG_S * self._second_s)
        at = latest if body.get("UseLatestRestorableTime") else _seconds(body.get("RestoreDateTime"))
        if not int(past.since) <= at <= latest:
            raise _Refused("InvalidRestoreTimeException", "The specified restore time is not in the restorable window")
        restored = backend.restore_table_to_point_in_time(body["TargetTableName"], source.name)
        past.undo(restored, at)
        return self._made(restored, source, body)

    def _from_backup(self, handler: Any) -> Any:
        backend, body = handler.dynamodb_backend, handler.body
        restored = backend.restore_table_from_backup(body["TargetTableName"], body["BackupArn"])
        return self._made(restored, backend.get_backup(body["BackupArn"]).table, body)

    def _made(self, restored: Any, source: Any, body: dict[str, Any]) -> Any:
        """With what comes from the source or the request; time to live, recovery, tags and protection do not."""
        restored.billing_mode = body.get("BillingModeOverride", source.billing_mode)
        kept = body.get("GlobalSecondaryIndexOverride")
        if kept is not None:
            names = {index["IndexName"] for index in kept}
            restored.global_indexes = [index for index in restored.global_indexes if index.name in names]
        restored.being_made_until = self._clock() + RESTORE_S * self._second_s
        return ActionResult(restored.describe())

    def _describing(self, describe: Callable[..., Any]) -> Callable[..., Any]:
        def described(table: Any, base_key: str = "TableDescription") -> Any:
            told = describe(table, base_key)
            if self._clock() < getattr(table, "being_made_until", 0.0):
                told[base_key]["TableStatus"] = "CREATING"
                told[base_key]["RestoreSummary"]["RestoreInProgress"] = True
            return told

        return described


def _method(bound: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a class calls with its instance first."""

    def called(instance: Any, *args: Any) -> Any:
        return bound(instance, *args)

    return called


def _list_backups(handler: Any) -> Any:
    """Moto lists backups of every type; AWS those that users made, unless it is asked for others."""
    wanted = handler.body.get("BackupType", "USER")
    found = handler.dynamodb_backend.list_backups(handler.body.get("TableName"))
    return ActionResult({"BackupSummaries": [one.summary for one in found if wanted in ("ALL", one.type)]})


def _dynamo_type(value: Any) -> Any:
    from moto.dynamodb.models.dynamo_type import DynamoType

    return value if isinstance(value, DynamoType) else DynamoType(value)


def _seconds(told: Any) -> float:
    return told.timestamp() if isinstance(told, datetime) else float(told or datetime.now(UTC).timestamp())


_ORIGINAL: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(DynamoDBBackend, name)
        for name in (
            "put_item",
            "update_item",
            "delete_item",
            "delete_table",
            "update_continuous_backups",
            "describe_continuous_backups",
        )
    },
    "RestoredTable": RestoredTable.describe,
    "RestoredPITTable": RestoredPITTable.describe,
}
