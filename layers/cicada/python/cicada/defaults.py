"""What holds where a deployment says nothing else: plain values that its settings share with the code they are for."""

from __future__ import annotations

DEFAULT_TOP_K = 20
"""Passages that a search returns at most."""
DEFAULT_MIN_SCORE = 0.5
"""Hits below this score, in [0, 1], are not returned."""
DEFAULT_PIPELINE_BUDGET_S = 10.0
"""Seconds for all stages of a pipeline: the asker waits for them before the first word."""
DEFAULT_ENGINE_BUDGET_S = 2.5
"""Seconds that a managed engine may take for a search before the shards are searched instead."""

MIN_INTENTION_CONFIDENCE = 0.7
"""Choices of a collection and an intention below it are dropped."""
MIN_ENTITY_CONFIDENCE = 0.6
"""Names below it are dropped."""
DEFAULT_CONTEXT_TOKENS = 4_000
"""Of the passages that are chosen for a question, all together."""
DEFAULT_PASSAGES_PER_COLLECTION = 8
"""Searched for of each collection, beside what is named."""
DEFAULT_KNOWLEDGE_BUDGET_S = 10.0
"""Seconds from a question to its context: the asker waits for them before the first word."""
