"""A passage to be indexed, with the texts that its vector is made of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from cicada.corpus.passages import Passage

RECIPE_BYTES = 16


@dataclass(frozen=True)
class WeightedText:
    """A text to embed, and how much it counts."""

    text: str
    weight: float


@dataclass(frozen=True)
class Indexable:
    """A passage, and the parts whose weighted vectors add up to the direction of its vector."""

    passage: Passage
    parts: tuple[WeightedText, ...]  # at least one; the first is the passage's own

    def recipe(self) -> bytes:
        """A digest of the parts, :data:`RECIPE_BYTES` long: equal recipes have equal vectors."""
        written = json.dumps([(part.text, part.weight) for part in self.parts])
        return hashlib.sha256(written.encode()).digest()[:RECIPE_BYTES]
