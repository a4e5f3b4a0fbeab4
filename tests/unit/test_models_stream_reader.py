"""The thread that reads a model's stream."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator

import pytest

from cicada.models.stream_reader import MAX_LAST_EVENTS, StreamEvent, StreamReader

PATIENCE_S = 10.0


class Stream:
    """One that says nothing after its first event until its reader's caller has closed."""

    def __init__(self, rest: Iterable[str]) -> None:
        self.rest = rest
        self.may_go_on = threading.Event()
        self.read_to_its_end = False
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[str]:
        yield "usage"
        assert self.may_go_on.wait(PATIENCE_S)
        yield from self.rest
        self.read_to_its_end = True

    def close(self) -> None:
        self.closed.set()


def read(stream: Stream, *, whole: bool) -> None:
    """Read its first event, close, and only then let it go on."""
    reader = StreamReader(lambda: stream)
    assert reader.next(PATIENCE_S) == StreamEvent("usage")
    if whole:
        reader.finish()
    reader.close()
    stream.may_go_on.set()
    assert stream.closed.wait(PATIENCE_S)


@pytest.mark.parametrize("rest", [[], ["the end"], [""] * (MAX_LAST_EVENTS - 1) + ["the end"]])
def test_a_stream_that_has_said_all_that_matters_is_read_to_its_end(rest):
    stream = Stream(rest)
    read(stream, whole=True)
    assert stream.read_to_its_end


def test_a_stream_that_never_ends_is_let_go():
    stream = Stream(itertools.repeat("still here"))
    read(stream, whole=True)
    assert not stream.read_to_its_end


def test_a_stream_that_nobody_wants_any_more_is_let_go_at_once():
    stream = Stream(["more"])
    read(stream, whole=False)
    assert not stream.read_to_its_end
