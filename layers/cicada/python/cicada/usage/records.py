"""What administrators see of use, and how they override limits: the items of :mod:`.accounts` in DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from cicada.dynamodb import ConditionFailed, Item, faults_as, queried, read_item, scanned
from cicada.usage.accounts import Account, Use, stored_name
from cicada.usage.limits import Limits

_TRIES = 5
"""How often an override is written that others keep changing."""
_LIMITS, _STOPPED = "limits", "stopped"
_USERS = "usage#user#"
_DAYS = range(1, 32)


class UsageFault(Exception):
    """The items could not be read or written."""


@dataclass(frozen=True)
class Overrides:
    """What administrators have set over the settings."""

    limits: Mapping[Account, Limits] = field(default_factory=dict)
    """By account; of a pool, the account without a shard."""
    stopped: bool = False
    """Whether no question is taken."""


@dataclass(frozen=True)
class MonthOfUse:
    """What an account has used in a month, with what is reserved for open requests."""

    total: Use
    days: Mapping[int, Use]
    """By day of the month; those on which something was used."""

    @classmethod
    def of(cls, items: Sequence[Item]) -> MonthOfUse:
        """The use that some items count: one of a user's, or the shards of a pool."""
        on = {day for item in items for day in _DAYS if stored_name("day_tokens", day) in item}
        return cls(_summed(items, 0), {day: _summed(items, day) for day in sorted(on)})

    def on(self, day: int) -> Use:
        """The use with that of one day."""
        return self.days.get(day, self.total)


class DynamoDbUsageRecords:
    """The items, for administrators' programs. Every method raises UsageFault."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client with short time-outs."""
        self._client = client
        self._table = table

    def overrides(self) -> Overrides:
        """All that is overridden."""
        found = queried(
            self._client,
            UsageFault,
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": Account("deployment").limits_key["pk"]},
            ConsistentRead=True,
        )
        items = {_account(item): item for item in found}
        limits = {account: limits for account, item in items.items() if (limits := _limits(item)) is not None}
        return Overrides(limits, any(item.get(_STOPPED, {}).get("BOOL", False) for item in items.values()))

    def set_limits(self, account: Account, changes: Limits) -> Limits:
        """Override the limits that are given, and leave the others as they are. Returns what was overridden before."""
        return self._swap(account, lambda before: Limits(**{**before.given, **changes.given}))

    def unset_limits(self, account: Account, names: Sequence[str]) -> Limits:
        """Let the settings' limits hold again, of the fields with these names. Returns what was overridden before."""
        return self._swap(
            account, lambda before: Limits(**{name: most for name, most in before.given.items() if name not in names})
        )

    def stop(self, stopped: bool) -> bool:
        """Take no more questions, or take them again. Returns whether none were taken before."""
        with faults_as(UsageFault):
            done = self._client.update_item(
                TableName=self._table,
                Key=Account("deployment").limits_key,
                UpdateExpression="SET #stopped = :stopped",
                ExpressionAttributeNames={"#stopped": _STOPPED},
                ExpressionAttributeValues={":stopped": {"BOOL": stopped}},
                ReturnValues="UPDATED_OLD",
            )
        return bool(done.get("Attributes", {}).get(_STOPPED, {}).get("BOOL", False))

    def month(self, accounts: Sequence[Account], month: str) -> MonthOfUse:
        """What a user, or all shards of a pool, have used in a month such as 2026-11."""
        items = [item for account in accounts if (item := self._item(account.key(month))) is not None]
        return MonthOfUse.of(items)

    def users(self, month: str) -> Iterator[tuple[str, MonthOfUse]]:
        """The owners who have used something in a month. Reads the whole table."""
        scan: dict[str, Any] = {
            "TableName": self._table,
            "FilterExpression": "begins_with(pk, :users) AND sk = :month",
            "ExpressionAttributeValues": {":users": {"S": _USERS}, ":month": {"S": month}},
        }
        for item in scanned(self._client, UsageFault, **scan):
            yield item["pk"]["S"].removeprefix(_USERS), MonthOfUse.of([item])

    def _item(self, key: Mapping[str, Any]) -> Item | None:
        return read_item(self._client, UsageFault, self._table, key)

    def _swap(self, account: Account, change: Callable[[Limits], Limits]) -> Limits:
        """Change an override by compare-and-swap."""
        for _ in range(_TRIES):
            item = self._item(account.limits_key) or {}
            before = _limits(item) or Limits()
            after = change(before)
            try:
                if after.given != before.given:
                    self._write(account, item.get(_LIMITS), after)
            except ConditionFailed:
                continue
            return before
        raise UsageFault("too many concurrent changes of these limits")

    def _write(self, account: Account, old: Mapping[str, Any] | None, new: Limits) -> None:
        values: dict[str, Any] = {} if old is None else {":old": old}
        change: dict[str, Any] = {
            "TableName": self._table,
            "Key": account.limits_key,
            "ConditionExpression": "attribute_not_exists(#limits)" if old is None else "#limits = :old",
            "ExpressionAttributeNames": {"#limits": _LIMITS},
        }
        with faults_as(UsageFault):
            if new.given:
                values[":new"] = {"S": new.model_dump_json(by_alias=True, exclude_unset=True)}
                change["UpdateExpression"] = "SET #limits = :new"
            elif account.kind == "deployment":  # its item has the switch, too
                change["UpdateExpression"] = "REMOVE #limits"
            else:
                self._client.delete_item(**change, ExpressionAttributeValues=values)
                return
            self._client.update_item(**change, ExpressionAttributeValues=values)


def _limits(item: Item) -> Limits | None:
    return Limits.model_validate_json(item[_LIMITS]["S"]) if _LIMITS in item else None


def _account(item: Item) -> Account:
    kind, _, name = str(item["sk"]["S"]).partition("#")
    match kind:
        case "user" | "group":
            return Account(kind, name)
        case _:
            return Account("deployment")


def _summed(items: Sequence[Item], day: int) -> Use:
    return reduce(add, (Use.of(item, day) for item in items), Use())
