"""Ranks the nearest rows of many segments, in memory or read by range.

The second stage of a search scores candidates by their 8-bit rows. Of segments that are not in memory, the rows of the
likeliest clusters are read. A request costs about as much as half a megabyte, so near clusters are read as one range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.segment_format import Gather
from cicada.index.vectors.part import VectorPart, row_bytes
from cicada.index.vectors.scan import SegmentProbe, scan, scratch, unit_query

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]

_BLOCK_NUMBERS = 1 << 17  # coordinates scored at a time: as float32 they stay in the second-level cache


def stored_cosines(probe: SegmentProbe, rows: Indices, data: NDArray[np.uint8], first: int = 0) -> Floats:
    """Cosines of a segment's ``rows`` to the query; both ``(m,)``, rows ascending.

    ``data`` are 8-bit rows ``(any, d + 4)`` from the row ``first`` on. Raises IndexCorrupt if a scale is not finite.
    """
    dimensions = probe.part.dimensions
    cosines = np.empty(len(rows), dtype=np.float32)
    step = max(_BLOCK_NUMBERS // dimensions, 1)
    for start in range(0, len(rows), step):
        chosen = rows[start : start + step] - first
        block: NDArray[np.uint8] = scratch("rows", (len(chosen), data.shape[1]), np.uint8)
        data.take(chosen, axis=0, out=block, mode="clip")  # mode="raise" would copy first
        numbers: Floats = scratch("numbers", (len(chosen), dimensions), np.float32)
        numbers[:] = block[:, :dimensions].view(np.int8)
        scores = cosines[start : start + step]
        np.matmul(numbers, probe.query, out=scores)
        scores *= np.ascontiguousarray(block[:, dimensions:]).view("<f4")[:, 0]
    cosines += probe.products[np.searchsorted(probe.part.offsets, rows, side="right") - 1]
    if not np.all(np.isfinite(cosines)):
        raise IndexCorrupt("a vector has numbers that are not finite")
    return cosines


COLD_BYTES = 12 << 20  # rows that a search reads of all segments that are not in memory, without joined gaps
JOINED_GAP_BYTES = 256 << 10  # ranges with smaller gaps are read as one
MAX_RANGES = 128  # more ranges are joined over wider gaps


@dataclass(frozen=True)
class RowRange:
    """Rows ``start`` to ``end`` of the part at ``position`` of the searched parts."""

    position: int
    start: int
    end: int


def likely_ranges(probes: Sequence[SegmentProbe]) -> list[RowRange]:
    """Choose what to read of segments that are not in memory: the likeliest clusters of all segments.

    Of each cluster, the rows from the first to the last allowed one are read.
    """
    extents = [_allowed_extent(probe) for probe in probes]
    sizes = [row_bytes(probe.part.dimensions) for probe in probes]
    costs = np.concatenate([(end - start) * size for (start, end), size in zip(extents, sizes, strict=True)])
    chosen = costs > 0
    if costs.sum() > COLD_BYTES:
        order = np.argsort(np.concatenate([probe.distances for probe in probes]), kind="stable")
        enough = int(np.searchsorted(np.cumsum(costs[order]), COLD_BYTES)) + 1
        chosen[order[enough:]] = False
    edges = np.cumsum([len(start) for start, _ in extents])[:-1]
    ranges = [
        RowRange(position, int(start), int(end))
        for position, mask in enumerate(np.split(chosen, edges))
        for start, end in zip(extents[position][0][mask], extents[position][1][mask], strict=True)
    ]
    return _limited(ranges, sizes)


def ranges_of_rows(position: int, part: VectorPart, rows: Indices) -> list[RowRange]:
    """What to read for given rows of one segment, ascending."""
    ranges = [RowRange(position, row, row + 1) for row in rows.tolist()]
    return _joined(ranges, {position: JOINED_GAP_BYTES // row_bytes(part.dimensions)})


def read_rows(parts: Sequence[VectorPart], ranges: Sequence[RowRange], gather: Gather) -> list[NDArray[np.uint8]]:
    """Read ranges in one round; shape ``(end - start, d + 4)`` each."""
    found = gather([parts[chosen.position].span_of(chosen.start, chosen.end) for chosen in ranges]) if ranges else []
    return [parts[chosen.position].rows_of(data) for chosen, data in zip(ranges, found, strict=True)]


def _allowed_extent(probe: SegmentProbe) -> tuple[Indices, Indices]:
    """For each cluster the first allowed row, and the end of the allowed rows; equal if there are none."""
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
    while True:
        joined = _joined(ranges, {position: gap // size for position, size in enumerate(sizes)})
        if len(joined) <= max(MAX_RANGES, len(sizes)):
            return joined
        gap *= 2


def _joined(ranges: Sequence[RowRange], gaps: dict[int, int]) -> list[RowRange]:
    """Join ranges of the same part, ascending, with gaps of at most ``gaps`` rows."""
    joined: list[RowRange] = []
    for new in ranges:
        if joined and joined[-1].position == new.position and new.start - joined[-1].end <= gaps[new.position]:
            joined[-1] = RowRange(new.position, joined[-1].start, new.end)
        else:
            joined.append(new)
    return joined


DIRECT_ROWS = 4_096  # up to this many allowed rows are scored without scanning their codes
_DIRECT_SHARE = 64  # so is up to a 64th of all rows: a filter then costs less than a search without it
_RESCORED_SHARE = 512  # after the scan, one in 512 of the allowed rows is scored, within these limits
_RESCORED_ROWS, _RESCORED_AT_MOST = 1_000, 2_000
_RESCORED_PER_HIT = 10  # at least this many per requested hit


@dataclass(frozen=True)
class VectorHits:
    """Rows, best first; equal ones by segment and row."""

    segment: NDArray[np.intp]
    row: NDArray[np.intp]
    cosine: NDArray[np.float32]


def search_vectors(
    parts: Sequence[VectorPart], query: Floats, allowed: Sequence[NDArray[np.bool_] | None], limit: int, gather: Gather
) -> VectorHits:
    """Find the ``limit`` rows nearest to a query, shape ``(d,)``, of any length but zero.

    Segments in memory are scanned; of the others the likeliest clusters are read, in one round. ``allowed`` masks the
    rows of each part, ``(n,)``, None for all. Cosines are those of the stored rows (8 bits per coordinate of the
    residual); apart from that rounding they do not depend on how rows are cut into segments.

    Raises ValueError if the query has no direction or another shape, or a mask another length; IndexMismatch if the
    parts differ in their dimensions; IndexCorrupt or IndexUnavailable if ranges cannot be read.
    """
    probes = _probes(parts, query, allowed)
    warm = [position for position, part in enumerate(parts) if _is_resident(part)]
    cold = [position for position, probe in enumerate(probes) if position not in set(warm) and probe.total]
    return _best([*_warm_hits(probes, warm, limit), *_cold_hits(probes, cold, gather)], limit)


def cosines(
    parts: Sequence[VectorPart], query: Floats, segment: Indices, row: Indices, gather: Gather
) -> NDArray[np.float32]:
    """The cosines of given rows to a query, shape ``(k,)``, as :func:`search_vectors` would report them.

    ``segment`` are positions in ``parts``, ``row`` rows of those segments, both ``(k,)``. What is not in memory is read
    in one round. Raises as :func:`search_vectors` does, and ValueError if a segment or row does not exist.
    """
    found = np.empty(len(row), dtype=np.float32)
    if not len(row):
        return found
    wanted = _wanted_rows(parts, segment, row)
    rotated = unit_query(query, _dimensions(parts))
    probes = {position: SegmentProbe.of(parts[position], rotated, None) for position in wanted}
    scores: dict[int, Floats] = {}
    ranges = []
    for position, (rows, _) in wanted.items():
        data = parts[position].resident_rows()
        if data is not None:
            scores[position] = stored_cosines(probes[position], rows, data)
        else:
            ranges.extend(ranges_of_rows(position, parts[position], rows))
            scores[position] = np.empty(len(rows), dtype=np.float32)
    for chosen, read in zip(ranges, read_rows(parts, ranges, gather), strict=True):
        rows = wanted[chosen.position][0]
        inside = slice(*np.searchsorted(rows, (chosen.start, chosen.end)))
        scores[chosen.position][inside] = stored_cosines(probes[chosen.position], rows[inside], read, chosen.start)
    for position, (_, inverse) in wanted.items():
        found[segment == position] = scores[position][inverse]
    return found


def _wanted_rows(parts: Sequence[VectorPart], segment: Indices, row: Indices) -> dict[int, tuple[Indices, Indices]]:
    """By position the distinct rows, ascending, and for each given row of that segment its place among them."""
    if segment.min() < 0 or segment.max() >= len(parts):
        raise ValueError("unknown segment")
    wanted = {}
    for position in np.unique(segment).tolist():
        rows, inverse = np.unique(row[segment == position], return_inverse=True)
        if rows[0] < 0 or rows[-1] >= parts[position].count:
            raise ValueError("unknown row of a segment")
        wanted[position] = (rows, inverse)
    return wanted


def rescored_rows(total: int, limit: int) -> int:
    """How many of ``total`` allowed rows are scored after a scan, for ``limit`` hits."""
    share = min(max(total // _RESCORED_SHARE, _RESCORED_ROWS), _RESCORED_AT_MOST)
    return max(share, _RESCORED_PER_HIT * limit)


def _probes(
    parts: Sequence[VectorPart], query: Floats, allowed: Sequence[NDArray[np.bool_] | None]
) -> list[SegmentProbe]:
    rotated = unit_query(query, _dimensions(parts)) if parts else query
    return [SegmentProbe.of(part, rotated, mask) for part, mask in zip(parts, allowed, strict=bool(parts))]


def _dimensions(parts: Sequence[VectorPart]) -> int:
    dimensions = {part.dimensions for part in parts}
    if len(dimensions) != 1:
        raise IndexMismatch(f"segments of vectors of {sorted(dimensions)} dimensions")
    return dimensions.pop()


def _is_resident(part: VectorPart) -> bool:
    return all(part.sections.resident(name) is not None for name in part.body_names)


def _candidates(probes: Sequence[SegmentProbe], limit: int) -> list[Indices]:
    """The rows to score, ascending for each probe."""
    total = sum(probe.total for probe in probes)
    if total <= max(DIRECT_ROWS, sum(probe.part.count for probe in probes) // _DIRECT_SHARE):
        return [
            np.arange(probe.part.count) if probe.allowed is None else np.flatnonzero(probe.allowed) for probe in probes
        ]
    return scan(probes, rescored_rows(total, limit))


def _warm_hits(probes: Sequence[SegmentProbe], warm: Sequence[int], limit: int) -> Iterator[VectorHits]:
    candidates = _candidates([probes[position] for position in warm], limit)
    for position, rows in zip(warm, candidates, strict=True):
        data = probes[position].part.resident_rows()
        if data is not None and len(rows):
            yield _hits(position, rows, stored_cosines(probes[position], rows, data))


def _cold_hits(probes: Sequence[SegmentProbe], cold: Sequence[int], gather: Gather) -> Iterator[VectorHits]:
    if not cold:
        return
    parts = [probes[position].part for position in cold]
    ranges = likely_ranges([probes[position] for position in cold])
    for chosen, data in zip(ranges, read_rows(parts, ranges, gather), strict=True):
        position = cold[chosen.position]
        probe = probes[position]
        rows = np.arange(chosen.start, chosen.end)
        if probe.allowed is not None:
            rows = rows[probe.allowed[chosen.start : chosen.end]]
        yield _hits(position, rows, stored_cosines(probe, rows, data, chosen.start))


def _hits(position: int, rows: Indices, scores: Floats) -> VectorHits:
    return VectorHits(np.full(len(rows), position, dtype=np.intp), rows, scores)


def _best(found: Sequence[VectorHits], limit: int) -> VectorHits:
    """The best of hits that are sorted by segment and row."""
    if not found or limit <= 0:
        return VectorHits(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.float32))
    segment = np.concatenate([hits.segment for hits in found])
    row = np.concatenate([hits.row for hits in found])
    cosine = np.concatenate([hits.cosine for hits in found])
    if len(cosine) > limit:
        # Hits equal to the last one are kept until the sort, which decides by segment and row.
        kept = np.flatnonzero(cosine >= np.partition(cosine, len(cosine) - limit)[len(cosine) - limit])
        segment, row, cosine = segment[kept], row[kept], cosine[kept]
    order = np.lexsort((row, segment, -cosine))[:limit]
    return VectorHits(segment[order], row[order], cosine[order])
