"""The documents of a collection that are in the index, and their vectors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.collection_snapshot import CollectionSnapshot, read_snapshot
from cicada.index.embedding import Vector
from cicada.index.ports import ObjectStore
from cicada.index.versions import read_current

logger = logging.getLogger(__name__)


class IndexVectors:
    """Finds vectors by recipe in a collection of the current version, which is opened on first use. Thread-safe.

    So only the edited passages of a document are embedded, and none of one whose prepared object has expired.
    """

    def __init__(self, store: ObjectStore, collection: str, embedding_model_id: str, dimensions: int) -> None:
        self._store = store
        self._collection = collection
        self._model = (embedding_model_id, dimensions)
        self._lock = threading.Lock()
        self._held: CollectionSnapshot | None = None

    def __call__(self, recipes: Collection[bytes]) -> dict[bytes, Vector]:
        """The vectors made by some of these recipes. Raises IndexUnavailable."""
        with self._lock:
            if self._held is None:
                self._held = read_collection(self._store, self._collection, *self._model)
            return self._held.known_vectors(recipes)


def read_collection(
    store: ObjectStore, collection: str, embedding_model_id: str, dimensions: int
) -> CollectionSnapshot:
    """A collection of the current version, as far as it can be read; empty for another model. Raises
    IndexUnavailable."""
    try:
        current = read_current(store)
        of = None if current is None else (current.manifest.embedding_model_id, current.manifest.dimensions)
        if current is not None and of == (embedding_model_id, dimensions):
            return read_snapshot(store, current.manifest, collection, leave_out_damaged=True)
    except (IndexCorrupt, IndexMismatch) as error:  # publishing will fail with it
        logger.warning("cannot use the index", exc_info=error)
    return CollectionSnapshot()
