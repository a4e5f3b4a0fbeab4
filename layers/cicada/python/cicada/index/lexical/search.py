"""BM25 over the lexical parts of all segments, with the statistics of all their living rows.

A passage's score is the sum, over what the query asks for, of idf x (k1 + 1) x tf / (tf + k1 x (1 - b + b x length /
average length)), with idf = ln(1 + (N - df + 0.5) / (df + 0.5)) as in Lucene. N, df and the average length are counted
over the living rows of all segments, so that scores depend neither on how the corpus is cut nor on what is deleted.

A query reads in two rounds: blocks of dictionaries (and lengths), then postings. Resident sections are not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical import K1, LENGTHS, POSITIONS, POSTINGS, TERMS_PER_BLOCK
from cicada.index.lexical.dictionary import TermEntry
from cicada.index.lexical.part import Alive, LexicalPart
from cicada.index.lexical.postings import CodedList, PostingList, merged, phrase_list
from cicada.index.lexical.query_parser import Clause, Phrase, Prefix, QueryAnalyzer
from cicada.index.lexical.ranking import WeightedPostings, best_rows, kth_largest, scores_of
from cicada.index.segment_format import Gather, Span

MAX_EXPANSIONS = 256  # terms that a prefix stands for at most: the first in alphabetical order, over all parts
_EXPANSION_BLOCKS = MAX_EXPANSIONS // TERMS_PER_BLOCK + 1

Entries = list[dict[bytes, TermEntry]]  # for each part, the entries of the terms that it has


def read_entries(
    parts: Sequence[LexicalPart], clauses: Iterable[Clause], gather: Gather, besides: Sequence[Span]
) -> tuple[Entries, dict[bytes, list[bytes]], list[memoryview]]:
    """First round, dictionaries: entries by part, the terms that each prefix stands for, the bytes of ``besides``."""
    terms = dict.fromkeys(term for clause in clauses for term in _terms_of(clause))
    prefixes = dict.fromkeys(prefix for clause in clauses if isinstance(clause, Prefix) for prefix in clause.prefixes)
    entries: Entries = []
    asked: list[tuple[int, int, list[bytes]]] = []
    for number, part in enumerate(parts):
        known, blocks = _known_entries(part, terms, prefixes)
        entries.append(known)
        asked += [(number, at, wanted) for at, wanted in blocks.items()]
    spans = [*besides, *(parts[number].block_span(at) for number, at, _ in asked)]
    read = gather(spans) if spans else []
    expansions: list[dict[bytes, dict[bytes, TermEntry]]] = [{prefix: {} for prefix in prefixes} for _ in parts]
    for (number, _, wanted), data in zip(asked, read[len(besides) :], strict=True):
        _read_block(parts[number], data, wanted, entries[number], expansions[number])
    stands_for = _expanded(entries, expansions, prefixes) if prefixes else {}
    return entries, stands_for, read[: len(besides)]


def _expanded(
    entries: Entries, expansions: Sequence[dict[bytes, dict[bytes, TermEntry]]], prefixes: Iterable[bytes]
) -> dict[bytes, list[bytes]]:
    """The terms that each prefix stands for, over all parts; adds their entries to each part's."""
    stands_for = {
        prefix: sorted({term for found in expansions for term in found[prefix]})[:MAX_EXPANSIONS] for prefix in prefixes
    }
    for known, found in zip(entries, expansions, strict=True):
        for prefix, expanded in stands_for.items():
            known.update((term, found[prefix][term]) for term in expanded if term in found[prefix])
    return stands_for


def _known_entries(
    part: LexicalPart, terms: Iterable[bytes], prefixes: Iterable[bytes]
) -> tuple[dict[bytes, TermEntry], dict[int, list[bytes]]]:
    """The entries that need no read, and the dictionary's blocks to read with the terms to look up in each."""
    known: dict[bytes, TermEntry] = {}
    blocks: dict[int, list[bytes]] = {}
    for term in terms:
        told, entry = part.remembered(term)
        if entry is not None:
            known[term] = entry
        elif not told and (at := part.dictionary.block_of(term)) is not None:
            blocks.setdefault(at, []).append(term)
    for prefix in prefixes:
        for at in part.dictionary.blocks_of(prefix, _EXPANSION_BLOCKS):
            blocks.setdefault(at, [])
    return known, blocks


