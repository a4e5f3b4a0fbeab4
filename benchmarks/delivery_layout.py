"""What one answer's log costs in DynamoDB, by the layout of the log.

Three layouts keep the same promises (order, fence, subscribers of the very instant):

- ``one item``: head and every event in one item;
- ``spilled`` (the library's): the same, with events above 2 KiB in items of their own;
- ``chunk items``: a head, and an item an event, written together by a transaction, the subscribers read after it.

The first two run the library's own adapter against moto; write units follow from the sizes of the stored items by
DynamoDB's published rules (1 unit a started KB of the larger of the item before and after; twice that in transactions).

    .venv/bin/python -m benchmarks.delivery_layout
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import boto3
from moto import mock_aws

from cicada.corpus.passages import ScriptLocator
from cicada.delivery import dynamodb
from cicada.delivery.decide import append, begin
from cicada.delivery.record import Commit, Question, RequestHead, RequestKey, Subscriber
from cicada.protocol.events import Accepted, Chunk, Complete, LogEvent, Metrics, Source, Sources, dump_event

USD_PER_MILLION_WRITE_UNITS = 0.625
USD_PER_MILLION_READ_UNITS = 0.125
KEY = RequestKey("somebody", "6f9619ff-8b86-4d01-b42d-00cf4fc964ff")


def answer_events(chunks: int, chunk_chars: int, passages: int, passage_chars: int) -> list[list[LogEvent]]:
    """What a grounded answer commits after its begin, commit by commit."""
    locator = ScriptLocator(
        episode_id="ep1", episode_name="The Boathouse", chapter_id="ep1-ch1", message_id="ep1-0001", speaker="Mara"
    )
    sources = tuple(
        Source(n=n, passage_id=f"ep1-{n:04}", collection="script", locator=locator, score=0.8, text="x" * passage_chars)
        for n in range(1, passages + 1)
    )
    complete = Complete(
        attempt=1,
        answered_by="rag",
        attempted=("rag",),
        model="amazon.nova-lite-v1:0",
        grounded=True,
        stop_reason="end_turn",
        metrics=Metrics(latency_ms=6000, attempt_ms=5900, first_chunk_ms=700),
    )
    batches: list[list[LogEvent]] = [[Chunk(attempt=1, content="x" * chunk_chars)] for _ in range(chunks)]
    return [
        [Sources(attempt=1, index_version="v1", searched=700, sources=sources)],
        *batches,
        [complete],
    ]


def size_of(value: dict[str, Any]) -> int:
    """Bytes of an attribute's value, as DynamoDB counts them."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return (len(content.lstrip("-").replace(".", "")) + 1) // 2 + 1
        case "M":
            return 3 + sum(len(name.encode()) + size_of(inner) + 1 for name, inner in content.items())
        case "L":
            return 3 + sum(size_of(inner) + 1 for inner in content)
    raise ValueError(kind)


