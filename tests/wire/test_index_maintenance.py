"""The function that keeps the index in order, against S3 as its stand-in speaks it."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from cicada.errors import IndexCorrupt, IndexUnavailable, PublishConflict
from cicada.index import maintenance
from cicada.index.compaction import MIN_DELETED_ROWS, TIER_SEGMENTS
from cicada.index.manifest import SEGMENTS_PREFIX, VERSIONS_PREFIX
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.index.versions import GRACE_S, read_current
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_content import content
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passage, make_passages

HANDLER = Path(__file__).parents[2] / "lambdas" / "index_maintenance" / "handler.py"
MANY = TIER_SEGMENTS + 1
ACCOUNT_ID = "123456789012"


@dataclass
class Context:
    """What the handler reads of Lambda's context."""

    remaining_ms: int = 900_000
    memory_limit_in_mb: str = "3008"  # a string, as the runtime has it
    function_name: str = "index_maintenance"
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:index_maintenance"
    aws_request_id: str = "1"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


class Upkeep:
    """A deployed function and its bucket."""

    def __init__(self, bucket: str, handler: Callable[[Any, Any], dict[str, Any]]) -> None:
        self.bucket = bucket
        self.store = S3Store(boto3.client("s3", config=CLIENT_CONFIG), bucket)
        self._handler = handler

    def run(self, **context: Any) -> dict[str, Any]:
        return self._handler({"source": "aws.events"}, Context(**context))

    def add(self, collection: str, *numbers: int) -> None:
        items = indexable([make_passage(number, collection=collection) for number in numbers])
        IndexWriter(self.store, WordEmbedder()).add(collection, items)

    def add_many(self, collection: str = "script", start: int = 0) -> None:
        """As many segments of a passage each as are just too many: written in memory, and copied."""
        before = {entry.key: self.store.read(entry.key) for entry in self.store.entries("index/")}
        memory = InMemoryStore()
        memory.objects |= {key: found.data for key, found in before.items()}
        for number in range(start, start + MANY):
            passage = make_passage(number, collection=collection)
            IndexWriter(memory, WordEmbedder()).add(collection, indexable([passage]))
        for key, data in memory.objects.items():
            if key not in before:
                self.store.write(key, data, replaces=None)
            elif before[key].data != data:
                self.store.write(key, data, replaces=before[key].etag)

    def segments(self, collection: str = "script") -> int:
        current = read_current(self.store)
        assert current is not None
        return len(current.manifest.of_collection(collection))

    def keys(self, prefix: str = "index/") -> set[str]:
        return {entry.key for entry in self.store.entries(prefix)}

    def age(self, *keys: str, by_s: float) -> None:
        """Let objects have been written earlier."""
        held = s3_backends[ACCOUNT_ID]["aws"].buckets[self.bucket].keys
        for key in keys or self.keys():
            held[key].last_modified -= timedelta(seconds=by_s)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


_numbers = itertools.count()


