"""The semantic cache in DynamoDB, beside the requests: a partition a scope, an entry item and a body item an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from botocore.config import Config

from cicada.dynamodb import Item, attributes, faults_as, queried, read_item
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


class DynamoDbCacheStore:
    """:class:`cicada.semantic_cache.entries.CacheStore` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`CACHE_CONFIG`."""
        self._client = client
        self._table = table

    def entries(self, scope: str, *, after: str, limit: int) -> list[CacheEntry]:
        """See the port. A Query a page of 1 MB; half a read unit for each 4 KB found, and at least one half."""
        items = self._between(scope, after, _AFTER_ALL_IDS, limit, ScanIndexForward=False)
        return [entry for item in items if (entry := _entry(item)) is not None and entry.id > after]

    def older(self, scope: str, *, before: str, limit: int) -> list[str]:
        """See the port. One Query; half a read unit where there are none."""
        ids = [str(item["sk"]["S"]).removeprefix(_ENTRY) for item in self._between(scope, "", before, limit)]
        return [entry_id for entry_id in ids if entry_id < before]

    def _between(self, scope: str, first: str, last: str, limit: int, **order: Any) -> Iterator[Item]:
        """The entry items from one id to another, both included."""
        return queried(
            self._client,
            CacheUnavailable,
            limit=limit,
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": {"S": _pk(scope)},
                ":first": {"S": f"{_ENTRY}{first}"},
                ":last": {"S": f"{_ENTRY}{last}"},
            },
            **order,
        )

    def body(self, scope: str, entry_id: str) -> bytes | None:
        """See the port. A consistent read: a body that it does not find is gone."""
        found = read_item(self._client, CacheUnavailable, self._table, _key(scope, _BODY, entry_id))
        data = (found or {}).get("body", {}).get("B")
        return None if data is None else bytes(data)

    def put(self, scope: str, entry: CacheEntry, body: bytes, *, owner: str) -> None:
        """See the port."""
        expires_at = entry.expires_at + _TTL_MARGIN_S
        listed = attributes(
            question=entry.question,
            vector=entry.vector,
            answered_at_ms=entry.answered_at_ms,
            valid_until=entry.expires_at,
            expires_at=expires_at,
        )
        # The body goes first: a worker that dies between the two leaves no entry without a body.
        for kind, values in ((_BODY, attributes(body=body, expires_at=expires_at)), (_ENTRY, listed)):
            with faults_as(CacheUnavailable):
                self._client.put_item(
                    TableName=self._table, Item=_key(scope, kind, entry.id) | attributes(owner=owner) | values
                )

    def delete(self, scope: str, entry_ids: Sequence[str]) -> None:
        """See the port."""
        for kind in (_ENTRY, _BODY):
            keys = [_key(scope, kind, entry_id) for entry_id in entry_ids]
            for at in range(0, len(keys), _BATCH):
                self._delete([{"DeleteRequest": {"Key": key}} for key in keys[at : at + _BATCH]])

    def _delete(self, requests: list[dict[str, Any]]) -> None:
        """Delete a batch. Items that DynamoDB leaves unprocessed are tried again; what is left then expires."""
        for _ in range(_BATCH_ATTEMPTS):
            with faults_as(CacheUnavailable):
                left = self._client.batch_write_item(RequestItems={self._table: requests}).get("UnprocessedItems", {})
            if not left:
                return
            requests = left[self._table]
        raise CacheUnavailable(f"{len(requests)} items were not deleted")


def _pk(scope: str) -> str:
    return f"cache#{scope}"


def _key(scope: str, kind: str, entry_id: str) -> dict[str, Any]:
    return attributes(pk=_pk(scope), sk=f"{kind}{entry_id}")


def _entry(item: Item) -> CacheEntry | None:
    """An item as an entry; None if another release wrote it."""
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
