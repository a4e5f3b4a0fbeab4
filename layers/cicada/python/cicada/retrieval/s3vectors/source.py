"""The current version of the index, as a load into a managed engine reads it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt, IndexMissing
from cicada.index.manifest import CURRENT_KEY, parse_manifest
from cicada.index.ports import ObjectMissing, ObjectStore
from cicada.index.segment import SegmentFile
from cicada.index.segment_reader import read_tombstones


class CurrentVersion:
    """The version that was current when this was made. One segment is in memory at a time."""

    def __init__(self, store: ObjectStore) -> None:
        """Read the manifest.

        Raises:
            IndexMissing: no version is published.
            IndexCorrupt, IndexMismatch, IndexUnavailable: the manifest cannot be read.
        """
        try:
            found = store.read(CURRENT_KEY)
        except ObjectMissing as error:
            raise IndexMissing("no version is published") from error
        self._store = store
        self._manifest = parse_manifest(found.data)

    @property
    def version(self) -> str:
        """Its id."""
        return self._manifest.version

    @property
    def count(self) -> int:
        """Passages in it."""
        return self._manifest.count

    @property
    def embedding_model_id(self) -> str:
        """What it is embedded with."""
        return self._manifest.embedding_model_id

    @property
    def dimensions(self) -> int:
        """Of its vectors."""
        return self._manifest.dimensions

    def passages(self) -> Iterator[tuple[Passage, NDArray[np.float32]]]:
        """Every passage that the version has, with its unit vector as it was stored, segment by segment.

        Raises:
            IndexCorrupt, IndexMismatch, IndexUnavailable: a segment cannot be read.
        """
        for entry in self._manifest.segments:
            contents = SegmentFile.open(self._store, entry).contents()
            deleted = read_tombstones(self._store, entry)
            alive = None if deleted is None else ~deleted[contents.rows]
            for place, (line, vector) in enumerate(zip(contents.lines, contents.vectors, strict=True)):
                if alive is None or alive[place]:
                    yield _passage(line, entry.key), vector


def _passage(line: bytes, key: str) -> Passage:
    try:
        return Passage.model_validate_json(line)
    except ValidationError as error:
        raise IndexCorrupt(f"{key} holds an unreadable passage") from error
