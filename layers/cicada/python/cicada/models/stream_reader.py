"""Reads a ConverseStream call on a thread of its own, so that whoever waits for its events can stop waiting.

boto3 offers no time limit for one call: a read blocks until the client's read time-out, whatever the caller's budget.
A reader also keeps draining the socket while the caller is busy delivering what it has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from cicada.models.lines import Line


@dataclass(frozen=True)
class StreamEvent:
    """One event of the stream, as botocore parsed it."""

    content: Mapping[str, Any]


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


class StreamReader:
    """One call and its stream."""

    def __init__(self, call: Callable[[], Mapping[str, Any]]) -> None:
        """Start calling. ``call`` returns the response of ``converse_stream``."""
        self._items: SimpleQueue[Item] = SimpleQueue()
        self._line = Line()
        self._unwanted = threading.Event()
        self._whole = False
        threading.Thread(target=self._read, args=(call,), name="bedrock-stream", daemon=True).start()

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
        """Want nothing more. Closes the connection, unless the reader has finished."""
        self._unwanted.set()
        if not self._whole:
            self._line.cut()

    def _read(self, call: Callable[[], Mapping[str, Any]]) -> None:
        # Only botocore's code runs in these blocks, and what it raises on a broken stream has no common base:
        # EventStreamError, its parsers' errors, urllib3's, a plain ValueError.
        try:
            with self._line.calling():
                stream = call()["stream"]
        except Exception as error:
            self._items.put(CallFailed(error))
            return
        try:
            if self._unwanted.is_set():
                return
            for event in stream:
                if self._unwanted.is_set():
                    return
                self._items.put(StreamEvent(event))
        except Exception as error:
            self._items.put(ReadFailed(error))
        else:
            self._items.put(StreamEnded())
        finally:
            self._line.end()
            stream.close()
