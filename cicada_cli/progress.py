"""How far a long command has come: bars on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

PLAIN_INTERVAL_S = 5.0
"""Between two lines where there is no terminal to move a bar on."""


class ProgressListener(Protocol):
    """Is told each step, while its block runs."""

    def __enter__(self) -> ProgressListener: ...

    def __exit__(self, *raised: object) -> None: ...

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` pieces of the stage."""
        ...


def progress_on(err: Console, pieces: Mapping[str, str]) -> ProgressListener:
    """Progress on a console; ``pieces`` are what a stage's numbers count, by stage."""
    return _Bars(err, pieces) if err.is_terminal else _Lines(err, pieces)


class _Bars:
    """A bar a stage."""

    def __init__(self, err: Console, pieces: Mapping[str, str]) -> None:
        self._pieces = pieces
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pieces]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=err,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total, pieces=self._pieces.get(stage, ""))
        self._progress.update(self._tasks[stage], completed=done, total=total)


class _Lines:
    """A line a stage, and now and then one more."""

    def __init__(self, err: Console, pieces: Mapping[str, str]) -> None:
        self._err = err
        self._pieces = pieces
        self._told_at = float("-inf")

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now >= self._told_at + PLAIN_INTERVAL_S:
            self._told_at = now
            self._err.print(f"{stage}: {done} of {total} {self._pieces.get(stage, '')}".rstrip(), soft_wrap=True)