@pytest.fixture
def upkeep(s3: str, monkeypatch: pytest.MonkeyPatch) -> Upkeep:
    """The function of a deployment of which nothing is loaded yet."""
    bucket = f"maintained-{next(_numbers)}"
    for variable in list(os.environ):
        if variable.startswith("AWS_"):
            monkeypatch.delenv(variable)
    for variable, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
        "INDEX_BUCKET": bucket,
        "KEEP_VERSIONS": "2",
        "POWERTOOLS_METRICS_NAMESPACE": "Cicada",
        "POWERTOOLS_SERVICE_NAME": "cicada",
    }.items():
        monkeypatch.setenv(variable, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    spec = importlib.util.spec_from_file_location("index_maintenance_handler", HANDLER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Upkeep(bucket, module.handler)


NOTHING_DONE = {
    "merged": 0,
    "publications": 0,
    "collected_objects": 0,
    "collected_bytes": 0,
    "put_off": [],
    "too_large": [],
}


def test_before_anything_is_loaded_there_is_nothing_to_do(upkeep: Upkeep) -> None:
    assert upkeep.run() == NOTHING_DONE


def test_many_small_segments_become_few_and_the_content_stays(upkeep: Upkeep) -> None:
    upkeep.add_many()
    upkeep.add_many("notes")
    upkeep.add("rules", 1)
    before = content(upkeep.store)
    assert upkeep.run() == NOTHING_DONE | {"merged": 2 * MANY, "publications": 2}
    assert [upkeep.segments(name) for name in ("script", "notes", "rules")] == [1, 1, 1]
    assert content(upkeep.store) == before


def test_garbage_that_is_older_than_the_grace_is_deleted_and_younger_stays(upkeep: Upkeep) -> None:
    upkeep.add_many()
    merged = sorted(upkeep.keys(SEGMENTS_PREFIX))
    upkeep.run()
    upkeep.add("notes", 1)
    upkeep.add("rules", 1)  # the versions that can be rolled back to are younger than the merge now
    upkeep.age(*upkeep.keys(VERSIONS_PREFIX), by_s=2 * GRACE_S)
    old, young = set(merged[:5]), set(merged[5:])
    upkeep.age(*old, by_s=GRACE_S + 60)
    upkeep.age(*young, by_s=GRACE_S - 60)
    before, content_before = upkeep.keys(SEGMENTS_PREFIX), content(upkeep.store)
    told = upkeep.run()
    assert upkeep.keys(SEGMENTS_PREFIX) == before - old
    assert told["collected_objects"] > len(old)  # the old versions' manifests too
    assert content(upkeep.store) == content_before


def test_what_is_young_is_not_garbage(upkeep: Upkeep) -> None:
    upkeep.add_many()
    upkeep.run()
    before = upkeep.keys()
    assert upkeep.run()["collected_objects"] == 0
    assert upkeep.keys() == before


def test_an_index_that_nobody_changes_costs_no_metric(upkeep: Upkeep, capsys: pytest.CaptureFixture[str]) -> None:
    upkeep.add("script", 1)
    assert upkeep.run() == NOTHING_DONE


def test_with_little_time_left_compaction_is_put_off(upkeep: Upkeep) -> None:
    upkeep.add_many()
    remaining_ms = int(1000 * maintenance.COMPACTION_S) - 1
    assert upkeep.run(remaining_ms=remaining_ms) == NOTHING_DONE | {"put_off": ["script"]}
    assert upkeep.segments() == MANY
    assert upkeep.run()["merged"] == MANY


def test_with_no_time_left_nothing_is_deleted(upkeep: Upkeep) -> None:
    upkeep.add_many()
    upkeep.age(by_s=2 * GRACE_S)
    before = upkeep.keys()
    upkeep.run(remaining_ms=int(1000 * maintenance.COLLECTION_S) - 1)
    assert upkeep.keys() == before


def test_others_publications_are_no_failure(upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(*args: Any, **kwargs: Any) -> None:
        raise PublishConflict("others publish all the time")

    upkeep.add_many()
    monkeypatch.setattr(maintenance, "compact", overtaken)
    monkeypatch.setattr(maintenance, "collect_garbage", overtaken)
    assert upkeep.run() == NOTHING_DONE | {"put_off": ["script"]}


def test_a_damaged_collection_fails_the_run_after_all_else_is_done(upkeep: Upkeep) -> None:
    upkeep.add_many()
    upkeep.add_many("notes")
    current = read_current(upkeep.store)
    assert current is not None
    damaged = current.manifest.of_collection("script")[0].key
    upkeep.store.delete(damaged)
    with pytest.raises(IndexCorrupt):
        upkeep.run()
    assert (upkeep.segments(), upkeep.segments("notes")) == (MANY, 1)


def test_a_segment_that_does_not_fit_into_the_memory_is_left_and_told(upkeep: Upkeep) -> None:
    writer = IndexWriter(upkeep.store, WordEmbedder())
    writer.add("script", indexable(make_passages(2 * MIN_DELETED_ROWS)))
    writer.delete("script", [f"m{number}" for number in range(MIN_DELETED_ROWS)])
    upkeep.add_many("notes")
    little_mb = maintenance.RUNTIME_BYTES // 2**20 + 1
    told = upkeep.run(memory_limit_in_mb=str(little_mb))
    assert (told["too_large"], told["merged"]) == (["script"], MANY)
    assert upkeep.run()["merged"] == 1
    assert upkeep.run() == NOTHING_DONE


def test_a_bucket_that_is_gone_fails_the_run(upkeep: Upkeep) -> None:
    boto3.client("s3").delete_bucket(Bucket=upkeep.bucket)
    with pytest.raises(IndexUnavailable):
        upkeep.run()
