"""The log of a request in DynamoDB.

One head item a request (``sk`` = ``head``) holds the log as a map from seq to event, so that an append, its fence and
the list of subscribers are one atomic call. An event above ``INLINE_BYTES`` (the sources, above all) lies in an item of
its own, written before the head refers to it: every later append rewrites the head, and a write is billed by the size
of its item. ``docs/decisions`` has the measurement.

An open request stands in the sparse index ``open``, which holds keys alone: appends do not touch it, and while nothing
is open there is nothing to read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter

from cicada.delivery.ports import Conflict, StoreFault
from cicada.delivery.record import (
    Changed,
    Commit,
    LogEntry,
    Question,
    RequestHead,
    RequestKey,
    RequestSpend,
    Standalone,
    Subscriber,
)
from cicada.errors import RequestUnknown
from cicada.protocol.events import StrategyFailure

INLINE_BYTES = 2 * 1024
"""Events up to this many UTF-8 bytes stand in the head item."""
_HEAD = "head"
OPEN_INDEX = "open"
"""The name of the index of open requests: hash key ``open_in`` (a number), range key ``accepted_at_ms``."""
OPEN_PARTITIONS = 4
"""Open requests are spread over so many partitions: each takes 1,000 writes a second, two a request."""
_TTL_MARGIN_S = 24 * 3600
"""A head outlives its retention by this much, so that an expired request can be told from an unknown one; its events
outlive it by as much again, for DynamoDB deletes in no order."""

STORE_CONFIG = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
"""Time-outs in seconds. A retried write is harmless: the fence tells a landed one from a lost one."""

_Item = Mapping[str, Mapping[str, Any]]
_STANDALONE: TypeAdapter[Standalone] = TypeAdapter(Standalone)
_CHANGED: TypeAdapter[Changed] = TypeAdapter(Changed)
_FAILURES: TypeAdapter[tuple[StrategyFailure, ...]] = TypeAdapter(tuple[StrategyFailure, ...])


class DynamoDbLog:
    """:class:`cicada.delivery.ports.RequestLog` over one table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`STORE_CONFIG`."""
        self._client = client
        self._table = table

    def create(self, head: RequestHead, accepted: str) -> None:
        """See the port."""
        item = {
            **_key(head.key),
            "state": {"S": head.state},
            "attempt": {"N": str(head.attempt)},
            "lease_until": {"N": str(head.lease_until)},
            "last_seq": {"N": "1"},
            "log_bytes": {"N": str(len(accepted.encode()))},
            "log": {"M": {"1": _inline(0, accepted)}},
            "subscribers": _connections(head.subscribers),
            "subscribed_until": _expiries(head.subscribers),
            "question": {"S": json.dumps(asdict(head.question), ensure_ascii=False)},
            "origin": {"S": head.origin},
            "accepted_at_ms": {"N": str(head.accepted_at_ms)},
            "open_in": {"N": str(_open_partition(head.key))},
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

    def head(self, key: RequestKey) -> RequestHead:
        """See the port."""
        with _faults():
            found = self._client.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        if "Item" not in found:
            raise RequestUnknown(key.request_id)
        return _head(key, found["Item"])

    def read(self, key: RequestKey) -> tuple[RequestHead, tuple[LogEntry, ...]]:
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

    def commit(self, head: RequestHead, commit: Commit) -> RequestHead:
        """See the port."""
        names = {
            "#state": "state",
            "#attempt": "attempt",
            "#last": "last_seq",
        }
        values: dict[str, Any] = {
            ":open": {"S": "open"},
            ":attempt": {"N": str(commit.fence.attempt)},
            ":last": {"N": str(commit.fence.last_seq)},
        }
        if commit.bodies:
            names |= {"#bytes": "log_bytes", "#log": "log"}
            values |= {":new_last": {"N": str(commit.last_seq)}, ":added": {"N": str(commit.added_bytes)}}
        sets = ["#last = :new_last", "#bytes = #bytes + :added"] if commit.bodies else []
        for entry in commit.entries():
            names[f"#e{entry.seq}"] = str(entry.seq)
            values[f":e{entry.seq}"] = self._place(head, entry)
            sets.append(f"#log.#e{entry.seq} = :e{entry.seq}")
        remove = ""
        if commit.state != "open":
            values[":state"] = {"S": commit.state}
            sets.append("#state = :state")
            names["#open_in"] = "open_in"
            remove = " REMOVE #open_in"
        if commit.lease_until is not None:
            names["#lease"] = "lease_until"
            values[":lease"] = {"N": str(commit.lease_until)}
            sets.append("#lease = :lease")
        if commit.standalone is not None:
            names["#standalone"] = "standalone"
            values[":standalone"] = {"S": _STANDALONE.dump_json(commit.standalone).decode()}
            sets.append("#standalone = :standalone")
        if commit.spent is not None:
            names["#spent"] = "spent"
            values[":spent"] = {"S": json.dumps(asdict(commit.spent))}
            sets.append("#spent = :spent")
        if commit.changed is not None:
            names["#changed"] = "changed"
            values[":changed"] = {"S": _CHANGED.dump_json(commit.changed).decode()}
            sets.append("#changed = :changed")
        if commit.claim is not None:
            claim = commit.claim
            names |= {
                "#strategy": "strategy",
                "#execution": "execution",
                "#worker": "worker",
                "#failed": "failed",
                "#calls": "reserved_calls",
            }
            values |= {
                ":new_attempt": {"N": str(claim.attempt)},
                ":strategy": {"S": claim.strategy},
                ":execution": {"S": claim.execution},
                ":worker": {"S": claim.worker},
                ":failed": {"S": _FAILURES.dump_json(claim.failed, by_alias=True).decode()},
                ":calls": {"N": str(claim.reserved_calls)},
            }
            sets += [
                "#attempt = :new_attempt",
                "#strategy = :strategy",
                "#execution = :execution",
                "#worker = :worker",
                "#failed = :failed",
                "#calls = :calls",
            ]
        return self._update(
            head.key,
            f"SET {', '.join(sets)}{remove}",
            "#state = :open AND #attempt = :attempt AND #last = :last",
            names,
            values,
        )

    def take_up(self, head: RequestHead, lease_until: int) -> RequestHead:
        """See the port."""
        held = "attribute_not_exists(#execution)" if head.execution is None else "#execution = :execution"
        return self._update(
            head.key,
            "SET #lease = :new, #takeovers = :takeovers REMOVE #execution",
            f"#state = :open AND #lease = :old AND #attempt = :attempt AND {held}",
            {
                "#lease": "lease_until",
                "#state": "state",
                "#attempt": "attempt",
                "#execution": "execution",
                "#takeovers": "takeovers",
            },
            {
                ":new": {"N": str(lease_until)},
                ":old": {"N": str(head.lease_until)},
                ":open": {"S": "open"},
                ":attempt": {"N": str(head.attempt)},
                ":takeovers": {"N": str(head.takeovers + 1)},
                **({} if head.execution is None else {":execution": {"S": head.execution}}),
            },
        )

    def open_requests(self, accepted_before_ms: int) -> Iterator[RequestKey]:
        """See the port."""
        for partition in range(OPEN_PARTITIONS):
            start: dict[str, Any] = {}
            while True:
                with _faults():
                    page = self._client.query(
                        TableName=self._table,
                        IndexName=OPEN_INDEX,
                        KeyConditionExpression="open_in = :partition AND accepted_at_ms < :before",
                        ExpressionAttributeValues={
                            ":partition": {"N": str(partition)},
                            ":before": {"N": str(accepted_before_ms)},
                        },
                        **start,
                    )
                yield from (_key_of(item) for item in page["Items"])
                if "LastEvaluatedKey" not in page:
                    break
                start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def set_subscribers(self, head: RequestHead, subscribers: tuple[Subscriber, ...]) -> RequestHead:
        """See the port."""
        return self._update(
            head.key,
            "SET #subscribers = :new, #until = :until",
            "#subscribers = :old",
            {"#subscribers": "subscribers", "#until": "subscribed_until"},
            {
                ":new": _connections(subscribers),
                ":until": _expiries(subscribers),
                ":old": _connections(head.subscribers),
            },
        )

    def _update(
        self, key: RequestKey, update: str, condition: str, names: dict[str, str], values: dict[str, Any]
    ) -> RequestHead:
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

    def _place(self, head: RequestHead, entry: LogEntry) -> dict[str, Any]:
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

    def _read_entries(self, key: RequestKey, item: _Item) -> tuple[LogEntry, ...]:
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
def _conflicts(key: RequestKey, entries: Callable[[RequestKey, _Item], tuple[LogEntry, ...]]) -> Iterator[None]:
    """A failed condition, with what stands; every other failure is the store's fault."""
    try:
        with _faults():
            yield
    except StoreFault as fault:
        response = getattr(fault.__cause__, "response", None) or {}  # a time-out has one that is None
        if response.get("Error", {}).get("Code") != "ConditionalCheckFailedException":
            raise
        if "Item" not in response:
            raise RequestUnknown(key.request_id) from fault
        item = response["Item"]
        raise Conflict(_head(key, item), entries(key, item)) from fault


