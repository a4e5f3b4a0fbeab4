"""Uploaded files, in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cicada.protocol.corpus import OriginalFile


class InMemoryOriginals:
    """A :class:`cicada.answering.corpus_api.Originals`."""

    def __init__(self, kept: Collection[tuple[str, str]] = ()) -> None:
        self._kept = frozenset(kept)

    def kept(self, collection: str, sources: Sequence[str]) -> frozenset[str]:
        return frozenset(source for source in sources if (collection, source) in self._kept)

    def link(self, collection: str, source: str) -> OriginalFile | None:
        if (collection, source) not in self._kept:
            return None
        return OriginalFile(url=f"https://files.example/{collection}/{source}", expires_at_ms=1)
