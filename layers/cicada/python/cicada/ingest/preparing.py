"""Prepare one document: read, cut, enrich, embed, and store the result, so that it is never done twice."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cicada.corpus.declared.naming import DeclaredNames
from cicada.corpus.documents import Document
from cicada.corpus.indexable import Indexable
from cicada.corpus.readers.sandbox import read_safely
from cicada.errors import (
    CorpusInvalid,
    DocumentBroken,
    DocumentInvalid,
    DocumentTooLarge,
    IndexCorrupt,
    IndexMismatch,
    IndexUnavailable,
)
from cicada.index.change import checked
from cicada.index.columns import MAX_FIELDS, fields_of
from cicada.index.embedding import Vector, passage_vectors
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, silent
from cicada.ingest.contracts import Prepared, Recipe, SourceItem
from cicada.ingest.cutting import SOURCE, cut
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.enrichment.names import with_names
from cicada.ingest.prepared import HalfVectors, PreparedFile, encode_prepared, prepared_key
from cicada.ingest.text_vectors import CHECKPOINT_TEXTS, TextVectors
from cicada.models.ports import Embedder, Usage
from cicada.models.prices import cost

logger = logging.getLogger(__name__)

MAX_DOCUMENT_PASSAGES = 100_000
"""Passages of one document: with vectors of 1,024 numbers up to 14 KB each, 1.4 GB, while it is prepared."""
PATIENCE_S = 600.0  # seconds to embed one batch of texts, retries included

SLICE_PASSAGES = 1_024
"""Passages whose vectors are combined at a time; the others stay in half precision, in half the space."""


class Read(Protocol):
    """Reads a document, see :func:`cicada.corpus.readers.sandbox.read_safely`."""

    def __call__(self, source: str, path: Path, *, title: str | None) -> Document:
        """Raises DocumentRefused."""
        ...


class Preparer:
    """Prepares documents by one recipe; one that was prepared before is found in the bucket. As thread-safe as its
    parts."""

    def __init__(
        self,
        store: ObjectStore,
        embedder: Embedder,
        recipe: Recipe,
        *,
        enricher: Enricher | None = None,
        read: Read = read_safely,
        known: Callable[[Collection[bytes]], Mapping[bytes, Vector]] | None = None,
        turn: AbstractContextManager[object] | None = None,
        time_left_s: Callable[[], float] = lambda: PATIENCE_S,
        checkpoint_texts: int = CHECKPOINT_TEXTS,
    ) -> None:
        """``known``: finds existing vectors by their recipes; ``turn``: entered around every embedded batch, to bound
        how many run at once; ``time_left_s``: seconds for a batch, retries included. Raises IndexMismatch if the
        embedder is not the recipe's."""
        if (embedder.model_id, embedder.dimensions) != (recipe.embedding_model_id, recipe.dimensions):
            raise IndexMismatch(
                f"the recipe expects the embedding model {recipe.embedding_model_id}, not {embedder.model_id}"
            )
        self._store = store
        self._embedder = embedder
        self._recipe = recipe
        self._divided_by = "" if recipe.sections is None else recipe.sections.digest()
        self._enricher = enricher
        self._read = read
        self._known = known
        self._turn = turn or nullcontext()
        self._time_left_s = time_left_s
        self._checkpoint_texts = checkpoint_texts

    def prepare(self, item: SourceItem, path: Path) -> Prepared:
        """Prepare a document whose bytes are in a file. Raises DocumentRefused if it cannot be loaded, ModelError if a
        model failed for another reason than this document, and IndexUnavailable."""
        digest = file_digest(path)
        key = prepared_key(item, digest, self._recipe)
        found, replaces = self._kept(key)
        if found is not None and found.complete:
            return self._prepared(item, key, digest, passages=found.count, embedded=0, reused=True, notes=found.notes)
        document = self._read(item.source, path, title=item.title)
        if document.digest != digest:  # the key is made of the digest
            raise DocumentBroken("changed while it was being read")
        vectors = TextVectors(
            self._embedder,
            self._store,
            f"{key}.parts/",
            turn=self._turn,
            time_left_s=self._time_left_s,
            checkpoint_texts=self._checkpoint_texts,
        )
        items = self._cut(document, item, path, vectors)
        cost_usd: float | None = 0.0
        notes, complete = document.notes, True
        if self._enricher is not None:
            enriched = self._enricher.enrich(document, items)
            items = self._with_declared_names(items, enriched.items)
            cost_usd, complete = enriched.cost_usd, enriched.complete
            notes = (*notes, *enriched.notes)
        made = self._vectors(items, vectors, found)
        model_id = self._embedder.model_id
        divided = self._recipe.sections is not None
        data = encode_prepared(
            item.source, digest, items, made, model_id, notes=notes, complete=complete, divided=divided
        )
        self._keep(key, data, replaces)
        vectors.forget()  # only after the document is stored: a crash between the two resumes from the vectors
        price = cost(model_id, Usage(input_tokens=vectors.tokens))
        return self._prepared(
            item,
            key,
            digest,
            passages=len(items),
            embedded=vectors.asked,
            reused=False,
            complete=complete,
            notes=notes,
            cost_usd=None if cost_usd is None or price is None else cost_usd + price.usd,
        )

    def _prepared(self, item: SourceItem, key: str, digest: str, **found: Any) -> Prepared:
        return Prepared(source=item.source, key=key, digest=digest, divided_by=self._divided_by, **found)

    def _with_declared_names(self, declared: Sequence[Indexable], enriched: Sequence[Indexable]) -> Sequence[Indexable]:
        """Enriched passages, with declared names before those that enrichment found."""
        rules = self._recipe.sections
        if rules is None:
            return enriched
        aliases = DeclaredNames(rules.names.aliases)
        return [
            with_names(after, before.passage.entities, aliases)
            for before, after in zip(declared, enriched, strict=True)
        ]

    def _kept(self, key: str) -> tuple[PreparedFile | None, str | None]:
        """The stored document, if it is intact, and the entity tag of the object there."""
        try:
            found = self._store.read(key)
        except ObjectMissing:
            return None, None
        try:
            return PreparedFile.whole(key, found.data), found.etag
        except IndexCorrupt as error:
            logger.warning("a prepared document is damaged; preparing it again", exc_info=error)
            return None, found.etag

    def _cut(self, document: Document, item: SourceItem, path: Path, vectors: TextVectors) -> Sequence[Indexable]:
        chunks, rules = self._recipe.chunks, self._recipe.sections
        items = cut(document, path, item.collection, chunks, metadata=item.metadata, embed=vectors.embed, rules=rules)
        if len(items) > MAX_DOCUMENT_PASSAGES:
            raise DocumentTooLarge(f"has {len(items):,} passages; the limit is {MAX_DOCUMENT_PASSAGES:,}")
        try:
            checked(item.collection, items, empty=False)
        except CorpusInvalid as error:
            raise DocumentInvalid(str(error)) from error
        fields = {name for one in items for name in fields_of(one.passage)}
        if len(fields) > MAX_FIELDS:
            raise DocumentInvalid(f"its metadata has {len(fields)} keys; the limit is {MAX_FIELDS}")
        if {fields_of(one.passage).get(SOURCE) for one in items} != {item.source}:
            raise DocumentInvalid("some of its passages name another source")
        return items

    def _vectors(self, items: Sequence[Indexable], vectors: TextVectors, before: PreparedFile | None) -> HalfVectors:
        known: dict[bytes, Vector] = {}
        if before is not None:
            text = before.read(self._store, range(before.count))
            known.update((item.recipe(), vector) for item, vector in zip(text.items, text.vectors, strict=True))
        if self._known is not None:
            known.update(self._known({item.recipe() for item in items} - known.keys()))
        vectors.make([part.text for item in items if item.recipe() not in known for part in item.parts])
        made = np.empty((len(items), vectors.dimensions), dtype=np.float16)
        for start in range(0, len(items), SLICE_PASSAGES):
            chosen = items[start : start + SLICE_PASSAGES]
            made[start : start + len(chosen)], _ = passage_vectors(vectors, chosen, known, silent)
        return made

    def _keep(self, key: str, data: bytes, replaces: str | None) -> None:
        try:
            self._store.write(key, data, replaces=replaces)
        except PreconditionFailed as error:
            if self._kept(key)[0] is None:  # else another process has prepared the same document meanwhile
                raise IndexUnavailable(f"{key} can neither be written nor read") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises DocumentBroken if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DocumentBroken(f"cannot be read: {error.strerror}") from error
