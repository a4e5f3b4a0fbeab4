"""A small language for phrases over words: what a row of evidence can look for in a question.

A phrase is a line of elements divided by spaces:

==============  =====================================================================
``word``        this word; ``a|b`` one of them; ``@class`` any word of a lexicon class
``[a|b]``       one of them, or nothing
``!a|b``        here stands none of them (nothing is consumed)
``*``           any one word
``..3``         up to three words, never across punctuation
``^``           a request begins here: at a sentence's start, greetings and politeness aside
``&``           a clause begins here: like ``^``, or after a comma, a colon, *and*, *but*…
``$``           the sentence ends here; also among alternatives: ``a|$``
==============  =====================================================================

Matching is bounded by the phrase, not by the text: time is linear in the words of the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Generic, Literal, NamedTuple, TypeVar

from cicada.routing.lexicon import LEXICON
from cicada.routing.text import PAUSES, SENTENCE_ENDS, split_literal

_PUNCTUATION = PAUSES | SENTENCE_ENDS
_ANCHORS = frozenset("^&")
_END = "$"
T = TypeVar("T")


class _Element(NamedTuple):
    kind: Literal["one of", "optional", "none of", "any", "gap", "request", "clause"]
    words: frozenset[str] = frozenset()
    most: int = 0


class Text(NamedTuple):
    """The words that phrases are matched against, with the places where requests and clauses begin."""

    tokens: tuple[str, ...]
    request_starts: frozenset[int] = frozenset()
    clause_starts: frozenset[int] = frozenset()


class Match(NamedTuple):
    """Where a phrase was found: the tokens that it names (their indices), and the stretch ``[start, end)``."""

    named: tuple[int, ...]
    start: int
    end: int


class Phrase:
    """A phrase, compiled when it is first tried: a process meets few of them, and its cold start pays for none.

    Raises:
        ValueError: the source begins with an element that need not match a certain word, or with an unknown class.
    """

    __slots__ = ("_parts", "first_words", "lead")

    def __init__(self, source: str) -> None:
        self._parts = tuple(source.split())
        ahead = [part for part in self._parts if part not in _ANCHORS]
        self.lead = next((i for i, part in enumerate(ahead) if part != "*"), len(ahead))
        """How many words of any kind come before the first certain one."""
        first = _compile(ahead[self.lead])[0] if self.lead < len(ahead) else _Element("any")
        if first.kind != "one of":
            raise ValueError(f"phrase must begin with a word: {source!r}")
        self.first_words = first.words

    @property
    def elements(self) -> tuple[_Element, ...]:
        """What the phrase is made of. Raises ``ValueError`` for an unknown class."""
        return _compile_all(self._parts)

    def match(self, text: Text, at: int) -> Match | None:
        """The match that begins at token ``at``, if there is one."""
        named: list[int] = []
        end = _run(self.elements, text, 0, at, named)
        return None if end < 0 else Match(tuple(named), at, end)


class PhraseBook(Generic[T]):
    """Phrases with something attached to each, looked up by the words that they begin with."""

    def __init__(self, phrases: Mapping[T, Iterable[str]]) -> None:
        self._by_first_word: dict[str, list[tuple[Phrase, T]]] = {}
        for attached, sources in phrases.items():
            for source in sources:
                phrase = Phrase(source)
                for word in phrase.first_words:
                    self._by_first_word.setdefault(word, []).append((phrase, attached))

    def at(self, text: Text, at: int) -> Iterator[tuple[Match, T]]:
        """Every match whose first certain word is token ``at``."""
        for phrase, attached in self._by_first_word.get(text.tokens[at], ()):
            if at >= phrase.lead and (found := phrase.match(text, at - phrase.lead)):
                yield found, attached

    def everywhere(self, text: Text) -> Iterator[tuple[Match, T]]:
        """Every match, from the first word to the last."""
        for at in range(len(text.tokens)):
            yield from self.at(text, at)


def lines(block: str) -> tuple[str, ...]:
    """The phrases of a block of text, one a line."""
    return tuple(line for raw in block.splitlines() if (line := raw.strip()))


def _run(elements: tuple[_Element, ...], text: Text, first: int, at: int, named: list[int]) -> int:
    """Match elements from ``first`` on; the index behind the match, or -1."""
    tokens = text.tokens
    for i in range(first, len(elements)):
        kind, words, _ = elements[i]
        here = tokens[at] if at < len(tokens) else ""
        if kind == "one of":
            if here in words:
                named.append(at)
                at += 1
            elif _END not in words or (here and here not in SENTENCE_ENDS):
                return -1
        elif kind == "optional":
            if here in words:
                named.append(at)
                at += 1
        elif kind == "none of":
            if here in words:
                return -1
        elif kind == "any":
            if not here or here in _PUNCTUATION:
                return -1
            at += 1
        elif kind == "gap":
            return _run_gap(elements, text, i, at, named)
        elif at not in (text.request_starts if kind == "request" else text.clause_starts):
            return -1
    return at


def _run_gap(elements: tuple[_Element, ...], text: Text, gap: int, at: int, named: list[int]) -> int:
    kept = len(named)
    for skipped in range(elements[gap].most + 1):
        end = _run(elements, text, gap + 1, at + skipped, named)
        if end >= 0:
            return end
        del named[kept:]
        if at + skipped >= len(text.tokens) or text.tokens[at + skipped] in _PUNCTUATION:
            break
    return -1


@cache
def _compile_all(parts: tuple[str, ...]) -> tuple[_Element, ...]:
    return tuple(element for part in parts for element in _compile(part))


@cache
def _compile(part: str) -> tuple[_Element, ...]:
    if part == "*":
        return (_Element("any"),)
    if part == "^":
        return (_Element("request"),)
    if part == "&":
        return (_Element("clause"),)
    if part.startswith(".."):
        return (_Element("gap", most=int(part[2:])),)
    if part.startswith("["):
        return (_Element("optional", _words(part[1:-1])),)
    if part.startswith("!"):
        return (_Element("none of", _words(part[1:])),)
    if part.isascii() or "|" in part:
        return (_Element("one of", _words(part)),)
    return tuple(_Element("one of", frozenset((word,))) for word in split_literal(part))


def _words(alternatives: str) -> frozenset[str]:
    found: set[str] = set()
    for name in alternatives.split("|"):
        if not name.startswith("@"):
            found.add(name)
        elif name[1:] in LEXICON:
            found |= LEXICON[name[1:]]
        else:
            raise ValueError(f"unknown word class: {name}")
    return frozenset(found)
