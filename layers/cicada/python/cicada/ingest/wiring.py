"""Build what prepares documents in a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import EnrichmentOptions, Recipe
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.known_sources import IndexVectors
from cicada.ingest.preparing import Preparer
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.factory import ModelFactory
from cicada.models.retries import PATIENT

ENRICHING_MAX_TOKENS = 2_048  # of output, for a batch of passages


def preparer(
    recipe: Recipe,
    collection: str,
    store: ObjectStore,
    bedrock: Any,
    models: ModelFactory,
    *,
    time_left_s: Callable[[], float],
) -> Preparer:
    """A preparer of a collection's documents. ``bedrock``: boto3's ``bedrock-runtime`` client, for embeddings;
    ``models``: makes the enriching model, if any; ``time_left_s``: seconds for a batch of texts, retries included."""
    return Preparer(
        store,
        BedrockEmbedder(bedrock, recipe.embedding_model_id, recipe.dimensions),
        recipe,
        enricher=enricher(recipe.enrichment, store, models, time_left_s=time_left_s),
        known=IndexVectors(store, collection, recipe.embedding_model_id, recipe.dimensions),
        time_left_s=time_left_s,
    )


def enricher(
    options: EnrichmentOptions,
    store: ObjectStore,
    models: ModelFactory,
    *,
    time_left_s: Callable[[], float] = lambda: math.inf,
) -> Enricher:
    """An enricher with patient retries; it has a model only if the options name one."""
    model = None
    if options.model_id:
        model = models.structured(options.model_id, max_tokens=ENRICHING_MAX_TOKENS, retry=PATIENT)
    return Enricher(options, model, store, time_left_s=time_left_s)
