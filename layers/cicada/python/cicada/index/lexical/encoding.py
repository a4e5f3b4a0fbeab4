"""From the forward form to the sections of a segment: postings by term."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cicada.index.lexical.constants import (
    ANALYZER_VERSION,
    BLOCKS,
    DICTIONARY,
    FORMAT,
    K1,
    LANGUAGES,
    LENGTHS,
    MAX_ROWS,
    MAX_WEIGHT_UNITS,
    POSITIONS,
    POSTINGS,
    ROW_BLOCK,
    WEIGHT_UNITS,
    WEIGHTS,
    B,
)
from cicada.index.lexical.dictionary import TermTable, encode_dictionary
from cicada.index.lexical.occurrences import encode_positions
from cicada.index.lexical.termrows import TermRows, ragged
from cicada.index.sections import Encoded

POSTINGS_AT_ONCE = 1 << 20
"""Postings that are put into bytes at once: about 100 bytes of memory each."""


def length_norms(lengths: NDArray[np.float64], average: float) -> NDArray[np.float32]:
    """BM25's k1 * (1 - b + b * length / average length), for lengths and their average in the same unit."""
    return (K1 * (1 - B + B * lengths / (average or 1.0))).astype(np.float32)


def encode_lexical(rows: TermRows, order: NDArray[np.intp]) -> Encoded:
    """Encode passages.

    Args:
        rows: their forward form, at most 262,144.
        order: ``(n,)``: which passage each row of the segment is.

    Raises:
        ValueError: there are more passages than a segment holds, or ``order`` is not of their number.
    """
    count = len(rows)
    if count > MAX_ROWS or len(order) != count:
        raise ValueError(f"{count} passages in an order of {len(order)}: a segment has at most {MAX_ROWS}")
    names, terms, row_of, pairs = _by_term(rows, order)
    term_starts = np.flatnonzero(np.diff(terms.astype(np.int64), prepend=-1))
    df = np.diff(np.append(term_starts, len(terms)))
    weights = rows.weights[pairs]
    values = np.unique(weights)
    width = 1 if len(values) <= 256 else 2
    code_of = np.zeros(MAX_WEIGHT_UNITS + 1, np.uint16)
    code_of[values] = np.arange(len(values))
    lengths = rows.lengths[order]
    row_blocks = max(-(-count // ROW_BLOCK), 1)
    position_ends = np.cumsum(rows.occurrences, dtype=np.int64)
    postings: list[bytes] = []
    positions: list[bytes] = []
    position_sizes = [np.zeros(0, np.int64)]
    for first, last in _chunks(term_starts, len(terms)):
        here = slice(term_starts[first], term_starts[last] if last < len(names) else len(terms))
        postings.append(_postings(row_of[here], code_of[weights[here]], df[first:last], width))
        occurrences = rows.occurrences[pairs[here]].astype(np.int64)
        taken = rows.positions[ragged(position_ends[pairs[here]] - occurrences, occurrences)]
        coded, sizes = encode_positions(occurrences, taken, term_starts[first:last] - term_starts[first])
        positions.append(coded)
        position_sizes.append(sizes)
    keys = terms.astype(np.int64) * row_blocks
    keys += row_of // ROW_BLOCK
    table = TermTable(
        terms=names,
        counts=np.bincount(keys, minlength=len(names) * row_blocks).reshape(len(names), row_blocks),
        positions_sizes=np.concatenate(position_sizes),
        bounds=_bounds(weights, row_of, term_starts, lengths),
    )
    blocks, dictionary = encode_dictionary(table, width)
    spoken = np.bincount(rows.languages, minlength=len(rows.language_names)).tolist()
    length_width = 2 if int(lengths.max(initial=0)) < 1 << 16 else 4
    return Encoded(
        meta={
            "format": FORMAT,
            "analyzer": ANALYZER_VERSION,
            "terms": len(names),
            "postings": len(terms),
            "code_width": width,
            "length_width": length_width,
            "total_length": int(lengths.sum(dtype=np.int64)),
            "languages": dict(zip(rows.language_names, spoken, strict=True)),
        },
        head={BLOCKS: blocks, WEIGHTS: values.astype("<u2").tobytes()},
        body={
            DICTIONARY: dictionary,
            LENGTHS: lengths.astype(f"<u{length_width}").tobytes(),
            POSTINGS: b"".join(postings),
            POSITIONS: b"".join(positions),
            LANGUAGES: rows.languages[order].tobytes(),
        },
    )


def _chunks(term_starts: NDArray[np.intp], postings: int) -> Iterator[tuple[int, int]]:
    """Ranges of terms, each with about as many postings as are encoded at once."""
    bounds = np.searchsorted(term_starts, np.arange(0, postings, POSTINGS_AT_ONCE)).tolist()
    yield from pairwise(dict.fromkeys([*bounds, len(term_starts)]))


def _by_term(
    rows: TermRows, order: NDArray[np.intp]
) -> tuple[list[bytes], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]:
    """All pairs sorted by term, then row.

    Returns:
        The sorted terms; for each pair the number of its term among them, its row, and its place in ``rows``.
    """
    used = np.flatnonzero(np.bincount(rows.terms, minlength=len(rows.vocabulary))).tolist()
    written = sorted((rows.vocabulary[number].encode(), number) for number in used)
    rank = np.zeros(len(rows.vocabulary), np.uint32)
    rank[[number for _, number in written]] = np.arange(len(written), dtype=np.uint32)
    counts = np.diff(rows.starts)[order]
    pairs = ragged(rows.starts[:-1][order], counts)
    row_of = np.repeat(np.arange(len(order), dtype=np.uint32), counts)
    terms = rank[rows.terms[pairs]]
    # Two stable passes over 16 bits each: a radix sort, which numpy does for numbers of that width alone.
    by_term = np.argsort((terms & 0xFFFF).astype(np.uint16), kind="stable")
    by_term = by_term[np.argsort((terms[by_term] >> 16).astype(np.uint16), kind="stable")]
    return [term for term, _ in written], terms[by_term], row_of[by_term], pairs[by_term]


def _bounds(
    weights: NDArray[np.uint16], row_of: NDArray[np.uint32], term_starts: NDArray[np.intp], lengths: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """For each term what no posting's tf / (tf + norm) exceeds, in units of 1/255."""
    if not len(weights):
        return np.zeros(0, np.uint8)
    norms = length_norms(lengths.astype(np.float64), float(lengths.mean()))
    tf = weights.astype(np.float32) / WEIGHT_UNITS
    saturated = tf / (tf + norms[row_of])
    largest: NDArray[np.float32] = np.maximum.reduceat(saturated, term_starts)
    return np.minimum(np.ceil(largest * 255), 255).astype(np.uint8)


def _postings(row_of: NDArray[np.uint32], codes: NDArray[np.uint16], df: NDArray[np.int64], width: int) -> bytes:
    """For each term the low halves of its rows, then its weights' codes, filled up to an even number of bytes."""
    sizes = df * (2 + width)
    sizes += sizes & 1
    term_starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    within = ragged(np.zeros(len(df), np.int64), df)
    at_rows = np.repeat(term_starts, df) + 2 * within
    out[at_rows] = row_of & 0xFF
    out[at_rows + 1] = (row_of >> 8) & 0xFF
    at_codes = np.repeat(term_starts + 2 * df, df) + width * within
    for byte in range(width):
        out[at_codes + byte] = (codes >> (8 * byte)) & 0xFF
    return out.tobytes()
