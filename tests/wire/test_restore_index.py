"""``cicada restore index``: damaged objects come back, and a copy takes the bucket's place."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from cicada.audit.listing import list_records
from cicada.corpus.passages import Passage
from cicada.index.access_rules import ACCESS_KEY, declare_readers
from cicada.index.maintenance import check_index
from cicada.index.manifest import CURRENT_KEY, Manifest, version_key
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.index.versions import must_be_published
from cicada.index.writer import IndexWriter
from cicada_cli.main import main
from tests.support.embedding import WordEmbedder
from tests.support.index_content import Content, content, expected
from tests.support.passages import indexable, make_passages

OLD, NEW = make_passages(4), make_passages(3, start=2)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@dataclass(frozen=True)
class House:
    """A bucket with an index, and another that holds nothing yet."""

    client: Any
    bucket: str
    other: str

    @property
    def store(self) -> S3Store:
        return S3Store(self.client, self.bucket)

    @property
    def copies(self) -> S3Store:
        return S3Store(self.client, self.other)

    def manifest(self) -> Manifest:
        return must_be_published(self.store).manifest

    def damage(self, key: str) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=b"damaged" * 100)

    def replicate(self, *without: str) -> None:
        """As S3 would, but for what has not arrived yet."""
        for entry in self.store.entries("index/"):
            if entry.key not in without:
                self.client.put_object(Bucket=self.other, Key=entry.key, Body=self.store.read(entry.key).data)

    def write(self, passages: list[Passage]) -> None:
        IndexWriter(self.store, WordEmbedder()).replace("script", indexable(passages))

    def content(self) -> Content:
        return content(self.store)


@pytest.fixture
def house(s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> House:
    """A deployment that the environment names, by its bucket alone; two segments, tombstones and a rule of access."""
    names = [f"restore-{next(_numbers)}" for _ in range(2)]
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    for variable, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
        "CICADA_INDEX_BUCKET": names[0],
    }.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    client = boto3.client("s3", config=CLIENT_CONFIG)
    for name in names:
        client.create_bucket(Bucket=name)
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    made = House(client, *names)
    made.write(OLD)
    made.write(NEW)
    declare_readers(made.store, "script", ("readers",))
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What the command prints."""
    capsys.readouterr()
    assert main(["restore", "index", *arguments]) == status
    return capsys.readouterr().out


def named_objects(manifest: Manifest) -> list[str]:
    segments = [entry.key for entry in manifest.segments]
    return [*segments, *(entry.tombstones.key for entry in manifest.segments if entry.tombstones)]


def test_every_damaged_or_deleted_object_comes_back(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = house.manifest()
    objects = named_objects(manifest)
    assert len(objects) == 3  # two segments, one with tombstones
    for key in (CURRENT_KEY, ACCESS_KEY, version_key(manifest.version), *objects[::2]):
        house.damage(key)
    house.store.delete(objects[1])
    planned = run(capsys, "--dry-run")
    assert all(f"restore: {key} as of" in planned for key in (CURRENT_KEY, ACCESS_KEY, *objects))
    assert f"rewrite: {version_key(manifest.version)}" in planned
    assert house.store.read(CURRENT_KEY).data.startswith(b"damaged")  # nothing was changed
    assert "Restored 6 objects" in run(capsys, "--yes")
    assert house.manifest() == manifest
    assert not check_index(house.store).damaged
    assert house.content() == {"script": expected(NEW)}
    assert b"readers" in house.store.read(ACCESS_KEY).data
    assert "Nothing to restore" in run(capsys, "--yes")
    (record,) = list_records(house.store)
    assert (record.action, record.outcome, record.details["version"]) == ("index_restored", "done", manifest.version)


def test_a_deleted_manifest_comes_back(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = house.manifest()
    house.store.delete(CURRENT_KEY)
    run(capsys, "--yes")
    assert house.manifest() == manifest


def test_an_object_without_a_sound_version_is_told_and_the_rest_comes_back(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    lost, other = named_objects(house.manifest())[:2]
    for version in house.client.list_object_versions(Bucket=house.bucket, Prefix=lost)["Versions"]:
        house.client.delete_object(Bucket=house.bucket, Key=lost, VersionId=version["VersionId"])
    house.damage(other)
    told = run(capsys, "--yes", status=1)
    assert f"lost: {lost}: " in told
    assert f"restore: {other} as of" in told
    assert [one.key for one in check_index(house.store).damaged] == [lost]


def test_an_empty_bucket_has_nothing_to_restore(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "index", "--yes", "--bucket", house.other]) == 1
    assert "index_missing" in capsys.readouterr().err


def test_a_copy_takes_the_place_of_a_lost_bucket(
    house: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    house.replicate()
    monkeypatch.setenv("CICADA_INDEX_BUCKET", house.other)
    empty = House(house.client, f"{house.other}-new", house.other)
    house.client.create_bucket(Bucket=empty.bucket)
    arguments = ("--from", house.other, "--bucket", empty.bucket)
    assert "copy: 3 objects" in run(capsys, *arguments, "--dry-run")
    assert not list(empty.store.entries("index/"))
    run(capsys, *arguments, "--yes")
    assert empty.manifest() == house.manifest()
    assert empty.content() == {"script": expected(NEW)}
    assert b"readers" in empty.store.read(ACCESS_KEY).data
    assert "Nothing to restore" in run(capsys, *arguments, "--yes")


def test_a_version_whose_objects_had_not_all_arrived_is_left_out(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.replicate()
    sound = house.manifest()
    house.write(make_passages(5))
    late = house.manifest()
    house.replicate(*(set(named_objects(late)) - set(named_objects(sound))))
    target = House(house.client, f"{house.other}-late", house.other)
    house.client.create_bucket(Bucket=target.bucket)
    told = run(capsys, "--from", house.other, "--bucket", target.bucket, "--yes")
    assert f"skipped: version {late.version}" in told
    assert target.manifest().version == sound.version
    assert target.content() == {"script": expected(NEW)}


def test_what_the_new_bucket_holds_already_is_replaced_by_a_new_version(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.replicate()
    target = House(house.client, f"{house.other}-used", house.other)
    house.client.create_bucket(Bucket=target.bucket)
    target.write(make_passages(1))
    before = target.manifest()
    assert f"replace: version {before.version}" in run(
        capsys, "--from", house.other, "--bucket", target.bucket, "--yes"
    )
    assert target.manifest().previous == before.version
    assert target.content() == {"script": expected(NEW)}


def test_nobody_is_asked_where_there_is_no_terminal(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.damage(CURRENT_KEY)
    assert main(["restore", "index"]) == 2
    assert "Add --yes" in capsys.readouterr().err
