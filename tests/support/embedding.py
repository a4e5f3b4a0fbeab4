"""An embedding model for tests: words hashed to axes, so that texts with common words are near each other."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

from cicada.models.ports import Embedder


class WordEmbedder:
    """Deterministic, instant, and a little like the real thing; ``asked`` lists every text that was embedded."""

    def __init__(self, model_id: str = "test.words", dimensions: int = 64) -> None:
        self.model_id = model_id
        self.dimensions = dimensions
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()) or ["·"]:
            digest = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            vector[digest % self.dimensions] += 1 if digest >> 63 else -1
        vector[0] += 0.01  # words may cancel out
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector]


def _fits_the_port(embedder: WordEmbedder) -> Embedder:
    return embedder
