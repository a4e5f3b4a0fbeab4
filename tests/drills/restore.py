"""``python -m tests.drills.restore``: lose a deployment's data in a local cloud in one way after another; restore it.

Each scene loses something, asks, restores by the commands of docs/recovery.md, asks again, and holds what is lost
against what that page promises. ``--report`` writes what was measured into the page.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cicada.dynamodb import Item
from cicada.identity import ANONYMOUS
from cicada.index.manifest import CURRENT_KEY
from cicada.index.s3 import S3Store
from cicada.index.versions import must_be_published
from cicada_local.deploy import deploy, synthesise
from cicada_local.places import Places
from cicada_local.progress import steps_for
from cicada_local.table_backups import LAG_S
from cicada_local.testing import LocalCloud
from tests.chaos.house import ANSWER, House
from tests.e2e.command import cicada
from tests.e2e.plain_client import Socket

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "recovery.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COPIES = "copies-of-cicada"
SETTINGS: Mapping[str, Any] = {
    "onDelete": "retain",
    "pointInTimeRecovery": True,
    "cache": {"enabled": False},
    "knowledge": {"enabled": False},
}
REPLICATED: Mapping[str, Any] = {"replication": {"bucketArn": f"arn:aws:s3:::{COPIES}", "keyArn": None}}
QUESTION = "How many strokes of the fog bell did Ilse count?"
SCRIPT, WRONG = "samples/script", "samples/script/episode-5.jsonl"
METRIC_MINUTE_S = 1.0
"""So many real seconds are one of the cloud's minutes."""
PATIENCE_S = 120.0
ERASED = "bob"
"""A user who is erased after the time that is restored."""


@dataclass
class Scene:
    """A loss, and what was seen of it."""

    lost: str
    """What is lost for good, in the page's words."""
    saw: str = ""
    """The end of a question while the damage lasted."""
    restored: str = ""
    """The command that restored it."""
    took_s: float = 0.0
    """How long that ran, here."""
    aws: str = ""
    """What AWS says of its own time."""


