"""The sections of a segment, wherever they lie: what vector search, lexical search and filters are written against.

A segment is one immutable object made of named sections. Its small ones, the *head*, are read when it is opened. The
others, the *body*, are in memory or read by range: the same code searches both, and a cold function reads only what a
query touches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Encoded:
    """What one part of a segment (vectors, lexical, columns) writes. Names of sections begin with the part's."""

    meta: Mapping[str, Any]
    """JSON values, kept in the segment's header below the part's name."""
    head: Mapping[str, bytes]
    """Small sections, read whenever the segment is opened: keep them below about 1 MB in all for 250,000 rows."""
    body: Mapping[str, bytes]
    """Large sections, read whole or by range."""


class Sections(Protocol):
    """The sections of one segment. Everything returned is verified: its digest is what was written."""

    def meta(self, part: str) -> Mapping[str, Any]:
        """What the part kept in the header; empty if the segment has no such part."""
        ...

    def head(self, name: str) -> memoryview:
        """A section of the head.

        Raises:
            IndexCorrupt: the segment has none of that name.
        """
        ...

    def size(self, name: str) -> int:
        """Bytes of a body section.

        Raises:
            IndexCorrupt: the segment has none of that name.
        """
        ...

    def resident(self, name: str) -> memoryview | None:
        """A body section, if it is in memory whole; never reads."""
        ...


@dataclass(frozen=True)
class Span:
    """Bytes ``start`` to ``start + length`` of a body section."""

    sections: Sections
    name: str
    start: int
    length: int


class Gather(Protocol):
    """Reads spans of any number of segments as one round of parallel ranges; what is resident costs nothing."""

    def __call__(self, spans: Sequence[Span]) -> list[memoryview]:
        """The spans' bytes, in order.

        Raises:
            IndexCorrupt: bytes are missing or are not what was written.
            IndexUnavailable: the store does not respond.
        """
        ...
