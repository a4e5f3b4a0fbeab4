"""Reads a model's stream on a thread of its own, so that the caller can stop waiting.

Neither boto3 nor urllib3 has a time limit for one call: a read blocks until the client's read time-out. The reader also
drains the socket while the caller is busy delivering.
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
        """Release the stream, and close its connection unless the stream was read to its end."""


@dataclass(frozen=True)
class StreamEvent:
    """One event of the stream, as the client parsed it."""

    content: Any


@dataclass(frozen=True)
class CallFailed:
    """The call failed: there is no stream."""

    error: Exception


@dataclass(frozen=True)
class ReadFailed:
    """The stream failed: an in-stream exception, a cut connection, bytes that cannot be read."""

    error: Exception


@dataclass(frozen=True)
class StreamEnded:
    """The stream has ended. The answer may still be incomplete: a cut stream can end like this."""


Item = StreamEvent | CallFailed | ReadFailed | StreamEnded

MAX_LAST_EVENTS = 8
"""Events that a stream may send after the last one that matters, such as an end marker."""


class StreamReader:
    """One call and its stream."""

    def __init__(self, call: Callable[[], EventStream]) -> None:
        """Start calling. ``call`` makes the request and returns the stream."""
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._handle = ConnectionHandle()
        self._unwanted = threading.Event()
        self._whole = False
        threading.Thread(target=self._read, args=(call,), name="model-stream", daemon=True).start()

    def next(self, wait_s: float) -> Item | None:
        """The next item, or None when nothing arrives for ``wait_s`` seconds, or none are left to wait."""
        try:
            return self._items.get(timeout=wait_s) if wait_s > 0 else None
        except Empty:
            return None

    def stop(self) -> None:
        """From any thread: close the connection, and wake the caller of :meth:`next`."""
        self.close()
        self._items.put(StreamEnded())

    def finish(self) -> None:
        """All that matters was read; the rest of the stream is only its end, and the connection can be kept."""
        self._whole = True

    def close(self) -> None:
        """Close the connection, unless the reader has finished: then it reads to the end."""
        self._unwanted.set()
        if not self._whole:
            self._handle.cut()

    def _read(self, call: Callable[[], EventStream]) -> None:
        # Errors of a broken stream have no common base class: EventStreamError, parsers', urllib3's, ValueError.
        try:
            with self._handle.calling():
                stream = call()
        except Exception as error:
            self._items.put(CallFailed(error))
            self._handle.end()
            return
        try:
            if self._unwanted.is_set():
                return
            last_events = 0
            for event in stream:
                # A connection left in the middle of a stream cannot be kept.
                if self._unwanted.is_set() and not (self._whole and last_events < MAX_LAST_EVENTS):
                    return
                last_events += self._unwanted.is_set()
                self._items.put(StreamEvent(event))
        except Exception as error:
            self._items.put(ReadFailed(error))
        else:
            self._items.put(StreamEnded())
        finally:
            self._handle.end()
            stream.close()