class Site:
    """The deployment."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.cloud = cloud
        self.house = House(cloud)
        self.table, self.bucket = self.house.request_table(), cloud.outputs["IndexBucket"]
        self.dynamodb, self.s3 = cloud.client("dynamodb"), cloud.client("s3")
        self.store = S3Store(self.s3, self.bucket)

    def cicada(self, *words: str, status: int = 0) -> str:
        """Type a command; what it printed."""
        environment = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        environment |= {"AWS_REGION": "us-east-1", "CICADA_INDEX_BUCKET": self.bucket}
        environment |= {"CICADA_REQUESTS_TABLE": self.table}
        done = cicada([*words, "--endpoint-url", self.cloud.endpoint_url], environment)
        assert done.returncode == status, f"cicada {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def restores(self, scene: Scene, *words: str) -> str:
        """Type the command that restores, and measure it."""
        began = time.monotonic()
        told = self.cicada("restore", *words, "--yes")
        scene.took_s = time.monotonic() - began
        scene.restored = f"cicada restore {' '.join(words)}"
        return told

    def ask(self) -> dict[str, Any]:
        """Ask; the terminal event, with what ``sources`` told as ``sources``."""
        with Socket(self.cloud.websocket_url) as socket:
            request_id = socket.ask(QUESTION)
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                frame = socket.receive(PATIENCE_S)
                if frame.get("requestId") == request_id and frame["type"] in ("complete", "error"):
                    told = [one for one in socket.frames if one["type"] == "sources"]
                    return {**frame, "sources": told[-1] if told else None}
        raise TimeoutError("the question did not end")

    def answers(self) -> dict[str, Any]:
        """Ask until an answer from the corpus comes."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            end = self.ask()
            if end["type"] == "complete" and end["grounded"]:
                return end
            assert time.monotonic() < deadline, f"no answer comes: {end}"
            time.sleep(1)

    def answers_from(self, version: str) -> dict[str, Any]:
        """Ask until an answer comes that searched this version of the index."""
        deadline = time.monotonic() + PATIENCE_S
        while ((end := self.ask())["sources"] or {}).get("indexVersion") != version:
            assert time.monotonic() < deadline, f"version {version} is not searched: {end}"
            time.sleep(1)
        return end

    def load(self, path: str) -> None:
        """Let the collection of the script hold what is in a file or folder."""
        outputs = self.cloud.outputs
        self.cicada(
            *("load", str(ROOT / path), "--collection", "script"),
            *("--embedding-model", outputs["EmbeddingModelId"], "--dimensions", outputs["EmbeddingDimensions"]),
        )

    def cold(self) -> None:
        """Let the next answer begin in a process that holds no index."""
        name = self.house.name_of(ANSWER)
        for pid in self.cloud.functions().get(name, {}).get("processes", ()):
            self.cloud.control("DELETE", f"functions/{name}/processes/{pid}")
        time.sleep(1)

    def items(self) -> dict[tuple[str, str], Item]:
        """The table's items."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True)
        return {(item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]}

    def protect(self, on: bool) -> None:
        """Protect the table against deletion, or lift that."""
        self.dynamodb.update_table(TableName=self.table, DeletionProtectionEnabled=on)


def _seen(end: Mapping[str, Any]) -> str:
    if end["type"] == "error":
        return f"`{end['code']}`"
    return "an answer" if end["grounded"] else "an answer without sources"


# --- scenes ---


def table_deleted(site: Site) -> Scene:
    """A deleted table, with its past."""
    scene = Scene("nothing", aws="[usually less than an hour][restore]")
    site.answers()
    with contextlib.suppress(site.dynamodb.exceptions.ClientError):
        site.dynamodb.delete_table(TableName=site.table)
        raise AssertionError("a protected table was deleted")
    site.protect(False)
    before = site.items()
    site.dynamodb.delete_table(TableName=site.table)
    scene.saw = _seen(site.ask())
    site.restores(scene, "table")
    assert before.items() <= site.items().items()
    site.answers()
    return scene


def table_damaged(site: Site) -> Scene:
    """Items deleted from a table, and a person erased, since a time."""
    scene = Scene("questions open at that time", aws="[at least 20 minutes][restore]")
    site.dynamodb.put_item(
        TableName=site.table, Item={"pk": {"S": f"profiles#{ERASED}"}, "sk": {"S": "profile#1"}, "version": {"N": "1"}}
    )
    site.answers()
    time.sleep(1)
    at = datetime.now(UTC)
    before = {key for key in site.items() if key[0] != "breakers"}
    time.sleep(1 + LAG_S * METRIC_MINUTE_S / 60)
    site.cicada("user", "erase", ERASED, "--yes")
    for pk, sk in before:
        site.dynamodb.delete_item(TableName=site.table, Key={"pk": {"S": pk}, "sk": {"S": sk}})
    assert not any(ANONYMOUS in pk for pk, _ in site.items())
    scene.saw = _seen(site.ask())
    told = site.restores(scene, "table", "--at", at.isoformat(timespec="seconds"))
    scene.restored = "cicada restore table --at TIME"
    assert "1 erased" in told, told
    assert {key for key in before if ERASED not in key[0]} <= site.items().keys()
    assert not any(ERASED in pk for pk, _ in site.items())
    site.answers()
    return scene


def table_without_backup(site: Site) -> Scene:
    """A deleted table without its past."""
    scene = Scene("the whole table", aws="a table is made in moments")
    off = {"PointInTimeRecoveryEnabled": False}
    site.dynamodb.update_continuous_backups(TableName=site.table, PointInTimeRecoverySpecification=off)
    site.protect(False)
    site.dynamodb.delete_table(TableName=site.table)
    scene.saw = _seen(site.ask())
    assert "no_backup" in site.cicada("restore", "table", "--yes", status=1)
    site.restores(scene, "table", "--empty")
    site.answers()
    return scene


def index_damaged(site: Site) -> Scene:
    """A damaged manifest and segment."""
    scene = Scene("nothing", aws="S3 copies within the bucket")
    site.answers()
    manifest = must_be_published(site.store).manifest
    for key in (CURRENT_KEY, manifest.segments[0].key):
        site.s3.put_object(Bucket=site.bucket, Key=key, Body=b"damaged" * 1000)
    site.cold()
    scene.saw = _seen(site.ask())
    site.restores(scene, "index")
    assert must_be_published(site.store).manifest == manifest
    site.cicada("index", "check")
    site.answers()
    return scene


def wrong_version(site: Site) -> Scene:
    """A version without what should be found."""
    scene = Scene("what was loaded since, until it is loaded again", aws="one write")
    right = must_be_published(site.store).manifest
    site.load(WRONG)
    wrong = must_be_published(site.store).manifest.version
    scene.saw = _seen(site.answers_from(wrong)) + " from that version"
    began = time.monotonic()
    site.cicada("index", "rollback", right.version)
    scene.took_s, scene.restored = time.monotonic() - began, "cicada index rollback VERSION"
    current = must_be_published(site.store).manifest
    assert current.segments == right.segments
    site.answers_from(current.version)
    return scene


def region_lost(site: Site) -> Scene:
    """A bucket that is gone with its Region; another deployment's is empty."""
    scene = Scene(
        "what was not replicated yet; the table; the user pool", aws="[most objects in 15 minutes][replication]"
    )
    site.answers()
    current = site.store.read(CURRENT_KEY).data
    copies = S3Store(site.s3, COPIES)
    deadline = time.monotonic() + PATIENCE_S
    while not any(entry.key == CURRENT_KEY for entry in copies.entries(CURRENT_KEY)) or (
        copies.read(CURRENT_KEY).data != current
    ):
        assert time.monotonic() < deadline, "the index is not replicated"
        time.sleep(0.5)
    _empty(site.s3, site.bucket, "index/")
    site.cold()
    scene.saw = _seen(site.ask())
    site.restores(scene, "index", "--from", COPIES)
    site.cicada("index", "check")
    site.answers()
    return scene


