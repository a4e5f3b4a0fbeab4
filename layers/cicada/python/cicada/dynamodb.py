"""What the adapters over DynamoDB share: faults, failed conditions, items and the pages of a Query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

Item = Mapping[str, Mapping[str, Any]]
"""An item in DynamoDB's typed JSON."""
CONDITION_FAILED = "ConditionalCheckFailed"
"""Why a part of a transaction did not land: its condition does not hold."""
_CANCELLING = {CONDITION_FAILED, "TransactionConflict"}
_READ_AT_ONCE = 100
"""Keys of one BatchGetItem."""
_BATCH_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""After calls that left keys unread, which DynamoDB does under a throttle."""


class ConditionFailed(Exception):
    """The condition of a write did not hold. ``item`` is what is stored, None if there is none."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition of a write did not hold")
        self.item = item


class TransactionCancelled(Exception):
    """A transaction did not land. ``reasons`` has a code for each of its parts, and the item that is stored."""

    def __init__(self, reasons: Sequence[Mapping[str, Any]]) -> None:
        self.codes = tuple(str(reason.get("Code", "None")) for reason in reasons)
        self.items: tuple[Item | None, ...] = tuple(reason.get("Item") for reason in reasons)
        super().__init__(f"cancelled: {', '.join(self.codes)}")


@contextmanager
def faults_as(fault: type[Exception]) -> Iterator[None]:
    """Raise ConditionFailed if a write's condition does not hold, and ``fault`` for every other failure of a call."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            raise ConditionFailed(error.response.get("Item")) from error
        raise fault(str(error)) from error
    except BotoCoreError as error:
        raise fault(str(error)) from error


def transact(client: Any, fault: type[Exception], parts: Sequence[Mapping[str, Any]]) -> None:
    """Write several items or none.

    Raises ``fault``, or TransactionCancelled if a condition does not hold or another transaction conflicts.
    """
    try:
        client.transact_write_items(TransactItems=parts)
    except ClientError as error:
        reasons = error.response.get("CancellationReasons", ())
        if {str(reason.get("Code", "None")) for reason in reasons} & _CANCELLING:
            raise TransactionCancelled(reasons) from error
        raise fault(str(error)) from error
    except BotoCoreError as error:
        raise fault(str(error)) from error


def read_items(
    client: Any,
    fault: type[Exception],
    table: str,
    keys: Sequence[tuple[str, str]],
    *,
    sleep: Callable[[float], None],
    **projection: Any,
) -> dict[tuple[str, str], Item]:
    """The items of several keys, those that exist, by consistent reads. A projection must have ``pk`` and ``sk``."""
    found: dict[tuple[str, str], Item] = {}
    left = [attributes(pk=pk, sk=sk) for pk, sk in dict.fromkeys(keys)]
    pauses_s = iter(_BATCH_PAUSES_S)
    while left:
        asked, later = left[:_READ_AT_ONCE], left[_READ_AT_ONCE:]
        with faults_as(fault):
            read = client.batch_get_item(RequestItems={table: {"Keys": asked, "ConsistentRead": True, **projection}})
        found |= {(item["pk"]["S"], item["sk"]["S"]): item for item in read["Responses"].get(table, ())}
        refused = read.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        left = [*refused, *later]
        if refused:
            pause_s = next(pauses_s, None)
            if pause_s is None:
                raise fault(f"{len(left)} items could not be read")
            sleep(pause_s)
    return found


def read_item(client: Any, fault: type[Exception], table: str, key: Mapping[str, Any]) -> Item | None:
    """An item by a consistent read; None if it does not exist."""
    with faults_as(fault):
        found = client.get_item(TableName=table, Key=key, ConsistentRead=True)
    item: Item | None = found.get("Item")
    return item


def scanned(
    client: Any,
    fault: type[Exception],
    *,
    after_page: Callable[[Mapping[str, Any]], None] = lambda _page: None,
    **scan: Any,
) -> Iterator[Item]:
    """The items of a Scan, page by page; ``after_page`` is called with each page that another follows."""
    while True:
        with faults_as(fault):
            page = client.scan(**scan)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        scan["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        after_page(page)


def queried(client: Any, fault: type[Exception], *, limit: int | None = None, **query: Any) -> Iterator[Item]:
    """The items of a Query, at most ``limit``, page by page: a page ends at 1 MB whether or not there is more."""
    found = 0
    while limit is None or found < limit:
        if limit is not None:
            query["Limit"] = limit - found
        with faults_as(fault):
            page = client.query(**query)
        found += len(page["Items"])
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def attributes(**values: str | int | bytes | None) -> dict[str, Any]:
    """Values as the attributes of an item; None is left out."""
    kinds = {str: "S", int: "N", bytes: "B"}
    return {
        name: {kinds[type(value)]: str(value) if isinstance(value, int) else value}
        for name, value in values.items()
        if value is not None
    }


def if_unchanged(name: str, value: int) -> dict[str, Any]:
    """The condition of a put that replaces an item whose attribute has a value; 0 where there is no item yet."""
    if not value:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {
        "ConditionExpression": "#name = :value",
        "ExpressionAttributeNames": {"#name": name},
        "ExpressionAttributeValues": {":value": {"N": str(value)}},
    }
