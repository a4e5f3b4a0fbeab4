"""``cicada index`` against S3 as its stand-in speaks it."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.index.writer import IndexWriter
from cicada_cli.main import main
from tests.support.embedding import WordEmbedder
from tests.support.index_content import content, expected
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passage, make_passages

OLD, NEW = make_passages(4), make_passages(3, start=2)


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
def store(s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3Store:
    """The empty store of a deployment that the environment names, by its bucket alone."""
    name = f"upkeep-{next(_numbers)}"
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    for variable, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
        "CICADA_INDEX_BUCKET": name,
    }.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    client = boto3.client("s3", config=CLIENT_CONFIG)
    client.create_bucket(Bucket=name)
    return S3Store(client, name)


def write(store: S3Store, passages: list[Any] = OLD) -> str:
    return IndexWriter(store, WordEmbedder()).replace("script", indexable(passages)).version


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(["index", *arguments]) == status
    return capsys.readouterr().out


def test_versions_are_listed_newest_first(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write(store), write(store, NEW)
    lines = [line.split("\t") for line in run(capsys, "versions").splitlines()]
    assert [line[0] for line in lines] == [second, first]
    assert [line[2] for line in lines] == ["script 3", "script 4"]
    assert [line[-1] == "current" for line in lines] == [True, False]
    assert run(capsys, "versions", "--limit", "1").splitlines() == ["\t".join(lines[0])]
    newest, oldest = map(json.loads, run(capsys, "versions", "--json").splitlines())
    assert (newest["version"], newest["current"], newest["collections"]) == (second, True, {"script": 3})
    assert (newest["segments"], newest["deletedRows"]) == (2, 2)
    assert (oldest["version"], oldest["current"]) == (first, False)


def test_a_version_that_cannot_be_read_is_listed_as_such(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write(store), write(store, NEW)
    store.write(f"index/versions/{first}.json", b"{}", replaces=store.read(f"index/versions/{first}.json").etag)
    assert run(capsys, "versions").splitlines()[1].endswith("unreadable")
    assert [json.loads(line)["version"] for line in run(capsys, "versions", "--json").splitlines()] == [second, first]


def test_rolling_back_brings_the_old_content_back(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write(store), write(store, NEW)
    told = run(capsys, "rollback", first)
    assert f"with the content of version {first}" in told
    assert content(store) == {"script": expected(OLD)}
    assert "is already current" in run(capsys, "rollback", run(capsys, "versions").split("\t")[0])
    run(capsys, "rollback", second)
    assert content(store) == {"script": expected(NEW)}
    assert main(["audit"]) == 0
    audited = [line.split("\t")[1:4] for line in capsys.readouterr().out.splitlines()]
    assert audited == [["version_rolled_back", "done", "script"]] * 2


def test_a_version_that_is_not_there_is_told(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    write(store)
    assert main(["index", "rollback", "000009-0123456789abcdef"]) == 1
    assert "version 000009-0123456789abcdef does not exist" in capsys.readouterr().err


def test_many_small_segments_are_merged_and_collected(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    memory = InMemoryStore()
    for number in range(10):
        IndexWriter(memory, WordEmbedder()).add("script", indexable([make_passage(number)]))
    for key, data in memory.objects.items():
        store.write(key, data, replaces=None)
    before = content(store)
    assert run(capsys, "compact", "--collection", "other") == "Nothing to compact.\n"
    assert "Merged 10 segments into 1" in run(capsys, "compact")
    assert run(capsys, "compact") == "Nothing to compact.\n"
    assert content(store) == before
    assert "Deleted 0 objects" in run(capsys, "collect", "--keep-versions", "1")  # all of it is of today
    assert content(store) == before


def test_a_sound_index_passes_the_check_and_a_damaged_one_does_not(
    store: S3Store, capsys: pytest.CaptureFixture[str]
) -> None:
    version = write(store)
    assert run(capsys, "check").startswith(f"Version {version}: 3 objects, ")
    assert json.loads(run(capsys, "check", "--json"))["damaged"] == []
    (segment,) = store.entries("index/segments/")
    data = store.read(segment.key)
    store.write(segment.key, data.data[:-1], replaces=data.etag)
    assert f"damaged: {segment.key} (script): " in run(capsys, "check", status=1)
    (damage,) = json.loads(run(capsys, "check", "--json", status=1))["damaged"]
    assert (damage["key"], damage["collection"]) == (segment.key, "script")
    assert main(["index", "check"]) == 1
    assert "to repair script, load it again with --verify" in capsys.readouterr().err


def test_partial_answers_are_allowed_and_refused(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    write(store)
    for word, allowed in (("allow", True), ("refuse", False)):
        assert "a segment that cannot be read" in run(capsys, "partial", word)
        assert json.loads(run(capsys, "versions", "--json").splitlines()[0])["allowPartial"] == allowed


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "arguments", [["versions"], ["rollback", "000001-0123456789abcdef"], ["check"], ["partial", "allow"]]
)
def test_before_anything_is_loaded_that_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", *arguments]) == 1
    assert "index_missing" in capsys.readouterr().err


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("arguments", [["versions", "--limit", "0"], ["collect", "--keep-versions", "none"]])
def test_numbers_that_are_none_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["index", *arguments])
