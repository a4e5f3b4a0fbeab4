"""Vector buckets, indexes and vectors: in memory, and in a file if there is one, so that a restart finds them."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cicada_local.places import ACCOUNT_ID, REGION
from cicada_local.s3vectors.errors import Conflict, NotFound
from cicada_local.s3vectors.words import WordIndex

_SCHEMA = """
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS indexes (arn TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (
    arn TEXT, key TEXT, vector BLOB NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (arn, key)
);
"""

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Stored:
    """A vector and what is attached to it."""

    vector: Vector
    metadata: Mapping[str, Any]


@dataclass
class Index:
    """A vector index."""

    arn: str
    description: dict[str, Any]
    """As GetIndex tells it, without its ARN; ``creationTime`` in seconds since the epoch."""
    vectors: dict[str, Stored] = field(default_factory=dict)
    words: dict[str, WordIndex] = field(default_factory=dict)
    """By searchable metadata key."""
    building_until_s: dict[str, float] = field(default_factory=dict)
    """When each key's analyzer serves queries, by the service's clock."""

    @property
    def dimension(self) -> int:
        """Of its vectors."""
        return int(self.description["dimension"])

    @property
    def metric(self) -> str:
        """``cosine`` or ``euclidean``."""
        return str(self.description["distanceMetric"])

    @property
    def non_filterable(self) -> frozenset[str]:
        """Metadata keys that filters may not name."""
        return frozenset(self.description["metadataConfiguration"].get("nonFilterableMetadataKeys", ()))

    @property
    def searched(self) -> list[dict[str, Any]]:
        """The full-text configurations."""
        found: list[dict[str, Any]] = self.description["metadataConfiguration"].setdefault(
            "textSearchConfigurations", []
        )
        return found

    def put(self, key: str, stored: Stored) -> None:
        """Take a vector in, in place of any of the same key."""
        self.vectors[key] = stored
        for name, words in self.words.items():
            text = stored.metadata.get(name)
            words.put(key, text if isinstance(text, str) else None)

    def remove(self, key: str) -> None:
        """Forget a vector, if there is one."""
        if self.vectors.pop(key, None) is not None:
            for words in self.words.values():
                words.put(key, None)

    def index_words(self) -> None:
        """Make the word indexes be those of the configurations."""
        names = {one["metadataKey"] for one in self.searched}
        self.words = {name: words for name, words in self.words.items() if name in names}
        for name in names - self.words.keys():
            words = self.words[name] = WordIndex()
            for key, stored in self.vectors.items():
                text = stored.metadata.get(name)
                words.put(key, text if isinstance(text, str) else None)


def bucket_arn(name: str) -> str:
    """The ARN of a vector bucket."""
    return f"arn:aws:s3vectors:{REGION}:{ACCOUNT_ID}:bucket/{name}"


def index_arn(bucket: str, name: str) -> str:
    """The ARN of a vector index."""
    return f"{bucket_arn(bucket)}/index/{name}"


class VectorStore:
    """All buckets and indexes. Whoever calls it holds :attr:`lock`."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Open the store.

        Args:
            path: where it is kept; in memory alone when None.
            clock: seconds since the epoch.
        """
        self.lock = threading.RLock()
        self._clock = clock
        self._buckets: dict[str, dict[str, Any]] = {}
        self._indexes: dict[str, Index] = {}
        self._database: sqlite3.Connection | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.executescript(_SCHEMA)
            self._read(self._database)

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    # --- buckets ---

    def create_bucket(self, name: str, **description: Any) -> str:
        """Make a bucket; returns its ARN. Raises Conflict if there is one."""
        if name in self._buckets:
            raise Conflict("A vector bucket with the specified name already exists")
        self._buckets[name] = {}
        self.change_bucket(name, **{"creationTime": self._clock(), "defaultIndexMode": "ENHANCED", **description})
        return bucket_arn(name)

    def change_bucket(self, name: str, **description: Any) -> None:
        """Change what a bucket was made with. Raises NotFound."""
        self.bucket(name).update(description)
        self._write("REPLACE INTO buckets VALUES (?, ?)", [(name, json.dumps(self._buckets[name]))])

    def bucket(self, name: str) -> dict[str, Any]:
        """What a bucket was made with. Raises NotFound."""
        try:
            return self._buckets[name]
        except KeyError:
            raise NotFound("The specified vector bucket could not be found") from None

    def bucket_names(self) -> list[str]:
        """All buckets, sorted."""
        return sorted(self._buckets)

    def delete_bucket(self, name: str) -> None:
        """Delete an empty bucket. Raises NotFound, or Conflict if it has indexes."""
        self.bucket(name)
        if self.index_names(name):
            raise Conflict("The specified vector bucket is not empty")
        del self._buckets[name]
        self._write("DELETE FROM buckets WHERE name = ?", [(name,)])

    # --- indexes ---

    def create_index(self, bucket: str, name: str, description: Mapping[str, Any]) -> Index:
        """Make an index. Raises NotFound, or Conflict if there is one."""
        mode = self.bucket(bucket)["defaultIndexMode"]
        arn = index_arn(bucket, name)
        if arn in self._indexes:
            raise Conflict("An index with the specified name already exists")
        index = Index(arn, {"creationTime": self._clock(), "indexMode": mode, **description})
        self._indexes[arn] = index
        index.index_words()
        self.save_description(index)
        return index

    def index(self, arn: str) -> Index:
        """An index. Raises NotFound."""
        try:
            return self._indexes[arn]
        except KeyError:
            raise NotFound("The specified index could not be found") from None

    def index_names(self, bucket: str) -> list[str]:
        """The indexes of a bucket, sorted."""
        prefix = index_arn(bucket, "")
        return sorted(arn.removeprefix(prefix) for arn in self._indexes if arn.startswith(prefix))

    def delete_index(self, arn: str) -> None:
        """Delete an index with its vectors. That there is none is no failure."""
        if self._indexes.pop(arn, None) is not None:
            self._write("DELETE FROM indexes WHERE arn = ?", [(arn,)])
            self._write("DELETE FROM vectors WHERE arn = ?", [(arn,)])

    def save_description(self, index: Index) -> None:
        """Keep what an index's description says now."""
        self._write("REPLACE INTO indexes VALUES (?, ?)", [(index.arn, json.dumps(index.description))])

    # --- vectors ---

    def put(self, index: Index, vectors: Sequence[tuple[str, Stored]]) -> None:
        """Take vectors in."""
        for key, stored in vectors:
            index.put(key, stored)
        self._write(
            "REPLACE INTO vectors VALUES (?, ?, ?, ?)",
            [(index.arn, key, stored.vector.tobytes(), json.dumps(stored.metadata)) for key, stored in vectors],
        )

    def delete(self, index: Index, keys: Sequence[str]) -> None:
        """Forget vectors."""
        for key in keys:
            index.remove(key)
        self._write("DELETE FROM vectors WHERE arn = ? AND key = ?", [(index.arn, key) for key in keys])

    # --- the file ---

    def _write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        if self._database is not None:
            with self._database:
                self._database.executemany(statement, rows)

    def _read(self, database: sqlite3.Connection) -> None:
        for name, description in database.execute("SELECT name, description FROM buckets"):
            self._buckets[name] = json.loads(description)
        for arn, description in database.execute("SELECT arn, description FROM indexes"):
            self._indexes[arn] = Index(arn, json.loads(description))
        for arn, key, vector, metadata in database.execute("SELECT arn, key, vector, metadata FROM vectors"):
            if arn in self._indexes:
                self._indexes[arn].put(key, Stored(np.frombuffer(vector, dtype=np.float32), json.loads(metadata)))
        for index in self._indexes.values():
            index.index_words()
