"""What a worker knows of the store: the entries of the scopes that it was asked for, brought up to date by each use."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cicada.answering.semantic_cache.held import HeldScope, HeldScopes
from cicada.answering.semantic_cache.ports import CacheStore
from cicada.answering.semantic_cache.records import Body, BodyUnreadable, Entry, unpack_body
from cicada.errors import OutOfTime

logger = logging.getLogger(__name__)

OVERLAP_MS = 10_000
"""How much of what is known is read again, for entries that became visible after newer ones: clocks differ."""


class KnownEntries:
    """Reads entries and bodies, each entry once a worker as a rule. Safe for several threads."""

    def __init__(
        self,
        store: CacheStore,
        dimensions: int,
        *,
        max_entries: int,
        now_s: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """Take the store.

        Args:
            store: where entries and bodies lie.
            dimensions: of the vectors.
            max_entries: of one scope; the newest are known.
            now_s: epoch seconds.
            monotonic: seconds, in which deadlines are given.
        """
        self._store = store
        self._scopes = HeldScopes(dimensions)
        self._max_entries = max_entries
        self._now_s = now_s
        self._monotonic = monotonic

    def refreshed(self, digest: str, deadline: float) -> HeldScope:
        """A scope, with what was added to it since it was last read.

        Raises:
            CacheUnavailable: the store does not answer.
            OutOfTime: it is past the deadline.
        """
        self._check_time(deadline)
        held = self._scopes.of(digest)
        entries = held.snapshot.entries
        after = f"{max(0, int(entries[-1].id[:13]) - OVERLAP_MS):013d}" if entries else ""
        self.add(held, self._store.entries(digest, after=after, limit=self._max_entries))
        return held

    def add(self, held: HeldScope, entries: list[Entry]) -> None:
        """Take in entries of a scope."""
        held.add(entries, keep=self._max_entries, now_s=self._now_s())

    def body(self, digest: str, held: HeldScope, entry: Entry, deadline: float) -> Body | None:
        """An entry's body; None if it is gone or damaged, and then the entry is not looked at again.

        Raises:
            CacheUnavailable: the store does not answer.
            OutOfTime: it is past the deadline.
        """
        self._check_time(deadline)
        data = self._store.body(digest, entry.id)
        try:
            if data is not None and (body := unpack_body(data)).question == entry.question:
                return body
        except BodyUnreadable as error:
            logger.warning("an earlier answer cannot be read", extra={"entry": entry.id, "why": str(error)})
        held.forget(entry.id)
        return None

    def _check_time(self, deadline: float) -> None:
        if self._monotonic() >= deadline:
            raise OutOfTime("no time is left to read earlier answers")
