"""From the terms of passages (:class:`TermRows`, a forward index) to postings by term in sections, and back.

Compaction decodes segments, concatenates them and encodes the result; it does not need the texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index import lexical
from cicada.index.arrays import indices_of, offsets_of
from cicada.index.lexical.dictionary import TermTable, encode_dictionary
from cicada.index.lexical.part import LexicalPart, length_norms
from cicada.index.lexical.postings import decode_positions, encode_positions
from cicada.index.segment_format import Encoded, Gather, Sections, whole


@dataclass(frozen=True)
class TermRows:
    """The terms of ``n`` passages, passage by passage. Weights and lengths are in units of 1/64 of an occurrence.

    ``m`` counts the pairs of a passage and a term it has; each passage's pairs are in the order of term numbers.
    """

    vocabulary: Sequence[str]  # by term number; a term may be unused
    starts: NDArray[np.int64]  # ``(n + 1,)``: passage ``i`` has pairs ``starts[i]`` to ``starts[i + 1]``
    terms: NDArray[np.uint32]  # ``(m,)``: term numbers
    weights: NDArray[np.uint16]  # ``(m,)``: the sum of part weight x occurrences
    occurrences: NDArray[np.uint16]  # ``(m,)``: positions in the passage's own text
    positions: NDArray[np.uint16]  # those positions, pair by pair, ascending
    lengths: NDArray[np.uint32]  # ``(n,)``: the sum of all of a passage's weights
    language_names: tuple[str, ...]  # ISO 639-3 codes, at most 256
    languages: NDArray[np.uint8]  # ``(n,)``: numbers of the passages' languages

    def __len__(self) -> int:
        return len(self.lengths)


def take(rows: TermRows, passages: NDArray[np.intp]) -> TermRows:
    """Some passages, in any order: ``passages`` are their places, shape ``(k,)``."""
    counts = np.diff(rows.starts)[passages]
    taken = _with_pairs(rows, indices_of(rows.starts[passages], counts))
    return replace(taken, starts=offsets_of(counts), lengths=rows.lengths[passages], languages=rows.languages[passages])


def concat(parts: Sequence[TermRows]) -> TermRows:
    """The passages of at least one part, in order, with a common vocabulary of the used terms."""
    numbers: dict[str, int] = {}
    names: dict[str, int] = {}
    renumbered = [_renumbered(part, numbers, names) for part in parts]
    return stack(renumbered, list(numbers), tuple(names))


def stack(parts: Sequence[TermRows], vocabulary: Sequence[str], language_names: tuple[str, ...]) -> TermRows:
    """The passages of at least one part, in order; all parts number terms and languages in the same way."""
    arrays = ("terms", "weights", "occurrences", "positions", "lengths", "languages")
    return TermRows(
        vocabulary=vocabulary,
        starts=offsets_of(np.concatenate([np.diff(part.starts) for part in parts])),
        language_names=language_names,
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays},
    )


def _renumbered(part: TermRows, numbers: dict[str, int], names: dict[str, int]) -> TermRows:
    """With the term and language numbers of a common vocabulary, which is extended."""
    used = np.flatnonzero(np.bincount(part.terms, minlength=len(part.vocabulary)))
    new = np.zeros(len(part.vocabulary), np.uint32)
    for number in used.tolist():
        new[number] = numbers.setdefault(part.vocabulary[number], len(numbers))
    spoken = np.array([names.setdefault(name, len(names)) for name in part.language_names], np.uint8)
    terms = new[part.terms]
    # The new numbers may be in another order: sort the pairs of each passage again.
    owner = np.repeat(np.arange(len(part), dtype=np.int64), np.diff(part.starts))
    renumbered = _with_pairs(replace(part, terms=terms), np.lexsort((terms, owner)))
    return replace(renumbered, languages=spoken[part.languages] if len(part) else part.languages)


def _with_pairs(rows: TermRows, pairs: NDArray[np.int64]) -> TermRows:
    """With these pairs only, in this order; ``starts`` stays as it is."""
    occurrences = rows.occurrences[pairs]
    found = occurrences.astype(np.int64)
    position_ends = np.cumsum(rows.occurrences, dtype=np.int64)
    return replace(
        rows,
        terms=rows.terms[pairs],
        weights=rows.weights[pairs],
        occurrences=occurrences,
        positions=rows.positions[indices_of(position_ends[pairs] - found, found)],
    )


POSTINGS_AT_ONCE = 1 << 20  # postings that are put into bytes at once: about 100 bytes of memory each


def encode_lexical(rows: TermRows, order: NDArray[np.intp]) -> Encoded:
    """Encode passages; ``order``, shape ``(n,)``, has the passage of each row of the segment.

    Raises ValueError for more passages than a segment holds, or an order of another length.
    """
    count = len(rows)
    if count > lexical.MAX_ROWS or len(order) != count:
        raise ValueError(f"{count} passages in an order of {len(order)}: a segment has at most {lexical.MAX_ROWS}")
    names, terms, row_of, pairs = _by_term(rows, order)
    term_starts = np.flatnonzero(np.diff(terms.astype(np.int64), prepend=-1))
    df = np.diff(np.append(term_starts, len(terms)))
    weights = rows.weights[pairs]
    values = np.unique(weights)
    width = 1 if len(values) <= 256 else 2
    code_of = np.zeros(lexical.MAX_WEIGHT_UNITS + 1, np.uint16)
    code_of[values] = np.arange(len(values))
    lengths = rows.lengths[order]
    row_blocks = max(-(-count // lexical.ROW_BLOCK), 1)
    position_ends = np.cumsum(rows.occurrences, dtype=np.int64)
    postings: list[bytes] = []
    positions: list[bytes] = []
    position_sizes = [np.zeros(0, np.int64)]
    for first, last in _chunks(term_starts, len(terms)):
        here = slice(term_starts[first], term_starts[last] if last < len(names) else len(terms))
        postings.append(_postings(row_of[here], code_of[weights[here]], df[first:last], width))
        occurrences = rows.occurrences[pairs[here]].astype(np.int64)
        taken = rows.positions[indices_of(position_ends[pairs[here]] - occurrences, occurrences)]
        coded, sizes = encode_positions(occurrences, taken, term_starts[first:last] - term_starts[first])
        positions.append(coded)
        position_sizes.append(sizes)
    keys = terms.astype(np.int64) * row_blocks
    keys += row_of // lexical.ROW_BLOCK
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
            "format": lexical.FORMAT,
            "analyzer": lexical.ANALYZER_VERSION,
            "terms": len(names),
            "postings": len(terms),
            "code_width": width,
            "length_width": length_width,
            "total_length": int(lengths.sum(dtype=np.int64)),
            "languages": dict(zip(rows.language_names, spoken, strict=True)),
        },
        head={lexical.BLOCKS: blocks, lexical.WEIGHTS: values.astype("<u2").tobytes()},
        body={
            lexical.DICTIONARY: dictionary,
            lexical.LENGTHS: lengths.astype(f"<u{length_width}").tobytes(),
            lexical.POSTINGS: b"".join(postings),
            lexical.POSITIONS: b"".join(positions),
            lexical.LANGUAGES: rows.languages[order].tobytes(),
        },
    )


def _chunks(term_starts: NDArray[np.intp], postings: int) -> Iterator[tuple[int, int]]:
    """Ranges of terms, each with about as many postings as are encoded at once."""
    bounds = np.searchsorted(term_starts, np.arange(0, postings, POSTINGS_AT_ONCE)).tolist()
    yield from pairwise(dict.fromkeys([*bounds, len(term_starts)]))


def _by_term(
    rows: TermRows, order: NDArray[np.intp]
) -> tuple[list[bytes], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]:
    """The terms in order, and all pairs by term and row: each one's term number, row, and place in ``rows``."""
    used = np.flatnonzero(np.bincount(rows.terms, minlength=len(rows.vocabulary))).tolist()
    written = sorted((rows.vocabulary[number].encode(), number) for number in used)
    rank = np.zeros(len(rows.vocabulary), np.uint32)
    rank[[number for _, number in written]] = np.arange(len(written), dtype=np.uint32)
    counts = np.diff(rows.starts)[order]
    pairs = indices_of(rows.starts[:-1][order], counts)
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
    tf = weights.astype(np.float32) / lexical.WEIGHT_UNITS
    saturated = tf / (tf + norms[row_of])
    largest: NDArray[np.float32] = np.maximum.reduceat(saturated, term_starts)
    return np.minimum(np.ceil(largest * 255), 255).astype(np.uint8)


