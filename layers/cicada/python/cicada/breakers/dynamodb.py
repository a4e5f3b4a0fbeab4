"""Circuit breakers in DynamoDB: one small item each, all in one partition, so that one query reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.config import Config

from cicada.breakers.decide import Breaker
from cicada.breakers.ports import Overtaken
from cicada.delivery.ports import StoreFault
from cicada.dynamodb import ConditionFailed, Item, attributes, faults_as, if_unchanged

PARTITION = "breakers"
RETENTION_S = 7 * 24 * 3600
"""How long a breaker is kept after its last change: the breakers of replaced models expire."""

BREAKER_CONFIG = Config(connect_timeout=0.5, read_timeout=0.5, retries={"mode": "standard", "total_max_attempts": 1})
"""Time-outs in seconds. They are short because an answer may wait for this store."""


class DynamoDbBreakerStore:
    """:class:`cicada.breakers.ports.BreakerStore` over one partition of a table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`BREAKER_CONFIG`."""
        self._client = client
        self._table = table

    def read(self) -> Mapping[str, Breaker]:
        """See the port. Eventually consistent, at half the price: every change is a conditional write."""
        with faults_as(StoreFault):
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": PARTITION}},
            )
        return {item["sk"]["S"]: _breaker(item) for item in page["Items"]}

    def swap(self, name: str, old: Breaker, new: Breaker) -> None:
        """See the port: one conditional write."""
        try:
            with faults_as(StoreFault):
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(name, new),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **if_unchanged("revision", old.revision),
                )
        except ConditionFailed as failed:
            raise Overtaken(_breaker(failed.item) if failed.item else Breaker()) from failed


def _item(name: str, breaker: Breaker) -> dict[str, Any]:
    expires_at = breaker.revision // 1000 + RETENTION_S  # a revision is no less than the time of its change
    plain = {field: value for field, value in vars(breaker).items() if field != "failures_ms"}
    failures = {"failures_ms": {"L": [{"N": str(at)} for at in breaker.failures_ms]}}
    return attributes(pk=PARTITION, sk=name, expires_at=expires_at, **plain) | failures


def _breaker(item: Item) -> Breaker:
    return Breaker(
        revision=int(item["revision"]["N"]),
        failures_ms=tuple(int(at["N"]) for at in item["failures_ms"]["L"]),
        open_since_ms=int(item["open_since_ms"]["N"]) if "open_since_ms" in item else None,
        openings=int(item["openings"]["N"]),
        retry_at_ms=int(item["retry_at_ms"]["N"]),
        probe=item["probe"]["S"] if "probe" in item else None,
        probe_until_ms=int(item["probe_until_ms"]["N"]),
        cause=item["cause"]["S"] if "cause" in item else None,
    )
