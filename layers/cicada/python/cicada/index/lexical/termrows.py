"""The forward form of passages: which terms each has. What a segment is encoded from and decoded to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TermRows:
    """The terms of ``n`` passages, passage by passage. Weights and lengths are in units of 1/64 of an occurrence.

    ``m`` counts the pairs of a passage and a term it has; each passage's pairs are in the order of term numbers.
    """

    vocabulary: Sequence[str]
    """By term number; a term may be unused."""
    starts: NDArray[np.int64]
    """``(n + 1,)``: passage ``i`` has pairs ``starts[i]`` to ``starts[i + 1]``."""
    terms: NDArray[np.uint32]
    """``(m,)``: term numbers."""
    weights: NDArray[np.uint16]
    """``(m,)``: the sum of part weight x occurrences."""
    occurrences: NDArray[np.uint16]
    """``(m,)``: positions in the passage's own text."""
    positions: NDArray[np.uint16]
    """Those positions, pair by pair, ascending."""
    lengths: NDArray[np.uint32]
    """``(n,)``: the sum of all of a passage's weights."""
    language_names: tuple[str, ...]
    """ISO 639-3 codes, at most 256."""
    languages: NDArray[np.uint8]
    """``(n,)``: numbers of the passages' languages."""

    def __len__(self) -> int:
        return len(self.lengths)


def ragged(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices of several runs, one after the other: ``starts[0], starts[0] + 1, ... starts[1], ...``."""
    ends = np.cumsum(counts)
    indices = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64)
    indices += np.repeat(starts - ends + counts, counts)
    return indices


def concat(parts: Sequence[TermRows], keep: Sequence[NDArray[np.bool_] | None]) -> TermRows:
    """The passages of several forward forms that are to be kept, in order: what compaction encodes.

    Args:
        parts: at least one.
        keep: for each part, which of its passages; None for all.
    """
    numbers: dict[str, int] = {}
    names: dict[str, int] = {}
    kept = [
        _renumbered(part if mask is None else take(part, np.flatnonzero(mask)), numbers, names)
        for part, mask in zip(parts, keep, strict=True)
    ]
    counts = np.concatenate([np.diff(part.starts) for part in kept])
    return TermRows(
        vocabulary=list(numbers),
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        terms=np.concatenate([part.terms for part in kept]),
        weights=np.concatenate([part.weights for part in kept]),
        occurrences=np.concatenate([part.occurrences for part in kept]),
        positions=np.concatenate([part.positions for part in kept]),
        lengths=np.concatenate([part.lengths for part in kept]),
        language_names=tuple(names),
        languages=np.concatenate([part.languages for part in kept]),
    )


def take(part: TermRows, passages: NDArray[np.intp]) -> TermRows:
    """Some passages of a forward form, in any order: ``passages`` are their places, shape ``(k,)``."""
    counts = np.diff(part.starts)[passages]
    pairs = ragged(part.starts[passages], counts)
    position_ends = np.cumsum(part.occurrences, dtype=np.int64)
    occurrences = part.occurrences[pairs]
    found = occurrences.astype(np.int64)
    return TermRows(
        vocabulary=part.vocabulary,
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        terms=part.terms[pairs],
        weights=part.weights[pairs],
        occurrences=occurrences,
        positions=part.positions[ragged(position_ends[pairs] - found, found)],
        lengths=part.lengths[passages],
        language_names=part.language_names,
        languages=part.languages[passages],
    )


def _renumbered(part: TermRows, numbers: dict[str, int], names: dict[str, int]) -> TermRows:
    """With the term and language numbers of a common vocabulary, to which what is new and used is added."""
    used = np.flatnonzero(np.bincount(part.terms, minlength=len(part.vocabulary)))
    new = np.zeros(len(part.vocabulary), np.uint32)
    for number in used.tolist():
        new[number] = numbers.setdefault(part.vocabulary[number], len(numbers))
    spoken = np.array([names.setdefault(name, len(names)) for name in part.language_names], np.uint8)
    terms = new[part.terms]
    # Term numbers of a passage may be in another order now: put its pairs in order again.
    owner = np.repeat(np.arange(len(part), dtype=np.int64), np.diff(part.starts))
    order = np.lexsort((terms, owner))
    occurrences = part.occurrences[order]
    found = occurrences.astype(np.int64)
    position_ends = np.cumsum(part.occurrences, dtype=np.int64)
    return TermRows(
        vocabulary=part.vocabulary,
        starts=part.starts,
        terms=terms[order],
        weights=part.weights[order],
        occurrences=occurrences,
        positions=part.positions[ragged(position_ends[order] - found, found)],
        lengths=part.lengths,
        language_names=part.language_names,
        languages=spoken[part.languages] if len(part) else part.languages,
    )
