"""The database on disk that a restart is fed from: objects and items by stack and logical id, and a few marks.

It is SQLite in its write-ahead mode: a transaction is there whole or not at all, whenever the process is killed.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE items (
    stack TEXT, logical_id TEXT, key TEXT, item TEXT NOT NULL, PRIMARY KEY (stack, logical_id, key)
) WITHOUT ROWID;
CREATE TABLE objects (
    stack TEXT, logical_id TEXT, key TEXT, stamp TEXT NOT NULL, attributes TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (stack, logical_id, key)
);
CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

AttributeValues = Mapping[str, Any]
"""An item, or the key of one, in DynamoDB's JSON: ``{"pk": {"S": "…"}}``."""


class Place(NamedTuple):
    """A bucket or table by what names it in every deployment."""

    stack: str
    logical_id: str


@dataclass(frozen=True)
class StoredObject:
    """An object of a bucket."""

    key: str
    stamp: str
    """Changes with the object: what is stored under the same stamp is not written again."""
    body: bytes = field(repr=False)
    attributes: Mapping[str, Any]
    """Entity tag, times, metadata, checksums: plain data."""


class StateStore:
    """The database, usable from any thread."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it.

        A database of another version of this program is put aside, with its version in the name.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = self._open(path)

    def close(self) -> None:
        """Write everything and let go of the file."""
        with self._lock:
            self._connection.close()

    def write_items(self, place: Place, changed: Iterable[tuple[AttributeValues, AttributeValues | None]]) -> None:
        """Store items by their keys; None means that there is none any more."""
        with self._lock, self._connection:
            for key, item in changed:
                where = (*place, _canonical(key))
                if item is None:
                    self._connection.execute("DELETE FROM items WHERE (stack, logical_id, key) = (?, ?, ?)", where)
                else:
                    self._connection.execute("REPLACE INTO items VALUES (?, ?, ?, ?)", (*where, json.dumps(item)))

    def replace_items(self, place: Place, items: Iterable[tuple[AttributeValues, AttributeValues]]) -> None:
        """Store a table's items in place of all that were."""
        rows = [(*place, _canonical(key), json.dumps(item)) for key, item in items]
        with self._lock, self._connection:
            self._connection.execute("DELETE FROM items WHERE (stack, logical_id) = (?, ?)", place)
            self._connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", rows)

    def items(self, place: Place) -> list[dict[str, Any]]:
        """The items of a table."""
        query = "SELECT item FROM items WHERE (stack, logical_id) = (?, ?)"
        with self._lock:
            return [json.loads(item) for (item,) in self._connection.execute(query, place)]

    def object_stamps(self, place: Place) -> dict[str, str]:
        """The stamps of a bucket's stored objects by their keys."""
        query = "SELECT key, stamp FROM objects WHERE (stack, logical_id) = (?, ?)"
        with self._lock:
            return dict(self._connection.execute(query, place).fetchall())

    def write_objects(self, place: Place, changed: Iterable[StoredObject], gone: Iterable[str]) -> None:
        """Store and delete objects in one transaction."""
        with self._lock, self._connection:
            self._connection.executemany(
                "DELETE FROM objects WHERE (stack, logical_id, key) = (?, ?, ?)", [(*place, key) for key in gone]
            )
            for one in changed:
                row = (*place, one.key, one.stamp, json.dumps(one.attributes), one.body)
                self._connection.execute("REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", row)

    def objects(self, place: Place) -> Iterator[StoredObject]:
        """The objects of a bucket, one body in memory at a time."""
        for key in self.object_stamps(place):
            query = "SELECT stamp, attributes, body FROM objects WHERE (stack, logical_id, key) = (?, ?, ?)"
            with self._lock:
                stamp, attributes, body = self._connection.execute(query, (*place, key)).fetchone()
            yield StoredObject(key, stamp, body, json.loads(attributes))

    def mark(self, name: str, value: str) -> None:
        """Remember a value by a name."""
        with self._lock, self._connection:
            self._connection.execute("REPLACE INTO marks VALUES (?, ?)", (name, value))

    def marked(self, name: str) -> str | None:
        """A remembered value."""
        with self._lock:
            row = self._connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path, check_same_thread=False)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _SCHEMA_VERSION):
            connection.close()
            path.rename(path.with_suffix(f".version-{version}"))
            connection = sqlite3.connect(path, check_same_thread=False)
            version = 0
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if version == 0:
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        return connection


def _canonical(key: AttributeValues) -> str:
    return json.dumps(key, sort_keys=True)
