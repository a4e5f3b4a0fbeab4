"""``cicada load``: a script into the deployment's index."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from cicada.errors import CicadaError, CorpusInvalid
from clients.cli.ask import complain
from clients.cli.deployment import Deployment
from clients.cli.exits import Exit
from clients.cli.index import embedder_of, store_of
from clients.cli.text import counted

if TYPE_CHECKING:
    from cicada.index.load import LoadReport
    from cicada.index.progress import Stage

PIECES = {"reading": "files", "embedding": "passages", "writing": "segments", "publishing": "version"}
PLAIN_INTERVAL_S = 5.0
"""Between two lines of progress where there is no terminal to move a bar on."""


def load(
    deployment: Deployment, paths: Sequence[Path], collection: str, *, start_over: bool, as_json: bool, err: Console
) -> Exit:
    """Load a script, and report."""
    from cicada.index.load import load_script

    began = time.monotonic()
    try:
        with _Bars(err) if err.is_terminal else _Lines(err) as progress:
            report = load_script(
                paths, collection, store_of(deployment), embedder_of(deployment), progress, start_over=start_over
            )
    except CorpusInvalid as error:
        complain(f"nothing was loaded:\n{error}")
        return Exit.FAILED
    except CicadaError as error:
        complain(f"{error.told} ({error.code}: {error})")
        return Exit.FAILED
    print(json.dumps(_plain(report)) if as_json else _words(report, time.monotonic() - began))
    return Exit.DONE


def _plain(report: LoadReport) -> dict[str, str | int | bool]:
    return {
        "collection": report.collection,
        "files": report.files,
        "messages": report.messages,
        "episodes": report.episodes,
        "passages": report.written.passages,
        "embedded": report.written.embedded,
        "segments": report.written.segments,
        "version": report.written.version,
        "published": report.written.published,
    }


def _words(report: LoadReport, took_s: float) -> str:
    what = (
        f"{counted(report.messages, 'message')} of {counted(report.episodes, 'episode')} "
        f"from {counted(report.files, 'file')}"
    )
    written = report.written
    if not written.published:
        return f"{report.collection} holds these {what} already.\nVersion {written.version} stays current."
    return (
        f"{report.collection} now holds {what}: {counted(written.passages, 'passage')}, "
        f"{written.embedded:,} newly embedded, in {took_s:.1f} s.\nVersion {written.version} is current."
    )


class _Bars:
    """A bar a stage."""

    def __init__(self, err: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pieces]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=err,
        )
        self._tasks: dict[Stage, TaskID] = {}

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._progress.stop()

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total, pieces=PIECES[stage])
        self._progress.update(self._tasks[stage], completed=done, total=total)


class _Lines:
    """A line a stage, and now and then one more."""

    def __init__(self, err: Console) -> None:
        self._err = err
        self._told_at = float("-inf")

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now >= self._told_at + PLAIN_INTERVAL_S:
            self._told_at = now
            self._err.print(f"{stage}: {done} of {total} {PIECES[stage]}", highlight=False, soft_wrap=True)
