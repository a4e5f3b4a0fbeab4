"""The semantic cache in DynamoDB, beside the requests: a partition a scope, an entry item and a body item an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.errors import CacheUnavailable
from cicada.semantic_cache.entries import CacheEntry

CACHE_CONFIG = Config(connect_timeout=0.5, read_timeout=0.7, retries={"mode": "standard", "total_max_attempts": 2})
"""Time-outs in seconds. What the cache saves is not worth a longer wait: a call that fails twice is a miss."""
_ENTRY = "entry#"
_BODY = "body#"
_AFTER_ALL_IDS = "~"
_TTL_MARGIN_S = 3600
"""Items outlive what they hold by this much: what has expired is left out by its own time, never by DynamoDB's."""
_BATCH = 25
"""Deletes of one BatchWriteItem."""
_BATCH_ATTEMPTS = 3

_Item = Mapping[str, Mapping[str, Any]]


class DynamoDbCacheStore:
    """:class:`cicada.semantic_cache.entries.CacheStore` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`CACHE_CONFIG`."""
        self._client = client
        self._table = table

    def entries(self, scope: str, *, after: str, limit: int) -> list[CacheEntry]:
        """See the port. A Query a page of 1 MB; half a read unit for each 4 KB found, and at least one half."""
        found: list[CacheEntry] = []
        start: dict[str, Any] = {}
        while True:
            with _faults():
                page = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk AND sk BETWEEN :after AND :last",
                    ExpressionAttributeValues={
                        ":pk": {"S": _pk(scope)},
                        ":after": {"S": f"{_ENTRY}{after}"},
                        ":last": {"S": f"{_ENTRY}{_AFTER_ALL_IDS}"},
                    },
                    ScanIndexForward=False,
                    Limit=limit - len(found),
                    **start,
                )
            found += [entry for item in page["Items"] if (entry := _entry(item)) is not None and entry.id > after]
            if "LastEvaluatedKey" not in page or len(found) >= limit:
                return found
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def older(self, scope: str, *, before: str, limit: int) -> list[str]:
        """See the port. One Query; half a read unit where there are none."""
        with _faults():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :before",
                ExpressionAttributeValues={
                    ":pk": {"S": _pk(scope)},
                    ":first": {"S": _ENTRY},
                    ":before": {"S": f"{_ENTRY}{before}"},
                },
                Limit=limit,
            )
        ids = [str(item["sk"]["S"]).removeprefix(_ENTRY) for item in page["Items"]]
        return [entry_id for entry_id in ids if entry_id < before]

    def body(self, scope: str, entry_id: str) -> bytes | None:
        """See the port. A consistent read: a body that it does not find is gone."""
        with _faults():
            found = self._client.get_item(
                TableName=self._table, Key=_key(scope, _BODY, entry_id), ConsistentRead=True
            ).get("Item", {})
        data = found.get("body", {}).get("B")
        return None if data is None else bytes(data)

    def put(self, scope: str, entry: CacheEntry, body: bytes) -> None:
        """See the port."""
        expires = {"expires_at": {"N": str(entry.expires_at + _TTL_MARGIN_S)}}
        with _faults():
            self._client.put_item(
                TableName=self._table,
                Item={**_key(scope, _BODY, entry.id), "body": {"B": body}, **expires},
            )
            self._client.put_item(
                TableName=self._table,
                Item={
                    **_key(scope, _ENTRY, entry.id),
                    "question": {"S": entry.question},
                    "vector": {"B": entry.vector},
                    "answered_at_ms": {"N": str(entry.answered_at_ms)},
                    "valid_until": {"N": str(entry.expires_at)},
                    **expires,
                },
            )

    def delete(self, scope: str, entry_ids: Sequence[str]) -> None:
        """See the port."""
        for kind in (_ENTRY, _BODY):
            keys = [_key(scope, kind, entry_id) for entry_id in entry_ids]
            for at in range(0, len(keys), _BATCH):
                self._delete([{"DeleteRequest": {"Key": key}} for key in keys[at : at + _BATCH]])

    def _delete(self, requests: list[dict[str, Any]]) -> None:
        """What stays undone after some attempts expires by itself."""
        for _ in range(_BATCH_ATTEMPTS):
            with _faults():
                left = self._client.batch_write_item(RequestItems={self._table: requests}).get("UnprocessedItems", {})
            if not left:
                return
            requests = left[self._table]
        raise CacheUnavailable(f"{len(requests)} items were not deleted")


@contextmanager
def _faults() -> Iterator[None]:
    """Everything that the store can do to a call, as one fault."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CacheUnavailable(str(error)) from error


def _pk(scope: str) -> str:
    return f"cache#{scope}"


def _key(scope: str, kind: str, entry_id: str) -> dict[str, Any]:
    return {"pk": {"S": _pk(scope)}, "sk": {"S": f"{kind}{entry_id}"}}


def _entry(item: _Item) -> CacheEntry | None:
    """An item as an entry; None if it is none that this version reads."""
    try:
        return CacheEntry(
            id=item["sk"]["S"].removeprefix(_ENTRY),
            question=item["question"]["S"],
            vector=bytes(item["vector"]["B"]),
            answered_at_ms=int(item["answered_at_ms"]["N"]),
            expires_at=int(item["valid_until"]["N"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
