"""The log of a request in DynamoDB.

One head item per request (``sk`` = ``head``) holds the log as a map from seq to event, so that one atomic call appends
events, checks the fence and returns the subscribers. An event above ``INLINE_BYTES`` (mostly the sources) gets an item
of its own, which is written before the head refers to it: every append rewrites the head, and a write is billed by the
size of its item. ``docs/decisions`` has the measurement.

An open request is in the sparse index ``open``, which holds keys only: appends do not write to it, and while nothing is
open it is empty. A request with a reservation has a small item more (``sk`` = ``reservation``), which is in the index
in place of the head. Whoever settles the request deletes it in the same transaction that counts what was used.
"""

from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from botocore.config import Config
from pydantic import TypeAdapter

from cicada.delivery.ports import Conflict, NotReserved, StoreFault
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
from cicada.dynamodb import (
    CONDITION_FAILED,
    Cancelled,
    ConditionFailed,
    Item,
    attributes,
    faults_as,
    queried,
    transact,
)
from cicada.errors import RequestUnknown
from cicada.protocol.events import StrategyFailure
from cicada.usage.accounts import Window
from cicada.usage.dynamodb import counting, dump_reservation, load_reservation, reserving, settling
from cicada.usage.reservations import Amount, Claim, Reservation

INLINE_BYTES = 2 * 1024
"""Events up to this many UTF-8 bytes are stored in the head item."""
_HEAD, _EVENT, _RESERVATION = "head", "event#", "reservation"
OPEN_INDEX = "open"
"""The name of the index of open requests: hash key ``open_in`` (a number), range key ``accepted_at_ms``."""
OPEN_PARTITIONS = 4
"""Partitions of the open requests: each takes 1,000 writes a second, and a request needs two."""
_TTL_MARGIN_S = 24 * 3600
"""How long a head outlives its retention, so that an expired request differs from an unknown one. Its events outlive it
by the same time again, because DynamoDB's TTL deletes items in no order."""

STORE_CONFIG = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
"""Time-outs in seconds. A retried write is harmless: the fence shows whether the first one landed."""

