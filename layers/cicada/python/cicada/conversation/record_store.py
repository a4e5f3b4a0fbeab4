"""Conversations in the requests table: one partition per owner, one item per conversation.

The message processor adds each question to the item by one update: a write unit up to 1 KB, which some 35 questions
take. The turns have an item of their own, which release 0.1.0 reads and writes too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from cicada.conversation.records import (
    MAX_REQUESTS,
    TITLE_CHARS,
    UNDO_S,
    ConversationListed,
    ConversationRecord,
    RequestAsked,
)
from cicada.conversation.sessions import deleting_turns, restoring_turns
from cicada.conversation.turns import SessionKey, clipped
from cicada.delivery.ports import StoreFault
from cicada.delivery.stored_heads import load_question
from cicada.dynamodb import ConditionFailed, Item, attributes, faults_as, if_unchanged, queried, read_item, read_items

MAX_LISTED = 1_000
"""Conversations of one owner that are read for a list."""
PARTITION = "conversations#"
_TRIES = 4
_HEAD = "pk, sk, question, accepted_at_ms, retained_until, #state"
"""What is read of a request's head."""


class DynamoDbConversationRecords:
    """:class:`cicada.conversation.records.ConversationRecords` over the requests table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client with short time-outs."""
        self._client = client
        self._table = table

    def add(self, key: SessionKey, request_id: str, query: str, *, at_ms: int, age_s: int) -> None:
        """See the port."""
        values = {
            **attributes(**{":now": at_ms, ":now_s": at_ms // 1000, ":expires": at_ms // 1000 + age_s}),
            **attributes(**{":one": 1, ":none": 0, ":most": MAX_REQUESTS}),
            **attributes(**{":owner": key.subject, ":title": clipped(query, TITLE_CHARS)}),
            ":request": _packed(request_id),
            ":requests": {"L": [_packed(request_id)]},
            ":empty": {"L": []},
        }
        try:
            with faults_as(StoreFault):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="SET #owner = :owner, #title = if_not_exists(#title, :title), "
                    "created_at_ms = if_not_exists(created_at_ms, :now), updated_at_ms = :now, expires_at = :expires, "
                    "#count = if_not_exists(#count, :none) + :one, #version = if_not_exists(#version, :none) + :one, "
                    "#requests = list_append(if_not_exists(#requests, :empty), :requests)",
                    ConditionExpression="attribute_not_exists(pk) OR (expires_at > :now_s AND "
                    "attribute_not_exists(deleted_at_ms) AND size(#requests) < :most AND "
                    "NOT contains(#requests, :request))",
                    ExpressionAttributeNames={
                        "#owner": "owner",
                        "#title": "title",
                        "#count": "questions",
                        "#version": "version",
                        "#requests": "requests",
                    },
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as failed:
            self._add_anew(key, failed.item, request_id, query, at_ms, age_s)

    def _add_anew(
        self, key: SessionKey, item: Item | None, request_id: str, query: str, at_ms: int, age_s: int
    ) -> None:
        """Add a request to a conversation that has expired, was deleted, or lists as many as it may."""
        for _ in range(_TRIES):
            stored = None if item is None else stored_record(item)
            if stored is None or not stored.open_at(at_ms / 1000):
                new = ConversationRecord.begun(key.session_id, request_id, query, at_ms=at_ms, age_s=age_s)
            elif request_id in stored.requests:
                return
            else:
                new = stored.plus(request_id, at_ms=at_ms, age_s=age_s)
            version = 0 if item is None else int(item["version"]["N"])
            try:
                self._put(key, new, over=version)
            except ConditionFailed as failed:
                item = failed.item
            else:
                return
        raise StoreFault("too many concurrent changes of the conversation")

    def read(self, key: SessionKey) -> ConversationRecord | None:
        """See the port."""
        item = read_item(self._client, StoreFault, self._table, _key(key))
        return None if item is None else stored_record(item)

    def owned_by(self, owner: str, now_s: float) -> Sequence[ConversationListed]:
        """See the port. Of more than :data:`MAX_LISTED`, those that come first by their id are read."""
        found = queried(
            self._client,
            StoreFault,
            limit=MAX_LISTED,
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ProjectionExpression="sk, #title, created_at_ms, updated_at_ms, #count, expires_at, deleted_at_ms",
            ExpressionAttributeNames={"#title": "title", "#count": "questions"},
            ExpressionAttributeValues={":pk": {"S": f"{PARTITION}{owner}"}},
            ConsistentRead=True,
        )
        return [
            ConversationListed(one.session_id, one.title, one.created_at_ms, one.updated_at_ms, one.questions)
            for one in map(stored_record, found)
            if one.open_at(now_s)
        ]

    def requests(self, owner: str, request_ids: Sequence[str]) -> Sequence[RequestAsked]:
        """See the port."""
        keys = [(f"{request_id}#{owner}", "head") for request_id in request_ids]
        heads = read_items(
            self._client,
            StoreFault,
            self._table,
            keys,
            sleep=time.sleep,
            ProjectionExpression=_HEAD,
            ExpressionAttributeNames={"#state": "state"},
        )
        return list(_asked(request_ids, [heads.get(key) for key in keys]))

    def rename(self, key: SessionKey, title: str, *, now_s: float) -> ConversationRecord | None:
        """See the port."""
        return self._changed(key, "SET #title = :title", {"#title": "title"}, {":title": title}, now_s)

    def delete(self, key: SessionKey, *, now_s: float) -> ConversationRecord | None:
        """See the port. A deletion that was interrupted is finished by the next."""
        at_ms = int(now_s * 1000)
        values = {":deleted": at_ms, ":until": int(now_s) + UNDO_S}
        changed = self._changed(key, "SET deleted_at_ms = :deleted, expires_at = :until", {}, values, now_s)
        if changed is None:
            stored = self.read(key)
            if stored is None or stored.deleted_at_ms is None or stored.expired(now_s):
                return None
            changed = stored
        with faults_as(StoreFault):
            self._client.update_item(
                **deleting_turns(self._table, key, at_ms=changed.deleted_at_ms or at_ms, expires_at=changed.expires_at)
            )
        return changed

    def restore(self, record: ConversationRecord, key: SessionKey, *, now_s: float, age_s: int) -> bool:
        """See the port. The turns come first: a restoration that was interrupted is finished by the next."""
        expires_at = int(now_s) + age_s
        try:
            with faults_as(StoreFault):
                self._client.update_item(
                    **restoring_turns(self._table, key, deleted_at_ms=record.deleted_at_ms or 0, expires_at=expires_at)
                )
        except ConditionFailed:
            pass  # it was restored before, or there was none
        try:
            with faults_as(StoreFault):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression="SET expires_at = :expires, #version = #version + :one REMOVE deleted_at_ms",
                    ConditionExpression="deleted_at_ms = :deleted AND expires_at > :now",
                    ExpressionAttributeNames={"#version": "version"},
                    ExpressionAttributeValues=attributes(
                        **{":expires": expires_at, ":one": 1, ":now": int(now_s), ":deleted": record.deleted_at_ms}
                    ),
                )
        except ConditionFailed:
            return False
        return True

    def _changed(
        self, key: SessionKey, update: str, names: dict[str, str], values: dict[str, Any], now_s: float
    ) -> ConversationRecord | None:
        """Change a conversation that is there. Returns it as it is then."""
        try:
            with faults_as(StoreFault):
                done = self._client.update_item(
                    TableName=self._table,
                    Key=_key(key),
                    UpdateExpression=f"{update}, #version = #version + :one",
                    ConditionExpression="expires_at > :now AND attribute_not_exists(deleted_at_ms)",
                    ExpressionAttributeNames={"#version": "version", **names},
                    ExpressionAttributeValues=attributes(**values, **{":one": 1, ":now": int(now_s)}),
                    ReturnValues="ALL_NEW",
                )
        except ConditionFailed:
            return None
        return stored_record(done["Attributes"])

    def _put(self, key: SessionKey, record: ConversationRecord, *, over: int) -> None:
        item = {
            **_key(key),
            **attributes(
                owner=key.subject,
                title=record.title,
                created_at_ms=record.created_at_ms,
                updated_at_ms=record.updated_at_ms,
                questions=record.questions,
                expires_at=record.expires_at,
                version=over + 1,
            ),
            "requests": {"L": list(map(_packed, record.requests))},
        }
        with faults_as(StoreFault):
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **if_unchanged("version", over),
            )


