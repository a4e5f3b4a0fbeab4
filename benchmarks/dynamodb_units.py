"""DynamoDB's read and write units, worked out from the requests that go to the local cloud's table.

moto reports no consumed capacity that could be trusted, so a meter stands between the functions and the table, passes
every request on, and looks at the stored items before it hands the answer back. What it counts is what AWS documents
for on-demand tables (Amazon DynamoDB developer guide, "DynamoDB read and write operations" and "Item sizes and
formats"):

- an item's size is that of its attributes' names and values: UTF-8 bytes of text, a byte for two digits of a number and
  one more, 3 bytes for a list or map and 1 for each of its elements;
- a write takes a unit for each KiB, begun or whole, of the larger of the item before and after, also when its condition
  fails; in a transaction twice that;
- an entry of an index that appears, changes or goes takes a write of its own, one whose keys change two;
- a read takes a unit for each 4 KiB, of one item or of all that a query reads; half of it if it need not be consistent.
"""

from __future__ import annotations

import http.client
import json
import math
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import boto3
from boto3.dynamodb.types import Binary

VARIABLE = "AWS_ENDPOINT_URL_DYNAMODB"
"""Of the functions: where they find the meter."""
CALLER = "meter"
"""The access key of the meter's own calls, by which a log of calls tells them."""

Item = Mapping[str, Mapping[str, Any]]
_REQUEST = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
OPEN_INDEX = "index of open requests"
_PASSED_ON = (
    *("x-amz-target", "authorization", "x-amz-security-token", "content-type", "x-amz-date", "user-agent"),
    "amz-sdk-invocation-id",
)


