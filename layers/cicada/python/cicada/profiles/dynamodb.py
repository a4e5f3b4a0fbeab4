"""Profiles in the requests table: one partition per user, two items per profile, written in one transaction.

The small item (``profile#<id>``) holds the version, which conditions both writes, and what lists show. The large item
(``record#<id>``) holds the record. A Query is billed for the items it reads, whatever it projects, so lists read small
items. Earlier releases stored the record in the small item; it is read from there, and split by its next write.
"""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from pydantic import ValidationError

from cicada.dynamodb import CONDITION_FAILED, Item, TransactionCancelled, if_unchanged, queried, read_item, transact
from cicada.errors import ProfilesUnavailable
from cicada.profiles.heads import Listed, StoredHead, head_of
from cicada.profiles.record import ProfileRecord
from cicada.profiles.rules import dumped
from cicada.profiles.store import RecordChanged

PROFILES_CONFIG = Config(connect_timeout=0.5, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 3})
"""Timeouts in seconds. boto3's retry of a transaction has the same idempotency token, so it is applied once."""
_PROFILE = "profile#"
_RECORD = "record#"
_AFTER_ALL_IDS = "~"
_TRIES = 3  # of a write that conflicts with another transaction, and of a read between the two items of a write


class DynamoDbProfiles:
    """:class:`cicada.profiles.store.ProfileStore` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """Take a DynamoDB client made with :data:`PROFILES_CONFIG`."""
        self._client = client
        self._table = table

    def read(self, subject: str, profile_id: str) -> ProfileRecord | None:  # noqa: D102 (the port's contract)
        small = self._item(_key(subject, profile_id))
        return None if small is None else self._whole(subject, small)

    def page(self, subject: str, after: str, limit: int) -> tuple[ProfileRecord, ...]:
        """See the port. Reads each record separately."""
        return tuple(self._whole(subject, small) for small in self._queried(subject, after, limit))

    def heads(self, subject: str, after: str, limit: int) -> tuple[Listed, ...]:
        """See the port. Reads items of some hundred bytes."""
        projection = {
            "ProjectionExpression": "sk, #head, expires_at",
            "ExpressionAttributeNames": {"#head": "head"},
        }
        return tuple(map(_listed, self._queried(subject, after, limit, **projection)))

    def write(self, subject: str, record: ProfileRecord, *, over: int) -> None:
        """See the port. Writes both items or neither."""
        puts = self._puts(subject, record, over)
        for _ in range(_TRIES):
            try:
                transact(self._client, ProfilesUnavailable, [{"Put": put} for put in puts])
                return
            except TransactionCancelled as cancelled:
                if CONDITION_FAILED in cancelled.codes:
                    raise RecordChanged(record.id) from cancelled
        raise ProfilesUnavailable("the profile is being written by another request")

    def _puts(self, subject: str, record: ProfileRecord, over: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Puts of the small item, conditional on the version, and of the record."""
        expires = {} if record.expires_at is None else {"expires_at": {"N": str(record.expires_at)}}
        head = {} if record.profile is None else {"head": {"S": dumped(head_of(record.profile))}}
        small = {**_key(subject, record.id), "version": {"N": str(record.version)}, **head, **expires}
        whole = {**_key(subject, record.id, _RECORD), "record": {"S": dumped(record)}, **expires}
        guarded = {"TableName": self._table, "Item": small, **if_unchanged("version", over)}
        return guarded, {"TableName": self._table, "Item": whole}

    def _whole(self, subject: str, small: Item) -> ProfileRecord:
        """The record of a small item, or a newer one."""
        if "record" in small:
            return _record(small)
        profile_id, version = _id(small), int(small["version"]["N"])
        for _ in range(_TRIES):
            item = self._item(_key(subject, profile_id, _RECORD))
            if item is None and "expires_at" in small:  # DynamoDB deletes expired items one by one, in any order
                return ProfileRecord(id=profile_id, version=version, expires_at=int(small["expires_at"]["N"]))
            if item is None:
                raise ProfilesUnavailable("a stored profile has no record item")
            record = _record(item)
            if record.version >= version:
                return record
        raise ProfilesUnavailable("the profile is being written by another request")

    def _item(self, key: dict[str, Any]) -> Item | None:
        return read_item(self._client, ProfilesUnavailable, self._table, key)

    def _queried(self, subject: str, after: str, limit: int, **projection: Any) -> list[Item]:
        """Small items in the order of their ids. A Query returns at most 1 MB, so pages are read on."""
        start = {"ExclusiveStartKey": _key(subject, after)} if after else {}
        items = queried(
            self._client,
            ProfilesUnavailable,
            limit=limit,
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": _key(subject, "")["pk"],
                ":first": {"S": _PROFILE},
                ":last": {"S": f"{_PROFILE}{_AFTER_ALL_IDS}"},
            },
            ConsistentRead=True,
            **projection,
            **start,
        )
        return list(items)


def _key(subject: str, profile_id: str, item: str = _PROFILE) -> dict[str, Any]:
    return {"pk": {"S": f"profiles#{subject}"}, "sk": {"S": f"{item}{profile_id}"}}


def _id(small: Item) -> str:
    return str(small["sk"]["S"]).removeprefix(_PROFILE)


def _record(item: Item) -> ProfileRecord:
    try:
        return ProfileRecord.model_validate_json(item["record"]["S"])
    except (KeyError, ValidationError) as error:  # do not treat it as absent: a write would destroy its content
        raise ProfilesUnavailable("a stored profile cannot be read by this release") from error


def _listed(item: Item) -> Listed:
    profile_id = _id(item)
    if "expires_at" in item:
        return Listed(profile_id, None, int(item["expires_at"]["N"]))
    try:
        return Listed(profile_id, StoredHead.model_validate_json(item["head"]["S"]))
    except (KeyError, ValidationError) as error:
        raise ProfilesUnavailable("a stored profile cannot be listed by this release") from error
