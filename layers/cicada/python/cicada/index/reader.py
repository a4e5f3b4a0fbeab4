"""The index in a function's memory: loaded once, kept warm, and refreshed in the background."""

from __future__ import annotations

import contextlib
import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from cicada.errors import CicadaError, IndexCorrupt, IndexMismatch, IndexMissing, IndexUnavailable
from cicada.index.loaded_index import BLOCKS, LoadedIndex, open_version, rest_of
from cicada.index.manifest import CURRENT_KEY, parse_manifest
from cicada.index.ports import ObjectMissing, ObjectStore, StoredObject
from cicada.index.segment_reader import RoundReader

logger = logging.getLogger(__name__)


class Patience:
    """Starts a look when one is due, one for all callers that wait. Thread-safe.

    A function and its threads are frozen between calls, so a background look beside calls of a few milliseconds never
    ends. A function with such calls waits for a look that is due.
    """

    def __init__(
        self,
        look: Callable[[], None],
        due: Callable[[], bool],
        *,
        wait_s: float,
        rest_s: float,
        clock: Callable[[], float],
    ) -> None:
        """Take the look, which handles its own errors, and whether one is due.

        A caller waits at most ``wait_s`` seconds (0: none waits). After waiting did not help, no caller waits for
        ``rest_s`` seconds. The clock includes the time for which the function was frozen.
        """
        self._look = look
        self._due = due
        self._wait_s = wait_s
        self._rest_s = rest_s
        self._clock = clock
        self._gave_up_at = -math.inf
        self._starting = threading.Lock()
        self._looking: threading.Thread | None = None

    def wait(self, at_most_s: float = math.inf) -> None:
        """Wait for a look if one is due, until it ends or the time is over."""
        time_s = min(self._wait_s, at_most_s)
        if time_s <= 0 or not self._due() or 0 <= self._clock() - self._gave_up_at < self._rest_s:
            return
        began_s = time.monotonic()
        own = late = False
        # A look that another call began may fail because the function was frozen meanwhile: then begin one more.
        while self._due() and not (own or late):
            looking, own = self._begun()
            looking.join(max(0.0, began_s + time_s - time.monotonic()))
            late = looking.is_alive()
        if self._due():
            self._gave_up_at = self._clock()
            logger.warning(
                "version check %s: serving the held version",
                "too slow" if late else "failed",
                extra={"waited_s": round(time.monotonic() - began_s, 3)},
            )

    def _begun(self) -> tuple[threading.Thread, bool]:
        """The running look, and whether this call began it."""
        with self._starting:
            if self._looking is not None and self._looking.is_alive():
                return self._looking, False
            self._looking = threading.Thread(target=self._look, name="index-look", daemon=True)
            self._looking.start()
            return self._looking, True


REFRESH_INTERVAL_S = 5.0  # seconds between looks for a new version
LONGEST_INTERVAL_S = 60.0  # the same, while the store refuses reads because of their rate
RETRY_INTERVAL_S = 60.0  # seconds between attempts to read unreadable segments
EAGER_BYTES = 16 * 2**20  # a version up to this size is read whole before it is searched: ranges would hardly be faster
SWAP_BYTES = 128 * 2**20  # a new version with more to load is used cold, so that two do not fill the memory
TEXT_BYTES = 256 * 2**20  # a version's compressed texts are held in memory up to this size


@dataclass(frozen=True)
class _Held:
    index: LoadedIndex
    etag: str


