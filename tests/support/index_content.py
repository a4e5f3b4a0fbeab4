"""What a reader of the index would find, whole and decoded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import Passage
from cicada.index.manifest import Manifest
from cicada.index.ports import ObjectStore
from cicada.index.segment import SegmentFile
from cicada.index.segment_reader import read_tombstones
from cicada.index.versions import read_current
from tests.support.embedding import WordEmbedder
from tests.support.passages import indexable


@dataclass
class Found:  # noqa: PLW1641 (compared, never hashed)
    """A passage as the index holds it. Vectors are compared as closely as half precision keeps them."""

    line: Any
    recipe: bytes
    vector: np.ndarray = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Found)
            and (self.line, self.recipe) == (other.line, other.recipe)
            and bool(np.allclose(self.vector, other.vector, atol=1e-3))
        )


Content = dict[str, dict[str, Found]]
"""By collection, and by passage id."""


def content_of(store: ObjectStore, manifest: Manifest) -> Content:
    """The live passages of a version; a passage that is there twice is an error."""
    found: Content = {}
    for entry in manifest.segments:
        contents = SegmentFile.open(store, entry).contents()
        deleted = read_tombstones(store, entry)
        if deleted is not None:
            contents = contents.select(~deleted[contents.rows])
        assert contents.count == entry.live
        of_collection = found.setdefault(entry.collection, {})
        for line, recipe, vector in zip(contents.lines, contents.recipes, contents.vectors, strict=True):
            passage = json.loads(line)
            assert passage["id"] not in of_collection, f"{passage['id']} is in the version twice"
            of_collection[passage["id"]] = Found(passage, recipe.tobytes(), vector)
    return found


def content(store: ObjectStore) -> Content:
    """The live passages of the current version."""
    current = read_current(store)
    return {} if current is None else content_of(store, current.manifest)


def expected(passages: Iterable[Passage | Indexable], embedder: WordEmbedder | None = None) -> dict[str, Found]:
    """The passages of a collection as they ought to be found; of passages alone as :func:`indexable` makes them."""
    items = [item if isinstance(item, Indexable) else indexable([item])[0] for item in passages]
    vectors = (embedder or WordEmbedder()).embed([item.parts[0].text for item in items], time_budget_s=1)
    return {
        item.passage.id: Found(
            json.loads(item.passage.model_dump_json(by_alias=True)), item.recipe(), np.asarray(vector)
        )
        for item, vector in zip(items, vectors, strict=True)
    }
