"""The index in a function's memory: loaded once, kept warm, and brought up to date beside the answers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from cicada.errors import CicadaError, IndexMismatch, IndexMissing
from cicada.index.manifest import CURRENT_KEY, Manifest, parse_manifest
from cicada.index.search import Ranking, RowFilter, rank
from cicada.index.segment import Segment, Vector
from cicada.index.segments import load_segments
from cicada.index.store import ObjectMissing, ObjectStore, StoredObject

logger = logging.getLogger(__name__)

REFRESH_INTERVAL_S = 5.0
"""How often a running function looks for a new version, in seconds."""


@dataclass(frozen=True)
class LoadedIndex:
    """One version, whole and immutable: whoever holds it searches that version, whatever is published meanwhile."""

    manifest: Manifest
    segments: tuple[Segment, ...]

    def rank(self, query: Vector, where: RowFilter, limit: int) -> Ranking:
        """Rank all rows that pass the filter, see :func:`cicada.index.search.rank`."""
        return rank(self.segments, query, where, limit)


@dataclass(frozen=True)
class _Held:
    index: LoadedIndex
    etag: str


class IndexReader:
    """Holds the current version. Safe for several threads.

    After the first load no caller waits for the store: new versions are looked for by a thread of the reader's own,
    every few seconds, and when :meth:`refresh_soon` asks for it (a function is frozen between its invocations, its
    threads too). While a new version cannot be had the old one serves on.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        embedding_model_id: str,
        dimensions: int,
        refresh_interval_s: float = REFRESH_INTERVAL_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take where the index is, and the model that queries are embedded with. Nothing is read yet."""
        self._store = store
        self._model = (embedding_model_id, dimensions)
        self._refresh_interval_s = refresh_interval_s
        self._clock = clock
        self._held: _Held | None = None
        self._loading = threading.Lock()
        self._checked_at = float("-inf")
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def current(self) -> LoadedIndex:
        """The version to search. The first call loads it; later ones read nothing.

        Raises:
            IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: none is held, and none can be loaded.
        """
        held = self._held
        if held is None:
            with self._loading:
                held = self._held or self._load()
        self._start()
        return held.index

    def refresh(self) -> None:
        """Look for a new version, and load it. What is held stays if this fails.

        Raises:
            IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: there is none, or it cannot be loaded.
        """
        with self._loading:
            self._load()

    def refresh_soon(self) -> None:
        """Have the thread look for a new version, or load the first, unless it just did. Returns at once."""
        self._start()
        if not 0 <= self._clock() - self._checked_at < self._refresh_interval_s:
            self._wake.set()

    def close(self) -> None:
        """Stop looking for new versions; what is held can still be searched."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _load(self) -> _Held:
        held = self._held
        self._checked_at = self._clock()
        try:
            found = self._store.read_if_changed(CURRENT_KEY, held.etag) if held else self._store.read(CURRENT_KEY)
        except ObjectMissing as error:
            raise IndexMissing("no version is published") from error
        if held is None or found is not None:
            assert found is not None  # an unconditional read returns an object
            held = self._held = _Held(self._read_version(found, held), found.etag)
            logger.info("index loaded", extra={"index_version": held.index.manifest.version})
        return held

    def _read_version(self, found: StoredObject, held: _Held | None) -> LoadedIndex:
        manifest = parse_manifest(found.data)
        if (manifest.embedding_model_id, manifest.dimensions) != self._model:
            raise IndexMismatch(
                f"the index is embedded with {manifest.embedding_model_id} at {manifest.dimensions} dimensions, "
                f"queries with {self._model[0]} at {self._model[1]}"
            )
        segments: dict[str, Segment] = {}
        if held is not None:
            segments.update(
                (entry.key, segment)
                for entry, segment in zip(held.index.manifest.segments, held.index.segments, strict=True)
            )
        missing = [entry for entry in manifest.segments if entry.key not in segments]
        loaded = load_segments(self._store, missing, dimensions=manifest.dimensions)
        segments.update((entry.key, segment) for entry, segment in zip(missing, loaded, strict=True))
        return LoadedIndex(manifest, tuple(segments[entry.key] for entry in manifest.segments))

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._keep_fresh, name="index-refresh", daemon=True)
                self._thread.start()

    def _keep_fresh(self) -> None:
        while True:
            self._wake.wait(self._refresh_interval_s)
            self._wake.clear()
            if self._closed:
                return
            try:
                self.refresh()
            except IndexMissing:
                logger.debug("no version is published yet")
            except CicadaError as error:
                logger.warning("index not refreshed", extra={"code": error.code, "why": str(error)})
            except Exception:
                logger.exception("index not refreshed")  # a bug here must not end the thread
