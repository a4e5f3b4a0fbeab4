"""A small language for phrases over words: what a table row can look for in a question.

A phrase is a line of elements divided by spaces:

==============  =====================================================================
``word``        this word; ``a|b`` one of them; ``@class`` any word of a lexicon class
``[a|b]``       one of them, or nothing
``!a|b``        here stands none of them (nothing is consumed)
``*``           any one word
``..3``         up to three words, never across punctuation
``^``           the request begins here: at a sentence's start, greetings and politeness aside
``&``           a clause begins here: like ``^``, or after a comma, a colon, *and*, *but*…
``$``           the sentence ends here (also among alternatives: ``a|$``)
==============  =====================================================================

Matching is bounded by the phrase, not by the text: time is linear in the words of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from cicada.routing.text import PAUSES, SENTENCE_ENDS

Lexicon = Mapping[str, frozenset[str]]
_PUNCTUATION = PAUSES | SENTENCE_ENDS
_NO_WORDS: frozenset[str] = frozenset()
_END = "$"
T = TypeVar("T")


class _Kind(Enum):
    ONE_OF = "one of"
    OPTIONAL = "optional"
    NONE_OF = "none of"
    ANY = "any"
    GAP = "gap"
    REQUEST = "^"
    CLAUSE = "&"


@dataclass(frozen=True, slots=True)
class _Element:
    kind: _Kind
    words: frozenset[str] = _NO_WORDS
    most: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """The words a phrase is matched against, with the places where requests and clauses begin."""

    tokens: tuple[str, ...]
    request_starts: frozenset[int] = frozenset()
    clause_starts: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Match:
    """Where a phrase was found: the words that it names, and the stretch ``[start, end)`` that it spans."""

    words: tuple[str, ...]
    start: int
    end: int


class Phrase:
    """A compiled phrase."""

    __slots__ = ("_elements", "first_words", "lead", "named_words", "source")

    def __init__(self, source: str, lexicon: Lexicon, split: Callable[[str], tuple[str, ...]]) -> None:
        """Compile ``source``; ``split`` cuts a literal into words as questions are cut.

        Raises:
            ValueError: the phrase names an unknown class, or begins with an element that can match no word.
        """
        self.source = source
        self._elements = tuple(element for part in source.split() for element in _compile(part, lexicon, split))
        ahead = [e for e in self._elements if e.kind not in (_Kind.REQUEST, _Kind.CLAUSE)]
        self.lead = next((i for i, e in enumerate(ahead) if e.kind is not _Kind.ANY), len(ahead))
        if self.lead == len(ahead) or ahead[self.lead].kind is not _Kind.ONE_OF:
            raise ValueError(f"phrase must begin with a word: {source!r}")
        self.first_words = ahead[self.lead].words
        self.named_words = frozenset(word for element in self._elements for word in element.words)

    def match(self, text: Text, at: int) -> Match | None:
        """The match that begins at token ``at``, if there is one."""
        named: list[int] = []
        end = self._run(text, 0, at, named)
        return None if end < 0 else Match(tuple(text.tokens[i] for i in named), at, end)

    def _run(self, text: Text, which: int, at: int, named: list[int]) -> int:
        tokens = text.tokens
        for which in range(which, len(self._elements)):
            element = self._elements[which]
            here = tokens[at] if at < len(tokens) else ""
            match element.kind:
                case _Kind.ONE_OF:
                    if here in element.words:
                        named.append(at)
                        at += 1
                    elif _END not in element.words or (here and here not in SENTENCE_ENDS):
                        return -1
                case _Kind.OPTIONAL:
                    if here in element.words:
                        named.append(at)
                        at += 1
                case _Kind.NONE_OF:
                    if here in element.words:
                        return -1
                case _Kind.ANY:
                    if not here or here in _PUNCTUATION:
                        return -1
                    at += 1
                case _Kind.GAP:
                    return self._run_gap(text, which, at, named)
                case _Kind.REQUEST:
                    if at not in text.request_starts:
                        return -1
                case _Kind.CLAUSE:
                    if at not in text.clause_starts:
                        return -1
        return at

    def _run_gap(self, text: Text, which: int, at: int, named: list[int]) -> int:
        kept = len(named)
        for skipped in range(self._elements[which].most + 1):
            end = self._run(text, which + 1, at + skipped, named)
            if end >= 0:
                return end
            del named[kept:]
            if at + skipped >= len(text.tokens) or text.tokens[at + skipped] in _PUNCTUATION:
                return -1
        return -1


def _compile(part: str, lexicon: Lexicon, split: Callable[[str], tuple[str, ...]]) -> tuple[_Element, ...]:
    if part == "*":
        return (_Element(_Kind.ANY),)
    if part in ("^", "&"):
        return (_Element(_Kind(part)),)
    if part.startswith(".."):
        return (_Element(_Kind.GAP, most=int(part[2:])),)
    if part.startswith("["):
        return (_Element(_Kind.OPTIONAL, _words(part[1:-1], lexicon)),)
    if part.startswith("!"):
        return (_Element(_Kind.NONE_OF, _words(part[1:], lexicon)),)
    if part.isascii():
        return (_Element(_Kind.ONE_OF, _words(part, lexicon)),)
    if "|" in part:
        return (_Element(_Kind.ONE_OF, frozenset(part.split("|"))),)
    return tuple(_Element(_Kind.ONE_OF, frozenset((word,))) for word in split(part))


def _words(alternatives: str, lexicon: Lexicon) -> frozenset[str]:
    found: set[str] = set()
    for name in alternatives.split("|"):
        if name.startswith("@"):
            if name[1:] not in lexicon:
                raise ValueError(f"unknown word class: {name}")
            found |= lexicon[name[1:]]
        else:
            found.add(name)
    return frozenset(found)


class PhraseBook(Generic[T]):
    """Phrases with something attached to each, looked up by the words that they begin with."""

    def __init__(
        self, phrases: Iterable[tuple[str, T]], lexicon: Lexicon, split: Callable[[str], tuple[str, ...]]
    ) -> None:
        self._by_first_word: dict[str, list[tuple[Phrase, T]]] = {}
        self.words: set[str] = set()
        for source, attached in phrases:
            phrase = Phrase(source, lexicon, split)
            self.words |= phrase.named_words
            for word in phrase.first_words:
                self._by_first_word.setdefault(word, []).append((phrase, attached))

    def at(self, text: Text, at: int) -> Iterator[tuple[Match, T]]:
        """Every match whose first named word is token ``at``."""
        for phrase, attached in self._by_first_word.get(text.tokens[at], ()):
            if at >= phrase.lead and (found := phrase.match(text, at - phrase.lead)):
                yield found, attached

    def everywhere(self, text: Text) -> Iterator[tuple[Match, T]]:
        """Every match, from the first word to the last."""
        for at in range(len(text.tokens)):
            yield from self.at(text, at)
