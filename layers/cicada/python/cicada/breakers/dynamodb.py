"""Circuit breakers in DynamoDB: one small item each, all in one partition, so that one query reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.breakers.decide import Breaker
from cicada.breakers.ports import Overtaken
from cicada.delivery.ports import StoreFault

PARTITION = "breakers"
RETENTION_S = 7 * 24 * 3600
"""How long a breaker is kept after its last change, in seconds: models are replaced, and leave theirs behind."""

BREAKER_CONFIG = Config(connect_timeout=0.5, read_timeout=0.5, retries={"mode": "standard", "total_max_attempts": 1})
"""Time-outs in seconds. An answer waits for a breaker only where the breaker can spare it more, and never long."""

_Item = Mapping[str, Mapping[str, Any]]


class DynamoDbBreakerStore:
    """:class:`cicada.breakers.ports.BreakerStore` over one partition of a table."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client made with :data:`BREAKER_CONFIG`."""
        self._client = client
        self._table = table

    def read(self) -> Mapping[str, Breaker]:
        """See the port. Eventually consistent, at half the price: who acts on it does so by a conditional write."""
        with _faults():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": PARTITION}},
            )
        return {item["sk"]["S"]: _breaker(item) for item in page["Items"]}

    def swap(self, name: str, old: Breaker, new: Breaker) -> None:
        """See the port: one conditional write."""
        condition = "attribute_not_exists(revision)" if old.revision == 0 else "revision = :old"
        values = {} if old.revision == 0 else {":old": {"N": str(old.revision)}}
        with _faults():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(name, new),
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **({"ExpressionAttributeValues": values} if values else {}),
                )
            except self._client.exceptions.ConditionalCheckFailedException as error:
                item = error.response.get("Item")
                raise Overtaken(_breaker(item) if item else Breaker()) from error


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StoreFault(str(error)) from error


def _item(name: str, breaker: Breaker) -> dict[str, Any]:
    expires_at = breaker.revision // 1000 + RETENTION_S  # a revision is no less than the time of its change
    item: dict[str, Any] = {
        "pk": {"S": PARTITION},
        "sk": {"S": name},
        "expires_at": {"N": str(expires_at)},
        "revision": {"N": str(breaker.revision)},
        "failures_ms": {"L": [{"N": str(at)} for at in breaker.failures_ms]},
        "openings": {"N": str(breaker.openings)},
        "retry_at_ms": {"N": str(breaker.retry_at_ms)},
        "probe_until_ms": {"N": str(breaker.probe_until_ms)},
    }
    if breaker.open_since_ms is not None:
        item["open_since_ms"] = {"N": str(breaker.open_since_ms)}
    if breaker.probe is not None:
        item["probe"] = {"S": breaker.probe}
    if breaker.cause is not None:
        item["cause"] = {"S": breaker.cause}
    return item


def _breaker(item: _Item) -> Breaker:
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
