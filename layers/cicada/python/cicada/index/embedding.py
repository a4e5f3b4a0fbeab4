"""Makes passages' vectors. Known vectors are reused, so that the model embeds new texts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import Indexable
from cicada.errors import IndexMismatch
from cicada.index.ports import Progress
from cicada.models.ports import Embedder

Vector = NDArray[np.float32]  # shape ``(d,)``, of unit length
Vectors = NDArray[np.float32]  # shape ``(n, d)``, rows of unit length

EMBED_BATCH = 96  # texts between two progress reports; as many as one call of Cohere Embed takes
EMBED_BUDGET_S = 120.0  # seconds for one batch, retries included
UNIT_TOLERANCE = 1e-3  # how far a vector's length may be from 1
MIN_BLEND = 1e-6  # a shorter sum of vectors has no meaningful direction


def unit_vectors(embedder: Embedder, texts: Sequence[str], *, time_budget_s: float) -> Vectors:
    """Embed texts, and check the vectors' dimensions and lengths.

    Raises IndexMismatch if they are wrong; ModelBusy, ModelUnavailable or ModelRefused if the model fails.
    """
    vectors = np.asarray(embedder.embed(texts, time_budget_s=time_budget_s), dtype=np.float32)
    if vectors.shape != (len(texts), embedder.dimensions):
        expected = (len(texts), embedder.dimensions)
        raise IndexMismatch(f"{embedder.model_id} returned vectors of shape {vectors.shape}, expected {expected}")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not bool((np.abs(lengths - 1) <= UNIT_TOLERANCE).all()):  # a NaN is not within the tolerance either
        raise IndexMismatch(f"{embedder.model_id} returned vectors that are not normalised")
    return vectors


def passage_vectors(
    embedder: Embedder, items: Sequence[Indexable], known: Mapping[bytes, Vector], progress: Progress
) -> tuple[Vectors, int]:
    """The vectors of at least one passage, and how many texts the model embedded; raises as :func:`unit_vectors` does.

    ``known`` are vectors by recipe, which are used as they are. Each other distinct text is embedded once.
    """
    unknown = [item for item in items if item.recipe() not in known]
    vector_of = _embed(embedder, list(dict.fromkeys(part.text for item in unknown for part in item.parts)), progress)
    made = {item.recipe(): _blend(item, vector_of) for item in unknown}
    vectors = [known[recipe] if (recipe := item.recipe()) in known else made[recipe] for item in items]
    return np.stack(vectors), len(vector_of)


def _embed(embedder: Embedder, texts: Sequence[str], progress: Progress) -> dict[str, Vector]:
    vector_of: dict[str, Vector] = {}
    for start in range(0, len(texts), EMBED_BATCH):
        progress("embedding", start, len(texts))
        batch = texts[start : start + EMBED_BATCH]
        vector_of.update(zip(batch, unit_vectors(embedder, batch, time_budget_s=EMBED_BUDGET_S), strict=True))
    progress("embedding", len(texts), len(texts))
    return vector_of


def _blend(item: Indexable, vector_of: Mapping[str, Vector]) -> Vector:
    """The unit vector of the weighted sum; the first part's vector if the parts cancel out."""
    parts = np.stack([vector_of[part.text] for part in item.parts]).astype(np.float64)
    blend = np.array([part.weight for part in item.parts]) @ parts
    length = float(np.linalg.norm(blend))
    return vector_of[item.parts[0].text] if length < MIN_BLEND else (blend / length).astype(np.float32)
