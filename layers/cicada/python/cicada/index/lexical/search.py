"""BM25 over the lexical parts of all segments, with the statistics of all their living rows.

A passage's score is the sum, over the query's clauses, of idf x (k1 + 1) x tf / (tf + k1 x (1 - b + b x length /
average length)), with idf = ln(1 + (N - df + 0.5) / (df + 0.5)) as in Lucene. N, df and the average length count the
living rows of all segments, so that scores depend neither on how the corpus is cut nor on what is deleted.

A query reads in two rounds: blocks of dictionaries and lengths, then postings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical import K1, TERMS_PER_BLOCK
from cicada.index.lexical.dictionary import TermEntry
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.postings import CodedList, PostingList, merged, phrase_list
from cicada.index.lexical.query_parser import Clause, Phrase, Prefix, QueryAnalyzer
from cicada.index.lexical.ranking import WeightedPostings, best_rows, kth_largest, scores_of
from cicada.index.segment_format import Gather, Span, gather_groups

MAX_EXPANSIONS = 256  # terms of a prefix at most: the first in alphabetical order, over all parts
_EXPANSION_BLOCKS = MAX_EXPANSIONS // TERMS_PER_BLOCK + 1

Expansions = Mapping[bytes, Sequence[bytes]]  # the terms that begin with each prefix


class _PartEntries:
    """The dictionary entries of one part that a query needs."""

    def __init__(self, part: LexicalPart, terms: Iterable[bytes], prefixes: Iterable[bytes]) -> None:
        self.part = part
        self.entries: dict[bytes, TermEntry] = {}
        self.expansions: dict[bytes, dict[bytes, TermEntry]] = {prefix: {} for prefix in prefixes}
        self._blocks: dict[int, list[bytes]] = {}  # the dictionary's blocks to read, and the terms to look up in each
        for term in terms:
            looked_up, entry = part.remembered(term)
            if entry is not None:
                self.entries[term] = entry
            elif not looked_up and (at := part.dictionary.block_of(term)) is not None:
                self._blocks.setdefault(at, []).append(term)
        for prefix in prefixes:
            for at in part.dictionary.blocks_of(prefix, _EXPANSION_BLOCKS):
                self._blocks.setdefault(at, [])

    def spans(self) -> list[Span]:
        return [self.part.block_span(at) for at in self._blocks]

    def read(self, data: Sequence[memoryview]) -> None:
        """Take the bytes of :meth:`spans`."""
        for terms, block_data in zip(self._blocks.values(), data, strict=True):
            block = self.part.block(block_data)
            for term in terms:
                if (entry := self.part.look_up(term, block)) is not None:
                    self.entries[term] = entry
            for prefix, found in self.expansions.items():
                for term, entry in block.starting_with(prefix):
                    self.part.check(entry)
                    found[term] = entry

    def expand(self, expansions: Expansions) -> None:
        """Add the entries of the terms that prefixes stand for."""
        for prefix, terms in expansions.items():
            found = self.expansions[prefix]
            self.entries.update((term, found[term]) for term in terms if term in found)


def _read_entries(
    parts: Sequence[LexicalPart], clauses: Sequence[Clause], gather: Gather
) -> tuple[list[_PartEntries], Expansions, list[memoryview]]:
    """First round: the entries of each part, the terms of each prefix, and the lengths of each part's rows."""
    terms = dict.fromkeys(term for clause in clauses for term in _terms_of(clause))
    prefixes = dict.fromkeys(prefix for clause in clauses if isinstance(clause, Prefix) for prefix in clause.prefixes)
    entries = [_PartEntries(part, terms, prefixes) for part in parts]
    lengths, *blocks = gather_groups(
        gather, [[part.lengths_span() for part in parts], *(one.spans() for one in entries)]
    )
    for one, data in zip(entries, blocks, strict=True):
        one.read(data)
    return entries, _expand(entries, prefixes), lengths


def _expand(entries: Sequence[_PartEntries], prefixes: Iterable[bytes]) -> Expansions:
    expansions = {
        prefix: sorted({term for one in entries for term in one.expansions[prefix]})[:MAX_EXPANSIONS]
        for prefix in prefixes
    }
    for one in entries:
        one.expand(expansions)
    return expansions


def _terms_of(clause: Clause) -> Iterable[bytes]:
    if isinstance(clause, Phrase):
        return (term for _, alternatives in clause.steps for term in alternatives)
    return clause.alternatives


