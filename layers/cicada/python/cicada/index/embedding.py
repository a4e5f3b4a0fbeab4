"""Embedding passages' contexts, without asking for what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cicada.errors import IndexMismatch
from cicada.index.progress import Progress
from cicada.index.segment import Vector, Vectors
from cicada.models.ports import Embedder

EMBED_BATCH = 64
"""Texts embedded between two reports of progress."""
EMBED_BUDGET_S = 120.0
"""Seconds for one batch, the model's retries included."""
UNIT_TOLERANCE = 1e-3
"""How far a vector's length may be from 1."""


@dataclass(frozen=True)
class Embedded:
    """A vector a text, in order, and how many texts the model was asked for."""

    vectors: Vectors
    asked: int


def unit_vectors(embedder: Embedder, texts: Sequence[str], *, time_budget_s: float) -> Vectors:
    """Embed texts and check that the vectors are what the index may hold and search with.

    Raises:
        IndexMismatch: they are not of the model's dimensions, or not of unit length.
        ModelBusy, ModelUnavailable, ModelRefused: the model could not embed them.
    """
    vectors = np.asarray(embedder.embed(texts, time_budget_s=time_budget_s), dtype=np.float32)
    if vectors.shape != (len(texts), embedder.dimensions):
        raise IndexMismatch(
            f"{embedder.model_id} gave vectors of shape {vectors.shape}, not {(len(texts), embedder.dimensions)}"
        )
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not bool((np.abs(lengths - 1) <= UNIT_TOLERANCE).all()):  # a NaN is not within the tolerance either
        raise IndexMismatch(f"{embedder.model_id} gave vectors that are not of unit length")
    return vectors


def embed_contexts(
    embedder: Embedder, contexts: Sequence[str], known: Mapping[str, Vector], progress: Progress
) -> Embedded:
    """Embed at least one context: each distinct one once, and none that is known.

    Raises:
        IndexMismatch, ModelBusy, ModelUnavailable, ModelRefused: as :func:`unit_vectors` does.
    """
    missing = list(dict.fromkeys(context for context in contexts if context not in known))
    vector_of = dict(known)
    for start in range(0, len(missing), EMBED_BATCH):
        progress("embedding", start, len(missing))
        batch = missing[start : start + EMBED_BATCH]
        vector_of.update(zip(batch, unit_vectors(embedder, batch, time_budget_s=EMBED_BUDGET_S), strict=True))
    progress("embedding", len(missing), len(missing))
    return Embedded(np.stack([vector_of[context] for context in contexts]), len(missing))
