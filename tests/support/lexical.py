"""One search by words, as the tests of the lexical part make it."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.search import LexicalHits, LexicalQuery, Mask
from cicada.index.segment_format import Gather


def search_lexical(
    parts: Sequence[LexicalPart],
    query: str,
    alive: Sequence[Mask],
    allowed: Sequence[Mask],
    limit: int,
    gather: Gather,
) -> LexicalHits:
    """Prepare a query and search once."""
    return LexicalQuery(parts, query, alive, gather).search(allowed, limit)
