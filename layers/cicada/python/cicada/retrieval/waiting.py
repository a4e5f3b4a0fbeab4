"""Doing something on another thread, and waiting for it no longer than one may."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from cicada.errors import OutOfTime
from cicada.models.ports import Stopped

R = TypeVar("R")


def beside(do: Callable[[], R], name: str) -> Future[R]:
    """Do something on a thread of its own, which holds up neither its caller nor the end of the process."""
    done: Future[R] = Future()

    def run() -> None:
        try:
            result = do()
        except BaseException as error:  # whoever waits is told, whatever it is
            done.set_exception(error)
        else:
            done.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


def within(done: Future[R], time_s: float, *, stopped: Future[None] | None = None) -> R:
    """What comes within some seconds, below 0 counting as 0; a result that comes just then is taken, too.

    Raises OutOfTime, Stopped once ``stopped`` is done (the result is not wanted any more), or the work's own exception.
    """
    either: list[Future[Any]] = [done] if stopped is None else [done, stopped]
    wait(either, timeout=max(0.0, time_s), return_when=FIRST_COMPLETED)
    if done.done():
        return done.result()
    if stopped is not None and stopped.done():
        raise Stopped("nobody wants the result any more")
    raise OutOfTime("it took longer than it may")
