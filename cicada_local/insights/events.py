"""Log events, read from the functions' log files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_EVENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00) (\S+) (.*)", re.DOTALL)


@dataclass(frozen=True)
class Event:
    """One log event."""

    at_ms: int
    """Epoch milliseconds."""
    group: str
    stream: str
    message: str
    place: int
    """Its line in the file: with the group it tells the event from all others."""


def read_events(
    group: str, paths: Iterable[Path], *, start_ms: int, end_ms: int, needles: Sequence[str] = ()
) -> Iterator[Event]:
    """The events of a log group within a window, in the order in which they were written.

    Args:
        group: its name.
        paths: the log files of its functions; those that do not exist yet are empty.
        start_ms: the window's beginning, epoch milliseconds.
        end_ms: its end, within it.
        needles: texts; an event without each of them is left out unread.
    """
    for path in paths:
        for place, text in _texts(path):
            if not all(needle in text for needle in needles):
                continue
            match = _EVENT.match(text)
            if match is None:
                continue
            at_ms = round(datetime.fromisoformat(match[1]).timestamp() * 1000)
            if start_ms <= at_ms <= end_ms:
                yield Event(at_ms, group, match[2], match[3].rstrip("\n"), place)


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file's events, with the line that each begins at: a message may span lines."""
    begun, lines = 0, list[str]()
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for place, line in enumerate(file):
                if lines and _EVENT.match(line):
                    yield begun, "".join(lines)
                    lines.clear()
                if not lines:
                    begun = place
                lines.append(line)
    except FileNotFoundError:
        return
    if lines:
        yield begun, "".join(lines)


def fields_of(event: Event, account: str) -> dict[str, str]:
    """The fields that Insights finds in an event: its own, which begin with ``@``, and those of a JSON message.

    What is nested is named by its path, ``metrics.costUsd``; what stands in a list by its place, ``failed.0``.
    """
    found = {
        "@timestamp": timestamp(event.at_ms),
        "@message": event.message,
        "@logStream": event.stream,
        "@log": f"{account}:{event.group}",
    }
    try:
        parsed = json.loads(event.message)
    except ValueError:
        return found
    return {**dict(_flat("", parsed)), **found} if isinstance(parsed, dict) else found


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    inner: Iterable[tuple[object, Any]]
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        if value is not None:
            yield path, str(int(value)) if isinstance(value, bool) else str(value)
        return
    for name, one in inner:
        yield from _flat(f"{path}.{name}" if path else str(name), one)


def timestamp(at_ms: int) -> str:
    """As results have it: ``2026-11-21 02:46:09.194``, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
