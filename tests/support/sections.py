"""Sections of a segment that are all in memory: what was encoded, without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.index.segment_format import Encoded, Span


class MemorySections:
    """:class:`cicada.index.segment_format.Sections` in memory."""

    def __init__(self, parts: Mapping[str, Encoded]) -> None:
        """Take what each part wrote, by the part's name."""
        self._parts = parts

    def meta(self, part: str) -> Mapping[str, Any]:
        return self._parts[part].meta if part in self._parts else {}

    def head(self, name: str) -> memoryview:
        return memoryview(self._part_of(name).head[name])

    def size(self, name: str) -> int:
        return len(self._part_of(name).body[name])

    def resident(self, name: str) -> memoryview:
        return memoryview(self._part_of(name).body[name])

    def _part_of(self, name: str) -> Encoded:
        return self._parts[name.partition(".")[0]]


def gather_resident(spans: Sequence[Span]) -> list[memoryview]:
    """:class:`cicada.index.segment_format.Gather` over sections that are in memory."""
    found: list[memoryview] = []
    for span in spans:
        section = span.sections.resident(span.name)
        if section is None:
            raise ValueError(f"{span.name} is not in memory")
        found.append(section[span.start : span.start + span.length])
    return found