def _read_block(
    part: LexicalPart,
    data: memoryview,
    wanted: Iterable[bytes],
    entries: dict[bytes, TermEntry],
    expansions: dict[bytes, dict[bytes, TermEntry]],
) -> None:
    """Add what a block has of the wanted terms, and of the terms with each prefix."""
    block = part.block(data)
    for term in wanted:
        if (entry := part.look_up(term, block)) is not None:
            entries[term] = entry
    for prefix, found in expansions.items():
        for term, entry in block.starting_with(prefix):
            part.check(entry)
            found[term] = entry


def _terms_of(clause: Clause) -> Iterable[bytes]:
    if isinstance(clause, Phrase):
        return (term for _, alternatives in clause.steps for term in alternatives)
    return clause.alternatives


def read_lists(
    parts: Sequence[LexicalPart],
    entries: Entries,
    clauses: Sequence[Clause],
    stands_for: dict[bytes, list[bytes]],
    gather: Gather,
) -> list[list[PostingList | None]]:
    """The second round: for each part, the list of each clause; None where no row has it."""
    phrased = {term for clause in clauses if isinstance(clause, Phrase) for term in _terms_of(clause)}
    coded, positions = _read_postings(parts, entries, phrased, gather)
    return [
        [_list_of(clause, coded[number], positions[number], stands_for) for clause in clauses]
        for number in range(len(parts))
    ]


def _list_of(
    clause: Clause,
    coded: dict[bytes, PostingList],
    positions: dict[bytes, memoryview],
    stands_for: dict[bytes, list[bytes]],
) -> PostingList | None:
    if isinstance(clause, Phrase):
        return phrase_list(
            [
                (offset, [(coded[term], positions[term]) for term in alternatives if term in coded])
                for offset, alternatives in clause.steps
            ]
        )
    terms: Iterable[bytes] = clause.alternatives
    if isinstance(clause, Prefix):
        terms = dict.fromkeys(
            [*clause.alternatives, *(term for prefix in clause.prefixes for term in stands_for[prefix])]
        )
    return merged([coded[term] for term in terms if term in coded])


def _read_postings(
    parts: Sequence[LexicalPart], entries: Entries, phrased: set[bytes], gather: Gather
) -> tuple[list[dict[bytes, PostingList]], list[dict[bytes, memoryview]]]:
    found: list[dict[bytes, memoryview]] = [{} for _ in parts]
    positions: list[dict[bytes, memoryview]] = [{} for _ in parts]
    spans: list[Span] = []
    wanted: list[tuple[dict[bytes, memoryview], bytes]] = []
    for number, part in enumerate(parts):
        resident = part.sections.resident(POSTINGS)
        placed = part.sections.resident(POSITIONS) if phrased else None
        for term, entry in entries[number].items():
            if resident is not None:
                found[number][term] = resident[entry.postings_start : entry.postings_start + entry.postings_size]
            else:
                spans.append(part.postings_span(entry))
                wanted.append((found[number], term))
            if term not in phrased:
                continue
            if placed is not None:
                positions[number][term] = placed[entry.positions_start : entry.positions_start + entry.positions_size]
            else:
                spans.append(part.positions_span(entry))
                wanted.append((positions[number], term))
    for (where, term), data in zip(wanted, gather(spans) if spans else [], strict=True):
        where[term] = data
    coded: list[dict[bytes, PostingList]] = [
        {
            term: CodedList(found[number][term], entry.counts, part.code_width, part.frequencies, entry.bound)
            for term, entry in entries[number].items()
        }
        for number, part in enumerate(parts)
    ]
    return coded, positions


Mask = NDArray[np.bool_] | None


@dataclass(frozen=True)
class LexicalHits:
    """Hits, best first; equal scores in the order of segment and row."""

    segment: NDArray[np.intp]
    row: NDArray[np.intp]
    score: NDArray[np.float32]


def idf(count: int, df: int) -> float:
    """Inverse document frequency of a term that ``df`` of ``count`` passages have, in Lucene's non-negative form."""
    return math.log(1 + (count - df + 0.5) / (df + 0.5))


