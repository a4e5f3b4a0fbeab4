"""What the adapters over DynamoDB share: faults, failed conditions, items and the pages of a Query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

Item = Mapping[str, Mapping[str, Any]]
"""An item in DynamoDB's typed JSON."""


class ConditionFailed(Exception):
    """The condition of a write did not hold. ``item`` is what is stored, None if there is none."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition of a write did not hold")
        self.item = item


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