def _pk(key: RequestKey) -> str:
    # The request id is a UUID of fixed length, so that no subject can be chosen to collide with another's key.
    return f"{key.request_id}#{key.subject}"


def _key_of(item: _Item) -> RequestKey:
    request_id, subject = item["pk"]["S"].split("#", 1)
    return RequestKey(subject, request_id)


def _open_partition(key: RequestKey) -> int:
    # A client chooses its request ids: a checksum spreads them whatever they are.
    return zlib.crc32(_pk(key).encode()) % OPEN_PARTITIONS


def _key(key: RequestKey, sk: str = _HEAD) -> dict[str, Any]:
    return {"pk": {"S": _pk(key)}, "sk": {"S": sk}}


def _ttl(head: RequestHead, margins: int = 1) -> dict[str, Any]:
    return {"expires_at": {"N": str(head.expires_at + margins * _TTL_MARGIN_S)}}


def _body(key: RequestKey, item: _Item | None) -> str:
    if item is None:  # deleted after its retention, before its head
        raise RequestUnknown(key.request_id)
    return str(item["body"]["S"])


def _connections(subscribers: tuple[Subscriber, ...]) -> dict[str, Any]:
    return {"L": [{"S": one.connection_id} for one in subscribers]}


def _expiries(subscribers: tuple[Subscriber, ...]) -> dict[str, Any]:
    # An attribute of its own: versions before it read the list of connections as it is, while a deployment rolls out.
    return {"M": {one.connection_id: {"N": str(one.expires_at)} for one in subscribers if one.expires_at is not None}}


