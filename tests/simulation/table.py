"""DynamoDB's twin: a client with one table, under the production adapters.

Conditions and updates are evaluated as DynamoDB does, atomically an item. Items are never changed in place, so that
what a read returned stays what it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from tests.simulation.expressions import Item, condition, plain, updated
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Scheduler

_PARTITION = re.compile(r"(#?\w+)\s*=\s*(:\w+)")
T = TypeVar("T")
Answer = dict[str, Any]
STALE_S = 1.0
"""How far an eventually consistent read may lag."""
USUAL_INDEX_LAG_S = 0.2


class ConditionFailed(ClientError):  # type: ignore[misc]  # botocore has no types
    """``ConditionalCheckFailedException``."""


class Cancelled(ClientError):  # type: ignore[misc]
    """``TransactionCanceledException``."""

    def __init__(self, reasons: list[dict[str, Any]]) -> None:
        response = {"Error": {"Code": "TransactionCanceledException", "Message": ""}, "CancellationReasons": reasons}
        super().__init__(response, "TransactWriteItems")


class Table:
    """The client. ``observe`` hears of every change: partition key, sort key, the item before and after."""

    exceptions = SimpleNamespace(ConditionalCheckFailedException=ConditionFailed)

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        observe: Callable[[str, str, Item | None, Item | None], None],
        *,
        index: tuple[str, str, str],
    ) -> None:
        """``index``: the name, hash key and range key of the one global index, which holds keys alone."""
        self.items: dict[str, dict[str, Item]] = {}
        self._scheduler = scheduler
        self._faults = faults
        self._observe = observe
        self._index_name, self._hash_key, self._range_key = index
        self._indexed: dict[tuple[str, str], tuple[float, Item | None, Item | None]] = {}
        """By key: since when the index shows the second item; before, it shows the first."""
        self._before: dict[tuple[str, str], tuple[float, Item | None]] = {}
        self._down_until = -1.0

    # --- the client's methods ---

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = False, **_: Any) -> Item:  # noqa: N803
        """See boto3."""
        pk, sk = Key["pk"]["S"], Key["sk"]["S"]
        found = self._call(lambda: self._seen(pk, sk, self.items.get(pk, {}).get(sk), ConsistentRead))
        return {} if found is None else {"Item": found}

    def put_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Item: Item,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any] | None = None,  # noqa: N803
        **_: Any,
    ) -> Item:
        """See boto3."""
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}

        def put() -> Answer:
            before = self._held(Item, ConditionExpression, names, values)
            self._store(Item["pk"]["S"], Item["sk"]["S"], before, Item)
            return {}

        return self._call(put, writes=True)

    def update_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        UpdateExpression: str,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any] | None = None,  # noqa: N803
        **_: Any,
    ) -> Item:
        """See boto3. The whole item is returned whatever was asked for."""
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}

        def update() -> Answer:
            before = self._held(Key, ConditionExpression, names, values)
            after = updated(dict(Key) if before is None else before, UpdateExpression, names, values)
            self._store(Key["pk"]["S"], Key["sk"]["S"], before, after)
            return {"Attributes": after}

        return self._call(update, writes=True)

    def transact_write_items(self, *, TransactItems: list[dict[str, Any]], **_: Any) -> Item:  # noqa: N803
        """See boto3, which gives each transaction a token: a repeated one is not carried out twice."""
        parts = [next(iter(one.items())) for one in TransactItems]
        keys = [_key_of(part.get("Key") or part["Item"]) for _, part in parts]
        if len(set(keys)) < len(keys):
            raise AssertionError("a transaction has two parts for one item, which DynamoDB refuses")
        landed = False

        def write() -> Answer:
            nonlocal landed
            if landed:
                return {}
            examined = [self._examined(part) for _, part in parts]
            if any(reason for _, reason in examined):
                raise Cancelled([reason or {"Code": "None"} for _, reason in examined])
            landed = True
            for (verb, part), (pk, sk), (before, _) in zip(parts, keys, examined, strict=True):
                if verb != "ConditionCheck":
                    self._store(pk, sk, before, _after(verb, part, before))
            return {}

        if self._faults.hit("transaction_conflict"):
            self._scheduler.sleep(0.005)
            conflicting = int(self._scheduler.random() * len(parts))
            raise Cancelled(
                [{"Code": "TransactionConflict" if n == conflicting else "None"} for n in range(len(parts))]
            )
        return self._call(write, writes=True)

    def _examined(self, part: Mapping[str, Any]) -> tuple[Item | None, dict[str, Any] | None]:
        """The item before a part of a transaction, and why the part does not land."""
        names, values = part.get("ExpressionAttributeNames", {}), part.get("ExpressionAttributeValues", {})
        try:
            return self._held(part.get("Key") or part["Item"], part.get("ConditionExpression"), names, values), None
        except ConditionFailed as failed:
            shown = part.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            item = {"Item": failed.response["Item"]} if shown and "Item" in failed.response else {}
            return None, {"Code": "ConditionalCheckFailed", **item}

    def delete_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        ConditionExpression: str | None = None,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any] | None = None,  # noqa: N803
        **_: Any,
    ) -> Item:
        """See boto3."""
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}

        def delete() -> Answer:
            before = self._held(Key, ConditionExpression, names, values)
            self._store(Key["pk"]["S"], Key["sk"]["S"], before, None)
            return {}

        return self._call(delete, writes=True)

    def query(
        self,
        *,
        TableName: str,  # noqa: N803
        KeyConditionExpression: str,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str] | None = None,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any],  # noqa: N803
        FilterExpression: str | None = None,  # noqa: N803
        ConsistentRead: bool = False,  # noqa: N803
        ScanIndexForward: bool = True,  # noqa: N803
        Limit: int | None = None,  # noqa: N803
        **_: Any,
    ) -> Item:
        """See boto3. A page holds everything, or ``Limit`` items. Attributes are returned whatever was projected."""
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues
        matches = condition(KeyConditionExpression)
        passes = condition(FilterExpression) if FilterExpression else None

        def query() -> Answer:
            candidates = self._partition(KeyConditionExpression, names, values, ConsistentRead)
            found = sorted(
                (item for item in candidates if matches(item, names, values)),
                key=lambda item: plain(item["sk"]),
                reverse=not ScanIndexForward,
            )[:Limit]
            kept = [item for item in found if passes is None or passes(item, names, values)]
            return {"Items": kept, "Count": len(kept), "ScannedCount": len(found)}

        return self._call(query)

    def scan(
        self,
        *,
        TableName: str,  # noqa: N803
        IndexName: str,  # noqa: N803
        FilterExpression: str,  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any],  # noqa: N803
    ) -> Item:
        """See boto3: of the index alone, in one page, in no order that means anything."""
        passes = condition(FilterExpression)

        def scan() -> Answer:
            found = self._index()
            kept = [item for item in found if passes(item, {}, ExpressionAttributeValues)]
            return {"Items": kept, "Count": len(kept), "ScannedCount": len(found)}

        return self._call(scan)

    def batch_get_item(self, *, RequestItems: Mapping[str, Any], **_: Any) -> Item:  # noqa: N803
        """See boto3."""
        ((table, asked),) = RequestItems.items()

        def read() -> Answer:
            keys = [(key["pk"]["S"], key["sk"]["S"]) for key in asked["Keys"]]
            seen = (self._seen(pk, sk, self.items.get(pk, {}).get(sk), asked.get("ConsistentRead")) for pk, sk in keys)
            return {"Responses": {table: [item for item in seen if item is not None]}, "UnprocessedKeys": {}}

        return self._call(read)

    def batch_write_item(self, *, RequestItems: Mapping[str, Any], **_: Any) -> Item:  # noqa: N803
        """See boto3, for deletes alone."""
        ((_table, requests),) = RequestItems.items()

        def delete() -> Answer:
            for request in requests:
                key = request["DeleteRequest"]["Key"]
                self._store(key["pk"]["S"], key["sk"]["S"], self._held(key, None, {}, {}), None)
            return {"UnprocessedItems": {}}

        return self._call(delete, writes=True)

    # --- the table ---

    def delete_expired(self, now_s: float, share: float) -> None:
        """DynamoDB's own deletions: of the items whose ``expires_at`` has passed, some."""
        for pk, items in list(self.items.items()):
            for sk, item in list(items.items()):
                if "expires_at" in item and plain(item["expires_at"]) < now_s and self._scheduler.random() < share:
                    self._faults.note("expired_items_deleted")
                    self._store(pk, sk, item, None)

    def _held(self, key: Item, text: str | None, names: Mapping[str, str], values: Mapping[str, Any]) -> Item | None:
        """The item that stands, if the condition holds."""
        before = self.items.get(key["pk"]["S"], {}).get(key["sk"]["S"])
        if text is not None and not condition(text)(before or {}, names, values):
            response: dict[str, Any] = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}}
            if before is not None:
                response["Item"] = before
            raise ConditionFailed(response, "Write")
        return before

    def _store(self, pk: str, sk: str, before: Item | None, after: Item | None) -> None:
        now = self._scheduler.now
        items = self.items.setdefault(pk, {})
        if after is None:
            items.pop(sk, None)
        else:
            items[sk] = after
        self._before[pk, sk] = (now, before)
        shown = after is not None and self._hash_key in after
        was_shown = before is not None and self._hash_key in before
        if shown != was_shown:
            lag_s = self._faults.between(1, 20) if self._faults.hit("open_index_lags") else USUAL_INDEX_LAG_S
            self._indexed[pk, sk] = (now + lag_s, before if was_shown else None, after if shown else None)
        self._observe(pk, sk, before, after)

    def _seen(self, pk: str, sk: str, item: Item | None, consistent: bool | None) -> Item | None:
        """What a read shows of an item."""
        changed_at, before = self._before.get((pk, sk), (-STALE_S, None))
        if not consistent and self._scheduler.now - changed_at < STALE_S and self._faults.hit("store_stale_read"):
            return before
        return item

    def _partition(
        self, text: str, names: Mapping[str, str], values: Mapping[str, Any], consistent: bool
    ) -> list[Item]:
        for name, value in _PARTITION.findall(text):
            if names.get(name, name) == "pk":
                pk = values[value]["S"]
                seen = (self._seen(pk, sk, item, consistent) for sk, item in self.items.get(pk, {}).items())
                return [item for item in seen if item is not None]
        raise AssertionError(f"a query without a partition: {text}")

    def _index(self) -> list[Item]:
        now = self._scheduler.now
        shown = (after if now >= since else before for since, before, after in self._indexed.values())
        return [
            {name: item[name] for name in ("pk", "sk", self._hash_key, self._range_key)}
            for item in shown
            if item is not None
        ]

    # --- the way there and back ---

    def _call(self, effect: Callable[[], T], *, writes: bool = False) -> T:
        scheduler, faults = self._scheduler, self._faults
        scheduler.sleep(0.001 + 0.004 * scheduler.random())
        if not faults.off:
            self._fail(effect, writes)
        result = effect()
        if writes and not faults.off:
            if faults.hit("store_ack_lost"):
                scheduler.sleep(2.0)
                raise ReadTimeoutError(endpoint_url="dynamodb")
            if faults.hit("store_write_repeated"):
                scheduler.sleep(faults.between(0.05, 1.0))
                result = effect()
        scheduler.sleep(0.001 + 0.004 * scheduler.random())
        return result

    def _fail(self, effect: Callable[[], Any], writes: bool) -> None:
        scheduler, faults = self._scheduler, self._faults
        if scheduler.now < self._down_until:
            faults.note("store_down")
            scheduler.sleep(faults.between(0.05, 1.0))
            raise EndpointConnectionError(endpoint_url="dynamodb")
        if faults.hit("store_down"):
            self._down_until = scheduler.now + faults.between(0.5, 25)
            raise EndpointConnectionError(endpoint_url="dynamodb")
        if faults.hit("store_throttled"):
            error = {"Code": "ProvisionedThroughputExceededException", "Message": ""}
            raise ClientError({"Error": error}, "Call")
        if faults.hit("store_slow"):
            scheduler.sleep(faults.between(0.1, 1.9))
        if writes and faults.hit("store_write_late"):
            scheduler.call_at(scheduler.now + faults.between(0.1, 10), lambda: _late(effect))
            scheduler.sleep(2.0)
            raise ReadTimeoutError(endpoint_url="dynamodb")


def _late(effect: Callable[[], Any]) -> None:
    """What becomes of a write that nobody waits for any more."""
    try:
        effect()
    except (ConditionFailed, Cancelled):
        return


def _key_of(item: Item) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _after(verb: str, part: Mapping[str, Any], before: Item | None) -> Item | None:
    """An item after a part of a transaction that changes it."""
    if verb == "Delete":
        return None
    if verb == "Put":
        return dict(part["Item"])
    return updated(
        dict(part["Key"]) if before is None else before,
        part["UpdateExpression"],
        part.get("ExpressionAttributeNames", {}),
        part.get("ExpressionAttributeValues", {}),
    )
