"""What the index has already of a collection: its documents, and their vectors."""

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
    """Finds vectors by recipe in one collection of the current version, which is opened when it is first needed.

    So an edited document is embedded only where it was edited, and one whose prepared object has expired not at all.
    Safe for several threads.
    """

    def __init__(self, store: ObjectStore, collection: str, embedding_model_id: str, dimensions: int) -> None:
        self._store = store
        self._collection = collection
        self._model = (embedding_model_id, dimensions)
        self._lock = threading.Lock()
        self._held: CollectionSnapshot | None = None

    def __call__(self, recipes: Collection[bytes]) -> dict[bytes, Vector]:
        """The vectors that were made by some of these recipes. Raises IndexUnavailable if the store does not
        respond."""
        with self._lock:
            if self._held is None:
                self._held = read_collection(self._store, self._collection, *self._model)
            return self._held.known_vectors(recipes)


def read_collection(
    store: ObjectStore, collection: str, embedding_model_id: str, dimensions: int
) -> CollectionSnapshot:
    """What the current version holds of a collection, as far as it can be read; nothing of another model's. Raises
    IndexUnavailable if the store does not respond."""
    try:
        current = read_current(store)
        if current is None or (current.manifest.embedding_model_id, current.manifest.dimensions) != (
            embedding_model_id,
            dimensions,
        ):
            return CollectionSnapshot()
        return read_snapshot(store, current.manifest, collection, leave_out_damaged=True)
    except (IndexCorrupt, IndexMismatch) as error:  # whoever publishes says so
        logger.warning("what the index holds cannot be used", exc_info=error)
        return CollectionSnapshot()
