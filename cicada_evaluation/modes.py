"""The ways to search that an evaluation compares."""

from __future__ import annotations

from collections.abc import Mapping

from cicada.retrieval.ports import SearchMode

SHARD_MODES: Mapping[str, SearchMode] = {"hybrid": "hybrid", "dense": "dense", "keyword": "keyword"}
"""Modes of the index's own shards."""
MANAGED_MODES = ("s3vectors", "kendra")
"""Engines of their own: each ranks in its own way, and is asked for a hybrid search."""
MODES = (*SHARD_MODES, *MANAGED_MODES)
PIPELINES = ("standard", "rerank", "advanced", "semantic")
"""Pipelines over the shards; ``semantic`` is ``standard``, ordered by the best caption's similarity."""
EMBEDDING_MODES = frozenset({"hybrid", "dense", "s3vectors", *PIPELINES})
"""Modes that need the query's vector."""
