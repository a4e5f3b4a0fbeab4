"""The vectors of one segment, opened: what lies in its head, checked, and where its body is."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.sections import Gather, Sections, Span
from cicada.index.vectors import layout

Floats = NDArray[np.float32]

_LONGEST = 1e6
"""Of a residual: far above any of unit rows, and its square is still a float32."""


class VectorPart:
    """The vectors of one segment. Thread-safe: nothing changes after it was opened.

    Attributes:
        sections: where the segment's sections are.
        count: rows ``n``.
        dimensions: ``d`` of the vectors.
        centroids: float32 ``(k, d)``, rotated; the mean of each cluster's rows.
        lengths: float32 ``(k,)``, the squared length of each centroid.
        spreads: float32 ``(k,)``, root mean square distance of a cluster's rows to its centroid.
        offsets: ``(k + 1,)``, the first row of each cluster, then ``n``.
        sizes: ``(k,)``, rows of each cluster.
        unit_owners: which cluster each unit of the codes is of; ``unit_rows``: its first row; ``unit_ends``: the end of
            its cluster's rows.
    """

    body_names: ClassVar[tuple[str, ...]] = (layout.CODES, layout.ROWS)
    """What must be in memory for a search that reads nothing, in the order in which it is worth loading."""

    def __init__(self, sections: Sections, count: int, dimensions: int) -> None:
        """Check the head against the numbers of rows and dimensions that the segment has.

        Raises:
            IndexCorrupt: the head does not fit them, or a section is missing or of another size.
        """
        self.sections = sections
        self.count = count
        self.dimensions = dimensions
        if count < 0 or not 0 < dimensions <= layout.MAX_DIMENSIONS:
            raise IndexCorrupt(f"a segment of {count} vectors of {dimensions} dimensions")
        meta = sections.meta(layout.PART)
        if meta.get("format") != layout.FORMAT:
            raise IndexCorrupt(f"vectors of format {meta.get('format')!r}, not {layout.FORMAT}")
        clusters = meta.get("clusters")
        if type(clusters) is not int or not (0 < clusters <= count or clusters == count == 0):
            raise IndexCorrupt(f"{clusters!r} clusters of {count} vectors")
        self.offsets = self._head(layout.OFFSETS, "<u4", (clusters + 1,)).astype(np.intp)
        if self.offsets[0] != 0 or self.offsets[-1] != count or np.any(self.offsets[1:] <= self.offsets[:-1]):
            raise IndexCorrupt("the clusters of the vectors do not cover the rows")
        self.sizes: NDArray[np.intp] = np.diff(self.offsets)
        units = layout.unit_offsets(self.offsets)
        self.unit_owners: NDArray[np.intp] = np.repeat(np.arange(clusters), np.diff(units))
        self.unit_ends: NDArray[np.intp] = self.offsets[1:][self.unit_owners]
        firsts = self.offsets[:-1] - layout.UNIT_ROWS * units[:-1]
        self.unit_rows: NDArray[np.intp] = firsts[self.unit_owners] + layout.UNIT_ROWS * np.arange(units[-1])
        self.centroids: Floats = self._head(layout.CENTROIDS, "<f2", (clusters, dimensions)).astype(np.float32)
        self.spreads: Floats = self._head(layout.SPREADS, "<f4", (clusters,)).astype(np.float32)
        self.lengths: Floats = np.einsum("ij,ij->i", self.centroids, self.centroids)
        if not (np.all(np.isfinite(self.lengths)) and np.all((self.spreads >= 0) & (self.spreads <= _LONGEST))):
            raise IndexCorrupt("the centroids of the vectors are not finite numbers")
        for name, size in (
            (layout.CODES, len(self.unit_owners) * layout.unit_bytes(dimensions)),
            (layout.ROWS, count * layout.row_bytes(dimensions)),
            (layout.EXACT, count * dimensions * 2),
        ):
            if sections.size(name) != size:
                raise IndexCorrupt(f"{name} has {sections.size(name)} bytes, not {size}")

    def resident_codes(self) -> tuple[NDArray[np.uint64], Floats] | None:
        """The sign codes, shape ``(w, units, 32)``, and residual lengths, ``(units,)``, if they are in memory."""
        data = self.sections.resident(layout.CODES)
        if data is None:
            return None
        shape = (layout.words_of(self.dimensions), len(self.unit_owners), layout.UNIT_ROWS)
        signs = np.frombuffer(data, dtype=np.uint64, count=math.prod(shape)).reshape(shape)
        return signs, np.frombuffer(data, dtype="<f4", offset=signs.nbytes)

    def resident_rows(self) -> NDArray[np.uint8] | None:
        """The 8-bit rows with their scales, shape ``(n, d + 4)``, if they are in memory."""
        data = self.sections.resident(layout.ROWS)
        return None if data is None else self.rows_of(data)

    def rows_of(self, data: memoryview) -> NDArray[np.uint8]:
        """Bytes of the rows' section as rows, shape ``(m, d + 4)``."""
        return np.frombuffer(data, dtype=np.uint8).reshape(-1, layout.row_bytes(self.dimensions))

    def span_of(self, start: int, end: int) -> Span:
        """Where the 8-bit rows ``start`` to ``end`` lie."""
        size = layout.row_bytes(self.dimensions)
        return Span(self.sections, layout.ROWS, start * size, (end - start) * size)

    def _head(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        data = self.sections.head(name)
        if len(data) != math.prod(shape) * np.dtype(dtype).itemsize:
            raise IndexCorrupt(f"{name} has {len(data)} bytes, which is not shape {shape} of {dtype}")
        return np.frombuffer(data, dtype=dtype).reshape(shape)


def decode_vectors(part: VectorPart, gather: Gather) -> Floats:
    """The rows as they were encoded, rounded to float16 once: encoding them again loses nothing more.

    Returns:
        Shape ``(n, d)``, in the segment's order of rows.

    Raises:
        IndexCorrupt: bytes are missing or are not what was written.
        IndexUnavailable: the store does not respond.
    """
    size = part.count * part.dimensions * 2
    (data,) = gather([Span(part.sections, layout.EXACT, 0, size)])
    return np.frombuffer(data, dtype="<f2").reshape(part.count, part.dimensions).astype(np.float32)