_CONTENTION_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""About how long to wait after transactions that met others on the same accounts."""

_STANDALONE: TypeAdapter[Standalone] = TypeAdapter(Standalone)
_CHANGED: TypeAdapter[Changed] = TypeAdapter(Changed)
_FAILURES: TypeAdapter[tuple[StrategyFailure, ...]] = TypeAdapter(tuple[StrategyFailure, ...])


class DynamoDbLog:
    """:class:`cicada.delivery.ports.RequestLog` over one table."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        """``client``: a DynamoDB client made with :data:`STORE_CONFIG`."""
        self._client = client
        self._table = table
        self._sleep = sleep
        self._random = random

    def create(self, head: RequestHead, accepted: str, claims: Sequence[Claim] = ()) -> None:
        """See the port."""
        listed = {"open_in": _open_in(head.key), **attributes(accepted_at_ms=head.accepted_at_ms)}
        item = {
            **_key(head.key),
            **attributes(
                state=head.state,
                attempt=head.attempt,
                lease_until=head.lease_until,
                last_seq=1,
                log_bytes=len(accepted.encode()),
                question=json.dumps(asdict(head.question), ensure_ascii=False),
                origin=head.origin,
                accepted_at_ms=head.accepted_at_ms,
                retained_until=head.expires_at,
            ),
            **_ttl(head),
            **_subscribed(head.subscribers),
            "log": {"M": {"1": _inline(0, accepted)}},
        }
        if head.reservation is not None:
            reservation = {**_key(head.key, _RESERVATION), **listed, **_ttl(head)}
            self._create_reserved(head, head.reservation, self._new(item), self._new(reservation), claims)
            return
        with _conflicts(head.key, lambda key, item: (_head(key, item), ())):  # the port promises no entries
            self._client.put_item(**self._new({**item, **listed}))

    def _new(self, item: dict[str, Any]) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _create_reserved(
        self,
        head: RequestHead,
        reserved: Reservation,
        new: dict[str, Any],
        reservation: dict[str, Any],
        claims: Sequence[Claim],
    ) -> None:
        new["Item"] |= attributes(reservation=dump_reservation(reserved))
        updates = [reserving(self._table, reserved, claim) for claim in claims]
        try:
            puts = [{"Put": new}, {"Put": reservation}]
            transact(self._client, StoreFault, [*puts, *({"Update": update} for update in updates)])
        except Cancelled as cancelled:
            stored, *others = cancelled.items
            if cancelled.codes[0] == CONDITION_FAILED and stored is not None:
                raise Conflict(_head(head.key, stored), ()) from cancelled
            changed = {
                claim.account.item(reserved.month): item or {}
                for claim, item, code in zip(claims, others[1:], cancelled.codes[2:], strict=True)
                if code == CONDITION_FAILED
            }
            raise NotReserved(changed) from cancelled

    def settle(self, head: RequestHead) -> bool:
        """See the port."""
        used, reserved = head.used, head.reservation
        if reserved is None:
            window = Window.at(head.accepted_at_ms / 1000)
            with faults_as(StoreFault):
                self._client.update_item(**counting(self._table, head.key.subject, window.month, window.day, used))
            return True
        gone = {
            "TableName": self._table,
            "Key": _key(head.key, _RESERVATION),
            "ConditionExpression": "attribute_exists(pk)",
        }
        updates = [settling(self._table, reserved, account, used) for account in reserved.accounts]
        if all(account.kind != "user" for account in reserved.accounts):
            updates.append(counting(self._table, head.key.subject, reserved.month, reserved.day, used))
        for pause_s in _CONTENTION_PAUSES_S:
            try:
                transact(self._client, StoreFault, [{"Delete": gone}, *({"Update": update} for update in updates)])
            except Cancelled as cancelled:
                if cancelled.codes[0] == CONDITION_FAILED:
                    return False
                self._sleep(pause_s * (0.5 + self._random()))
            else:
                return True
        raise StoreFault("the accounts are being written by others")

    def head(self, key: RequestKey) -> RequestHead:
        """See the port."""
        item = self._item(key, _HEAD)
        if item is None:
            raise RequestUnknown(key.request_id)
        return _head(key, item)

    def read(self, key: RequestKey) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        """See the port."""
        items = self._items(key)
        return _head(key, items[_HEAD]), _entries(items[_HEAD], lambda sk: _body(key, items.get(sk)))

    def commit(self, head: RequestHead, commit: Commit) -> RequestHead:
        """See the port."""
        changes = _changes(commit)
        names = {"#state": "state", "#attempt": "attempt", "#last": "last_seq"}
        values: dict[str, Any] = {
            ":open": {"S": "open"},
            ":attempt": {"N": str(commit.fence.attempt)},
            ":last": {"N": str(commit.fence.last_seq)},
        }
        sets = []
        for name, value in changes.items():
            names[f"#new_{name}"], values[f":new_{name}"] = name, value
            sets.append(f"#new_{name} = :new_{name}")
        if commit.bodies:
            names |= {"#bytes": "log_bytes", "#log": "log"}
            values[":added"] = {"N": str(commit.added_bytes)}
            sets.append("#bytes = #bytes + :added")
        entries = (*commit.log, *commit.entries())
        if commit.log:  # as a whole: an expression that names each event could be longer than DynamoDB allows
            values[":log"] = {"M": {str(entry.seq): self._place(head, entry) for entry in entries}}
            names["#open_in"], values[":open_in"] = "open_in", _open_in(head.key)
            sets += ["#log = :log", "#open_in = :open_in"]  # until it is purged
        else:
            for entry in entries:
                names[f"#e{entry.seq}"] = str(entry.seq)
                values[f":e{entry.seq}"] = self._place(head, entry)
                sets.append(f"#log.#e{entry.seq} = :e{entry.seq}")
        remove = ""
        if commit.state != "open" and not commit.log:  # leaves the index of open requests
            names["#open_in"] = "open_in"
            remove = " REMOVE #open_in"
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

    def purge(self, head: RequestHead, *, done: bool) -> None:
        """See the port."""
        found = self._items(head.key)
        used = {value["M"]["r"]["S"] for value in found[_HEAD]["log"]["M"].values() if "r" in value["M"]}
        for sk in (sk for sk in found.keys() - used if sk.startswith(_EVENT)):
            with faults_as(StoreFault):
                self._client.delete_item(TableName=self._table, Key=_key(head.key, sk))
        if done:
            self._update(
                head.key,
                "REMOVE #open_in, #withdrawn",
                "#last = :last",  # of an ended request it stays
                {"#open_in": "open_in", "#withdrawn": "withdrawn", "#last": "last_seq"},
                {":last": {"N": str(head.last_seq)}},
            )

    def open_requests(self, accepted_before_ms: int) -> Iterator[RequestKey]:
        """See the port."""
        for partition in range(OPEN_PARTITIONS):
            found = queried(
                self._client,
                StoreFault,
                TableName=self._table,
                IndexName=OPEN_INDEX,
                KeyConditionExpression="open_in = :partition AND accepted_at_ms < :before",
                ExpressionAttributeValues={
                    ":partition": {"N": str(partition)},
                    ":before": {"N": str(accepted_before_ms)},
                },
            )
            for item in found:
                request_id, subject = item["pk"]["S"].split("#", 1)
                yield RequestKey(subject, request_id)

    def set_subscribers(self, head: RequestHead, subscribers: tuple[Subscriber, ...]) -> RequestHead:
        """See the port."""
        new, old = _subscribed(subscribers), _subscribed(head.subscribers)
        return self._update(
            head.key,
            "SET #subscribers = :new, #until = :until",
            "#subscribers = :old",
            {"#subscribers": "subscribers", "#until": "subscribed_until"},
            {":new": new["subscribers"], ":until": new["subscribed_until"], ":old": old["subscribers"]},
        )

    def _update(
        self, key: RequestKey, update: str, condition: str, names: dict[str, str], values: dict[str, Any]
    ) -> RequestHead:
        with _conflicts(key, self._logged):
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
        """An event's value in the head's log: the event, or a reference to the item that is written here for it."""
        body = entry.body.encode()
        if len(body) <= INLINE_BYTES:
            return _inline(entry.attempt, entry.body)
        # Two writers may try the same place, such as a worker and a cancellation: neither may replace the other's item.
        sk = f"{_EVENT}{entry.seq}#{entry.attempt}#{zlib.crc32(body):08x}"
        with faults_as(StoreFault):
            self._client.put_item(
                TableName=self._table,
                Item={**_key(head.key, sk), "body": {"S": entry.body}, **_ttl(head, margins=2)},
            )
        return {"M": {"a": {"N": str(entry.attempt)}, "r": {"S": sk}}}

    def _items(self, key: RequestKey) -> dict[str, Item]:
        """By sort key, the head and the items of events. Raises RequestUnknown."""
        found = queried(
            self._client,
            StoreFault,
            TableName=self._table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": _pk(key)}},
            ConsistentRead=True,
        )
        items = {str(item["sk"]["S"]): item for item in found}
        if _HEAD not in items:
            raise RequestUnknown(key.request_id)
        return items

    def _item(self, key: RequestKey, sk: str) -> Item | None:
        with faults_as(StoreFault):
            found = self._client.get_item(TableName=self._table, Key=_key(key, sk), ConsistentRead=True)
        item: Item | None = found.get("Item")
        return item

    def _logged(self, key: RequestKey, head: Item) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        try:
            return _head(key, head), _entries(head, lambda sk: _body(key, self._item(key, sk)))
        except RequestUnknown:  # its text was withdrawn meanwhile, if it is still there
            return self.read(key)


@contextmanager
def _conflicts(
    key: RequestKey, logged: Callable[[RequestKey, Item], tuple[RequestHead, tuple[LogEntry, ...]]]
) -> Iterator[None]:
    """Raise Conflict, with the request as ``logged`` reads it from its head, if a write's condition does not hold."""
    try:
        with faults_as(StoreFault):
            yield
    except ConditionFailed as failed:
        if failed.item is None:
            raise RequestUnknown(key.request_id) from failed
        raise Conflict(*logged(key, failed.item)) from failed