def _subscribers(item: _Item) -> tuple[Subscriber, ...]:
    until = item["subscribed_until"]["M"] if "subscribed_until" in item else {}
    ids = [value["S"] for value in item["subscribers"]["L"]]
    return tuple(Subscriber(one, int(until[one]["N"]) if one in until else None) for one in ids)


def _inline(attempt: int, body: str) -> dict[str, Any]:
    return {"M": {"a": {"N": str(attempt)}, "b": {"S": body}}}


def _entries(item: _Item, fetch: Callable[[str], str]) -> tuple[LogEntry, ...]:
    entries = (
        LogEntry(
            int(seq),
            int(value["M"]["a"]["N"]),
            value["M"]["b"]["S"] if "b" in value["M"] else fetch(value["M"]["r"]["S"]),
        )
        for seq, value in item["log"]["M"].items()
    )
    return tuple(sorted(entries, key=lambda entry: entry.seq))


def _head(key: RequestKey, item: _Item) -> RequestHead:
    question = json.loads(item["question"]["S"])
    return RequestHead(
        key=key,
        question=Question(
            query=question["query"],
            session_id=question["session_id"],
            collections=tuple(question["collections"]),
            episodes=tuple(question["episodes"]),
            top_k=question["top_k"],
            tenant=question.get("tenant"),
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
        failed=_FAILURES.validate_json(item["failed"]["S"]) if "failed" in item else (),
        reserved_calls=int(item["reserved_calls"]["N"]) if "reserved_calls" in item else 0,
        takeovers=int(item["takeovers"]["N"]) if "takeovers" in item else 0,
        standalone=_STANDALONE.validate_json(item["standalone"]["S"]) if "standalone" in item else None,
        spent=RequestSpend(**json.loads(item["spent"]["S"])) if "spent" in item else RequestSpend(),
        changed=_CHANGED.validate_json(item["changed"]["S"]) if "changed" in item else None,
        last_seq=int(item["last_seq"]["N"]),
        log_bytes=int(item["log_bytes"]["N"]),
        subscribers=_subscribers(item),
    )
