"""A load that is killed half way, and taken up: ``python -m benchmarks.loading --documents 2000``.

Writes documents of mixed formats by our own generator, and loads them with ``cicada load``, a process of its own, into
S3 (moto) with the Bedrock stand-in over HTTP. The process is killed by SIGKILL when half of the documents are prepared,
and the same command is typed again. Beside it, in the same run, the same documents are loaded into another bucket
without interruption: the texts embedded by the killed and the resumed load together are compared with those, and with
the number of distinct texts. In the end everything is loaded a second time, which must embed and publish nothing.

The stand-in's vectors are made of hashed words, so that what is measured is the loading, not a model. A number that
must be zero and is not, or a document that is missing, makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from moto.server import ThreadedMotoServer

from benchmarks.loading_data import write_shelf
from cicada.index.collection_snapshot import read_snapshot
from cicada.index.s3 import S3Store
from cicada.index.versions import read_current
from tests.support.embedding import WordEmbedder
from tests.wire.bedrock_service import BedrockService, serving

ROOT = Path(__file__).resolve().parents[1]
MODEL, DIMENSIONS = "local.all-minilm-l6-v2", 384
LOOK_S = 0.01
"""Between two looks at how many documents are prepared: a small load is over in a moment."""

COLLECTION = "shelf"


@dataclass
class Run:
    """One load."""

    name: str
    took_s: float
    texts: list[str]
    """That the model was asked for."""
    report: dict[str, Any] | None
    """None if it was killed."""


class Bench:
    """The services, and loads into them."""

    def __init__(self, s3_url: str, bedrock: BedrockService, folder: Path, workers: int) -> None:
        self._bedrock = bedrock
        self._folder = folder
        self._workers = workers
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CICADA_"))},
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": s3_url,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
            "CICADA_EMBEDDING_MODEL_ID": MODEL,
            "CICADA_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.s3 = boto3.client(
            "s3",
            endpoint_url=s3_url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(max_pool_connections=16),
        )

    def load(self, name: str, bucket: str, *, kill_at: int | None = None) -> Run:
        """Load everything; kill the process once so many documents are prepared."""
        command = [sys.executable, "-m", "cicada_cli", "load", str(self._folder), "--collection", COLLECTION]
        command += ["--bucket", bucket, "--workers", str(self._workers), "--json"]
        self._bedrock.raw_bodies.clear()
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if kill_at is not None:
            while process.poll() is None and len(self.prepared(bucket)) < kill_at:
                time.sleep(LOOK_S)
            process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
        took_s = time.monotonic() - began
        report = None if process.returncode < 0 else json.loads(out)
        return Run(name, took_s, [body["inputText"] for body in self._bedrock.bodies], report)

    def prepared(self, bucket: str) -> set[str]:
        """The keys of the documents that are prepared."""
        store = S3Store(self.s3, bucket)
        return {entry.key for entry in store.entries("prepared/") if ".parts/" not in entry.key}

    def held(self, bucket: str) -> tuple[int, int]:
        """Documents and passages that the index holds."""
        store = S3Store(self.s3, bucket)
        current = read_current(store)
        if current is None:
            return 0, 0
        held = read_snapshot(store, current.manifest, COLLECTION)
        return len(held.sources), held.count


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description="A load that is killed, resumed.")
    parser.add_argument("--documents", type=int, default=2_000, help="to write and load (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="documents at a time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the generator (default: %(default)s)")
    args = parser.parse_args(argv)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cicada-loading-")))
        kinds = write_shelf(folder, args.documents, seed=args.seed)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{args.documents:,} documents, {size / 2**20:.1f} MiB: {_told(kinds)}", flush=True)
        bedrock = stack.enter_context(serving())
        bedrock.embed = lambda texts: WordEmbedder(dimensions=DIMENSIONS).embed(texts, time_budget_s=1)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto's line for each request
        s3 = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        s3.start()
        stack.callback(s3.stop)
        host, port = s3.get_host_and_port()
        return _measure(Bench(f"http://{host}:{port}", bedrock, folder, args.workers), args.documents)


def _measure(bench: Bench, documents: int) -> int:
    for bucket in ("killed", "whole"):
        bench.s3.create_bucket(Bucket=bucket)
    killed = bench.load("killed half way", "killed", kill_at=documents // 2)
    kept, held = bench.prepared("killed"), bench.held("killed")
    print(f"killed by SIGKILL with {len(kept):,} documents prepared; the index holds {held[0]:,}", flush=True)
    resumed = bench.load("resumed", "killed")
    after = bench.held("killed")
    print(f"after the resumed load the index holds {after[0]:,} documents, {after[1]:,} passages", flush=True)
    whole = bench.load("without interruption", "whole")
    again = bench.load("loaded again", "killed")

    distinct = len(set(whole.texts))
    print(f"\n{'load':22} {'seconds':>8} {'documents/s':>12} {'texts embedded':>15}")
    done = {"killed half way": len(kept), "resumed": documents - len(kept)}
    for run in (killed, resumed, whole, again):
        rate = done.get(run.name, documents) / run.took_s
        print(f"{run.name:22} {run.took_s:8.1f} {rate:12.1f} {len(run.texts):15,}")
    both = len(killed.texts) + len(resumed.texts)
    twice = len(set(killed.texts) & set(resumed.texts))
    print(
        f"\ntexts embedded by the killed and the resumed load: {both:,}; without interruption: {len(whole.texts):,} "
        f"(ratio {both / len(whole.texts):.4f}); distinct texts: {distinct:,} (ratio {both / distinct:.4f})"
    )
    print(f"texts that both were asked for, of documents that were under way: {twice:,}")
    report = again.report or {}
    print(f"loaded again: published {report.get('published')}, unchanged {report.get('unchanged'):,}")
    problems = {
        "documents are missing": after[0] != documents or bench.held("whole") != after,
        "documents were quarantined": bool((resumed.report or {}).get("quarantined")),
        "the killed load was visible": held != (0, 0),
        "documents that were prepared are gone": not kept <= bench.prepared("killed"),
        "the second load did something": bool(again.texts) or bool(report.get("published")),
    }
    for problem in (name for name, true in problems.items() if true):
        print(f"WRONG: {problem}")
    return int(any(problems.values()))


def _told(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())


if __name__ == "__main__":
    sys.exit(main())
