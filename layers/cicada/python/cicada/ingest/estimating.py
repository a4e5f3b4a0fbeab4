"""What a load would cost, before anything is asked of a model."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.readers.sandbox import read_safely
from cicada.errors import CicadaError, DocumentRefused, IndexCorrupt
from cicada.index.ports import ObjectStore, Progress, silent
from cicada.ingest.arrivals import counted_sections, sum_of_costs
from cicada.ingest.contracts import Recipe, SourceItem
from cicada.ingest.cutting import cut
from cicada.ingest.declaring import declaration_of, refuse_own_section, settled
from cicada.ingest.enrichment.enricher import EnrichmentEstimate
from cicada.ingest.loading import WORKERS, items_of
from cicada.ingest.prepared import PreparedFile, prepared_key
from cicada.ingest.preparing import Read, file_digest
from cicada.ingest.scripts import checked_collection
from cicada.ingest.sources import SourceFile, checked_metadata, source_files
from cicada.models.ports import Usage
from cicada.models.prices import cost
from cicada.text.token_estimates import estimated_tokens

_CHARS_A_TOKEN = 3  # a low estimate, so that the bound by size holds
_UNPACKED = 8  # times: the usual text of a compressed document against its bytes
_COMPRESSED = (".docx", ".docm", ".pdf")


class EstimatesEnrichment(Protocol):
    """Tells what enrichment would take, see :class:`cicada.ingest.enrichment.enricher.Enricher`."""

    def estimate(self, texts: Sequence[str]) -> EnrichmentEstimate:
        """Of one document's passages."""
        ...


@dataclass(frozen=True)
class LoadEstimate:
    """What a load would take: at most, since vectors that the index has are counted as well."""

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
        """Both."""
        return LoadEstimate(
            documents=self.documents + other.documents,
            prepared=self.prepared + other.prepared,
            refused=self.refused + other.refused,
            passages=self.passages + other.passages,
            embedding_tokens=self.embedding_tokens + other.embedding_tokens,
            embedding_usd=sum_of_costs([self.embedding_usd, other.embedding_usd]),
            enrichment_calls=self.enrichment_calls + other.enrichment_calls,
            enrichment_usd=sum_of_costs([self.enrichment_usd, other.enrichment_usd]),
            sections=counted_sections([self.sections, other.sections], None),
        )


def estimate_load(
    paths: Sequence[Path],
    collection: str,
    store: ObjectStore,
    recipe: Recipe,
    *,
    enricher: EstimatesEnrichment | None = None,
    exactly: bool = True,
    metadata: Mapping[str, str] | None = None,
    progress: Progress = silent,
    workers: int = WORKERS,
    read: Read = read_safely,
) -> LoadEstimate:
    """Read and cut every document that is not prepared, and tell what its models would cost.

    Arguments and errors are :func:`cicada.ingest.loading.load_documents`'; no model is called. Where chunks end by
    meaning, they are estimated as if they ended by words, and the sentences to embed are counted besides.
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
    """A bound on what embedding files costs, in US dollars, by their sizes alone; None if the price is not known."""
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
    enricher: EstimatesEnrichment | None,
    read: Read,
) -> LoadEstimate:
    with contextlib.suppress(IndexCorrupt):
        prepared = PreparedFile.open(store, prepared_key(item, file_digest(path), recipe))
        if prepared.complete:
            return LoadEstimate(prepared=1, sections=prepared.sections)
    document = read(item.source, path, title=item.title)
    by_words = recipe.chunks.model_copy(update={"boundaries": "words"})
    chunks = by_words if recipe.chunks.boundaries == "embedding" else recipe.chunks
    items = cut(
        document, path, item.collection, chunks, metadata=item.metadata, embed=_no_vectors, rules=recipe.sections
    )
    texts = dict.fromkeys(part.text for one in items for part in one.parts)
    tokens = sum(map(estimated_tokens, texts))
    if recipe.chunks.boundaries == "embedding":
        tokens += sum(estimated_tokens(block.text) for block in document.blocks)
    enriched = None if enricher is None else enricher.estimate([one.passage.text for one in items])
    return LoadEstimate(
        documents=1,
        passages=len(items),
        embedding_tokens=tokens,
        embedding_usd=_embedding_usd(recipe, tokens),
        enrichment_calls=0 if enriched is None else enriched.calls,
        enrichment_usd=0.0 if enriched is None else enriched.cost_usd,
        sections={} if recipe.sections is None else Counter(one.passage.metadata[SECTION] for one in items),
    )


def _no_vectors(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    raise CicadaError(f"an estimate embeds nothing, not {len(texts)} texts")


def _embedding_usd(recipe: Recipe, tokens: int) -> float | None:
    price = cost(recipe.embedding_model_id, Usage(input_tokens=tokens))
    return None if price is None else price.usd