class LexicalQuery:
    """A query to some parts, analysed, with its lists read and weighed. Searching and scoring read nothing more."""

    asked: int  # the query's distinct words, phrases and prefixes, without the most frequent words
    found: int  # how many of them the living rows have
    ideal: float  # the upper limit of scores: everything that was found, repeated endlessly
    asked_ideal: float
    """The same, as if everything had been found (once): ``ideal / asked_ideal`` is the share of the query, by weight,
    that the corpus has."""

    def __init__(self, parts: Sequence[LexicalPart], query: str, alive: Sequence[Mask], gather: Gather) -> None:
        """Prepare a query (any string): at most two rounds of reads, none if everything is in memory.

        ``alive`` masks the rows of each part that are not deleted, ``(n,)``, None for all; the arrays must not change.
        Raises IndexCorrupt or IndexUnavailable.
        """
        self._parts = parts
        asked = QueryAnalyzer(_languages(parts)).clauses(query)
        clauses = [clause for clause, _ in asked]
        lengths = [number for number, part in enumerate(parts) if part.sections.resident(LENGTHS) is None]
        entries, stands_for, read = read_entries(
            parts, clauses, gather, [parts[number].lengths_span() for number in lengths]
        )
        of_part = dict(zip(lengths, read, strict=True))
        living = [
            part.alive(mask, of_part.get(number)) for number, (part, mask) in enumerate(zip(parts, alive, strict=True))
        ]
        self._masks = alive
        self._count = sum(each.count for each in living)
        average = sum(each.total_length for each in living) / max(self._count, 1)
        self._norms = [part.norms(average, of_part.get(number)) for number, part in enumerate(parts)]
        lists = read_lists(parts, entries, clauses, stands_for, gather)
        try:
            self._weigh(asked, lists, living, average)
        except IndexError as error:
            raise IndexCorrupt("postings are of no row") from error

    def _weigh(
        self,
        asked: Sequence[tuple[Clause, int]],
        lists: Sequence[Sequence[PostingList | None]],
        living: Sequence[Alive],
        average: float,
    ) -> None:
        dfs = [
            sum(
                alive.count_of(postings, None if isinstance(clause, Prefix) else clause)
                for alive, of_part in zip(living, lists, strict=True)
                if (postings := of_part[at]) is not None
            )
            for at, (clause, _) in enumerate(asked)
        ]
        weights = [times * idf(self._count, df) * (K1 + 1) for (_, times), df in zip(asked, dfs, strict=True)]
        order = sorted((at for at, df in enumerate(dfs) if df), key=lambda at: (dfs[at], at))
        self.asked, self.found = len(asked), len(order)
        self.ideal, self.asked_ideal = sum(weights[at] for at in order), sum(weights)
        self._lists: list[list[WeightedPostings]] = []
        for part, of_part in zip(self._parts, lists, strict=True):
            # A row's norm shrinks at most by the factor of its segment's average length to that of all segments.
            scale = max(1.0, average / part.average_length) if part.average_length else 1.0
            weighed = (
                WeightedPostings(postings, np.float32(weights[at]), weights[at] * min(postings.bound * scale, 1.0))
                for at in order
                if (postings := of_part[at]) is not None
            )
            self._lists.append(list(weighed))

    def search(self, allowed: Sequence[Mask], limit: int) -> LexicalHits:
        """The best ``limit`` rows of those allowed: for each part a mask of living rows ``(n,)``, or None for all."""
        segments: list[NDArray[np.intp]] = [np.zeros(0, np.intp)]
        rows: list[NDArray[np.intp]] = [np.zeros(0, np.intp)]
        scores: list[NDArray[np.float32]] = [np.zeros(0, np.float32)]
        floor = 0.0
        for number, (lists, mask) in enumerate(zip(self._lists, allowed, strict=True)):
            if not lists or limit < 1:
                continue
            within = self._masks[number] if mask is None else mask
            found, scored = best_rows(lists, self._norms[number], within, limit, floor)
            kept = scored >= floor
            segments.append(np.full(int(np.count_nonzero(kept)), number))
            rows.append(found[kept])
            scores.append(scored[kept])
            if number + 1 < len(self._lists):
                floor = max(floor, kth_largest(np.concatenate(scores), limit))
        segment, row, score = np.concatenate(segments), np.concatenate(rows), np.concatenate(scores)
        kept = score >= kth_largest(score, limit) if limit > 0 else score > np.inf
        segment, row, score = segment[kept], row[kept], score[kept]
        best = np.lexsort((row, segment, -score))[: max(limit, 0)]
        return LexicalHits(segment[best], row[best], score[best])

    def scores(self, segment: NDArray[np.intp], row: NDArray[np.intp]) -> NDArray[np.float32]:
        """The scores of given rows ``(k,)``, bit by bit those of a search that finds them; 0 without any match."""
        scores = np.zeros(len(row), np.float32)
        for number in np.unique(segment).tolist():
            here = np.flatnonzero(segment == number)
            here = here[np.argsort(row[here], kind="stable")]
            scores[here] = scores_of(self._lists[number], self._norms[number], row[here])
        return scores


def _languages(parts: Sequence[LexicalPart]) -> dict[str, int]:
    """How many rows there are in each language."""
    languages: dict[str, int] = {}
    for part in parts:
        for language, rows in part.languages.items():
            languages[language] = languages.get(language, 0) + rows
    return languages
