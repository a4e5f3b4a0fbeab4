"""Split blocks into units: the pieces that chunks are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from cicada.corpus.documents import DocumentBlock
from cicada.text.sentences import pieces, sentences
from cicada.text.tokens import estimated_tokens, share_of_tokens

LEAD_SHARE = 1 / 8  # of ``chunk_size``: a longer first field is not repeated


class Edge(IntEnum):
    """What separates a unit from the previous one; chunks rather end at higher values."""

    WITHIN = 0  # a sentence, a line or a value goes on
    LED_UP_TO = 1  # the one before leads up to it: a heading, or words that end in a colon
    SENTENCE = 2  # a sentence, a list's item or a table's row begins
    BLOCK = 3  # a paragraph, a list or a table begins


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, a list's item, a row or a block of code, or a part of a longer one."""

    text: str
    tokens: float  # with its separator, unrounded: the tokens of a chunk's units add up
    edge: Edge
    separator: str  # written between it and the previous unit of its chunk
    section: tuple[str, ...]
    page: int | None
    prose: bool  # whether it may be repeated in the next chunk, and compared with its neighbours
    lead: str = ""  # of a later part of a row or record: the first field, repeated to identify it


def joined(units: Sequence[Unit]) -> str:
    """The text of a chunk."""
    first, *others = units
    return (first.text + "".join(unit.separator + unit.text for unit in others)).strip()


def units_of(blocks: Sequence[DocumentBlock], limit: int) -> list[Unit]:
    """Split blocks into units of at most ``limit`` tokens."""
    units: list[Unit] = []
    before: DocumentBlock | None = None
    for block in blocks:
        edge, separator = _between(before, block)
        first = True
        lead = _lead(block, limit)
        room = limit - (estimated_tokens(lead) + 1 if lead else 0)
        for text, inner, prose in _parts(block, room):
            if text.strip():
                units.append(
                    Unit(
                        text=text,
                        tokens=share_of_tokens(separator + text if first else text),
                        edge=edge if first else inner,
                        separator=separator if first else "",
                        section=block.section,
                        page=block.page,
                        prose=prose,
                        lead="" if first else lead,
                    )
                )
                first = False
        if units:
            units[-1] = replace(units[-1], text=units[-1].text.rstrip())
        before = block
    return units


def _between(before: DocumentBlock | None, block: DocumentBlock) -> tuple[Edge, str]:
    if before is None:
        return Edge.BLOCK, "\n\n"
    if before.kind == "heading":
        return Edge.LED_UP_TO, "\n\n"
    if before.kind == block.kind == "list_item":
        return Edge.SENTENCE, "\n"
    if before.kind == block.kind == "row" and before.table == block.table:
        return Edge.SENTENCE, "\n\n"
    if before.text.rstrip().endswith((":", "：")) and before.kind == "paragraph":
        return Edge.LED_UP_TO, "\n\n"
    return Edge.BLOCK, "\n\n"


def _lead(block: DocumentBlock, limit: int) -> str:
    if block.kind not in ("row", "record") or len(block.fields) < 2 or estimated_tokens(block.text) <= limit:
        return ""
    lead = f"{block.fields[0][0]}: {block.fields[0][1]}"
    return lead if estimated_tokens(lead) <= limit * LEAD_SHARE else ""


def _parts(block: DocumentBlock, limit: int) -> Iterator[tuple[str, Edge, bool]]:
    """A block's parts: text, edge if not the first, and whether it is prose."""
    if block.kind in ("paragraph", "quote"):
        yield from _by_sentences(block.text, limit)
    elif estimated_tokens(block.text) <= limit:
        yield block.text, Edge.SENTENCE, block.kind == "list_item"
    elif block.kind in ("list_item", "heading"):
        yield from _by_sentences(block.text, limit)
    else:
        yield from _by_lines(block.text, limit)


def _by_sentences(text: str, limit: int) -> Iterator[tuple[str, Edge, bool]]:
    for sentence in sentences(text):
        for at, piece in enumerate(pieces(sentence, limit)):
            yield piece, Edge.WITHIN if at else Edge.SENTENCE, True


_LINES = re.compile(r"(?<=\n)(?=[^\n])")


def _by_lines(text: str, limit: int) -> Iterator[tuple[str, Edge, bool]]:
    """Lines of code, or the fields of a row or a record, with the empty lines that follow them."""
    gap = False
    for line in _LINES.split(text):
        for at, piece in enumerate(pieces(line, limit)):
            yield piece, Edge.SENTENCE if gap and not at else Edge.WITHIN, False
        gap = line.endswith("\n\n")
