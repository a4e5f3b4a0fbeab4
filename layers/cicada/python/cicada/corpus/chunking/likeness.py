"""How similar the texts on either side of an edge are: by shared words, or by an embedding model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from cicada.corpus.chunking.units import Unit
from cicada.text.words import rough_stems

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]  # one vector per text

REACH = 3  # sentences compared on either side: a single one shares too few words with the next


def by_words(units: Sequence[Unit]) -> list[float | None]:
    """Each unit's similarity to what precedes it; None for the first, and beside units that are not prose.

    The cosine of the bags of words, with logarithmic counts. No statistics of the document: an edit elsewhere must not
    change it.
    """
    terms = [rough_stems(unit.text) if unit.prose else [] for unit in units]

    @cache
    def bag(side: range) -> tuple[dict[str, float], float]:  # cached: it is after one edge and before another
        counts = Counter(term for at in side for term in terms[at])
        weights = {term: 1.0 + math.log(count) for term, count in counts.items()}
        return weights, math.sqrt(sum(weight * weight for weight in weights.values()))

    def cosine(left: range, right: range) -> float:
        (one, length), (other, other_length) = bag(left), bag(right)
        product = sum(one[term] * other[term] for term in sorted(one.keys() & other.keys()))
        return product / (length * other_length or 1.0)

    return _compared(units, cosine)


def by_embedding(units: Sequence[Unit], embed: Embed) -> list[float | None]:
    """Likewise, by the cosine of the sums of the sentences' vectors."""
    texts = list(dict.fromkeys(unit.text.strip() for unit in units if unit.prose))
    vector_of = dict(zip(texts, np.asarray(embed(texts), dtype=np.float64), strict=True)) if texts else {}

    def cosine(left: range, right: range) -> float:
        a, b = (np.sum([vector_of[units[at].text.strip()] for at in side], axis=0) for side in (left, right))
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0))

    return _compared(units, cosine)


def _compared(units: Sequence[Unit], cosine: Callable[[range, range], float]) -> list[float | None]:
    found: list[float | None] = []
    for at in range(len(units)):
        left = right = at
        while left > max(0, at - REACH) and units[left - 1].prose:
            left -= 1
        while right < min(len(units), at + REACH) and units[right].prose:
            right += 1
        found.append(min(max(cosine(range(left, at), range(at, right)), 0.0), 1.0) if left < at < right else None)
    return found
