"""Everything that one segment holds, decoded: what writing it, merging it and leaving passages out of it need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import RECIPE_BYTES, Indexable
from cicada.corpus.messages import LANGUAGE_KEY
from cicada.index.columns import Column, columns_of, concat_columns
from cicada.index.embedding import Vectors
from cicada.index.lexical import TermRows, analyse, concat, take
from cicada.index.lists import ListColumn, concat_lists, lists_of, take_lists

DIGEST_BYTES = 16
Digests = NDArray[np.void]
"""Shape ``(n,)``, 16 bytes each."""


def id_digest(passage_id: str) -> int:
    """What a passage's id is known by in a segment: the first 8 bytes of its BLAKE2b, as an unsigned integer."""
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "little")


def content_digest(item: Indexable) -> bytes:
    """What tells whether a passage, all of it, and its vector would be the same. 16 bytes."""
    written = item.passage.model_dump_json(by_alias=True).encode() + item.recipe()
    return hashlib.blake2b(written, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True)
class SegmentContents:
    """Passages of one collection in document order, with everything that is made of them."""

    collection: str
    lines: tuple[bytes, ...]
    """The passages, as JSON."""
    id_digests: NDArray[np.uint64]
    content_digests: Digests
    recipes: Digests
    vectors: Vectors
    terms: TermRows
    columns: Mapping[str, Column]
    lists: Mapping[str, ListColumn]
    rows: NDArray[np.intp]
    """For contents that were read from a segment: the row of each passage there; else just 0 to n - 1."""

    @classmethod
    def of(cls, collection: str, items: Sequence[Indexable], vectors: Vectors) -> Self:
        """Analyse passages, with a unit vector each.

        Raises:
            CorpusInvalid: they have more fields than a segment can hold.
        """
        passages = [item.passage for item in items]
        return cls(
            collection=collection,
            lines=tuple(passage.model_dump_json(by_alias=True).encode() for passage in passages),
            id_digests=np.array([id_digest(passage.id) for passage in passages], dtype=np.uint64),
            content_digests=digests(map(content_digest, items)),
            recipes=digests(item.recipe() for item in items),
            vectors=vectors,
            terms=analyse([item.parts for item in items], [passage.metadata.get(LANGUAGE_KEY) for passage in passages]),
            columns=columns_of(passages),
            lists=lists_of(passages),
            rows=np.arange(len(items)),
        )

    @property
    def count(self) -> int:
        """How many passages."""
        return len(self.lines)

    @property
    def enriched(self) -> bool:
        """Whether any passage carries what enrichment adds: its line goes on where others end, after the metadata."""
        return not all(line.endswith(b"}}") for line in self.lines)

    @property
    def ids(self) -> tuple[str, ...]:
        """The passages' ids."""
        return tuple(json.loads(line)["id"] for line in self.lines)

    def select(self, keep: NDArray[np.bool_]) -> Self:
        """The passages that a mask, shape ``(count,)``, keeps."""
        places = np.flatnonzero(keep)
        return type(self)(
            collection=self.collection,
            lines=tuple(self.lines[place] for place in places.tolist()),
            id_digests=self.id_digests[places],
            content_digests=self.content_digests[places],
            recipes=self.recipes[places],
            vectors=self.vectors[places],
            terms=take(self.terms, places),
            columns={name: column.take(places) for name, column in self.columns.items()},
            lists=take_lists(self.lists, places),
            rows=self.rows[places],
        )

    @classmethod
    def concat(cls, parts: Sequence[SegmentContents]) -> Self:
        """The passages of one collection's parts, one after another.

        Raises:
            CorpusInvalid: together they have more fields than a segment can hold.
        """
        count = sum(part.count for part in parts)
        return cls(
            collection=parts[0].collection,
            lines=tuple(line for part in parts for line in part.lines),
            id_digests=np.concatenate([part.id_digests for part in parts]),
            content_digests=np.concatenate([part.content_digests for part in parts]),
            recipes=np.concatenate([part.recipes for part in parts]),
            vectors=np.concatenate([part.vectors for part in parts]),
            terms=concat([part.terms for part in parts], [None] * len(parts)),
            columns=concat_columns([(part.columns, part.count) for part in parts]),
            lists=concat_lists([(part.lists, part.count) for part in parts]),
            rows=np.arange(count),
        )


def digests(values: Iterable[bytes]) -> Digests:
    """Digests as an array. Shape ``(n,)``."""
    return np.frombuffer(b"".join(values), dtype=f"V{RECIPE_BYTES}")
