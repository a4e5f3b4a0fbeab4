"""The store of conversation sessions, and its DynamoDB adapter: sessions are replaced by conditional writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from botocore.config import Config

from cicada.conversation.turns import ConversationSession, ConversationTurn, SessionKey
from cicada.delivery.ports import StoreFault
from cicada.dynamodb import ConditionFailed, attributes, faults_as, if_unchanged, read_item


class SessionChanged(Exception):
    """The session has changed meanwhile; ``stored`` is what it is now."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(f"the session is at version {stored.version}")
        self.stored = stored


@dataclass(frozen=True)
class Stored:
    """A session and its version, 0 before its first write."""

    session: ConversationSession
    version: int


class Sessions(Protocol):
    """The store of sessions. Every method raises :class:`cicada.delivery.ports.StoreFault` when the store fails."""

    def read(self, key: SessionKey) -> Stored:
        """A consistent read; an empty session of version 0 if there is none."""
        ...

    def write(self, key: SessionKey, session: ConversationSession, *, over: int, expires_at: int) -> None:
        """Replace version ``over`` of a session by the next one, which the store may delete after ``expires_at``.

        Raises SessionChanged if another version is stored.
        """
        ...


SESSION_CONFIG = Config(connect_timeout=0.5, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 2})
"""Time-outs in seconds. An answer goes on without its conversation rather than wait longer."""


class DynamoDbSessions:
    """:class:`cicada.conversation.sessions.Sessions` over the table of requests."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`SESSION_CONFIG`."""
        self._client = client
        self._table = table

    def read(self, key: SessionKey) -> Stored:
        """See the port."""
        return _stored(read_item(self._client, StoreFault, self._table, _key(key)))

    def write(self, key: SessionKey, session: ConversationSession, *, over: int, expires_at: int) -> None:
        """See the port.

        A write that is retried because its acknowledgement was lost finds its own version: SessionChanged then holds
        what was to be written.
        """
        # What turns rest on is an attribute of its own: release 0.1.0 forgets a session whose turns have more fields.
        turns = json.dumps([_without_collections(turn) for turn in session.turns], ensure_ascii=False)
        rests_on = json.dumps({turn.request_id: turn.collections for turn in session.turns}, ensure_ascii=False)
        item = _key(key) | attributes(
            owner=key.subject,
            version=over + 1,
            turns=turns.encode("utf-8", "replace").decode(),
            rests_on=rests_on,
            forgotten_until_ms=session.forgotten_until_ms,
            deleted_at_ms=session.deleted_at_ms or None,
            expires_at=expires_at,
        )
        try:
            with faults_as(StoreFault):
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **if_unchanged("version", over),
                )
        except ConditionFailed as failed:
            raise SessionChanged(_stored(failed.item)) from failed


def deleting_turns(table: str, key: SessionKey, *, at_ms: int, expires_at: int) -> dict[str, Any]:
    """The arguments of an ``update_item`` after which a session's turns complete nothing, until they are restored.

    The item is made if there is none: an answer that was asked for before leaves no turn in it.
    """
    return {
        "TableName": table,
        "Key": _key(key),
        "UpdateExpression": "SET deleted_at_ms = :deleted, expires_at = :expires, #owner = :owner, "
        "turns = if_not_exists(turns, :no_turns), rests_on = if_not_exists(rests_on, :rests_on), "
        "forgotten_until_ms = if_not_exists(forgotten_until_ms, :none), "
        "#version = if_not_exists(#version, :none) + :one",
        "ExpressionAttributeNames": {"#owner": "owner", "#version": "version"},
        "ExpressionAttributeValues": {
            **attributes(**{":owner": key.subject, ":no_turns": "[]", ":rests_on": "{}"}),
            **attributes(**{":deleted": at_ms, ":expires": expires_at, ":none": 0, ":one": 1}),
        },
    }


def restoring_turns(table: str, key: SessionKey, *, deleted_at_ms: int, expires_at: int) -> dict[str, Any]:
    """The arguments of an ``update_item`` that takes a deletion back, unless the session has begun anew."""
    return {
        "TableName": table,
        "Key": _key(key),
        "UpdateExpression": "SET expires_at = :expires, #version = #version + :one REMOVE deleted_at_ms",
        "ConditionExpression": "deleted_at_ms = :deleted",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": attributes(**{":expires": expires_at, ":one": 1, ":deleted": deleted_at_ms}),
    }


def _key(key: SessionKey) -> dict[str, Any]:
    return attributes(pk=f"session#{key.digest}", sk="turns")


def _stored(item: Mapping[str, Any] | None) -> Stored:
    """An item as a session; one without turns if DynamoDB has deleted it.

    Raises StoreFault if a newer release wrote it: it is not used, and stays as it is.
    """
    if item is None:
        return Stored(ConversationSession(), 0)
    numbers = ("version", "forgotten_until_ms", "deleted_at_ms")
    version, forgotten_until_ms, deleted_at_ms = (int(item.get(name, {}).get("N", 0)) for name in numbers)
    try:
        turns = tuple(map(_turn, stored_turns(item)))
    except (KeyError, ValueError, TypeError) as error:
        raise StoreFault("the session was written by a newer release") from error
    return Stored(ConversationSession(turns, forgotten_until_ms, deleted_at_ms), version)


def stored_turns(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The turns of a stored session, as plain data; of those that 0.1.0 wrote it is not told what they rest on.

    Raises KeyError, TypeError or ValueError if another release stores them otherwise.
    """
    rests_on = json.loads(item["rests_on"]["S"]) if "rests_on" in item else {}
    turns: list[dict[str, Any]] = json.loads(item["turns"]["S"])
    return [
        turn | {"collections": rests_on[turn["request_id"]]} if turn["request_id"] in rests_on else turn
        for turn in turns
    ]


def _without_collections(turn: ConversationTurn) -> dict[str, Any]:
    return {name: value for name, value in asdict(turn).items() if name != "collections"}


def _turn(stored: Mapping[str, Any]) -> ConversationTurn:
    """Raises TypeError for a turn with fields that this release does not know."""
    collections = stored.get("collections")
    return ConversationTurn(**{**stored, "collections": None if collections is None else tuple(collections)})
