"""Functions' logs: one file a function, in the lines that ``aws logs tail`` prints."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

TAIL_BYTES = 4096
"""What ``LogType=Tail`` returns of an invocation's log."""


class FunctionLog:
    """Appends a function's log events to its file, and tells them on.

    A line is ``<ISO time> <log stream> <message>``; a message that spans lines continues on lines of its own.
    """

    def __init__(self, path: Path, told: Callable[[str], None] | None = None) -> None:
        """``told`` is called with each message as it is written."""
        self._path = path
        self._told = told
        self._file: TextIO | None = None

    def write(self, stream: str, message: str) -> None:
        """Append one event."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8", buffering=1)
        text = message.replace("\r", "\n").rstrip("\n")
        self._file.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {stream} {text}\n")
        if self._told is not None:
            self._told(text)

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def new_stream() -> str:
    """A log stream's name, as Lambda makes one for each execution environment."""
    return f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{secrets.token_hex(16)}"
