"""A segment's passages as they are shown: JSON lines in compressed blocks.

Sections of the part ``passages``: ``passages.blocks`` holds the passages in document order, :data:`BLOCK_PASSAGES` per
zlib block: neighbours share most of their context, and a search unpacks one block per hit. ``passages.offsets`` (head)
holds the blocks' offsets, uint32, the end included. ``passages.places`` holds for each row the position of its passage,
uint32: rows are in the order of the vectors' clusters.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cicada.corpus.passages import Passage
from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.segment_format import Encoded, Gather, Sections, Span, whole

BLOCK_PASSAGES = 32
MAX_BLOCK_BYTES = 16 * 2**20  # of an unpacked block; a larger one is damaged

_PLACES = "passages.places"
_BLOCKS = "passages.blocks"


def encode_texts(lines: Sequence[bytes], order: NDArray[np.intp]) -> Encoded:
    """Write passages, JSON lines in document order; ``order[row]`` is a row's passage. Raises CorpusInvalid."""
    blocks = []
    for start in range(0, len(lines), BLOCK_PASSAGES):
        block = b"\n".join(lines[start : start + BLOCK_PASSAGES])
        if len(block) > MAX_BLOCK_BYTES:
            raise CorpusInvalid(f"{BLOCK_PASSAGES} passages in a row have more than {MAX_BLOCK_BYTES} bytes together")
        blocks.append(zlib.compress(block))
    offsets = np.cumsum([0, *map(len, blocks)])
    if offsets[-1] >= 2**32:
        raise CorpusInvalid("the passages of a segment have more than 4 GiB of text")
    return Encoded(
        {"blockPassages": BLOCK_PASSAGES},
        {"passages.offsets": offsets.astype("<u4").tobytes()},
        {_PLACES: order.astype("<u4").tobytes(), _BLOCKS: b"".join(blocks)},
    )


class TextPart:
    """A segment's passages, read as they are shown."""

    def __init__(self, sections: Sections, count: int) -> None:
        """Take the sections of a segment with that many passages. Raises IndexCorrupt if they do not fit."""
        self._sections = sections
        self._count = count
        size = sections.meta("passages").get("blockPassages")
        offsets = np.frombuffer(sections.head("passages.offsets"), dtype="<u4").astype(np.int64)
        if not isinstance(size, int) or size < 1 or len(offsets) != -(-count // size) + 1:
            raise IndexCorrupt("a segment's passages have invalid blocks")
        if offsets[0] or (np.diff(offsets) <= 0).any() or offsets[-1] != sections.size(_BLOCKS):
            raise IndexCorrupt("a segment's passages have invalid offsets")
        if sections.size(_PLACES) != 4 * count:
            raise IndexCorrupt("a segment's rows do not match its passages")
        self._block_passages = size
        self._offsets = offsets

    def place_spans(self, rows: Sequence[int]) -> list[Span]:
        """What :meth:`places` needs: one span for all rows."""
        first, last = min(rows), max(rows)
        return [Span(self._sections, _PLACES, 4 * first, 4 * (last - first + 1))]

    def places(self, rows: Sequence[int], data: Sequence[memoryview]) -> list[int]:
        """The positions of rows' passages in document order. Raises IndexCorrupt if there is no such passage."""
        known = np.frombuffer(data[0], dtype="<u4")
        first = min(rows)
        places = [int(known[row - first]) for row in rows]
        if max(places) >= self._count:
            raise IndexCorrupt("a row refers to a passage that the segment does not have")
        return places

    def block_spans(self, places: Sequence[int]) -> list[Span]:
        """What :meth:`passages` needs: a span per distinct block, ascending."""
        bounds = (self._offsets[block : block + 2].tolist() for block in self._blocks(places))
        return [Span(self._sections, _BLOCKS, start, end - start) for start, end in bounds]

    def passages(self, places: Sequence[int], data: Sequence[memoryview]) -> list[Passage]:
        """The passages at these places. Raises IndexCorrupt."""
        blocks = self._blocks(places)
        lines = {block: self._unpack(packed) for block, packed in zip(blocks, data, strict=True)}
        found = []
        for place in places:
            block, line = divmod(place, self._block_passages)
            try:
                found.append(Passage.model_validate_json(lines[block][line]))
            except (IndexError, ValidationError) as error:
                raise IndexCorrupt(f"a segment has no readable passage at {place}") from error
        return found

    def decode(self, gather: Gather) -> tuple[list[bytes], NDArray[np.intp]]:
        """All passages as JSON lines in document order, and the place of each row. Raises IndexCorrupt."""
        places, blocks = gather([whole(self._sections, name) for name in (_PLACES, _BLOCKS)])
        lines: list[bytes] = []
        for start, end in zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True):
            lines += self._unpack(blocks[start:end])
        order = np.frombuffer(places, dtype="<u4").astype(np.intp)
        if len(lines) != self._count or not np.array_equal(np.sort(order), np.arange(self._count)):
            raise IndexCorrupt("a segment's rows do not match its passages")
        return lines, order

    def _blocks(self, places: Sequence[int]) -> list[int]:
        return sorted({place // self._block_passages for place in places})

    def _unpack(self, packed: memoryview) -> list[bytes]:
        unpacker = zlib.decompressobj()
        try:
            block = unpacker.decompress(packed, MAX_BLOCK_BYTES)
        except zlib.error as error:
            raise IndexCorrupt("a block of passages cannot be unpacked") from error
        if not unpacker.eof:
            raise IndexCorrupt("a block of passages does not end")
        return block.split(b"\n")
