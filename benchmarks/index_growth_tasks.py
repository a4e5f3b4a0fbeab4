"""What the growth benchmark tells its processes, and what they tell it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cold_start_data import Prepared

if TYPE_CHECKING:
    from cicada.retrieval.ports import SearchMode

TOP_K = 10
MODES: tuple[SearchMode, ...] = ("hybrid", "dense", "keyword")
BLOCKS = "passages.blocks"
"""The section of the texts."""
_STATUS = re.compile(r"^(VmHWM|VmRSS|RssAnon|VmData):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Memory:
    """Of a process, in MiB."""

    resident: float
    anonymous: float
    """What is resident and of no file."""
    peak: float
    """The most that was resident so far."""
    mapped: float
    """What ``RLIMIT_DATA`` limits."""

    @classmethod
    def now(cls) -> Memory:
        """As the kernel tells it."""
        found = {name: int(kib) / 1024 for name, kib in _STATUS.findall(Path("/proc/self/status").read_text())}
        return cls(found["VmRSS"], found["RssAnon"], found["VmHWM"], found["VmData"])


@dataclass(frozen=True)
class Task:
    """What a process is told."""

    name: str
    """``serve``, ``replace``, ``publish`` or ``peer``."""
    folder: str
    rows: int
    texts: list[str]
    """Of queries."""
    number: int = 0
    """Of the query that is the first one."""
    text_bytes: int = 0
    """Texts, compressed, that are kept in memory at most."""
    limit_mb: int | None = None
    """Of ``RLIMIT_DATA``, in MiB."""

    @property
    def prepared(self) -> Prepared:
        """The corpus."""
        return Prepared(Path(self.folder), self.rows)


@dataclass(frozen=True)
class Served:
    """A reader's way from nothing to warm searches. Times in seconds, or in CPU milliseconds of one query each."""

    first_s: float
    first_cpu_s: float
    first_gets: int
    first_bytes: int
    first_rounds: int
    warm_after_s: float
    warm_gets: int
    warm_bytes: int
    section_bytes: dict[str, int]
    """By section: all that a segment's body has, in all segments."""
    head_bytes: int
    segments: int
    resident_bytes: int
    """Heads and the sections that are in memory."""
    at_start: Memory
    """Everything imported, nothing read."""
    warm: Memory
    search_cpu_ms: dict[str, list[float]]
    text_cpu_ms: list[float]
    text_s: list[float]
    text_gets: float
    """A search."""


@dataclass(frozen=True)
class Replaced:
    """A warm reader under which every segment was replaced by another."""

    load_s: float
    before: Memory
    after: Memory


@dataclass(frozen=True)
class Added:
    """A writer that added passages."""

    passages: int
    wall_s: float
    cpu_s: float
    gets: int
    writes: int
    bytes: int
    """Read."""
    memory: Memory
    passage_bytes: float
    """Of a passage as JSON, the mean."""


@dataclass(frozen=True)
class Compared:
    """Warm dense searches, in turns with FAISS."""

    ours_cpu_ms: list[float]
    flat_cpu_ms: list[float]
    flat_bytes: int
    recall: float
    """Of the ten nearest."""
