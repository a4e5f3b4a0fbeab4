"""The names that a segment's passages have, ready to be looked up: whole, or by a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cicada.text.letters import stands_in, word_pattern
from cicada.text.names import bare_key, spelling_key

MIN_PART_CHARS = 3
"""A shorter name is a part of too many."""


class SegmentNames:
    """A segment's entities by the keys of their names: about 400 bytes each. Immutable.

    Each look-up takes as long as there is to be found, however many names there are.
    """

    def __init__(self, values: Sequence[str]) -> None:
        """Take the values of the segment's entities, by their numbers."""
        self._codes: dict[str, list[int]] = {}
        self._with_article: dict[str, list[str]] = {}
        for code, value in enumerate(values):
            name, without = spelling_key(value), bare_key(value)
            self._codes.setdefault(name, []).append(code)
            if without != name:
                self._with_article.setdefault(without, []).append(name)
        self._having: dict[str, list[str]] = {}
        """By word."""
        for name in self._codes:
            for word in dict.fromkeys(word_pattern().findall(name)):
                self._having.setdefault(word, []).append(name)

    def __len__(self) -> int:
        """How many names."""
        return len(self._codes)

    def codes(self, name: str) -> Sequence[int]:
        """The numbers of the values that are a name, given as its key."""
        return self._codes[name]

    def whole(self, wanted: Iterable[str]) -> Iterator[str]:
        """The names that are, but for an article, one of these; all are keys."""
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