def _layout(df: NDArray[np.int64], width: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of all postings, and where the row and the code of each lie.

    For each term there are the low halves of its rows, then its weights' codes, padded to an even number of bytes.
    """
    sizes = df * (2 + width)
    sizes += sizes & 1
    starts = np.cumsum(sizes) - sizes
    within = indices_of(np.zeros(len(df), np.int64), df)
    return int(sizes.sum()), np.repeat(starts, df) + 2 * within, np.repeat(starts + 2 * df, df) + width * within


def _postings(row_of: NDArray[np.uint32], codes: NDArray[np.uint16], df: NDArray[np.int64], width: int) -> bytes:
    size, at_rows, at_codes = _layout(df, width)
    out = np.zeros(size, np.uint8)
    out[at_rows] = row_of & 0xFF
    out[at_rows + 1] = (row_of >> 8) & 0xFF
    for byte in range(width):
        out[at_codes + byte] = (codes >> (8 * byte)) & 0xFF
    return out.tobytes()


def decode_lexical(sections: Sections, count: int, gather: Gather) -> TermRows:
    """Read a segment's whole lexical part, with passages in the order of its rows.

    Raises IndexCorrupt, IndexMismatch if another version of the analyser wrote it, or IndexUnavailable.
    """
    part = LexicalPart(sections, count)
    names = (lexical.DICTIONARY, lexical.POSTINGS, lexical.POSITIONS, lexical.LENGTHS, lexical.LANGUAGES)
    try:
        return _decoded(part, *gather([whole(sections, name) for name in names]))
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
        raise IndexCorrupt("the dictionary has a wrong number of terms or postings")
    _, at_rows, at_codes = _layout(df, part.code_width)
    data = np.frombuffer(postings, np.uint8)
    bases = np.repeat(np.tile(np.arange(part.row_blocks) * lexical.ROW_BLOCK, len(df)), counts.reshape(-1))
    rows = bases + data[at_rows] + (data[at_rows + 1].astype(np.int64) << 8)
    codes = data[at_codes].astype(np.int64)
    if part.code_width > 1:
        codes += data[at_codes + 1].astype(np.int64) << 8
    weights = np.frombuffer(part.sections.head(lexical.WEIGHTS), "<u2")[codes].astype(np.uint16)
    occurrences, placed = decode_positions(positions)
    if len(occurrences) != part.postings or (part.postings and int(rows.max()) >= part.count):
        raise IndexCorrupt("postings have no row or lack positions")
    by_row = np.argsort(rows, kind="stable")  # terms stay in order within a row
    found = occurrences[by_row]
    ends = np.cumsum(occurrences)
    return TermRows(
        vocabulary=vocabulary,
        starts=offsets_of(np.bincount(rows, minlength=part.count)),
        terms=np.repeat(np.arange(len(df), dtype=np.uint32), df)[by_row],
        weights=weights[by_row],
        occurrences=found.astype(np.uint16),
        positions=placed[indices_of(ends[by_row] - found, found)].astype(np.uint16),
        lengths=np.frombuffer(lengths, f"<u{part.length_width}").astype(np.uint32),
        language_names=tuple(part.languages),
        languages=np.frombuffer(languages, np.uint8).copy(),
    )
