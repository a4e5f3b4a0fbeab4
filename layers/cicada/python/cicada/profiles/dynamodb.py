"""Profiles in DynamoDB, beside the requests: a partition a user, an item a profile, replaced under its version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from cicada.errors import ProfilesUnavailable
from cicada.profiles.heads import Head, Listed, head_of
from cicada.profiles.record import Record
from cicada.profiles.rules import dumped
from cicada.profiles.store import RecordChanged

PROFILES_CONFIG = Config(connect_timeout=0.5, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 3})
"""Time-outs in seconds. A write that is repeated because its acknowledgement was lost finds its own version: whoever
wrote it knows it by its operation."""
_PROFILE = "profile#"
_AFTER_ALL_IDS = "~"
_HEAD_ALONE = {
    "ProjectionExpression": "sk, #head, expires_at",
    "ExpressionAttributeNames": {"#head": "head"},
}
_Read = TypeVar("_Read")


class DynamoDbProfiles:
    """:class:`cicada.profiles.store.ProfileStore` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`PROFILES_CONFIG`."""
        self._client = client
        self._table = table

    def read(self, subject: str, profile_id: str) -> Record | None:
        """See the port."""
        with _faults():
            found = self._client.get_item(TableName=self._table, Key=_key(subject, profile_id), ConsistentRead=True)
        return _record(found["Item"]) if "Item" in found else None

    def page(self, subject: str, after: str, limit: int) -> tuple[Record, ...]:
        """See the port. A Query a page of 1 MB."""
        return self._queried(subject, after, limit, _record)

    def heads(self, subject: str, after: str, limit: int) -> tuple[Listed, ...]:
        """See the port. What is left out crosses no wire; DynamoDB reads, and bills, the whole items all the same."""
        return self._queried(subject, after, limit, _listed, **_HEAD_ALONE)

    def _queried(
        self, subject: str, after: str, limit: int, read: Callable[[Mapping[str, Any]], _Read], **projection: Any
    ) -> tuple[_Read, ...]:
        found: list[_Read] = []
        start: dict[str, Any] = {"ExclusiveStartKey": _key(subject, after)} if after else {}
        while True:
            with _faults():
                page = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
                    ExpressionAttributeValues={
                        ":pk": {"S": _pk(subject)},
                        ":first": {"S": _PROFILE},
                        ":last": {"S": f"{_PROFILE}{_AFTER_ALL_IDS}"},
                    },
                    ConsistentRead=True,
                    Limit=limit - len(found),
                    **projection,
                    **start,
                )
            found += (read(item) for item in page["Items"])
            if "LastEvaluatedKey" not in page or len(found) >= limit:
                return tuple(found)
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def write(self, subject: str, record: Record, *, over: int) -> None:
        """See the port."""
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if over:
            condition = {
                "ConditionExpression": "#version = :over",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": {":over": {"N": str(over)}},
            }
        expires = {} if record.expires_at is None else {"expires_at": {"N": str(record.expires_at)}}
        head = {} if record.profile is None else {"head": {"S": dumped(head_of(record.profile))}}
        item = {
            **_key(subject, record.id),
            **head,
            "version": {"N": str(record.version)},
            "record": {"S": dumped(record)},
            **expires,
        }
        try:
            with _faults():
                self._client.put_item(TableName=self._table, Item=item, **condition)
        except ProfilesUnavailable as fault:
            response = getattr(fault.__cause__, "response", None) or {}  # a time-out has one that is None
            if response.get("Error", {}).get("Code") != "ConditionalCheckFailedException":
                raise
            raise RecordChanged(record.id) from fault


@contextmanager
def _faults() -> Iterator[None]:
    """Everything that the store can do to a call, as one fault."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise ProfilesUnavailable(str(error)) from error


def _pk(subject: str) -> str:
    return f"profiles#{subject}"


def _key(subject: str, profile_id: str) -> dict[str, Any]:
    return {"pk": {"S": _pk(subject)}, "sk": {"S": f"{_PROFILE}{profile_id}"}}


def _record(item: Mapping[str, Any]) -> Record:
    try:
        return Record.model_validate_json(item["record"]["S"])
    except (KeyError, ValidationError) as error:  # never passed over: a write would destroy what it holds
        raise ProfilesUnavailable("a stored profile cannot be read by this release") from error


def _listed(item: Mapping[str, Any]) -> Listed:
    profile_id = item["sk"]["S"].removeprefix(_PROFILE)
    if "expires_at" in item:
        return Listed(profile_id, None, int(item["expires_at"]["N"]))
    try:
        return Listed(profile_id, Head.model_validate_json(item["head"]["S"]))
    except (KeyError, ValidationError) as error:
        raise ProfilesUnavailable("a stored profile cannot be listed by this release") from error
