"""Values that several packages share: defaults of the settings, and limits."""

from __future__ import annotations

DEFAULT_TOP_K = 20
"""Passages that a search returns at most."""
DEFAULT_MIN_SCORE = 0.5
"""Hits below this score, in [0, 1], are not returned."""
DEFAULT_PIPELINE_BUDGET_S = 10.0
"""Seconds for all stages of a pipeline; the first text comes after them."""
DEFAULT_ENGINE_BUDGET_S = 2.5
"""Seconds that a managed engine may take for a search before the shards are searched instead."""

MIN_INTENTION_CONFIDENCE = 0.7
"""Choices of a collection and intention with a lower confidence are dropped."""
MIN_ENTITY_CONFIDENCE = 0.6
"""Names with a lower confidence are dropped."""
DEFAULT_CONTEXT_TOKENS = 4_000
"""Of all passages that are chosen for a question."""
DEFAULT_PASSAGES_PER_COLLECTION = 8
"""Searched for in each collection, in addition to passages about named entities."""
DEFAULT_KNOWLEDGE_BUDGET_S = 10.0
"""Seconds for gathering a context; the first text comes after them."""
CLOCK_LEEWAY_S = 10
"""How far an issuer's clock may differ from that of the functions."""