def _read_lists(
    entries: Sequence[_PartEntries], clauses: Sequence[Clause], expansions: Expansions, gather: Gather
) -> list[list[PostingList | None]]:
    """Second round: for each part the posting list of each clause; None if no row has it."""
    phrases = [clause for clause in clauses if isinstance(clause, Phrase)]
    phrased = set(chain.from_iterable(map(_terms_of, phrases)))
    placed = [list(filter(phrased.__contains__, one.entries)) for one in entries]
    spans = [
        [
            *map(one.part.postings_span, one.entries.values()),
            *(one.part.positions_span(one.entries[term]) for term in terms),
        ]
        for one, terms in zip(entries, placed, strict=True)
    ]
    lists: list[list[PostingList | None]] = []
    for one, terms, data in zip(entries, placed, gather_groups(gather, spans), strict=True):
        coded: dict[bytes, PostingList] = {
            term: CodedList(piece, entry.counts, one.part.code_width, one.part.frequencies, entry.bound)
            for (term, entry), piece in zip(one.entries.items(), data, strict=False)
        }
        positions = dict(zip(terms, data[len(coded) :], strict=True))
        lists.append([_list_of(clause, coded, positions, expansions) for clause in clauses])
    return lists


def _list_of(
    clause: Clause,
    coded: Mapping[bytes, PostingList],
    positions: Mapping[bytes, memoryview],
    expansions: Expansions,
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
        expanded = (term for prefix in clause.prefixes for term in expansions[prefix])
        terms = dict.fromkeys([*clause.alternatives, *expanded])
    return merged([coded[term] for term in terms if term in coded])


Mask = NDArray[np.bool_] | None


@dataclass(frozen=True)
class LexicalHits:
    """Hits, best first; equal scores in the order of segment and row."""

    segment: NDArray[np.intp]
    row: NDArray[np.intp]
    score: NDArray[np.float32]


def idf(count: int, df: int) -> float:
    """Inverse document frequency of a term in ``df`` of ``count`` passages, in Lucene's non-negative form."""
    return math.log(1 + (count - df + 0.5) / (df + 0.5))


class LexicalQuery:
    """An analysed query with its posting lists read and weighted. Searching and scoring read nothing more."""

    asked: int  # the query's distinct words, phrases and prefixes, without the most frequent words
    found: int  # how many of them living rows have
    ideal: float  # the upper limit of scores: every clause that was found, repeated endlessly
    asked_ideal: float
    """The limit as if every clause had been found once: ``ideal / asked_ideal`` is the weighted share found."""

    def __init__(self, parts: Sequence[LexicalPart], query: str, alive: Sequence[Mask], gather: Gather) -> None:
        """Prepare a query (any string) in at most two rounds of reads.

        ``alive`` masks the living rows of each part, ``(n,)``, None for all; the arrays must not change. Raises
        IndexCorrupt or IndexUnavailable.
        """
        self._parts = parts
        self._masks = alive
        languages: Counter[str] = Counter()
        for part in parts:
            languages.update(part.languages)
        asked = QueryAnalyzer(languages).clauses(query)
        clauses = [clause for clause, _ in asked]
        entries, expansions, lengths = _read_entries(parts, clauses, gather)
        self._living = [part.alive(mask, data) for part, mask, data in zip(parts, alive, lengths, strict=True)]
        self._count = sum(each.count for each in self._living)
        self._average = sum(each.total_length for each in self._living) / max(self._count, 1)
        self._norms = [part.norms(self._average, data) for part, data in zip(parts, lengths, strict=True)]
        lists = _read_lists(entries, clauses, expansions, gather)
        try:
            self._weigh(asked, lists)
        except IndexError as error:
            raise IndexCorrupt("a posting names a row that does not exist") from error

    def _weigh(self, asked: Sequence[tuple[Clause, int]], lists: Sequence[Sequence[PostingList | None]]) -> None:
        dfs = [
            sum(living.count_of(of_part[at], clause) for living, of_part in zip(self._living, lists, strict=True))
            for at, (clause, _) in enumerate(asked)
        ]
        weights = [times * idf(self._count, df) * (K1 + 1) for (_, times), df in zip(asked, dfs, strict=True)]
        order = sorted((at for at, df in enumerate(dfs) if df), key=lambda at: (dfs[at], at))
        self.asked, self.found = len(asked), len(order)
        self.ideal, self.asked_ideal = sum(weights[at] for at in order), sum(weights)
        self._lists = [
            self._weighted(part, [(of_part[at], weights[at]) for at in order])
            for part, of_part in zip(self._parts, lists, strict=True)
        ]

    def _weighted(self, part: LexicalPart, lists: Iterable[tuple[PostingList | None, float]]) -> list[WeightedPostings]:
        # A row's norm shrinks at most by the factor of its segment's average length to that of all segments.
        scale = max(1.0, self._average / part.average_length) if part.average_length else 1.0
        return [
            WeightedPostings(postings, np.float32(weight), weight * min(postings.bound * scale, 1.0))
            for postings, weight in lists
            if postings is not None
        ]

    def search(self, allowed: Sequence[Mask], limit: int) -> LexicalHits:
        """The best ``limit`` rows of those allowed: for each part a mask of living rows ``(n,)``, None for all."""
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
        """The scores of given rows ``(k,)``, bit by bit those of a search that finds them; 0 without a match."""
        scores = np.zeros(len(row), np.float32)
        for number in np.unique(segment).tolist():
            here = np.flatnonzero(segment == number)
            here = here[np.argsort(row[here], kind="stable")]
            scores[here] = scores_of(self._lists[number], self._norms[number], row[here])
        return scores
