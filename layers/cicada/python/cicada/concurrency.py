"""Concurrency: a port, and its implementation by threads.

The simulation replaces it by its own scheduler, which makes every interleaving repeatable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Condition(Protocol):
    """The used part of :class:`threading.Condition`."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a notification, at most ``timeout`` seconds."""
        ...

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the predicate holds, at most ``timeout`` seconds. Returns whether it holds."""
        ...

    def notify_all(self) -> None:
        """Wake all waiting threads."""
        ...


class Running(Protocol):
    """A background task."""

    def join(self) -> None:
        """Wait until it has ended."""
        ...


class Concurrency(Protocol):
    """Starts background tasks."""

    def condition(self) -> Condition:
        """A lock with notifications."""
        ...

    def spawn(self, run: Callable[[], None], name: str) -> Running:
        """Start ``run`` in the background; it handles its own errors."""
        ...

    def each(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call ``do`` for all items in parallel; return the results in order, or raise the first error."""
        ...


class Threads:
    """:class:`Concurrency` by threads."""

    def condition(self) -> Condition:
        """See the port."""
        return threading.Condition()

    def spawn(self, run: Callable[[], None], name: str) -> Running:
        """See the port."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def each(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See the port. The first item runs on the caller's thread."""
        listed = list(items)
        if len(listed) < 2:
            return [do(item) for item in listed]
        with ThreadPoolExecutor(len(listed) - 1) as pool:
            others = [pool.submit(do, item) for item in listed[1:]]
            return [do(listed[0]), *(other.result() for other in others)]


THREADS = Threads()
"""The default outside of the simulation."""
