"""Profiles in DynamoDB, beside the requests: a partition a user, and two items a profile, written as one.

The small one (``profile#<id>``) holds the version, under which both are replaced, and what lists show; the large one
(``record#<id>``) is the record. A Query is billed by the items that it reads, whatever it projects: a list reads small
ones. Earlier releases kept both in the small one's place; such an item is read as it is, and split by its next write.
"""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from cicada.dynamodb import Item, faults_as, if_unchanged, queried
from cicada.errors import ProfilesUnavailable
from cicada.profiles.heads import Listed, StoredHead, head_of
from cicada.profiles.record import ProfileRecord
from cicada.profiles.rules import dumped
from cicada.profiles.store import RecordChanged

PROFILES_CONFIG = Config(connect_timeout=0.5, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 3})
"""Time-outs in seconds. A write that boto3 repeats because its acknowledgement was lost has the same token, and is no
second one; one that whoever asked for it repeats is known by its operation."""
_PROFILE = "profile#"
_RECORD = "record#"
_AFTER_ALL_IDS = "~"
_TRIES = 3
"""Of a write that another transaction was in the way of, and of a read that came between the two items of a write."""
_HEAD_ALONE = {
    "ProjectionExpression": "sk, #head, expires_at",
    "ExpressionAttributeNames": {"#head": "head"},
}


class DynamoDbProfiles:
    """:class:`cicada.profiles.store.ProfileStore` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`PROFILES_CONFIG`."""
        self._client = client
        self._table = table

    def read(self, subject: str, profile_id: str) -> ProfileRecord | None:
        """See the port."""
        small = self._item(_key(subject, profile_id))
        return None if small is None else self._whole(subject, small)

    def page(self, subject: str, after: str, limit: int) -> tuple[ProfileRecord, ...]:
        """See the port. A read for each record, beside that of the list."""
        return tuple(self._whole(subject, small) for small in self._queried(subject, after, limit))

    def heads(self, subject: str, after: str, limit: int) -> tuple[Listed, ...]:
        """See the port. Items of some hundred bytes are read, a Query a page of 1 MB."""
        return tuple(_listed(small) for small in self._queried(subject, after, limit, **_HEAD_ALONE))

    def write(self, subject: str, record: ProfileRecord, *, over: int) -> None:
        """See the port. Both items are written, or neither."""
        puts = self._puts(subject, record, over)
        for _ in range(_TRIES):
            try:
                self._client.transact_write_items(TransactItems=[{"Put": put} for put in puts])
                return
            except (ClientError, BotoCoreError) as error:
                why = _cancelled_by(error)
                if "ConditionalCheckFailed" in why:
                    raise RecordChanged(record.id) from error
                if "TransactionConflict" not in why:
                    raise ProfilesUnavailable(str(error)) from error
        raise ProfilesUnavailable("the profile is being written by somebody else")

    def _puts(self, subject: str, record: ProfileRecord, over: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """What puts the small item, under the condition, and the record."""
        expires = {} if record.expires_at is None else {"expires_at": {"N": str(record.expires_at)}}
        head = {} if record.profile is None else {"head": {"S": dumped(head_of(record.profile))}}
        small = {**_key(subject, record.id), "version": {"N": str(record.version)}, **head, **expires}
        whole = {**_key(subject, record.id, _RECORD), "record": {"S": dumped(record)}, **expires}
        guarded = {"TableName": self._table, "Item": small, **if_unchanged("version", over)}
        return guarded, {"TableName": self._table, "Item": whole}

    def _whole(self, subject: str, small: Item) -> ProfileRecord:
        """The record that belongs to a small item, or a newer one."""
        if "record" in small:
            return _record(small)
        profile_id, version = _id(small), int(small["version"]["N"])
        for _ in range(_TRIES):
            item = self._item(_key(subject, profile_id, _RECORD))
            if item is None and "expires_at" in small:  # of the two that are left, this one has expired first
                return ProfileRecord(id=profile_id, version=version, expires_at=int(small["expires_at"]["N"]))
            if item is None:
                raise ProfilesUnavailable("a stored profile has no record")
            record = _record(item)
            if record.version >= version:
                return record
        raise ProfilesUnavailable("the profile is being written by somebody else")

    def _item(self, key: dict[str, Any]) -> Item | None:
        with faults_as(ProfilesUnavailable):
            found = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        item: Item | None = found.get("Item")
        return item

    def _queried(self, subject: str, after: str, limit: int, **projection: Any) -> list[Item]:
        """Small items, in the order of their ids."""
        start = {"ExclusiveStartKey": _key(subject, after)} if after else {}
        items = queried(
            self._client,
            ProfilesUnavailable,
            limit=limit,
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": {"S": _pk(subject)},
                ":first": {"S": _PROFILE},
                ":last": {"S": f"{_PROFILE}{_AFTER_ALL_IDS}"},
            },
            ConsistentRead=True,
            **projection,
            **start,
        )
        return list(items)


def _cancelled_by(error: Exception) -> set[str]:
    """Why a transaction was cancelled, by the codes of its writes; empty for any other fault."""
    response = getattr(error, "response", None) or {}  # a time-out has one that is None
    return {str(reason.get("Code")) for reason in response.get("CancellationReasons", ())}


def _pk(subject: str) -> str:
    return f"profiles#{subject}"


def _key(subject: str, profile_id: str, what: str = _PROFILE) -> dict[str, Any]:
    return {"pk": {"S": _pk(subject)}, "sk": {"S": f"{what}{profile_id}"}}


def _id(small: Item) -> str:
    return str(small["sk"]["S"]).removeprefix(_PROFILE)


def _record(item: Item) -> ProfileRecord:
    try:
        return ProfileRecord.model_validate_json(item["record"]["S"])
    except (KeyError, ValidationError) as error:  # never passed over: a write would destroy what it holds
        raise ProfilesUnavailable("a stored profile cannot be read by this release") from error


def _listed(item: Item) -> Listed:
    profile_id = _id(item)
    if "expires_at" in item:
        return Listed(profile_id, None, int(item["expires_at"]["N"]))
    try:
        return Listed(profile_id, StoredHead.model_validate_json(item["head"]["S"]))
    except (KeyError, ValidationError) as error:
        raise ProfilesUnavailable("a stored profile cannot be listed by this release") from error
