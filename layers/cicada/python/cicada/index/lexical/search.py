"""BM25 over the lexical parts of all segments, with the statistics of all their living rows.

A passage's score is the sum, over what the query asks for, of idf x (k1 + 1) x tf / (tf + k1 x (1 - b + b x length /
average length)), with idf = ln(1 + (N - df + 0.5) / (df + 0.5)) as in Lucene. N, df and the average length are counted
over the living rows of all segments, so that scores depend neither on how the corpus is cut nor on what is deleted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical.alive import Alive
from cicada.index.lexical.constants import K1, LENGTHS
from cicada.index.lexical.lists import PostingList
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.query import Clause, Prefix, QueryAnalyzer
from cicada.index.lexical.ranking import Weighed, best_rows, kth_largest, scores_of
from cicada.index.lexical.reading import read_entries, read_lists
from cicada.index.sections import Gather

Mask = NDArray[np.bool_] | None


@dataclass(frozen=True)
class LexicalHits:
    """Hits, best first; equal scores in the order of segment and row."""

    segment: NDArray[np.intp]
    row: NDArray[np.intp]
    score: NDArray[np.float32]


def idf(count: int, df: int) -> float:
    """How telling a term is that ``df`` of ``count`` passages have (Lucene's form: never negative)."""
    return math.log(1 + (count - df + 0.5) / (df + 0.5))


class LexicalQuery:
    """A query to some parts: analysed, its lists read and weighed. Searching and scoring read nothing more."""

    asked: int
    """What the query asks for: its distinct words, phrases and prefixes, without the most frequent words."""
    found: int
    """How many of those the living rows have."""
    ideal: float
    """The score that no passage exceeds: all that was found, in endless repetition."""
    asked_ideal: float
    """The same, had everything that is asked for been found (once): ``ideal / asked_ideal`` tells how much of the
    query, by weight, the corpus speaks of."""

    def __init__(self, parts: Sequence[LexicalPart], query: str, alive: Sequence[Mask], gather: Gather) -> None:
        """Prepare a query: at most two rounds of reads, none if everything is in memory.

        Args:
            parts: the lexical parts of all segments of a version.
            query: any string.
            alive: for each part, ``(n,)``, which rows are not deleted; None for all. The arrays must not change.
            gather: reads what is not resident.

        Raises:
            IndexCorrupt: what is read does not fit.
            IndexUnavailable: the store does not respond.
        """
        self._parts = parts
        languages: dict[str, int] = {}
        for part in parts:
            for language, rows in part.languages.items():
                languages[language] = languages.get(language, 0) + rows
        asked = QueryAnalyzer(languages).clauses(query)
        clauses = [clause for clause, _ in asked]
        lengths = _lengths_to_read(parts)
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
        self._lists: list[list[Weighed]] = []
        for part, of_part in zip(self._parts, lists, strict=True):
            # A row's norm shrinks by no more than its segment's average length over that of all.
            scale = max(1.0, average / part.average_length) if part.average_length else 1.0
            weighed = (
                Weighed(postings, np.float32(weights[at]), weights[at] * min(postings.bound * scale, 1.0))
                for at in order
                if (postings := of_part[at]) is not None
            )
            self._lists.append(list(weighed))

    def search(self, allowed: Sequence[Mask], limit: int) -> LexicalHits:
        """The best rows among those that are allowed.

        Args:
            allowed: for each part, ``(n,)``, which rows may be found: living ones only. None for all living ones.
            limit: how many.
        """
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
        """The scores of given rows ``(k,)``, to the bit what a search that finds them says; 0 without any match."""
        scores = np.zeros(len(row), np.float32)
        for number in np.unique(segment).tolist():
            here = np.flatnonzero(segment == number)
            here = here[np.argsort(row[here], kind="stable")]
            scores[here] = scores_of(self._lists[number], self._norms[number], row[here])
        return scores


def _lengths_to_read(parts: Sequence[LexicalPart]) -> list[int]:
    """The parts whose lengths are not in memory."""
    return [number for number, part in enumerate(parts) if part.sections.resident(LENGTHS) is None]


def search_lexical(
    parts: Sequence[LexicalPart],
    query: str,
    alive: Sequence[Mask],
    allowed: Sequence[Mask],
    limit: int,
    gather: Gather,
) -> LexicalHits:
    """Search once: see :class:`LexicalQuery`, whose own methods also score given rows without reading again."""
    return LexicalQuery(parts, query, alive, gather).search(allowed, limit)
