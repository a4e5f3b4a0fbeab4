"""Opening the segments of a version: all of them or, where the version allows it, the rest."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from cicada.errors import IndexCorrupt
from cicada.index.loaded import LoadedIndex, OpenSegment
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.index.rounds import RoundReader, open_segments
from cicada.index.store import ObjectStore

logger = logging.getLogger(__name__)


def open_version(
    store: ObjectStore, rounds: RoundReader, manifest: Manifest, known: Iterable[OpenSegment]
) -> LoadedIndex:
    """Open a version's segments; those that cannot be are left out, one after the other, if the version allows it.

    Args:
        store: where they are.
        rounds: what the version is searched by.
        manifest: the version.
        known: segments that are open: what is in memory of them stays.

    Raises:
        IndexCorrupt, IndexMismatch, IndexUnavailable: it cannot be opened.
    """
    by_key = {segment.entry.key: segment for segment in known}
    unreadable: list[SegmentEntry] = []
    while True:
        entries = [entry for entry in manifest.segments if entry not in unreadable]
        try:
            return LoadedIndex(manifest, _open_all(store, entries, by_key), rounds, tuple(unreadable))
        except IndexCorrupt as error:
            unreadable += _expendable(manifest, entries, error)


def rest_of(index: LoadedIndex, error: IndexCorrupt) -> LoadedIndex:
    """A version without the segment that an error is about, where it allows that; else raises the error."""
    (entry,) = _expendable(index.manifest, [segment.entry for segment in index.segments], error)
    return index.without(entry.key)


def _open_all(
    store: ObjectStore, entries: Sequence[SegmentEntry], known: Mapping[str, OpenSegment]
) -> tuple[OpenSegment, ...]:
    fresh = [entry for entry in entries if entry.key not in known]
    changed = [entry for entry in entries if entry.key not in known or known[entry.key].entry != entry]
    sections, alive = open_segments(store, fresh, changed)
    sections_of = {entry.key: found for entry, found in zip(fresh, sections, strict=True)}
    alive_of = {entry.key: found for entry, found in zip(changed, alive, strict=True)}
    return tuple(
        OpenSegment(
            entry,
            sections_of[entry.key] if entry.key in sections_of else known[entry.key].sections,
            alive_of[entry.key],
        )
        if entry.key in alive_of
        else known[entry.key]
        for entry in entries
    )


def _expendable(manifest: Manifest, entries: list[SegmentEntry], error: IndexCorrupt) -> list[SegmentEntry]:
    """The segment that an error is about, where the version allows to do without it; else raises the error."""
    damaged = [entry for entry in entries if entry.key == error.key]
    if not damaged or not manifest.allow_partial or len(entries) == 1:
        raise error
    logger.error("segment left out", extra={"index_version": manifest.version, "why": str(error)})
    return damaged
