"""``cicada load``: a script into the deployment's index."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cicada.errors import CicadaError, CorpusInvalid, PublishConflict
from clients.cli.ask import complain
from clients.cli.deployment import Deployment
from clients.cli.exits import Exit
from clients.cli.index import PIECES, embedder_of, store_of
from clients.cli.progress import progress_on
from clients.cli.text import counted

if TYPE_CHECKING:
    from cicada.index.compaction import Compacted
    from cicada.index.load import LoadReport
    from cicada.index.progress import Progress
    from cicada.index.store import ObjectStore


def load(
    deployment: Deployment,
    paths: Sequence[Path],
    collection: str,
    *,
    start_over: bool,
    verify: bool,
    as_json: bool,
    err: Console,
) -> Exit:
    """Load a script, compact its collection if that is due, and report."""
    from cicada.index.load import load_script

    began = time.monotonic()
    store = store_of(deployment)
    try:
        with progress_on(err, PIECES) as progress:
            report = load_script(
                paths, collection, store, embedder_of(deployment), progress, start_over=start_over, verify=verify
            )
            compacted = _compacted(store, collection, progress)
    except CorpusInvalid as error:
        complain(f"nothing was loaded:\n{error}")
        return Exit.FAILED
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    print(json.dumps(_plain(report, compacted)) if as_json else _words(report, compacted, time.monotonic() - began))
    return Exit.DONE


def _compacted(store: ObjectStore, collection: str, progress: Progress) -> Compacted | None:
    """What compaction came to, if it was due. A load is no worse for a compaction that somebody else was at, too."""
    from cicada.index.compaction import compact

    try:
        return compact(store, collection=collection, progress=progress)
    except PublishConflict as error:
        complain(f"the collection was not compacted: {error}")
        return None


def _plain(report: LoadReport, compacted: Compacted | None) -> dict[str, str | int | bool]:
    return {
        "collection": report.collection,
        "files": report.files,
        "messages": report.messages,
        "episodes": report.episodes,
        "passages": report.written.passages,
        "added": report.written.added,
        "removed": report.written.removed,
        "embedded": report.written.embedded,
        "segments": report.written.segments - (compacted.merged - compacted.segments if compacted else 0),
        "version": _version(report, compacted),
        "published": report.written.published,
        "compacted": compacted is not None,
    }


def _version(report: LoadReport, compacted: Compacted | None) -> str:
    return compacted.version if compacted else report.written.version


def _words(report: LoadReport, compacted: Compacted | None, took_s: float) -> str:
    what = (
        f"{counted(report.messages, 'message')} of {counted(report.episodes, 'episode')} "
        f"from {counted(report.files, 'file')}"
    )
    written, version = report.written, _version(report, compacted)
    if not written.published:
        stays = "is" if compacted else "stays"
        return f"{report.collection} holds these {what} already.\nVersion {version} {stays} current."
    return (
        f"{report.collection} now holds {what}: {counted(written.passages, 'passage')}, {written.added:,} of them new "
        f"or changed, {written.embedded:,} newly embedded, in {took_s:.1f} s.\nVersion {version} is current."
    )