def _changes(commit: Commit) -> dict[str, Any]:
    """The head's attributes that a commit replaces; its log grows beside them."""
    changes = attributes(
        last_seq=commit.last_seq if commit.bodies else None,
        state=commit.state if commit.state != "open" else None,
        lease_until=commit.lease_until,
        withdrawn=1 if commit.log else None,
        standalone=_STANDALONE.dump_json(commit.standalone).decode() if commit.standalone else None,
        **_spent_attributes(commit.spent),
        changed=_CHANGED.dump_json(commit.changed).decode() if commit.changed else None,
    )
    if (claim := commit.claim) is not None:
        changes |= attributes(
            attempt=claim.attempt,
            strategy=claim.strategy,
            execution=claim.execution,
            worker=claim.worker,
            failed=_FAILURES.dump_json(claim.failed, by_alias=True).decode(),
            reserved_calls=claim.reserved_calls,
        )
    return changes


def _spent_attributes(spent: RequestSpend | None) -> dict[str, str]:
    # Two attributes: while a deployment rolls out, older releases read the first as it is.
    if spent is None:
        return {}
    known = {name: getattr(spent, name) for name in ("calls", "input_tokens", "output_tokens", "usd")}
    counted = {"known_usd": spent.known_usd, "unreported": spent.unreported}
    return {"spent": json.dumps(known), "counted": json.dumps(counted)}


