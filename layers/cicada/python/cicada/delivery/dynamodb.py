"""The log of a request in DynamoDB.

One head item a request (``sk`` = ``head``) holds the log as a map from seq to event, so that an append, its fence and
the list of subscribers are one atomic call. An event above ``INLINE_BYTES`` (the sources, above all) lies in an item of
its own, written before the head refers to it: every later append rewrites the head, and a write is billed by the size
of its item. ``docs/decisions`` has the measurement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.delivery.ports import Conflict, StoreFault
from cicada.delivery.record import Commit, Entry, Head, Question, RequestKey
from cicada.errors import RequestUnknown

INLINE_BYTES = 2 * 1024
"""Events up to this many UTF-8 bytes stand in the head item."""
_HEAD = "head"
_TTL_MARGIN_S = 24 * 3600
"""A head outlives its retention by this much, so that an expired request can be told from an unknown one; its events
outlive it by as much again, for DynamoDB deletes in no order."""

STORE_CONFIG = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
"""Time-outs in seconds. A retried write is harmless: the fence tells a landed one from a lost one."""

_Item = Mapping[str, Mapping[str, Any]]


class DynamoDbLog:
    """:class:`cicada.delivery.ports.RequestLog` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`STORE_CONFIG`."""
        self._client = client
        self._table = table

    def create(self, head: Head, accepted: str) -> None:
        """See the port."""
        item = {
            **_key(head.key),
            "state": {"S": head.state},
            "attempt": {"N": str(head.attempt)},
            "lease_until": {"N": str(head.lease_until)},
            "last_seq": {"N": "1"},
            "log_bytes": {"N": str(len(accepted.encode()))},
            "log": {"M": {"1": _inline(0, accepted)}},
            "subscribers": _strings(head.subscribers),
            "question": {"S": json.dumps(asdict(head.question), ensure_ascii=False)},
            "origin": {"S": head.origin},
            "accepted_at_ms": {"N": str(head.accepted_at_ms)},
            "retained_until": {"N": str(head.expires_at)},
            **_ttl(head),
        }
        with _conflicts(head.key, lambda _key, _item: ()):
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )

    def head(self, key: RequestKey) -> Head:
        """See the port."""
        with _faults():
            found = self._client.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        if "Item" not in found:
            raise RequestUnknown(key.request_id)
        return _head(key, found["Item"])

    def read(self, key: RequestKey) -> tuple[Head, tuple[Entry, ...]]:
        """See the port."""
        items: dict[str, _Item] = {}
        start: dict[str, Any] = {}
        while True:
            with _faults():
                page = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk",
                    ExpressionAttributeValues={":pk": {"S": _pk(key)}},
                    ConsistentRead=True,
                    **start,
                )
            items.update((item["sk"]["S"], item) for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        if _HEAD not in items:
            raise RequestUnknown(key.request_id)
        return _head(key, items[_HEAD]), _entries(items[_HEAD], lambda sk: _body(key, items.get(sk)))

    def commit(self, head: Head, commit: Commit) -> Head:
        """See the port."""
        names = {
            "#state": "state",
            "#attempt": "attempt",
            "#last": "last_seq",
            "#bytes": "log_bytes",
            "#log": "log",
        }
        values: dict[str, Any] = {
            ":open": {"S": "open"},
            ":attempt": {"N": str(commit.fence.attempt)},
            ":last": {"N": str(commit.fence.last_seq)},
            ":new_last": {"N": str(commit.last_seq)},
            ":added": {"N": str(commit.added_bytes)},
        }
        sets = ["#last = :new_last", "#bytes = #bytes + :added"]
        for entry in commit.entries():
            names[f"#e{entry.seq}"] = str(entry.seq)
            values[f":e{entry.seq}"] = self._place(head, entry)
            sets.append(f"#log.#e{entry.seq} = :e{entry.seq}")
        if commit.state != "open":
            values[":state"] = {"S": commit.state}
            sets.append("#state = :state")
        if commit.claim is not None:
            claim = commit.claim
            names |= {
                "#strategy": "strategy",
                "#execution": "execution",
                "#worker": "worker",
                "#lease": "lease_until",
            }
            values |= {
                ":new_attempt": {"N": str(claim.attempt)},
                ":strategy": {"S": claim.strategy},
                ":execution": {"S": claim.execution},
                ":worker": {"S": claim.worker},
                ":lease": {"N": str(claim.lease_until)},
            }
            sets += [
                "#attempt = :new_attempt",
                "#strategy = :strategy",
                "#execution = :execution",
                "#worker = :worker",
                "#lease = :lease",
            ]
        return self._update(
            head.key,
            "SET " + ", ".join(sets),
            "#state = :open AND #attempt = :attempt AND #last = :last",
            names,
            values,
        )

    def reserve(self, head: Head, lease_until: int) -> Head:
        """See the port."""
        return self._update(
            head.key,
            "SET #lease = :new",
            "#state = :open AND #lease = :old AND attribute_not_exists(#execution)",
            {"#lease": "lease_until", "#state": "state", "#execution": "execution"},
            {
                ":new": {"N": str(lease_until)},
                ":old": {"N": str(head.lease_until)},
                ":open": {"S": "open"},
            },
        )

    def set_subscribers(self, head: Head, subscribers: tuple[str, ...]) -> Head:
        """See the port."""
        return self._update(
            head.key,
            "SET #subscribers = :new",
            "#subscribers = :old",
            {"#subscribers": "subscribers"},
            {":new": _strings(subscribers), ":old": _strings(head.subscribers)},
        )

    def _update(
        self, key: RequestKey, update: str, condition: str, names: dict[str, str], values: dict[str, Any]
    ) -> Head:
        with _conflicts(key, self._read_entries):
            done = self._client.update_item(
                TableName=self._table,
                Key=_key(key),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        return _head(key, done["Attributes"])

    def _place(self, head: Head, entry: Entry) -> dict[str, Any]:
        """An event's value in the head's log: itself, or a reference to the item that it is put into here."""
        if len(entry.body.encode()) <= INLINE_BYTES:
            return _inline(entry.attempt, entry.body)
        sk = f"event#{entry.seq}#{entry.attempt}"
        with _faults():
            self._client.put_item(
                TableName=self._table,
                Item={**_key(head.key, sk), "body": {"S": entry.body}, **_ttl(head, margins=2)},
            )
        return {"M": {"a": {"N": str(entry.attempt)}, "r": {"S": sk}}}

    def _read_entries(self, key: RequestKey, item: _Item) -> tuple[Entry, ...]:
        def fetch(sk: str) -> str:
            with _faults():
                found = self._client.get_item(TableName=self._table, Key=_key(key, sk), ConsistentRead=True)
            return _body(key, found.get("Item"))

        return _entries(item, fetch)


@contextmanager
def _faults() -> Iterator[None]:
    """Everything that the store can do to a call, as one fault."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StoreFault(str(error)) from error