def write_units(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Units of one write of one item."""
    return -(
        -max(sum(len(name.encode()) + size_of(value) for name, value in item.items()) for item in (before, after))
        // 1024
    )


class Meter:
    """Counts a table's calls and units by looking at its items before and after each call."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.calls = self.write = 0
        self.read = 0.0
        self.items: dict[str, dict[str, Any]] = {}

    def measured(self, factor: int = 1) -> None:
        """Account for the writes since the last look."""
        now = {item["sk"]["S"]: item for item in self.client.scan(TableName="requests")["Items"]}
        for sk, item in now.items():
            if self.items.get(sk) != item:
                self.write += factor * write_units(self.items.get(sk, {}), item)
        self.items = now


def head_of(now_s: int) -> tuple[RequestHead, str]:
    accepted = dump_event(Accepted(route="rag", confidence=0.6, reasoning="a question about the text", strategy="rag"))
    head = RequestHead(
        KEY,
        Question("Who locked the boathouse?"),
        "frame",
        now_s * 1000,
        now_s + 86400,
        subscribers=(Subscriber("c1-connection=", now_s + 3600),),
    )
    return head, accepted


def library_layout(client: Any, events: list[list[LogEvent]], inline_bytes: int) -> Meter:
    """The library's adapter, with its bound for inline events set."""
    meter = Meter(client)
    table = dynamodb.DynamoDbLog(client, "requests")
    counting = 0

    def count(**_: Any) -> None:
        nonlocal counting
        counting += 1

    client.meta.events.register("before-call.dynamodb.PutItem", count)
    client.meta.events.register("before-call.dynamodb.UpdateItem", count)
    original, dynamodb.INLINE_BYTES = dynamodb.INLINE_BYTES, inline_bytes
    try:
        head, accepted = head_of(int(time.time()))
        table.create(head, accepted)
        meter.measured()
        commit = begin(head, "rag", (), execution="x", worker="w", now_s=time.time())
        assert isinstance(commit, Commit)
        head = table.commit(head, commit)
        meter.measured()
        for batch in events:
            head = table.commit(head, append(head, batch))
            meter.measured()
    finally:
        dynamodb.INLINE_BYTES = original
    meter.calls = counting
    return meter


def chunk_items_layout(client: Any, events: list[list[LogEvent]]) -> Meter:
    """A head and an item an event, by transactions; the subscribers are read after each."""
    meter = Meter(client)
    head, accepted = head_of(int(time.time()))
    pk = {"S": f"{KEY.request_id}#{KEY.subject}"}
    base = {
        "pk": pk,
        "sk": {"S": "head"},
        "question": {"S": head.question.query},
        "subscribers": {"L": [{"S": "c1-connection="}]},
        "attempt": {"N": "1"},
        "last_seq": {"N": "1"},
        "expires_at": {"N": "1800000000"},
    }
    client.put_item(TableName="requests", Item=base)
    client.put_item(TableName="requests", Item={"pk": pk, "sk": {"S": "event#1"}, "body": {"S": accepted}})
    meter.measured(2)
    meter.calls += 1
    seq = 1
    for batch in [[accepted], *[[dump_event(event) for event in batch] for batch in events]]:
        last, seq = seq, seq + len(batch)
        puts = [
            {
                "Put": {
                    "TableName": "requests",
                    "Item": {"pk": pk, "sk": {"S": f"event#{last + i}"}, "body": {"S": body}},
                }
            }
            for i, body in enumerate(batch, 1)
        ]
        fence = {
            "Update": {
                "TableName": "requests",
                "Key": {"pk": pk, "sk": {"S": "head"}},
                "UpdateExpression": "SET last_seq = :new",
                "ConditionExpression": "last_seq = :old",
                "ExpressionAttributeValues": {":new": {"N": str(seq)}, ":old": {"N": str(last)}},
            }
        }
        client.transact_write_items(TransactItems=[fence, *puts])
        meter.measured(2)
        client.get_item(TableName="requests", Key={"pk": pk, "sk": {"S": "head"}}, ConsistentRead=True)
        meter.calls += 2
        meter.read += 1
    return meter


def main(argv: list[str] | None = None) -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=55, help="commits of text: ten a second (default: %(default)s)")
    parser.add_argument("--chunk-chars", type=int, default=32, help="characters each (default: %(default)s)")
    parser.add_argument("--passages", type=int, default=10, help="sources (default: %(default)s)")
    parser.add_argument("--passage-chars", type=int, default=300, help="characters each (default: %(default)s)")
    args = parser.parse_args(argv)
    os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    events = answer_events(args.chunks, args.chunk_chars, args.passages, args.passage_chars)
    rows: dict[str, Meter] = {}
    layouts: dict[str, Callable[[Any], Meter]] = {
        "one item": lambda client: library_layout(client, events, 10**9),
        "spilled (the library's)": lambda client: library_layout(client, events, dynamodb.INLINE_BYTES),
        "chunk items": lambda client: chunk_items_layout(client, events),
    }
    for name, run in layouts.items():
        with mock_aws():
            client = boto3.client("dynamodb")
            client.create_table(
                TableName="requests",
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
                AttributeDefinitions=[
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
            )
            rows[name] = run(client)
    ours = rows["spilled (the library's)"]
    print(f"{'layout':26}{'calls':>7}{'write units':>13}{'read units':>12}{'USD a million answers':>24}{'ratio':>8}")
    for name, meter in rows.items():
        usd = meter.write * USD_PER_MILLION_WRITE_UNITS + meter.read * USD_PER_MILLION_READ_UNITS
        base = ours.write * USD_PER_MILLION_WRITE_UNITS + ours.read * USD_PER_MILLION_READ_UNITS
        print(f"{name:26}{meter.calls:>7}{meter.write:>13}{meter.read:>12.0f}{usd:>24.1f}{usd / base:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