class IndexReader:
    """Holds the current version. Thread-safe.

    The first caller waits for the manifest and the segments' heads, and can then search by ranges. A thread loads the
    rest, and looks for new versions every few seconds and on :meth:`refresh_soon`. A new version is loaded before it
    replaces the old one, which stays in use if the new one cannot be loaded.

    With ``patience_s``, :meth:`current` waits for a look that is due: see :class:`Patience`. What loads a version
    raises IndexMissing, IndexCorrupt, IndexMismatch or IndexUnavailable.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        embedding_model_id: str,
        dimensions: int,
        refresh_interval_s: float = REFRESH_INTERVAL_S,
        eager_bytes: int = EAGER_BYTES,
        swap_bytes: int = SWAP_BYTES,
        text_bytes: int = TEXT_BYTES,
        patience_s: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the store and the embedding model of queries. Reads nothing yet.

        ``patience_s`` is the longest wait of :meth:`current` for a look that is due, 0 for none; ``clock`` includes the
        time for which the function was frozen. See the constants for the other numbers.
        """
        self._store = store
        self._rounds = RoundReader(store)
        self._eager_bytes = eager_bytes
        self._swap_bytes = swap_bytes
        self._text_bytes = text_bytes
        self._model = (embedding_model_id, dimensions)
        self._refresh_interval_s = refresh_interval_s
        self._interval_s = refresh_interval_s
        self._clock = clock
        self._held: _Held | None = None
        self._loading = threading.Lock()
        self._tried_at = -math.inf
        self._looked_at = -math.inf  # when the last successful look began
        self._coming: _Held | None = None  # opened, not yet loaded: the next look continues a failed load
        self._wake = threading.Event()
        self._partial_at = float("-inf")
        self._searched = False
        self._warmed = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._patience = Patience(
            self._look_and_log,
            lambda: self._is_past(self._looked_at),
            wait_s=patience_s,
            rest_s=refresh_interval_s,
            clock=clock,
        )

    def current(self, within_s: float = math.inf) -> LoadedIndex:
        """The version to search. The first call loads it; later ones wait at most ``within_s`` for a look."""
        held = self._held or self._first()
        self._start()
        if not self._closed:
            self._patience.wait(within_s)
        return (self._held or held).index

    def refresh(self) -> None:
        """Look for a new version, and load it. The held version stays if this raises."""
        with self._loading:
            self._load()

    def refresh_soon(self) -> None:
        """Make the thread look for a new version, or load the first one, unless it just did."""
        self._start()
        if self._is_past(self._tried_at):
            self._wake.set()

    def warm_soon(self) -> None:
        """Make the thread load what searches still read; called at the end of a search."""
        self._searched = True
        if not self._warmed:
            self._wake.set()

    def warm_up(self) -> None:
        """Load all that searches read, before returning."""
        held = self._held or self._first()
        index = self._as_far_as_allowed(held.index, self._warm)
        with self._loading:
            if self._held is held:  # else a new version has replaced it meanwhile
                self._held = _Held(index, held.etag)
                self._warmed = True

    def after_damage(self, index: LoadedIndex, error: IndexCorrupt) -> LoadedIndex:
        """What to search after a search met a damaged segment: a newer version, or the rest of this one.

        Raises the error if it is not about a segment, or the version does not allow partial answers.
        """
        held = self._held
        if held is not None and held.index is index:
            with contextlib.suppress(CicadaError):
                self.refresh()  # garbage collection may have deleted a version replaced long ago
        if (held := self._held) is not None and held.index.manifest.version != index.manifest.version:
            return held.index
        rest = rest_of(index, error)
        with self._loading:
            held = self._held
            if held is not None and held.index is index:
                self._held = _Held(rest, held.etag)
        return rest

    def close(self) -> None:
        """Stop looking for new versions; the held one can still be searched."""
        self._closed = True
        self._rounds.stop_loading()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _load(self) -> _Held:
        held = self._held
        began_at = self._tried_at = self._clock()
        if held is not None and held.index.unreadable and began_at - self._partial_at >= RETRY_INTERVAL_S:
            held = self._coming = None  # what could not be read may have come back
        try:
            found = self._store.read_if_changed(CURRENT_KEY, held.etag) if held else self._store.read(CURRENT_KEY)
        except ObjectMissing as error:
            raise IndexMissing("no version has been published") from error
        except IndexUnavailable as error:
            if error.throttled:
                longer_s = self._interval_s * random.uniform(1.5, 2.5)  # noqa: S311 (jitter, no secret)
                self._interval_s = max(self._interval_s, min(LONGEST_INTERVAL_S, longer_s))
            raise
        self._interval_s = max(self._refresh_interval_s, self._interval_s * 0.8)
        if held is None or found is not None:
            assert found is not None  # an unconditional read returns an object
            held = self._held = _Held(self._read_version(found, held), found.etag)
            self._coming = None
            self._partial_at = began_at
            logger.info("index loaded", extra={"index_version": held.index.manifest.version})
        self._looked_at = began_at
        return held

    def _first(self) -> _Held:
        with self._loading:
            return self._held or self._load()

    def _read_version(self, found: StoredObject, held: _Held | None) -> LoadedIndex:
        if self._coming is None or self._coming.etag != found.etag:
            manifest = parse_manifest(found.data)
            if (manifest.embedding_model_id, manifest.dimensions) != self._model:
                raise IndexMismatch(
                    f"the index is embedded with {manifest.embedding_model_id} at {manifest.dimensions} dimensions, "
                    f"queries with {self._model[0]} at {self._model[1]}"
                )
            known = held.index.segments if held is not None else ()
            self._coming = _Held(open_version(self._store, self._rounds, manifest, known), found.etag)
        index = self._coming.index
        cold_bytes = sum(segment.cold_bytes for segment in index.segments)
        if held is not None and self._warmed and cold_bytes <= self._swap_bytes:
            return self._as_far_as_allowed(index, self._warm)
        self._warmed = cold_bytes <= self._eager_bytes
        return self._as_far_as_allowed(index, self._load_at_once) if self._warmed else index

    def _as_far_as_allowed(self, index: LoadedIndex, load: Callable[[LoadedIndex], None]) -> LoadedIndex:
        """Load a version, without unreadable segments if it allows that."""
        while True:
            try:
                load(index)
            except IndexCorrupt as error:
                index = rest_of(index, error)
            else:
                return index

    def _load_at_once(self, index: LoadedIndex) -> None:
        """In one round, for a small version."""
        self._rounds.load_at_once(
            [(segment.sections, name) for segment in index.segments for name in (*segment.warm_names, BLOCKS)]
        )

    def _warm(self, index: LoadedIndex) -> None:
        """Load all that searches read, and the texts if they fit."""
        for segment in index.segments:
            self._rounds.load(segment.sections, segment.warm_names)
        if sum(segment.sections.size(BLOCKS) for segment in index.segments) <= self._text_bytes:
            for segment in index.segments:
                self._rounds.load(segment.sections, [BLOCKS])

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._keep_fresh, name="index-refresh", daemon=True)
                self._thread.start()

    def _is_past(self, moment: float) -> bool:
        """Whether a moment is longer ago than the refresh interval, or the clock was set back since."""
        return not 0 <= self._clock() - moment < self._interval_s

    def _keep_fresh(self) -> None:
        while True:
            self._wake.wait(self._refresh_interval_s)
            self._wake.clear()
            if self._closed:
                return
            if self._is_past(self._tried_at):
                self._look_and_log()
            if self._searched and not self._warmed:
                _logging_errors(self.warm_up)

    def _look_and_log(self) -> None:
        """Look for a new version, unless another thread has just done so."""
        with self._loading:
            if self._is_past(self._looked_at):
                _logging_errors(self._load)


def _logging_errors(do: Callable[[], object]) -> None:
    """Run, and log errors, so that none ends the thread."""
    try:
        do()
    except IndexMissing:
        logger.debug("no version has been published yet")
    except CicadaError as error:
        logger.warning("index not refreshed", extra={"code": error.code, "why": str(error)})
    except Exception:
        logger.exception("index not refreshed")  # a bug
