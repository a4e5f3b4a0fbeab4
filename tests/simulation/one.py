"""Runs single worlds: the library's own log is silent but for what tells of a bug."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from cicada.answering import action_handlers
from cicada.delivery import dynamodb
from cicada.errors import CicadaError
from tests.simulation.world import Verdict, World

_LIBRARY = logging.getLogger("cicada")


class _Bugs(logging.Handler):
    """What the library logs as an error with an exception, or under the code of no known error, is a bug that it
    survived."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.world: World | None = None

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.__dict__
        why = record.exc_info[1] if record.exc_info else fields.get("why")
        # Of a bug the library logs no more than its type: its message may quote what no log may hold.
        survived = record.exc_info or (fields.get("code") == CicadaError.code and str(why).isidentifier())
        if survived and self.world is not None:
            self.world.fail(f"a bug was survived: {record.getMessage()}: {why!r}")


class _Story(logging.Handler):
    """The library's log, as part of a world's history."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        task = self._world.scheduler.current
        known = {"name", "msg", "args", "taskName", "message", "exc_info", "exc_text", "stack_info"}
        plain = logging.makeLogRecord({}).__dict__.keys() | known
        fields = {name: value for name, value in record.__dict__.items() if name not in plain}
        self._world.tell(task.process.name, f"logs: {record.getMessage()} {fields}")


INLINE_BYTES = 200
"""So that events have items of their own here, where answers are short."""


@contextmanager
def quiet(level: int = logging.ERROR) -> Iterator[_Bugs]:
    """Within it the library logs nothing below ``level``; yields what hears of bugs."""
    bugs = _Bugs()
    before = (_LIBRARY.level, _LIBRARY.propagate)
    module = vars(action_handlers)
    classify = module["classify"]
    module["classify"] = cache(classify)  # of the same text it is always the same
    inline_bytes, dynamodb.INLINE_BYTES = dynamodb.INLINE_BYTES, INLINE_BYTES
    _LIBRARY.setLevel(level)
    _LIBRARY.propagate = False
    _LIBRARY.addHandler(bugs)
    try:
        yield bugs
    finally:
        module["classify"] = classify
        dynamodb.INLINE_BYTES = inline_bytes
        _LIBRARY.removeHandler(bugs)
        _LIBRARY.setLevel(before[0])
        _LIBRARY.propagate = before[1]


def run_world(seed: int, counts: Counter[str], bugs: _Bugs) -> Verdict:
    """Run one world, within :func:`quiet`."""
    world = World(seed, counts)
    bugs.world = world
    return world.run()


def replay(seed: int) -> Verdict:
    """Run one world and keep its whole history, the library's log included."""
    with quiet(logging.INFO) as bugs:
        world = World(seed, Counter(), keeps_history=True)
        bugs.world = world
        story = _Story(world)
        _LIBRARY.addHandler(story)
        try:
            return world.run()
        finally:
            _LIBRARY.removeHandler(story)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Worlds are large and die whole: cyclic garbage is collected now and then, between them."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
