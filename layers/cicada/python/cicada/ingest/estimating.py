"""Estimate what a load would cost, without calling a model."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.readers.sandbox import read_safely
from cicada.errors import DocumentRefused, IndexCorrupt
from cicada.index.ports import ObjectStore, Progress, silent
from cicada.ingest.arrivals import counted_sections, sum_of_costs
from cicada.ingest.contracts import Recipe, SourceItem
from cicada.ingest.cutting import cut
from cicada.ingest.declaring import declaration_of, refuse_own_section, settled
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.loading import WORKERS, items_of
from cicada.ingest.prepared import PreparedFile, prepared_key
from cicada.ingest.preparing import Read, file_digest
from cicada.ingest.scripts import checked_collection
from cicada.ingest.sources import SourceFile, checked_metadata, source_files
from cicada.models.ports import Usage
from cicada.models.prices import cost
from cicada.text.tokens import estimated_tokens

_CHARS_A_TOKEN = 3  # a low estimate, so that the bound by size holds
_UNPACKED = 8  # times: the usual text of a compressed document against its bytes
_COMPRESSED = (".docx", ".docm", ".pdf")


@dataclass(frozen=True)
class LoadEstimate:
    """What a load would take at most: vectors that the index already has are counted, too."""

    documents: int = 0  # to prepare
    prepared: int = 0  # already prepared, and free
    refused: int = 0  # cannot be loaded
    passages: int = 0
    embedding_tokens: int = 0
    embedding_usd: float | None = 0.0
    enrichment_calls: int = 0
    enrichment_usd: float | None = 0.0
    sections: Mapping[str, int] = field(default_factory=dict)
    """Passages by the section that the collection declares; empty where it declares none."""

    @property
    def cost_usd(self) -> float | None:
        """Of all models; None where a price is not known."""
        return sum_of_costs([self.embedding_usd, self.enrichment_usd])

    def __add__(self, other: LoadEstimate) -> LoadEstimate:
        """Both together."""
        return LoadEstimate(
            **{one.name: _sum(getattr(self, one.name), getattr(other, one.name)) for one in fields(LoadEstimate)}
        )


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return counted_sections([one, other], None)
    return None if one is None or other is None else one + other


def estimate_load(
    paths: Sequence[Path],
    collection: str,
    store: ObjectStore,
    recipe: Recipe,
    *,
    enricher: Enricher | None = None,
    exactly: bool = True,
    metadata: Mapping[str, str] | None = None,
    progress: Progress = silent,
    workers: int = WORKERS,
    read: Read = read_safely,
) -> LoadEstimate:
    """Read and cut every document that is not prepared, and estimate what its models would cost.

    Arguments and errors as :func:`cicada.ingest.loading.load_documents`. Chunks cut by meaning are estimated as cut by
    words, plus the sentences to embed.
    """
    checked_collection(collection)
    found = source_files(paths)
    given = checked_metadata(metadata or {})
    declaration = declaration_of(found, collection)
    recipe, _ = settled(recipe, declaration, store, collection, exactly=exactly)
    refuse_own_section(recipe, given)
    items = items_of(found.files, collection, given)

    def one(given: tuple[SourceItem, Path]) -> LoadEstimate:
        try:
            return _estimate(*given, store, recipe, enricher, read)
        except DocumentRefused:
            return LoadEstimate(refused=1)

    declared = {} if declaration is None else {section.name: 0 for section in declaration.sections}
    total = LoadEstimate(refused=len(found.refused), sections=declared)
    with ThreadPoolExecutor(workers, thread_name_prefix="estimate") as pool:
        for done, estimate in enumerate(pool.map(one, items)):
            progress("preparing", done + 1, len(items))
            total += estimate
    return total


def bound_by_size(files: Sequence[SourceFile], recipe: Recipe) -> float | None:
    """An upper bound in US dollars on embedding files, by their sizes alone; None if the price is unknown."""
    chars = sum(file.size * (_UNPACKED if file.path.suffix.lower() in _COMPRESSED else 1) for file in files)
    chunks = recipe.chunks
    repeated = chunks.chunk_size / (chunks.chunk_size - min(chunks.overlap, chunks.chunk_size // 2))
    sentences = 1 if chunks.boundaries == "embedding" else 0
    return _embedding_usd(recipe, round(chars / _CHARS_A_TOKEN * (repeated + sentences)))


def _estimate(
    item: SourceItem,
    path: Path,
    store: ObjectStore,
    recipe: Recipe,
    enricher: Enricher | None,
    read: Read,
) -> LoadEstimate:
    with contextlib.suppress(IndexCorrupt):
        prepared = PreparedFile.open(store, prepared_key(item, file_digest(path), recipe))
        if prepared.complete:
            return LoadEstimate(prepared=1, sections=prepared.sections)
    document = read(item.source, path, title=item.title)
    chunks, tokens = recipe.chunks, 0
    if chunks.boundaries == "embedding":
        chunks = chunks.model_copy(update={"boundaries": "words"})
        tokens = sum(estimated_tokens(block.text) for block in document.blocks)
    items = cut(document, path, item.collection, chunks, metadata=item.metadata, rules=recipe.sections)
    texts = dict.fromkeys(part.text for one in items for part in one.parts)
    tokens += sum(map(estimated_tokens, texts))
    estimate = LoadEstimate(
        documents=1,
        passages=len(items),
        embedding_tokens=tokens,
        embedding_usd=_embedding_usd(recipe, tokens),
        sections={} if recipe.sections is None else Counter(one.passage.metadata[SECTION] for one in items),
    )
    if enricher is None:
        return estimate
    enriched = enricher.estimate([one.passage.text for one in items])
    return replace(estimate, enrichment_calls=enriched.calls, enrichment_usd=enriched.cost_usd)


def _embedding_usd(recipe: Recipe, tokens: int) -> float | None:
    price = cost(recipe.embedding_model_id, Usage(input_tokens=tokens))
    return None if price is None else price.usd