def item_bytes(item: Item) -> int:
    """The size that an item is billed by; 0 for none."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def write_units(size_bytes: int) -> int:
    """For writing an item of this size."""
    return max(1, math.ceil(size_bytes / 1024))


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """For reading this much at once."""
    units = max(1, math.ceil(size_bytes / 4096))
    return units if consistent else units / 2


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0") or "0"
            return math.ceil(len(digits) / 2) + 1
        case "B":
            return len(content.value if isinstance(content, Binary) else content)
        case "BOOL" | "NULL":
            return 1
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_bytes(inner) for name, inner in content.items())
        case "L":
            return 3 + sum(1 + _value_bytes(inner) for inner in content)
        case _:  # sets
            return sum(_value_bytes({kind[0]: inner}) for inner in content)


def place_of(key: Item) -> str:
    """What kind of partition an item lies in: the first word of its key, of uses the first two."""
    pk = str(key["pk"]["S"])
    if _REQUEST.match(pk):
        return "request"
    return "#".join(pk.split("#")[: 2 if pk.startswith("usage#") else 1])


class UnitMeter:
    """The meter: an HTTP server in threads of its own. Requests for one table are metered one after the other."""

    def __init__(self) -> None:
        self._units: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._lock = threading.Lock()
        self._endpoint_url = ""
        self._client: Any = None
        self._indexes: list[list[str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def forward_to(self, endpoint_url: str, region: str) -> None:
        """Where the table is."""
        self._endpoint_url = endpoint_url
        self._client = boto3.client(
            "dynamodb",
            region_name=region,
            endpoint_url=endpoint_url,
            aws_access_key_id=CALLER,
            aws_secret_access_key="none",
        )
        (table,) = self._client.list_tables()["TableNames"]
        indexes = self._client.describe_table(TableName=table)["Table"].get("GlobalSecondaryIndexes", ())
        self._indexes = [[key["AttributeName"] for key in index["KeySchema"]] for index in indexes]

    def take(self) -> dict[str, float]:
        """The units so far, by ``read`` and ``write``; counts from nothing again."""
        summed: defaultdict[str, float] = defaultdict(float)
        for (kind, _), units in self.take_places().items():
            summed[kind] += units
        return dict(summed)

    def take_places(self) -> dict[tuple[str, str], float]:
        """The units so far, by kind and :func:`place_of` their items; counts from nothing again."""
        with self._lock:
            taken, self._units = dict(self._units), defaultdict(float)
        return taken

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()

    def pass_on(self, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes, str]:
        """Have a request answered, and meter it."""
        operation = headers["x-amz-target"].partition(".")[2]
        with self._lock:
            meter = _METERS.get(operation)
            if meter is None:
                return self._forward(headers, body)
            request = json.loads(body)
            count = meter(self, request)
            answer = self._forward(headers, body)
            count()
            return answer

    def _forward(self, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes, str]:
        upstream = urlsplit(self._endpoint_url)
        connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=30)
        try:
            connection.request("POST", "/", body, {name: headers[name] for name in _PASSED_ON if name in headers})
            response = connection.getresponse()
            return response.status, response.read(), response.headers["Content-Type"] or "application/x-amz-json-1.0"
        finally:
            connection.close()

    # --- metering: each looks before the request, and returns what counts after it ---

    def _meter_write(self, request: dict[str, Any]) -> Callable[[], None]:
        key = _key_of(request.get("Key") or request["Item"])
        return self._around_write(request["TableName"], key, 1)

    def _meter_batch(self, request: dict[str, Any]) -> Callable[[], None]:
        writes = [
            (table, one.get("PutRequest", {}).get("Item") or one["DeleteRequest"]["Key"])
            for table, ones in request["RequestItems"].items()
            for one in ones
        ]
        return _all([self._around_write(table, _key_of(item), 1) for table, item in writes])

    def _meter_transaction(self, request: dict[str, Any]) -> Callable[[], None]:
        writes = [next(iter(one.values())) for one in request["TransactItems"]]
        return _all([self._around_write(one["TableName"], _key_of(one.get("Key") or one["Item"]), 2) for one in writes])

    def _around_write(self, table: str, key: Item, factor: int) -> Callable[[], None]:
        before = self._stored(table, key)

        def count() -> None:
            after = self._stored(table, key)
            size = max(item_bytes(before), item_bytes(after))
            self._units["write", place_of(key)] += factor * write_units(size)
            for names in self._indexes:
                was, now = _entry(before, names), _entry(after, names)
                if was != now:
                    self._units["write", OPEN_INDEX] += factor * ((was is not None) + (now is not None))

        return count

    def _meter_get(self, request: dict[str, Any]) -> Callable[[], None]:
        def count() -> None:
            size = item_bytes(self._stored(request["TableName"], request["Key"]))
            self._read(request["Key"], size, request)

        return count

    def _meter_batch_get(self, request: dict[str, Any]) -> Callable[[], None]:
        def count() -> None:
            for table, asked in request["RequestItems"].items():
                for key in asked["Keys"]:
                    size = item_bytes(self._stored(table, key))
                    self._read(key, size, asked)

        return count

    def _meter_query(self, request: dict[str, Any]) -> Callable[[], None]:
        condition = request["KeyConditionExpression"]
        kept = ("TableName", "IndexName", "KeyConditionExpression", "ExclusiveStartKey", "Limit", "ScanIndexForward")
        whole = {name: request[name] for name in kept if name in request}
        for names in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            used = {name: value for name, value in request.get(names, {}).items() if name in condition}
            whole |= {names: used} if used else {}

        def count() -> None:
            size = sum(item_bytes(item) for item in self._client.query(**whole)["Items"])
            self._read({"pk": whole["ExpressionAttributeValues"][":pk"]}, size, request)

        return count

    def _read(self, key: Item, size: int, request: Mapping[str, Any]) -> None:
        units = read_units(size, consistent=bool(request.get("ConsistentRead")))
        self._units["read", place_of(key)] += units

    def _stored(self, table: str, key: Item) -> Item:
        item: Item = self._client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
        return item

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        meter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, answer, kind = meter.pass_on(headers, body)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        return Handler


def _all(counts: Sequence[Callable[[], None]]) -> Callable[[], None]:
    def count() -> None:
        for one in counts:
            one()

    return count


def _key_of(item: Item) -> Item:
    return {name: item[name] for name in ("pk", "sk")}


def _entry(item: Item, names: list[str]) -> tuple[Any, ...] | None:
    """An item's keys in an index; None if it stands in none."""
    return tuple(str(item[name]) for name in names) if all(name in item for name in names) else None


_METERS: Mapping[str, Callable[[UnitMeter, dict[str, Any]], Callable[[], None]]] = {
    "PutItem": UnitMeter._meter_write,
    "UpdateItem": UnitMeter._meter_write,
    "DeleteItem": UnitMeter._meter_write,
    "BatchWriteItem": UnitMeter._meter_batch,
    "TransactWriteItems": UnitMeter._meter_transaction,
    "GetItem": UnitMeter._meter_get,
    "BatchGetItem": UnitMeter._meter_batch_get,
    "Query": UnitMeter._meter_query,
}