def _empty(s3: Any, bucket: str, prefix: str) -> None:
    """Delete every version, as if the bucket had just been made."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            s3.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])


SCENES: Mapping[str, Callable[[Site], Scene]] = {
    "deleted table, without `pointInTimeRecovery`": table_without_backup,
    "deleted table, with it": table_deleted,
    "damaged table": table_damaged,
    "damaged manifest and segment": index_damaged,
    "wrong version published": wrong_version,
    "lost Region": region_lost,
}


@contextlib.contextmanager
def site(home: Path) -> Iterator[Site]:
    """A deployment that replicates its bucket, with a loaded script."""
    with LocalCloud(home, settings=SETTINGS, metric_minute_s=METRIC_MINUTE_S) as cloud:
        s3 = cloud.client("s3")
        s3.create_bucket(Bucket=COPIES, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        s3.put_bucket_versioning(Bucket=COPIES, VersioningConfiguration={"Status": "Enabled"})
        settings = json.loads((home / "settings.json").read_text(encoding="utf-8")) | REPLICATED
        places = Places(home=home, cache=Places.default().cache)
        with steps_for(plain=True).step("Deploying the replication") as step:
            folder = asyncio.run(synthesise(settings, places, step))
            asyncio.run(deploy(folder, cloud.endpoint_url, places, step))
        made = Site(cloud)
        made.load(SCRIPT)
        yield made


def table_of(scenes: Mapping[str, Scene]) -> str:
    """What was measured, as the page shows it."""
    lines = ["| loss | what askers saw | restored by | lost | here | AWS |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [
        f"| {name} | {one.saw} | `{one.restored}` | {one.lost} | {one.took_s:.1f} s | {one.aws} |"
        for name, one in scenes.items()
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run every scene; a scene that does not restore what it promises ends it with an AssertionError."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.restore", description=__doc__)
    parser.add_argument("--report", action="store_true", help="write what was measured into docs/recovery.md")
    args = parser.parse_args(argv)
    done: dict[str, Scene] = {}
    with tempfile.TemporaryDirectory() as scratch, site(Path(scratch) / "cloud") as made:
        for name, scene in SCENES.items():
            print(f"{name} …", flush=True)
            done[name] = scene(made)
            print(f"  {done[name].saw}; restored in {done[name].took_s:.1f} s", flush=True)
    print(table_of(done))
    if args.report:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{table_of(done)}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
