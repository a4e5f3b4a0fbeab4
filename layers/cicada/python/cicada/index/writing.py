"""Writing passages as segments, with the vectors that they have and those that they are given."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cicada.index.contents import SegmentContents
from cicada.index.embedding import Vector, passage_vectors
from cicada.index.intake import Intake, Places
from cicada.index.manifest import SegmentEntry, new_segment_key
from cicada.index.progress import Progress, Stage
from cicada.index.segment import encode_segment
from cicada.index.store import ObjectStore, put
from cicada.models.ports import Embedder


def write_segments(
    store: ObjectStore,
    embedder: Embedder,
    intake: Intake,
    chosen: Places,
    *,
    collection: str,
    known: Callable[[Collection[bytes]], dict[bytes, Vector]],
    segment_rows: int,
    progress: Progress,
) -> tuple[tuple[SegmentEntry, ...], int]:
    """Write the chosen passages, piece by piece.

    Args:
        store: where to.
        embedder: makes the vectors that are not known.
        intake: the passages.
        chosen: which of them.
        collection: whose they are.
        known: finds vectors by recipe that the intake does not bring.
        segment_rows: passages in one segment at most.
        progress: told after each batch of texts, and of each segment.

    Returns:
        The segments, and the number of texts that the model was asked for.

    Raises:
        CorpusInvalid: the passages of a segment have more fields, or more text, than it can hold.
        IndexCorrupt, IndexUnavailable: the intake cannot be read, or the store does not respond.
        IndexMismatch, ModelBusy, ModelUnavailable, ModelRefused: a text could not be embedded.
    """
    slices = intake.slices(chosen, segment_rows)
    entries: list[SegmentEntry] = []
    asked = done = 0

    def contents_of(places: Places) -> SegmentContents:  # what it is made of is let go of before it is written
        nonlocal asked
        supply = intake.supply(places)
        vectors = {**known({item.recipe() for item in supply.items} - supply.known.keys()), **supply.known}
        embedded = passage_vectors(embedder, supply.items, vectors, _part(progress, done, len(places), len(chosen)))
        asked += embedded.asked
        progress("writing", len(entries), len(slices))
        return SegmentContents.of(collection, supply.items, embedded.vectors)

    for places in slices:
        entries.append(write_segment(store, contents_of(places), embedder.model_id))
        done += len(places)
    if slices:
        progress("writing", len(slices), len(slices))
    return tuple(entries), asked


def write_segment(store: ObjectStore, contents: SegmentContents, embedding_model_id: str) -> SegmentEntry:
    """Write a segment, all rows live, and return its entry.

    Raises:
        IndexUnavailable: the store does not respond.
    """
    encoded = encode_segment(contents, embedding_model_id)
    key = new_segment_key(encoded.sha256)
    put(store, key, encoded.data)
    return SegmentEntry(
        key=key,
        collection=contents.collection,
        count=encoded.count,
        live=encoded.count,
        bytes=len(encoded.data),
        head_bytes=encoded.head_bytes,
        sha256=encoded.sha256,
        tombstones=None,
    )


def _part(progress: Progress, start: int, count: int, passages: int) -> Progress:
    """Progress with one of several segments' texts, as progress with all passages."""

    def told(stage: Stage, done: int, total: int) -> None:
        progress(stage, start + (done * count // total if total else count), passages)

    return told
