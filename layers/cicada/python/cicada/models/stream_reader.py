"""Reads a model's stream on a thread of its own, so that whoever waits for its events can stop waiting.

Neither boto3 nor urllib3 offers a time limit for one call: a read blocks until the client's read time-out, whatever the
caller's budget. A reader also keeps draining the socket while the caller is busy delivering what it has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from cicada.models.stopping import ConnectionHandle


class EventStream(Protocol):
    """An open stream, as the service's client gives it."""

    def __iter__(self) -> Iterator[Any]:
        """The events, in order. Raises whatever the client raises when the stream breaks."""

    def close(self) -> None:
        """Let go of the stream: of its connection, too, unless it has been read to its end."""


@dataclass(frozen=True)
class StreamEvent:
    """One event of the stream, as the client parsed it."""

    content: Any


@dataclass(frozen=True)
class CallFailed:
    """The call was answered with an error, or not at all: there is no stream."""

    error: Exception


@dataclass(frozen=True)
class ReadFailed:
    """The stream failed: an in-stream exception, a cut connection, bytes that cannot be read."""

    error: Exception


@dataclass(frozen=True)
class StreamEnded:
    """The stream is at its end. That alone says nothing about the answer: a cut stream can end like this."""


Item = StreamEvent | CallFailed | ReadFailed | StreamEnded

MAX_LAST_EVENTS = 8
"""Events that a stream may still send once all has been read that matters (such as a mark of its end)."""


class StreamReader:
    """One call and its stream."""

    def __init__(self, call: Callable[[], EventStream]) -> None:
        """Start calling. ``call`` makes the request and returns the stream."""
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._line = ConnectionHandle()
        self._unwanted = threading.Event()
        self._whole = False
        threading.Thread(target=self._read, args=(call,), name="model-stream", daemon=True).start()

    def next(self, wait_s: float) -> Item | None:
        """The next item, or None when nothing arrives for ``wait_s`` seconds."""
        try:
            return self._items.get(timeout=wait_s)
        except Empty:
            return None

    def stop(self) -> None:
        """From any thread: close the connection, and wake whoever waits for the next item."""
        self.close()
        self._items.put(StreamEnded())

    def finish(self) -> None:
        """All has been read that matters. What is left of the stream is only its end: the connection can be kept."""
        self._whole = True

    def close(self) -> None:
        """Want nothing more. Closes the connection, unless the reader has finished: then it reads to the end."""
        self._unwanted.set()
        if not self._whole:
            self._line.cut()

    def _read(self, call: Callable[[], EventStream]) -> None:
        # Mostly the clients' code runs in these blocks, and what it raises on a broken stream has no common base:
        # EventStreamError, parsers' errors, urllib3's, a plain ValueError.
        try:
            with self._line.calling():
                stream = call()
        except Exception as error:
            self._items.put(CallFailed(error))
            self._line.end()
            return
        try:
            if self._unwanted.is_set():
                return
            last_events = 0
            for event in stream:
                if self._is_given_up(last_events):
                    return
                last_events += self._unwanted.is_set()
                self._items.put(StreamEvent(event))
        except Exception as error:
            self._items.put(ReadFailed(error))
        else:
            self._items.put(StreamEnded())
        finally:
            self._line.end()
            stream.close()

    def _is_given_up(self, last_events: int) -> bool:
        """Whether to let go of the stream where it is; a connection that is left in the middle cannot be kept."""
        return self._unwanted.is_set() and not (self._whole and last_events < MAX_LAST_EVENTS)
