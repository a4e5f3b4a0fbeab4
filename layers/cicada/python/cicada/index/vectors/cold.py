"""Rows of segments that are not in memory: which byte ranges to read, and scores from what was read.

A request costs about as much as half a megabyte read: near clusters are read as one range, with all between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.index.sections import Gather
from cicada.index.vectors.layout import row_bytes
from cicada.index.vectors.part import VectorPart
from cicada.index.vectors.probe import Probe

Indices = NDArray[np.intp]

COLD_BYTES = 12 << 20
"""What a search reads of rows that are not in memory, in all segments together; what lies between joined ranges comes
on top. Segments that are smaller together are read whole."""
JOINED_GAP_BYTES = 256 << 10
"""Ranges that lie nearer than this are read as one."""
MAX_RANGES = 128
"""More ranges than this are joined over wider gaps."""


@dataclass(frozen=True)
class RowRange:
    """Rows ``start`` to ``end`` of the part at ``position`` of the searched parts."""

    position: int
    start: int
    end: int


def likely_ranges(probes: Sequence[Probe]) -> list[RowRange]:
    """Choose what to read of segments whose rows are not in memory.

    The clusters that are likeliest to hold the nearest rows come first, whichever segment they are of; of each, the
    rows from the first to the last that may be found; those without any cost nothing.
    """
    starts, ends = [], []
    for probe in probes:
        first, end = _allowed_extent(probe)
        starts.append(first)
        ends.append(end)
    sizes = [row_bytes(probe.part.dimensions) for probe in probes]
    costs = np.concatenate([(end - start) * size for start, end, size in zip(starts, ends, sizes, strict=True)])
    chosen = costs > 0
    if costs.sum() > COLD_BYTES:
        order = np.argsort(np.concatenate([probe.distances for probe in probes]), kind="stable")
        enough = int(np.searchsorted(np.cumsum(costs[order]), COLD_BYTES)) + 1
        chosen[order[enough:]] = False
    edges = np.cumsum([len(start) for start in starts])[:-1]
    ranges = [
        RowRange(position, int(start), int(end))
        for position, mask in enumerate(np.split(chosen, edges))
        for start, end in zip(starts[position][mask], ends[position][mask], strict=True)
    ]
    return _limited(ranges, sizes)


def ranges_of_rows(position: int, part: VectorPart, rows: Indices) -> list[RowRange]:
    """What to read for given rows of one segment, ascending."""
    ranges = [RowRange(position, row, row + 1) for row in rows.tolist()]
    return _joined(ranges, {position: JOINED_GAP_BYTES // row_bytes(part.dimensions)})


def read_rows(parts: Sequence[VectorPart], ranges: Sequence[RowRange], gather: Gather) -> list[NDArray[np.uint8]]:
    """Read ranges in one round; shape ``(end - start, d + 4)`` each."""
    if not ranges:
        return []
    found = gather([parts[chosen.position].span_of(chosen.start, chosen.end) for chosen in ranges])
    return [parts[chosen.position].rows_of(data) for chosen, data in zip(ranges, found, strict=True)]


def _allowed_extent(probe: Probe) -> tuple[Indices, Indices]:
    """Of each cluster the first row that may be found, and the one after the last; equal if there is none."""
    starts, ends = probe.part.offsets[:-1], probe.part.offsets[1:]
    if probe.allowed is None:
        return starts, ends
    rows = np.flatnonzero(probe.allowed)
    if not len(rows):
        return starts, starts
    after = np.cumsum(probe.counts)
    some = probe.counts > 0
    first = np.where(some, rows[np.minimum(after - probe.counts, len(rows) - 1)], starts)
    end = np.where(some, rows[after - 1] + 1, starts)
    return first, end


def _limited(ranges: list[RowRange], sizes: Sequence[int]) -> list[RowRange]:
    gap = JOINED_GAP_BYTES
    joined = _joined(ranges, {position: gap // size for position, size in enumerate(sizes)})
    while len(joined) > max(MAX_RANGES, len(sizes)):
        gap *= 2
        joined = _joined(ranges, {position: gap // size for position, size in enumerate(sizes)})
    return joined


def _joined(ranges: Sequence[RowRange], gaps: dict[int, int]) -> list[RowRange]:
    """Join ranges of the same part, ascending, that are at most so many rows apart."""
    joined: list[RowRange] = []
    for new in ranges:
        last = joined[-1] if joined else None
        if last is not None and last.position == new.position and new.start - last.end <= gaps[new.position]:
            joined[-1] = RowRange(new.position, last.start, new.end)
        else:
            joined.append(new)
    return joined
