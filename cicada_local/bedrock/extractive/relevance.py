"""How much texts have to do with a question: by the words they share, and by meaning for those that share most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from cicada_local.bedrock.extractive.text import content_stems
from cicada_local.bedrock.minilm import SentenceEmbedder

EMBEDDED_TEXTS = 50
"""Compared by meaning too: those that share the most words. It bounds the time of a ranking."""
WORDS_SHARE = 0.5
"""Of the relevance; the rest is meaning."""


def shared_words(question: str, texts: Sequence[str]) -> list[float]:
    """The share of the question's words that each text has, in [0, 1]; one that few texts have counts for more."""
    asked = content_stems(question)
    held = [content_stems(text) & asked for text in texts]
    holders = Counter(stem for stems in held for stem in stems)
    weights = {stem: math.log1p(len(texts) / (holders[stem] + 0.5)) for stem in asked}
    total = sum(weights.values())
    return [math.fsum(weights[stem] for stem in sorted(stems)) / total if total else 0.0 for stems in held]


def relevance(question: str, texts: Sequence[str], embedder: SentenceEmbedder | None = None) -> list[float]:
    """How relevant each text is, in [0, 1]; by words alone without an embedder."""
    shared = shared_words(question, texts)
    if embedder is None:
        return shared
    scores = [WORDS_SHARE * share for share in shared]
    compared = sorted(range(len(texts)), key=lambda place: -shared[place])[:EMBEDDED_TEXTS]
    if compared:
        asked, *vectors = embedder.embed([question, *(texts[place] for place in compared)])
        for place, vector in zip(compared, vectors, strict=True):
            scores[place] += (1 - WORDS_SHARE) * max(0.0, float(asked @ vector))
    return [min(1.0, round(score, 6)) for score in scores]
