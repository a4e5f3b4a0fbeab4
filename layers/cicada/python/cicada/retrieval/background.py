"""Runs work on another thread, and waits for it within a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from cicada.errors import OutOfTime
from cicada.models.ports import Stopped

R = TypeVar("R")


def run_in_background(do: Callable[[], R], name: str) -> Future[R]:
    """Run ``do`` on a daemon thread of its own."""
    done: Future[R] = Future()

    def run() -> None:
        try:
            result = do()
        except BaseException as error:  # raised in the waiting thread
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


def wait_for(done: Future[R], time_s: float, *, stopped: Future[None] | None = None) -> R:
    """The result within some seconds, below 0 counting as 0.

    Raises OutOfTime, Stopped once ``stopped`` is done, or the work's own exception.
    """
    either: list[Future[Any]] = [done] if stopped is None else [done, stopped]
    wait(either, timeout=max(0.0, time_s), return_when=FIRST_COMPLETED)
    if done.done():
        return done.result()
    if stopped is not None and stopped.done():
        raise Stopped
    raise OutOfTime("timed out")
