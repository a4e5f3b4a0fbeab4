"""A segment's passages: found by row whatever order the rows stand in, a block at a time."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from cicada.errors import IndexCorrupt
from cicada.index.segment_format import Encoded
from cicada.index.texts import BLOCK_PASSAGES, TextPart, encode_texts
from tests.support.passages import make_passages
from tests.support.sections import MemorySections, gather_resident

COUNT = 2 * BLOCK_PASSAGES + 5
PASSAGES = make_passages(COUNT)
LINES = [passage.model_dump_json(by_alias=True).encode() for passage in PASSAGES]
ORDER = np.random.default_rng(2).permutation(COUNT)


def part_of(encoded: Encoded, count: int = COUNT) -> TextPart:
    return TextPart(MemorySections({"passages": encoded}), count)


def shown(part: TextPart, rows):
    places = part.places(rows, gather_resident(part.place_spans(rows)))
    return part.passages(places, gather_resident(part.block_spans(places)))


def altered(head=None, meta=None, body=None) -> Encoded:
    good = encode_texts(LINES, ORDER)
    return Encoded({**good.meta, **(meta or {})}, {**good.head, **(head or {})}, {**good.body, **(body or {})})


@pytest.mark.parametrize("rows", [[0], [5, 3, 3, COUNT - 1], list(range(COUNT))])
def test_a_row_shows_its_passage(rows):
    assert shown(part_of(encode_texts(LINES, ORDER)), rows) == [PASSAGES[ORDER[row]] for row in rows]


def test_neighbours_in_the_document_share_a_block():
    part = part_of(encode_texts(LINES, ORDER))
    assert len(part.block_spans([0, 1, BLOCK_PASSAGES - 1])) == 1
    assert len(part.block_spans([0, BLOCK_PASSAGES])) == 2


def test_all_passages_come_back_in_document_order():
    lines, order = part_of(encode_texts(LINES, ORDER)).decode(gather_resident)
    assert lines == LINES
    assert order.tolist() == ORDER.tolist()


def test_a_text_with_every_kind_of_line_end_stays_one_passage():
    text = "one\ntwo\r\nthree\u2028four"
    lines = [PASSAGES[0].model_copy(update={"text": text}).model_dump_json(by_alias=True).encode()]
    assert shown(part_of(encode_texts(lines, np.arange(1)), 1), [0])[0].text == text


@pytest.mark.parametrize(
    "wrong",
    [
        altered(meta={"blockPassages": 0}),
        altered(meta={"blockPassages": "32"}),
        altered(meta={"blockPassages": BLOCK_PASSAGES // 2}),
        altered(head={"passages.offsets": b""}),
        altered(head={"passages.offsets": np.array([0, 9, 5, 7], dtype="<u4").tobytes()}),
        altered(body={"passages.blocks": b"short"}),
        altered(body={"passages.places": b"1234"}),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_when_it_is_opened(wrong):
    with pytest.raises(IndexCorrupt):
        part_of(wrong)


def blocks_of(*blocks: bytes) -> dict[str, dict[str, bytes]]:
    offsets = np.cumsum([0, *map(len, blocks)]).astype("<u4").tobytes()
    return {"head": {"passages.offsets": offsets}, "body": {"passages.blocks": b"".join(blocks)}}


@pytest.mark.parametrize(
    "blocks",
    [
        [b"no zlib", b"at all", b"here"],
        [zlib.compress(b"{}")] * 3,
        [zlib.compress(b"\n".join(LINES))[:-9]] * 3,
        [zlib.compress(b"")] * 3,
    ],
)
def test_blocks_that_hold_no_passages_are_refused_when_they_are_shown(blocks):
    part = part_of(altered(**blocks_of(*blocks)))
    with pytest.raises(IndexCorrupt):
        shown(part, [0])
    with pytest.raises(IndexCorrupt):
        part.decode(gather_resident)


def test_a_block_that_unpacks_without_end_is_refused():
    bomb = zlib.compress(bytes(64 * 2**20))
    with pytest.raises(IndexCorrupt, match="does not end"):
        shown(part_of(altered(**blocks_of(bomb, bomb, bomb))), [0])


def test_a_row_of_a_passage_that_is_not_there_is_refused():
    places = np.full(COUNT, COUNT, dtype="<u4").tobytes()
    with pytest.raises(IndexCorrupt):
        shown(part_of(altered(body={"passages.places": places})), [0])
