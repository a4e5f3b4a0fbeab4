"""From the sections of a segment back to the forward form: for compaction, without the texts."""

from __future__ import annotations

import numpy as np

from cicada.errors import IndexCorrupt
from cicada.index.lexical.constants import DICTIONARY, LANGUAGES, LENGTHS, POSITIONS, POSTINGS, ROW_BLOCK, WEIGHTS
from cicada.index.lexical.occurrences import decode_positions
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.termrows import TermRows, ragged
from cicada.index.sections import Gather, Sections, Span


def decode_lexical(sections: Sections, count: int, gather: Gather) -> TermRows:
    """Read a segment's lexical part whole; its passages come in the order of its rows.

    Raises:
        IndexCorrupt: the sections do not fit together.
        IndexMismatch: another version of the analyser wrote them: compaction needs the texts.
        IndexUnavailable: the store does not respond.
    """
    part = LexicalPart(sections, count)
    names = (DICTIONARY, POSTINGS, POSITIONS, LENGTHS, LANGUAGES)
    dictionary, postings, positions, lengths, languages = gather(
        [Span(sections, name, 0, sections.size(name)) for name in names]
    )
    try:
        return _decoded(part, dictionary, postings, positions, lengths, languages)
    except (ValueError, IndexError) as error:
        raise IndexCorrupt(f"the lexical part cannot be decoded: {error}") from error


def _decoded(
    part: LexicalPart,
    dictionary: memoryview,
    postings: memoryview,
    positions: memoryview,
    lengths: memoryview,
    languages: memoryview,
) -> TermRows:
    vocabulary: list[str] = []
    columns = []
    for at in range(len(part.dictionary)):
        start, length = part.dictionary.span(at)
        block = part.block(dictionary[start : start + length])
        vocabulary += (term.decode() for term in block.terms())
        columns.append(block.counts())
    counts = np.concatenate([np.zeros((0, part.row_blocks), np.int64), *columns])
    df = counts.sum(axis=1)
    if len(vocabulary) != part.terms or int(df.sum()) != part.postings:
        raise IndexCorrupt("the dictionary does not have the terms and postings it should")
    sizes = df * (2 + part.code_width)
    sizes += sizes & 1
    starts = np.cumsum(sizes) - sizes
    data = np.frombuffer(postings, np.uint8)
    within = ragged(np.zeros(len(df), np.int64), df)
    at_rows = np.repeat(starts, df) + 2 * within
    bases = np.repeat(np.tile(np.arange(part.row_blocks) * ROW_BLOCK, len(df)), counts.reshape(-1))
    rows = bases + data[at_rows] + (data[at_rows + 1].astype(np.int64) << 8)
    at_codes = np.repeat(starts + 2 * df, df) + part.code_width * within
    codes = data[at_codes].astype(np.int64)
    if part.code_width > 1:
        codes += data[at_codes + 1].astype(np.int64) << 8
    weights = np.frombuffer(part.sections.head(WEIGHTS), "<u2")[codes].astype(np.uint16)
    occurrences, placed = decode_positions(positions)
    if len(occurrences) != part.postings or (part.postings and int(rows.max()) >= part.count):
        raise IndexCorrupt("postings are of no row, or do not have their positions")
    by_row = np.argsort(rows, kind="stable")  # terms stay in order within a row
    found = occurrences[by_row]
    ends = np.cumsum(occurrences)
    return TermRows(
        vocabulary=vocabulary,
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=part.count))]),
        terms=np.repeat(np.arange(len(df), dtype=np.uint32), df)[by_row],
        weights=weights[by_row],
        occurrences=found.astype(np.uint16),
        positions=placed[ragged(ends[by_row] - found, found)].astype(np.uint16),
        lengths=np.frombuffer(lengths, f"<u{part.length_width}").astype(np.uint32),
        language_names=tuple(part.languages),
        languages=np.frombuffer(languages, np.uint8).copy(),
    )
