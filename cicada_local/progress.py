"""What is going on, shown as it goes: moving lines on a terminal, plain ones elsewhere."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_PLAIN_INTERVAL_S = 2.0


class Step(Protocol):
    """One thing that takes a while."""

    def note(self, text: str) -> None:
        """Say what it is at, in a few words."""
        ...

    def count(self, done: int, total: int) -> None:
        """Say how far it has come."""
        ...


class Steps(Protocol):
    """Shows steps, also several at once."""

    def step(self, title: str) -> AbstractContextManager[Step]:
        """Show a step while its block runs; how it ended and the seconds that it took stay."""
        ...

    def say(self, text: str) -> None:
        """Print a line."""
        ...

    def close(self) -> None:
        """Stop moving anything."""
        ...


def steps_for(stream: TextIO | None = None, *, plain: bool = False) -> Steps:
    """Choose by what the stream is; standard output when not given."""
    stream = stream or sys.stdout
    return PlainSteps(stream) if plain or not stream.isatty() else TerminalSteps(Console(file=stream))


class TerminalSteps:
    """Steps on a terminal: a spinner, a bar where there is something to count, the time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description}"),
            _BarWhereCounted(bar_width=24),
            _CountWhereCounted(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
        )
        self._progress.start()

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show a step while its block runs."""
        task = self._progress.add_task(title, total=None, note="")
        try:
            yield _TerminalStep(self._progress, task)
        except BaseException:
            self._progress.update(task, description=f"[red]✗ {title}[/]", note="")
            self._progress.stop_task(task)
            raise
        self._progress.update(task, total=1, completed=1, note="")

    def say(self, text: str) -> None:
        """Print a line above what moves."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Leave everything as it stands."""
        self._progress.stop()


class _BarWhereCounted(BarColumn):
    def render(self, task):  # type: ignore[no-untyped-def]
        return super().render(task) if task.total not in (None, 1) else ""


class _CountWhereCounted(MofNCompleteColumn):
    def render(self, task):  # type: ignore[no-untyped-def]
        return super().render(task) if task.total not in (None, 1) else ""


class _TerminalStep:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def note(self, text: str) -> None:
        self._progress.update(self._task, note=text)

    def count(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=max(total, 2))


class PlainSteps:
    """Steps as lines of text: when one begins, every two seconds of it, and when it ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Print a line at both ends of the block."""
        began = time.monotonic()
        self.say(f"{title} …")
        try:
            yield _PlainStep(title, self.say)
        except BaseException as error:
            how = "stopped" if isinstance(error, asyncio.CancelledError) else "failed"
            self.say(f"{title}: {how} after {time.monotonic() - began:.1f} s")
            raise
        self.say(f"{title}: done in {time.monotonic() - began:.1f} s")

    def say(self, text: str) -> None:
        """Print a line at once."""
        with self._lock:
            print(text, file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing moves."""


class _Say(Protocol):
    def __call__(self, text: str, /) -> None: ...


class _PlainStep:
    def __init__(self, title: str, say: _Say) -> None:
        self._title = title
        self._say = say
        self._said_at = time.monotonic()

    def note(self, text: str) -> None:
        self._say_now_and_then(text)

    def count(self, done: int, total: int) -> None:
        self._say_now_and_then(f"{done} of {total}")

    def _say_now_and_then(self, text: str) -> None:
        if time.monotonic() - self._said_at >= _PLAIN_INTERVAL_S:
            self._said_at = time.monotonic()
            self._say(f"  {self._title}: {text}")