@contextmanager
def _conflicts(key: RequestKey, entries: Callable[[RequestKey, _Item], tuple[Entry, ...]]) -> Iterator[None]:
    """A failed condition, with what stands; every other failure is the store's fault."""
    try:
        with _faults():
            yield
    except StoreFault as fault:
        response = getattr(fault.__cause__, "response", {})
        if response.get("Error", {}).get("Code") != "ConditionalCheckFailedException":
            raise
        if "Item" not in response:
            raise RequestUnknown(key.request_id) from fault
        item = response["Item"]
        raise Conflict(_head(key, item), entries(key, item)) from fault


def _pk(key: RequestKey) -> str:
    # The request id is a UUID of fixed length, so that no subject can be chosen to collide with another's key.
    return f"{key.request_id}#{key.subject}"


def _key(key: RequestKey, sk: str = _HEAD) -> dict[str, Any]:
    return {"pk": {"S": _pk(key)}, "sk": {"S": sk}}


def _ttl(head: Head, margins: int = 1) -> dict[str, Any]:
    return {"expires_at": {"N": str(head.expires_at + margins * _TTL_MARGIN_S)}}


def _body(key: RequestKey, item: _Item | None) -> str:
    if item is None:  # deleted after its retention, before its head
        raise RequestUnknown(key.request_id)
    return str(item["body"]["S"])


def _strings(values: tuple[str, ...]) -> dict[str, Any]:
    return {"L": [{"S": value} for value in values]}


def _inline(attempt: int, body: str) -> dict[str, Any]:
    return {"M": {"a": {"N": str(attempt)}, "b": {"S": body}}}


def _entries(item: _Item, fetch: Callable[[str], str]) -> tuple[Entry, ...]:
    entries = (
        Entry(
            int(seq),
            int(value["M"]["a"]["N"]),
            value["M"]["b"]["S"] if "b" in value["M"] else fetch(value["M"]["r"]["S"]),
        )
        for seq, value in item["log"]["M"].items()
    )
    return tuple(sorted(entries, key=lambda entry: entry.seq))


def _head(key: RequestKey, item: _Item) -> Head:
    question = json.loads(item["question"]["S"])
    return Head(
        key=key,
        question=Question(
            query=question["query"],
            session_id=question["session_id"],
            collections=tuple(question["collections"]),
            episodes=tuple(question["episodes"]),
            top_k=question["top_k"],
        ),
        origin=item["origin"]["S"],
        accepted_at_ms=int(item["accepted_at_ms"]["N"]),
        expires_at=int(item["retained_until"]["N"]),
        state=item["state"]["S"],
        attempt=int(item["attempt"]["N"]),
        strategy=item["strategy"]["S"] if "strategy" in item else None,
        execution=item["execution"]["S"] if "execution" in item else None,
        worker=item["worker"]["S"] if "worker" in item else None,
        lease_until=int(item["lease_until"]["N"]),
        last_seq=int(item["last_seq"]["N"]),
        log_bytes=int(item["log_bytes"]["N"]),
        subscribers=tuple(value["S"] for value in item["subscribers"]["L"]),
    )
