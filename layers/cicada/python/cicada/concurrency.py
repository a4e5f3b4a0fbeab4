"""Doing several things at once: a port, and threads behind it.

The simulation puts its own scheduler here, which makes every interleaving repeatable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Condition(Protocol):
    """What is used of :class:`threading.Condition`."""

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
        """Wake all who wait."""
        ...


class Running(Protocol):
    """Something that was started beside."""

    def join(self) -> None:
        """Wait until it has ended."""
        ...


class Concurrency(Protocol):
    """Starts what runs beside the caller."""

    def condition(self) -> Condition:
        """A lock with notifications."""
        ...

    def spawn(self, run: Callable[[], None], name: str) -> Running:
        """Start ``run`` beside the caller; it handles its own errors."""
        ...

    def each(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do something for each item at the same time; return the results in order, or raise the first error."""
        ...


class Threads:
    """:class:`Concurrency` by threads."""

    def condition(self) -> Condition:
        """See the port."""
        condition: Any = threading.Condition()
        made: Condition = condition
        return made

    def spawn(self, run: Callable[[], None], name: str) -> Running:
        """See the port."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def each(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See the port. One item is done on the caller's own thread."""
        listed = list(items)
        if len(listed) < 2:
            return [do(item) for item in listed]
        with ThreadPoolExecutor(len(listed) - 1) as pool:
            others = [pool.submit(do, item) for item in listed[1:]]
            return [do(listed[0]), *(other.result() for other in others)]


THREADS = Threads()
"""What runs outside of a simulation."""
