"""What the semantic cache needs of its store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cicada.answering.semantic_cache.records import Entry


class CacheStore(Protocol):
    """Keeps entries and bodies by scope. Every method raises CacheUnavailable if the store does not do it.

    Reads of entries may lag behind writes: an entry that is not seen yet is a missed saving and nothing else.
    """

    def entries(self, scope: str, *, after: str, limit: int) -> list[Entry]:
        """The newest entries of a scope with an id above ``after`` (empty: all), at most ``limit``, newest first."""
        ...

    def older(self, scope: str, *, before: str, limit: int) -> list[str]:
        """The ids of the oldest entries of a scope that lie below ``before``, at most ``limit``, oldest first."""
        ...

    def body(self, scope: str, entry_id: str) -> bytes | None:
        """An entry's body; None if it is gone."""
        ...

    def put(self, scope: str, entry: Entry, body: bytes) -> None:
        """Keep an answer: its body first, so that no entry is ever seen without one."""
        ...

    def delete(self, scope: str, entry_ids: Sequence[str]) -> None:
        """Delete entries and their bodies, the entries first; those that are gone already are no fault."""
        ...
