"""Feedback in the requests table: one partition per month in which the questions were asked, one item per request.

So an operator reads it newest first without an index. The key is made of what never changes of a request: feedback on
the same one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

from pydantic import ValidationError

from cicada.delivery.ports import StoreFault
from cicada.delivery.record import RequestHead
from cicada.dynamodb import Item, attributes, faults_as, queried
from cicada.feedback.record import FeedbackRecord

PARTITION = "feedback#"


class FeedbackStore(Protocol):
    """The store of feedback. Every method raises :class:`cicada.delivery.ports.StoreFault` when it fails."""

    def put(self, head: RequestHead, record: FeedbackRecord, *, expires_at: int) -> FeedbackRecord | None:
        """Store feedback on a request. Returns what it replaces."""
        ...

    def delete(self, head: RequestHead) -> None:
        """Take the feedback on a request back; nothing happens if there is none."""
        ...


class DynamoDbFeedback:
    """:class:`FeedbackStore` over the requests table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client."""
        self._client = client
        self._table = table

    def put(self, head: RequestHead, record: FeedbackRecord, *, expires_at: int) -> FeedbackRecord | None:
        """See the port."""
        stored = record.model_dump_json(by_alias=True, exclude_none=True)
        item = _key(head) | attributes(
            owner=head.key.subject,
            record=stored.encode("utf-8", "replace").decode(),
            expires_at=expires_at,
        )
        with faults_as(StoreFault):
            done = self._client.put_item(TableName=self._table, Item=item, ReturnValues="ALL_OLD")
        return stored_feedback(done["Attributes"]) if "Attributes" in done else None

    def delete(self, head: RequestHead) -> None:
        """See the port."""
        with faults_as(StoreFault):
            self._client.delete_item(TableName=self._table, Key=_key(head))

    def newest(self, *, since_s: float, now_s: float) -> Iterator[FeedbackRecord]:
        """Feedback on questions asked since a time, that with the newest question first."""
        first = f"{int(since_s * 1000):015d}"
        for month in _months(since_s, now_s):
            found = queried(
                self._client,
                StoreFault,
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND sk >= :first",
                ExpressionAttributeValues=attributes(**{":pk": f"{PARTITION}{month}", ":first": first}),
                ScanIndexForward=False,
            )
            for item in found:
                record = stored_feedback(item)
                if record is not None and int(item["expires_at"]["N"]) > now_s:
                    yield record


def stored_feedback(item: Item) -> FeedbackRecord | None:
    """The feedback that an item holds; None if a newer release wrote it and this one cannot read it."""
    try:
        return FeedbackRecord.model_validate_json(item["record"]["S"])
    except (KeyError, ValidationError):
        return None


def _key(head: RequestHead) -> dict[str, Any]:
    month = datetime.fromtimestamp(head.accepted_at_ms / 1000, UTC).strftime("%Y-%m")
    key = head.key
    return attributes(pk=f"{PARTITION}{month}", sk=f"{head.accepted_at_ms:015d}#{key.request_id}#{key.subject}")


def _months(since_s: float, now_s: float) -> Iterator[str]:
    """The months from now back to a time."""
    at, first = datetime.fromtimestamp(now_s, UTC), datetime.fromtimestamp(since_s, UTC)
    year, month = at.year, at.month
    while (year, month) >= (first.year, first.month):
        yield f"{year:04d}-{month:02d}"
        year, month = (year - 1, 12) if month == 1 else (year, month - 1)
