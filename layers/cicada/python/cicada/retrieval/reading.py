"""Reading the index for something else than a search: the current version, or its rest where it is damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cicada.errors import IndexCorrupt
from cicada.index.loaded_index import LoadedIndex
from cicada.index.reader import IndexReader

_Found = TypeVar("_Found")


def read_index(reader: IndexReader, work: Callable[[LoadedIndex], _Found]) -> tuple[_Found, LoadedIndex]:
    """Do something with the current version; what it came to, and the version as far as it could be read.

    Raises:
        IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: the index cannot serve it.
    """
    reader.refresh_soon()
    index = reader.current()
    while True:
        try:
            found = work(index)
        except IndexCorrupt as error:
            index = reader.after_damage(index, error)
        else:
            break
    reader.warm_soon()
    return found, index
