"""What a list of a user's profiles costs in DynamoDB, and a change of one, by the layout of a profile.

- ``one item``: a profile's record, with what lists show beside it as an attribute of its own;
- ``apart`` (the library's): what lists show in a small item, the record in another, written by one transaction.

Both run the library's own store against moto; units follow from the sizes of the stored items by DynamoDB's published
rules (:mod:`benchmarks.dynamodb_units`). Both lists ask for the small part alone: it is what is read that is billed.

    .venv/bin/python -m benchmarks.profile_lists
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from moto import mock_aws

from benchmarks.dynamodb_units import item_bytes, read_units, write_units
from cicada.corpus.passages import ScriptLocator
from cicada.profiles.changes import By, ChangeContext, FieldGiven, created, updated
from cicada.profiles.dynamodb import DynamoDbProfiles
from cicada.profiles.record import PassageProof, ProfileRecord
from cicada.profiles.rules import MAX_EDITS, ProfileLimits
from cicada.profiles.service import ProfileService

USD_PER_MILLION_WRITE_UNITS = 0.625
USD_PER_MILLION_READ_UNITS = 0.125
PARTITION_READ_UNITS_PER_S = 3_000
"""More than that DynamoDB reads of no partition in a second."""
TABLE, SUBJECT, LIMITS = "requests", "somebody", ProfileLimits()


@dataclass(frozen=True)
class Shape:
    """A kind of profile."""

    name: str
    facts: int
    value_chars: int
    quote_chars: int
    changes: int


SHAPES = (
    Shape("small", 3, 40, 200, 3),
    Shape("common", 10, 60, 400, 12),
    Shape("rich", 30, 150, 800, 40),
    Shape("full", 50, 1_000, 1_000, 50),
)
COUNTS = (20, 200)


class Metered:
    """A client that adds up the units of what is called."""

    def __init__(self, client: Any, *, apart: bool) -> None:
        self._client, self._apart = client, apart
        self.read = self.written = self.queries = 0.0
        self._sizes: dict[str, int] = {}

    def get_item(self, **given: Any) -> Any:
        """See boto3."""
        answer = self._client.get_item(**given)
        self.read += read_units(item_bytes(answer.get("Item", {})), consistent=True)
        return answer

    def query(self, **given: Any) -> Any:
        """See boto3."""
        answer = self._client.query(**given)
        size = sum(self._sizes[item["sk"]["S"]] for item in answer["Items"])
        self.read += read_units(size, consistent=True)
        self.queries += 1
        return answer

    def transact_write_items(self, TransactItems: list[dict[str, Any]]) -> None:  # noqa: N803
        """See boto3; of the layout of one item, a put of both items' attributes together."""
        small, whole = (one["Put"] for one in TransactItems)
        if not self._apart:
            self._put(small | {"Item": whole["Item"] | small["Item"]}, 1)
            return
        self._put(small, 2)
        self._put(whole, 2)

    def _put(self, put: dict[str, Any], factor: int) -> None:
        sk, size = put["Item"]["sk"]["S"], item_bytes(put["Item"])
        self._client.put_item(**put)
        self.written += factor * write_units(max(size, self._sizes.get(sk, 0)))
        self._sizes[sk] = size


def record(number: int, shape: Shape) -> ProfileRecord:
    """A profile of a shape, with its history."""

    def fact(n: int, version: int) -> FieldGiven:
        locator = ScriptLocator(
            episode_id="ep1", episode_name="The Boathouse", chapter_id="ep1-ch1", message_id=f"m{n:03}", speaker="Mara"
        )
        proof = PassageProof(
            passage_id=f"script/ep1/m{n:03}",
            collection="script",
            locator=locator,
            quote="q" * shape.quote_chars,
            index_version="v20270115-080000-0123abcd",
        )
        return FieldGiven(f"the fact number {n}", f"{version:04}".ljust(shape.value_chars, "v"), proof)

    def context(version: int) -> ChangeContext:
        by = By(SUBJECT, f"6f9619ff-8b86-4d01-b42d-{version:012}", f"{number:016x}{version:016x}")
        return ChangeContext(by, 1_800_000_000_000, LIMITS)

    facts = [fact(n, 0) for n in range(shape.facts)]
    made = created(None, "character", f"Somebody {number:03}", facts[:MAX_EDITS], None, context(1))
    for start in range(MAX_EDITS, shape.facts, MAX_EDITS):
        new = facts[start : start + MAX_EDITS]
        made = updated(made, made.profile, new, (), None, context(made.version + 1))  # type: ignore[arg-type]
    while made.version < shape.changes:
        new = [fact(made.version % shape.facts, made.version)]
        made = updated(made, made.profile, new, (), None, context(made.version + 1))  # type: ignore[arg-type]
    return made


def measured(client: Any, shape: Shape, count: int, *, apart: bool) -> tuple[float, float, float]:
    """Read units and queries of a list, and write units of a change."""
    metered = Metered(client, apart=apart)
    store = DynamoDbProfiles(metered, TABLE)
    for number in range(count):
        store.write(SUBJECT, record(number, shape), over=0)
    metered.read = metered.queries = 0
    if len(ProfileService(store, limits=LIMITS).list(SUBJECT)) != count:
        raise AssertionError("the list is not whole")
    return metered.read, metered.queries, metered.written / count


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--counts", type=int, nargs="+", default=COUNTS, help="profiles of a user (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    print("profiles            bytes each | list: read units  ratio  queries  | change: write units | lists that pay")
    print("                               |   one item → apart        one → ap. |   one item → apart  | for a change")
    for shape in SHAPES:
        for count in args.counts:
            rows = []
            for apart in (False, True):
                with mock_aws():
                    client = boto3.client("dynamodb")
                    client.create_table(
                        TableName=TABLE,
                        BillingMode="PAY_PER_REQUEST",
                        KeySchema=[
                            {"AttributeName": "pk", "KeyType": "HASH"},
                            {"AttributeName": "sk", "KeyType": "RANGE"},
                        ],
                        AttributeDefinitions=[
                            {"AttributeName": "pk", "AttributeType": "S"},
                            {"AttributeName": "sk", "AttributeType": "S"},
                        ],
                    )
                    rows.append(measured(client, shape, count, apart=apart))
            (read, queries, written), (less, fewer, more) = rows
            saved_usd = (read - less) * USD_PER_MILLION_READ_UNITS
            size = len(record(0, shape).model_dump_json(by_alias=True, exclude_none=True))
            seconds = read / PARTITION_READ_UNITS_PER_S
            print(
                f"{count:3} {shape.name:8} {size:17,} | {read:8,.0f} → {less:3.0f} {read / less:7.0f}× "
                f"{queries:5.0f} → {fewer:<3.0f} | {written:8.0f} → {more:<8.0f} | "
                f"{(more - written) * USD_PER_MILLION_WRITE_UNITS / saved_usd:.2f}"
                + (f"; one item: {seconds:.1f} s of all that its partition can read" if seconds >= 1 else "")
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