def _key(key: SessionKey) -> dict[str, Any]:
    return attributes(pk=f"{PARTITION}{key.subject}", sk=key.session_id)


def _packed(request_id: str) -> dict[str, bytes]:
    return {"B": UUID(request_id).bytes}


def stored_record(item: Item) -> ConversationRecord:
    """The conversation that an item holds; without requests where they were not read."""

    def number(name: str) -> int:
        return int(item[name]["N"])

    return ConversationRecord(
        session_id=item["sk"]["S"],
        title=item["title"]["S"],
        created_at_ms=number("created_at_ms"),
        updated_at_ms=number("updated_at_ms"),
        questions=number("questions"),
        requests=tuple(str(UUID(bytes=bytes(one["B"]))) for one in item.get("requests", {}).get("L", ())),
        expires_at=number("expires_at"),
        deleted_at_ms=number("deleted_at_ms") if "deleted_at_ms" in item else None,
    )


def _asked(request_ids: Sequence[str], heads: Sequence[Item | None]) -> Iterator[RequestAsked]:
    for request_id, head in zip(request_ids, heads, strict=True):
        if head is None:
            continue
        try:
            query = load_question(head).query
        except (KeyError, TypeError, ValueError):  # a newer release wrote it
            continue
        yield RequestAsked(
            request_id=request_id,
            query=query,
            asked_at_ms=int(head["accepted_at_ms"]["N"]),
            state=head["state"]["S"],
            expires_at=int(head["retained_until"]["N"]),
        )
