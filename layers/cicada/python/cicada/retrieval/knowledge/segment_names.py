"""The names that a segment's passages have, ready to be looked up: whole, or by a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cicada.corpus.letters import stands_in, word_pattern
from cicada.index.mentions import folded
from cicada.retrieval.knowledge.other_names import bare

MIN_PART_CHARS = 3
"""A shorter name is a part of too many."""


class SegmentNames:
    """A segment's entities by their folded names: about 400 bytes each. Immutable.

    Each look-up takes as long as there is to be found, however many names there are.
    """

    def __init__(self, values: Sequence[str]) -> None:
        """Take the values of the segment's entities, by their numbers."""
        self._codes: dict[str, list[int]] = {}
        for code, value in enumerate(values):
            self._codes.setdefault(folded(value), []).append(code)
        self._with_article: dict[str, list[str]] = {}
        self._having: dict[str, list[str]] = {}
        """By word."""
        for name in self._codes:
            if (without := bare(name)) != name:
                self._with_article.setdefault(without, []).append(name)
            for word in dict.fromkeys(word_pattern().findall(name)):
                self._having.setdefault(word, []).append(name)

    def __len__(self) -> int:
        """How many names."""
        return len(self._codes)

    def codes(self, name: str) -> Sequence[int]:
        """The numbers of the values that are a name, folded."""
        return self._codes[name]

    def whole(self, wanted: Iterable[str]) -> Iterator[str]:
        """The names that are, but for an article, one of these; all are folded."""
        for one in wanted:
            if one in self._codes:
                yield one
            yield from self._with_article.get(one, ())

    def with_part(self, wanted: Iterable[str]) -> Iterator[str]:
        """The names that one of these, of :data:`MIN_PART_CHARS` at least, is a part of, in whole words."""
        for one in wanted:
            words = word_pattern().findall(one)
            if not words or len(one) < MIN_PART_CHARS:
                continue
            rarest = min((self._having.get(word, ()) for word in words), key=len)
            yield from (name for name in rarest if stands_in(name, one))
