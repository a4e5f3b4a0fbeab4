"""Loading a script, and declared collections, into the deployed index: in a process of its own, as anybody would.

A script whose folder has a ``collection.yaml`` is loaded into the collection that it declares.

As a program it tells its progress on standard output, a JSON object a line: ``{"stage", "done", "total"}`` while it
works, ``{"episodes": [{"id", "name"}, …]}`` at the end. What goes wrong is told on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cicada.corpus.declared.declaration import DECLARATION
from cicada_local.places import ROOT, aws_environment
from cicada_local.progress import Step

if TYPE_CHECKING:
    from cicada.index.ports import ObjectStore, Progress
    from cicada.models.ports import Embedder

SAMPLE = ROOT / "samples" / "script"
SAMPLE_COLLECTION = "script"
CAMPAIGN = ROOT / "samples" / "campaign"
"""Its folders are collections, each with a ``collection.yaml``."""
LOADER = "local cloud"
"""Whom audit records name."""

_LIBRARY = ROOT / "layers" / "cicada" / "python"
_WRITERS = ("corpus", "index", "ingest")  # the parts of the library that decide what an index looks like


class LoadFailed(Exception):
    """The script could not be loaded; the message is for the person at the terminal."""


def load_hash(paths: Sequence[Path], outputs: Mapping[str, str]) -> str:
    """A hash of all that a loaded index depends on: the files, the model, the code that writes."""
    digest = hashlib.sha256(f"{outputs['EmbeddingModelId']} {outputs['EmbeddingDimensions']}".encode())
    code = (path for part in _WRITERS for path in sorted((_LIBRARY / "cicada" / part).rglob("*.py")))
    files = (file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]))
    for file in (Path(__file__), *code, *files):
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def sample_folders() -> list[Path]:
    """The folders of the sample campaign that declare a collection."""
    return sorted(path.parent for path in CAMPAIGN.glob(f"*/{DECLARATION}"))


async def load(
    paths: Sequence[Path], outputs: Mapping[str, str], endpoint_url: str, step: Step, *, folders: Sequence[Path] = ()
) -> list[dict[str, str]]:
    """Load a script into the deployment, and after it folders that declare their collections.

    Returns:
        The script's episodes in order, each with ``id`` and ``name``.

    Raises:
        LoadFailed: with the loader's own words.
    """
    command = [sys.executable, "-m", "cicada_local.loading", *map(str, paths)]
    command += ["--bucket", outputs["IndexBucket"], "--model", outputs["EmbeddingModelId"]]
    command += ["--dimensions", outputs["EmbeddingDimensions"]]
    command += [option for folder in folders for option in ("--folder", str(folder))]
    environment = aws_environment(os.environ, endpoint_url) | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(_LIBRARY)])
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    episodes: list[dict[str, str]] = []
    complaints = asyncio.create_task(process.stderr.read())
    try:
        async for line in process.stdout:
            told = json.loads(line)
            if told.get("stage") in ("embedding", "preparing"):
                step.count(told["done"], told["total"])
            episodes = told.get("episodes", episodes)
        status = await process.wait()
        words = (await complaints).decode("utf-8", "replace").strip()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if status != 0:
        raise LoadFailed(f"The script could not be loaded:\n{words}")
    return episodes


def main(argv: Sequence[str] | None = None) -> int:
    """Load, and tell."""
    parser = argparse.ArgumentParser(prog="python -m cicada_local.loading", description="Load a script into the index.")
    parser.add_argument("paths", nargs="+", type=Path, help="JSON or JSONL files, or folders of them")
    parser.add_argument("--bucket", required=True, help="the deployment's output IndexBucket")
    parser.add_argument("--model", required=True, help="the deployment's output EmbeddingModelId")
    parser.add_argument("--dimensions", required=True, type=int, help="the deployment's output EmbeddingDimensions")
    parser.add_argument("--collection", default=SAMPLE_COLLECTION, help="its name in the index (default: %(default)s)")
    parser.add_argument("--folder", action="append", default=[], type=Path, help="that declares its collection")
    args = parser.parse_args(argv)

    import boto3

    from cicada.corpus.scripts import read_script, script_files
    from cicada.errors import CicadaError, CorpusInvalid
    from cicada.index.s3 import CLIENT_CONFIG, S3Store
    from cicada.ingest.recorded_store import RecordedStore
    from cicada.ingest.scripts import load_script
    from cicada.models.bedrock import bedrock_client_config
    from cicada.models.bedrock_embeddings import BedrockEmbedder

    def progress(stage: str, done: int, total: int) -> None:
        print(json.dumps({"stage": stage, "done": done, "total": total}), flush=True)

    store = RecordedStore(S3Store(boto3.client("s3", config=CLIENT_CONFIG), args.bucket), LOADER)
    runtime = boto3.client("bedrock-runtime", config=bedrock_client_config())
    try:
        embedder = BedrockEmbedder(runtime, args.model, args.dimensions)
        episodes = {message.episode_id: message.episode_name for message in read_script(script_files(args.paths))}
        if not _load_declared(args.paths, store, embedder, progress):
            load_script(args.paths, args.collection, store, embedder, progress)
        for folder in args.folder:
            if not _load_declared([folder], store, embedder, progress):
                raise CorpusInvalid(f"{folder}: declares no collection")
    except CicadaError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"episodes": [{"id": id, "name": name} for id, name in episodes.items()]}), flush=True)
    return 0


def _load_declared(paths: Sequence[Path], store: ObjectStore, embedder: Embedder, progress: Progress) -> bool:
    """Load documents into the collection that they declare. False, and nothing is loaded, where they declare none.

    Raises:
        CicadaError: they cannot be loaded, or one of them cannot.
    """
    from cicada.errors import CorpusInvalid
    from cicada.ingest.contracts import EnrichmentOptions, Recipe
    from cicada.ingest.declaring import declaration_of
    from cicada.ingest.enrichment.enricher import Enricher
    from cicada.ingest.loading import load_documents
    from cicada.ingest.sources import source_files

    declaration = declaration_of(source_files(paths))
    if declaration is None:
        return False
    recipe = Recipe(embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    report = load_documents(
        paths,
        declaration.collection,
        store,
        embedder,
        recipe,
        enricher=Enricher(EnrichmentOptions(), None, store),
        progress=progress,
    )
    if report.quarantined:
        raise CorpusInvalid("\n".join(f"{one.source}: {one.message}" for one in report.quarantined))
    return True


if __name__ == "__main__":
    sys.exit(main())
