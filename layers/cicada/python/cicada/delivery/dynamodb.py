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

from cicada.delivery.ports import Conflict, NotReserved, StoreFault
from cicada.delivery.record import (
    Commit,
    LogEntry,
    RequestHead,
    RequestKey,
    Subscriber,
)
from cicada.delivery.stored_heads import dump_changes, dump_subscribers, inline_event, load_entries, load_head
from cicada.dynamodb import (
    CONDITION_FAILED,
    ConditionFailed,
    Item,
    TransactionCancelled,
    attributes,
    faults_as,
    queried,
    read_item,
    scanned,
    transact,
)
from cicada.errors import RequestUnknown
from cicada.usage.accounts import Window
from cicada.usage.dynamodb import counting, dump_reservation, reserving, settling
from cicada.usage.reservations import Claim, Reservation

INLINE_BYTES = 2 * 1024
"""Events up to this many UTF-8 bytes are stored in the head item."""
_HEAD, _EVENT, _RESERVATION = "head", "event#", "reservation"
OPEN_INDEX = "open"
"""The name of the index of open requests: hash key ``open_in`` (a number), range key ``accepted_at_ms``."""
OPEN_PARTITIONS = 4
"""Partitions of the index of open requests unless a setting says otherwise. Each takes 1,000 writes a second, and a
request needs two. The index is scanned, so that the number matters to nobody who reads it; release 0.1.0 reads four."""
_TTL_MARGIN_S = 24 * 3600
"""How long a head outlives its retention, so that an expired request differs from an unknown one. Its events outlive it
by the same time again, because DynamoDB's TTL deletes items in no order."""

STORE_CONFIG = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
"""Time-outs in seconds. A retried write of a log is harmless: the fence shows whether the first one landed. A retried
count of use without a reservation may count twice."""

_CONTENTION_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""About how long to wait after transactions that met others on the same accounts."""


class DynamoDbLog:
    """:class:`cicada.delivery.ports.RequestLog` over one table."""

    def __init__(
        self,
        client: Any,
        table: str,
        *,
        open_partitions: int = OPEN_PARTITIONS,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Wire the log.

        Args:
            client: a DynamoDB client made with :data:`STORE_CONFIG`.
            open_partitions: over how many partitions of the index open requests are spread.
        """
        self._client = client
        self._table = table
        self._open_partitions = open_partitions
        self._sleep = sleep
        self._random = random

    def create(self, head: RequestHead, accepted: str, claims: Sequence[Claim] = ()) -> None:
        """See the port."""
        listed = {"open_in": self._open_in(head.key), **attributes(accepted_at_ms=head.accepted_at_ms)}
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
            **dump_subscribers(head.subscribers),
            "log": {"M": {"1": inline_event(0, accepted)}},
        }
        if head.reservation is not None:
            reservation = {**_key(head.key, _RESERVATION), **listed, **_ttl(head)}
            self._create_reserved(head, head.reservation, self._new(item), self._new(reservation), claims)
            return
        with _conflicts(head.key, lambda key, item: (load_head(key, item), ())):  # the port promises no entries
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
        reserve = {key: part for claim in claims for key, part in reserving(self._table, reserved, claim).items()}
        try:
            transact(self._client, StoreFault, [{"Put": new}, {"Put": reservation}, *reserve.values()])
        except TransactionCancelled as cancelled:
            stored, *others = cancelled.items
            if cancelled.codes[0] == CONDITION_FAILED and stored is not None:
                raise Conflict(load_head(head.key, stored), ()) from cancelled
            changed = {
                key: item or {}
                for key, item, code in zip(reserve, others[1:], cancelled.codes[2:], strict=True)
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
            except TransactionCancelled as cancelled:
                if cancelled.codes[0] == CONDITION_FAILED:
                    return False
                self._sleep(pause_s * (0.5 + self._random()))
            else:
                return True
        raise StoreFault("too many concurrent writes of the accounts")

    def head(self, key: RequestKey) -> RequestHead:
        """See the port."""
        item = self._item(key, _HEAD)
        if item is None:
            raise RequestUnknown(key.request_id)
        return load_head(key, item)

    def read(self, key: RequestKey) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        """See the port."""
        items = self._items(key)
        return load_head(key, items[_HEAD]), load_entries(items[_HEAD], lambda sk: _body(key, items.get(sk)))

    def commit(self, head: RequestHead, commit: Commit) -> RequestHead:
        """See the port."""
        changes = dump_changes(commit)
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
            names["#open_in"], values[":open_in"] = "open_in", self._open_in(head.key)
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
        found = scanned(
            self._client,
            StoreFault,
            TableName=self._table,
            IndexName=OPEN_INDEX,
            FilterExpression="accepted_at_ms < :before",
            ExpressionAttributeValues={":before": {"N": str(accepted_before_ms)}},
        )
        for item in found:
            request_id, subject = item["pk"]["S"].split("#", 1)
            yield RequestKey(subject, request_id)

    def set_subscribers(self, head: RequestHead, subscribers: tuple[Subscriber, ...]) -> RequestHead:
        """See the port."""
        new, old = dump_subscribers(subscribers), dump_subscribers(head.subscribers)
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
        return load_head(key, done["Attributes"])

    def _open_in(self, key: RequestKey) -> dict[str, str]:
        # A client chooses its request ids: a checksum spreads them whatever they are.
        return {"N": str(zlib.crc32(_pk(key).encode()) % self._open_partitions)}

    def _place(self, head: RequestHead, entry: LogEntry) -> dict[str, Any]:
        """An event's value in the head's log: the event, or a reference to the item that is written here for it."""
        body = entry.body.encode()
        if len(body) <= INLINE_BYTES:
            return inline_event(entry.attempt, entry.body)
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
        return read_item(self._client, StoreFault, self._table, _key(key, sk))

    def _logged(self, key: RequestKey, head: Item) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        try:
            return load_head(key, head), load_entries(head, lambda sk: _body(key, self._item(key, sk)))
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


def _pk(key: RequestKey) -> str:
    # The request id is a UUID of fixed length, so that no subject can be chosen to collide with another's key.
    return f"{key.request_id}#{key.subject}"


def _key(key: RequestKey, sk: str = _HEAD) -> dict[str, Any]:
    return attributes(pk=_pk(key), sk=sk)


def _ttl(head: RequestHead, margins: int = 1) -> dict[str, Any]:
    return attributes(expires_at=head.expires_at + margins * _TTL_MARGIN_S)


def _body(key: RequestKey, item: Item | None) -> str:
    if item is None:  # deleted after its retention, before its head
        raise RequestUnknown(key.request_id)
    return str(item["body"]["S"])
