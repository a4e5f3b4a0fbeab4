"""How far a long command has come: bars on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

PLAIN_INTERVAL_S = 5.0
"""Between two lines where there is no terminal to move a bar on."""
HALF_LIFE_S = 30.0
"""Of what was measured, in the rate from which the time left is told."""
LEAST_STEP_S = 0.5
"""Between two measurements: steps in one moment count together."""


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


class SmoothedRate:
    """How fast a stage goes: a mean of its past, weighted exponentially less the older it is.

    Pieces differ in size, and batches end together: the rate of the last seconds would make the time left jump.
    """

    def __init__(self) -> None:
        self._rate = 0.0
        """Pieces a second."""
        self._weight = 0.0
        """Of what is known, from 0 to 1: the mean of a short past is not drawn to nought."""
        self._at_s: float | None = None
        self._done = 0

    def update(self, done: int, now_s: float) -> None:
        """Take how many pieces are done at a moment."""
        if self._at_s is None:
            self._at_s, self._done = now_s, done
            return
        passed_s = now_s - self._at_s
        if done == self._done or passed_s < LEAST_STEP_S:
            return
        kept = 0.5 ** (passed_s / HALF_LIFE_S)
        self._rate = kept * self._rate + (1 - kept) * (done - self._done) / passed_s
        self._weight = kept * self._weight + (1 - kept)
        self._at_s, self._done = now_s, done

    def remaining_s(self, total: int, now_s: float) -> float | None:
        """Seconds until all pieces are done; None if that cannot be told yet."""
        if self._at_s is None or self._rate <= 0:
            return None
        return max(0.0, (total - self._done) * self._weight / self._rate - (now_s - self._at_s))


class _TimeLeft(ProgressColumn):
    """The time left of a stage, and how long it took when it is done."""

    def __init__(self, rates: Mapping[TaskID, SmoothedRate], clock: Callable[[], float]) -> None:
        super().__init__()
        self._rates = rates
        self._clock = clock

    def render(self, task: Task) -> Text:
        """The text, such as ``01:07``."""
        if task.finished:
            return Text(_minutes(task.finished_time or 0.0), style="progress.elapsed")
        rate = self._rates.get(task.id)
        left_s = None if rate is None else rate.remaining_s(int(task.total or 0), self._clock())
        return Text("--:--" if left_s is None else _minutes(left_s), style="progress.remaining")


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


class _Bars:
    """A bar a stage."""

    def __init__(self, err: Console, pieces: Mapping[str, str]) -> None:
        self._pieces = pieces
        self._rates: dict[TaskID, SmoothedRate] = {}
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pieces]}"),
            _TimeLeft(self._rates, time.monotonic),
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
            self._rates[self._tasks[stage]] = SmoothedRate()
        self._rates[self._tasks[stage]].update(done, time.monotonic())
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