def _spent(item: Item) -> RequestSpend:
    if "spent" not in item:
        return RequestSpend()
    counted = json.loads(item["counted"]["S"]) if "counted" in item else {}
    known = json.loads(item["spent"]["S"])
    usd = counted.get("known_usd", known["usd"] or 0.0)
    return RequestSpend(**known, known_usd=usd, unreported=Amount(*counted.get("unreported", (0, 0))))


def _pk(key: RequestKey) -> str:
    # The request id is a UUID of fixed length, so that no subject can be chosen to collide with another's key.
    return f"{key.request_id}#{key.subject}"


def _open_in(key: RequestKey) -> dict[str, str]:
    # A client chooses its request ids: a checksum spreads them whatever they are.
    return {"N": str(zlib.crc32(_pk(key).encode()) % OPEN_PARTITIONS)}


def _key(key: RequestKey, sk: str = _HEAD) -> dict[str, Any]:
    return attributes(pk=_pk(key), sk=sk)


def _ttl(head: RequestHead, margins: int = 1) -> dict[str, Any]:
    return attributes(expires_at=head.expires_at + margins * _TTL_MARGIN_S)


def _body(key: RequestKey, item: Item | None) -> str:
    if item is None:  # deleted after its retention, before its head
        raise RequestUnknown(key.request_id)
    return str(item["body"]["S"])


def _subscribed(subscribers: tuple[Subscriber, ...]) -> dict[str, Any]:
    # The expiries are an attribute of their own: while a deployment rolls out, older releases read the list as it is.
    return {
        "subscribers": {"L": [{"S": one.connection_id} for one in subscribers]},
        "subscribed_until": {"M": attributes(**{one.connection_id: one.expires_at for one in subscribers})},
    }


def _subscribers(item: Item) -> tuple[Subscriber, ...]:
    until = item["subscribed_until"]["M"] if "subscribed_until" in item else {}
    ids = [value["S"] for value in item["subscribers"]["L"]]
    return tuple(Subscriber(one, int(until[one]["N"]) if one in until else None) for one in ids)


def _inline(attempt: int, body: str) -> dict[str, Any]:
    return {"M": {"a": {"N": str(attempt)}, "b": {"S": body}}}


def _entries(item: Item, fetch: Callable[[str], str]) -> tuple[LogEntry, ...]:
    entries = (
        LogEntry(
            int(seq),
            int(value["M"]["a"]["N"]),
            value["M"]["b"]["S"] if "b" in value["M"] else fetch(value["M"]["r"]["S"]),
        )
        for seq, value in item["log"]["M"].items()
    )
    return tuple(sorted(entries, key=lambda entry: entry.seq))


def _head(key: RequestKey, item: Item) -> RequestHead:
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
            groups=tuple(question.get("groups", ())),
        ),
        origin=item["origin"]["S"],
        accepted_at_ms=int(item["accepted_at_ms"]["N"]),
        expires_at=int(item["retained_until"]["N"]),
        state=item["state"]["S"],
        attempt=int(item["attempt"]["N"]),
        strategy=item.get("strategy", {}).get("S"),
        execution=item.get("execution", {}).get("S"),
        worker=item.get("worker", {}).get("S"),
        lease_until=int(item["lease_until"]["N"]),
        failed=_FAILURES.validate_json(item["failed"]["S"]) if "failed" in item else (),
        reserved_calls=int(item.get("reserved_calls", {}).get("N", 0)),
        takeovers=int(item.get("takeovers", {}).get("N", 0)),
        standalone=_STANDALONE.validate_json(item["standalone"]["S"]) if "standalone" in item else None,
        spent=_spent(item),
        changed=_CHANGED.validate_json(item["changed"]["S"]) if "changed" in item else None,
        last_seq=int(item["last_seq"]["N"]),
        log_bytes=int(item["log_bytes"]["N"]),
        withdrawn="withdrawn" in item,
        subscribers=_subscribers(item),
        reservation=load_reservation(item["reservation"]["S"]) if "reservation" in item else None,
    )
