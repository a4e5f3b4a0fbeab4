"""Finds known names in a question: as written, by an alias, inflected, or misspelt.

Only words with nearly the same letters are compared letter by letter: each word has a mask of 64 bits, one for each of
its letters, and an edit changes at most two of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from cicada.retrieval.knowledge.gazetteer_words import (
    Filed,
    GazetteerText,
    Word,
    forms_of_one,
    inflection_keys,
    is_frequent,
    line_of,
    merged,
    owned,
    runs_of,
    ways_of,
)
from cicada.text.names import ARTICLES

LEAST_WORD_CHARS = 5
"""Shorter words are too similar to other words."""
TWO_EDITS_CHARS = 8
"""Words from this length on may differ by two edits, shorter ones by one."""
MAX_ALIKE = 3
REMEMBERED_WORDS = 4_096


class LikeWords:
    """Finds similar words among some, at about 100 bytes each. Thread-safe."""

    def __init__(self, words: Sequence[str]) -> None:
        """``words`` are distinct; those below :data:`LEAST_WORD_CHARS` are ignored."""
        self._words = [word for word in words if len(word) >= LEAST_WORD_CHARS]
        self._masks = np.array([_mask(word) for word in self._words], dtype=np.uint64)
        self._lengths = np.array([len(word) for word in self._words], dtype=np.int16)
        self._remembered = lru_cache(maxsize=REMEMBERED_WORDS)(self._compared)

    def like(self, word: str) -> tuple[tuple[str, float], ...]:
        """The most similar words, best first, each with its likeness in (0, 1); none for a known word.

        Likeness is 1 - d / l, with the distance d of optimal string alignment and the longer word's l letters. With two
        edits the first letter must be the same.
        """
        return self._remembered(word) if len(word) >= LEAST_WORD_CHARS and self._words else ()

    def _compared(self, word: str) -> tuple[tuple[str, float], ...]:
        edits = 2 if len(word) >= TWO_EDITS_CHARS else 1
        near = np.bitwise_count(self._masks ^ np.uint64(_mask(word))) <= 2 * edits
        near &= np.abs(self._lengths - len(word)) <= edits
        found: list[tuple[float, str]] = []
        for place in np.flatnonzero(near).tolist():
            other = self._words[place]
            distance = OSA.distance(word, other, score_cutoff=edits)
            if distance == 0:
                return ()
            if distance <= edits and (distance == 1 or other[0] == word[0]):
                found.append((distance / max(len(word), len(other)), other))
        return tuple((other, 1 - share) for share, other in sorted(found)[:MAX_ALIKE])


def _mask(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) % 64)
    return mask


LEAST_RUN_CHARS = 2
"""A single character is a part of too many words."""


class RunNames:
    """Finds names in runs of scripts without spaces. Immutable."""

    def __init__(self, names: Iterable[tuple[str, Sequence[int], bool]]) -> None:
        """Each name is its run, its owners, and whether it is an alias."""
        self._names = {run: (tuple(owners), alias) for run, owners, alias in names if len(run) >= LEAST_RUN_CHARS}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for run in self._names:
            lengths[run[:LEAST_RUN_CHARS]].add(len(run))
        self._lengths = {begins: sorted(found, reverse=True) for begins, found in lengths.items()}

    def find(self, run: str) -> Iterator[tuple[int, int, tuple[int, ...], bool]]:
        """The names in a run, the longest at each place: where one begins and ends, whose it is, whether an alias."""
        at = 0
        while at < len(run):
            end = at
            for length in self._lengths.get(run[at : at + LEAST_RUN_CHARS], ()):
                part = run[at : at + length]  # at the run's end it is shorter, and can be another name
                found = self._names.get(part)
                if found is not None and not _goes_on(run, at) and not _goes_on(run, at + len(part)):
                    end = at + len(part)
                    yield (at, end, *found)
                    break
            at = max(end, at + 1)


def _goes_on(run: str, at: int) -> bool:
    """Whether a word goes on over a place: a foreign one in katakana, or one of a script with spaces."""
    if not 0 < at < len(run):
        return False
    before, after = _sort(run[at - 1]), _sort(run[at])
    return before == after != ""


def _sort(character: str) -> str:
    if "\u30a1" <= character <= "\u30fa" or character == "ー":
        return "katakana"
    return "spaced" if character < "\u0e00" and character.isalnum() else ""


Kind = Literal["exact", "alias", "inflected", "part", "alike"]
"""How a name is found; the later kind wins."""

CONFIDENCE: Mapping[Kind, float] = {"exact": 1.0, "alias": 0.95, "inflected": 0.85, "part": 0.8, "alike": 0.9}
"""Of capitalised names or several words; ``alike`` is multiplied by the likeness."""
WRITTEN_SMALL = 0.85
"""The factor of a single lower-case word."""
RARELY_APART = 1.5
"""The greatest ratio of passages with a word to passages with the name, for a lower-case word that stands for an
undeclared name, or one that it is a part of: *ottoline* for Ottoline Prawle, but not *bell* for the Bell of Warding."""
MAX_OWNERS = 32
"""A word of more names identifies none of them."""
_LEAST_PART = 3

Counts = Callable[[str], int]
"""How many passages have a word, folded."""


@dataclass(frozen=True)
class NameMatch:
    """A known name in a text."""

    name: str
    """As it is filed."""
    confidence: float
    """In (0, 1]."""
    matched: str
    """The text's words."""
    kind: Kind
    start: int
    """Where they begin, in the text in compatibility form."""


class _Key(NamedTuple):
    words: tuple[str, ...]
    names: tuple[int, ...]
    """Whose it is."""
    alias: bool


class _Reading(NamedTuple):
    """A known word that a text's word may be."""

    kind: Kind
    """``exact``, ``inflected`` or ``alike``."""
    likeness: float


class _Match(NamedTuple):
    """Words of a text that are a name's."""

    stop: int
    key: _Key
    kind: Kind
    confidence: float


class KnownNames:
    """The names of some collections. Immutable, safe for several threads.

    About 2 KB a name. A text is read from left to right, at each word the longest name first, of equally long ones the
    surest; then the remaining words are searched for parts of names.
    """

    def __init__(
        self, filed: Iterable[Filed], aliases: Iterable[tuple[str, Sequence[str]]] = (), *, counts: Counts | None = None
    ) -> None:
        """``filed`` has each spelling once; those that differ in case or spaces are one name, in its most common form.

        ``aliases`` are by the name that they stand for; a filed alias is not a name of its own. ``counts`` separates
        common words from parts of names and misspelt ones; without it these are less sure.
        """
        self._counts = counts
        aliases = list(aliases)
        self._names = merged(filed, aliases)
        ways = owned(self._names, aliases, ways_of)
        self._keys = [_Key(words, owners, alias) for words, (owners, alias) in ways.items()]
        runs = owned(self._names, aliases, runs_of)
        self._runs = RunNames((run, owners, alias) for (run,), (owners, alias) in runs.items())
        self._beginning: defaultdict[tuple[str, ...], list[_Key]] = defaultdict(list)
        """By the first two words, or the only one, as many names begin with *the*; the longest first."""
        for key in sorted(self._keys, key=lambda key: -len(key.words)):
            self._beginning[key.words[:2]].append(key)
        self._words = frozenset(word for key in self._keys for word in key.words)
        self._owners = self._owners_of_words(aliases)
        self._inflected: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(self._words):
            for stem in inflection_keys(word):
                self._inflected[stem].append(word)
        self._like = LikeWords(sorted(word for word in self._words if not is_frequent(word)))

    def __len__(self) -> int:
        """How many names."""
        return len(self._names)

    def find(self, text: str) -> tuple[NameMatch, ...]:
        """The names in a text, each once, surest first, of equally sure ones in the text's order."""
        return self._find(line_of(text), told=False)

    def _find(self, line: GazetteerText, *, told: bool) -> tuple[NameMatch, ...]:
        """See :meth:`find`; ``told`` if the text is known to be a name, so that capitals do not matter."""
        surest: dict[int, NameMatch] = {}
        for found, names in self._found(line, told=told):
            for name in names:
                if name not in surest or surest[name].confidence < found.confidence:
                    surest[name] = NameMatch(
                        self._names[name].name, found.confidence, found.matched, found.kind, found.start
                    )
        return tuple(sorted(surest.values(), key=lambda one: (-one.confidence, one.start, one.name)))

    def spelling_of(self, name: str) -> NameMatch | None:
        """The known name that a text is, whole; the surest, if it can be several."""
        line = line_of(name)
        for found in self._find(line, told=True):
            matched = line_of(found.matched)
            if len(matched.run) >= len(line.run) and (line.run or len(matched.words) >= _significant(line)):
                return found
        return None

    def _found(self, line: GazetteerText, *, told: bool) -> Iterable[tuple[NameMatch, Sequence[int]]]:
        if line.run:
            for start, stop, names, alias in self._runs.find(line.run):
                begins, ends = line.places[start], line.places[stop - 1] + 1
                kind: Kind = "alias" if alias else "exact"
                yield NameMatch("", CONFIDENCE[kind], line.text[begins:ends], kind, begins), names
        words = line.words
        readings = [self._readings(word.key) for word in words]
        taken = [False] * len(words)
        self._add_alike(words, readings)
        yield from self._sequences(line, readings, taken, told=told)
        yield from self._in_part(line, readings, taken, told=told)

    def _readings(self, word: str) -> dict[str, _Reading]:
        """The known words that a word may be, but for misspellings."""
        readings: dict[str, _Reading] = {}
        for stem in inflection_keys(word):
            for known in self._inflected.get(stem, ()):
                if forms_of_one(word, known):
                    readings[known] = _INFLECTED
        if word in self._words:
            readings[word] = _EXACT
        return readings

    def _add_alike(self, words: Sequence[Word], readings: Sequence[dict[str, _Reading]]) -> None:
        """Add the words that unknown words may misspell. A word that passages have is not misspelt."""
        for word, of_word in zip(words, readings, strict=True):
            if of_word or is_frequent(word.key):
                continue
            alike = self._like.like(word.key)
            if alike and not (self._counts is not None and self._counts(word.key)):
                of_word.update((known, _Reading("alike", likeness)) for known, likeness in alike)

    def _sequences(
        self, line: GazetteerText, readings: Sequence[dict[str, _Reading]], taken: list[bool], *, told: bool
    ) -> Iterable[tuple[NameMatch, Sequence[int]]]:
        """Whole names among the free words, which are taken then."""
        at = 0
        while at < len(readings):
            match = None if taken[at] or not readings[at] else self._longest(line.words, readings, taken, at, told=told)
            if match is None:
                at += 1
                continue
            taken[at : match.stop] = [True] * (match.stop - at)
            here = line.words[at : match.stop]
            matched = line.text[here[0].start : here[-1].end]
            yield NameMatch("", match.confidence, matched, match.kind, here[0].start), match.key.names
            at = match.stop

    def _longest(
        self,
        words: Sequence[Word],
        readings: Sequence[dict[str, _Reading]],
        taken: Sequence[bool],
        at: int,
        *,
        told: bool,
    ) -> _Match | None:
        best: _Match | None = None
        seconds = readings[at + 1] if at + 1 < len(words) and not taken[at + 1] else ()
        for beginning in (*product(readings[at], seconds), *((first,) for first in readings[at])):
            for key in self._beginning.get(beginning, ()):
                stop = at + len(key.words)
                if best is not None and stop < best.stop:
                    break  # the longest come first
                read = _read_as(key, readings, taken, at)
                match = read and self._judged(key, words[at:stop], read, stop, told=told)
                if match and (best is None or (stop, match.confidence) > (best.stop, best.confidence)):
                    best = match
        return best

    def _judged(
        self, key: _Key, words: Sequence[Word], read: Sequence[_Reading], stop: int, *, told: bool
    ) -> _Match | None:
        """How surely some words are a name; None if they are rather common words."""
        kind, confidence = _kind_of(key, read)
        if len(words) == 1 and not told and not _tells(words[0]):
            if is_frequent(words[0].key) or not any(self._stands_alone(key, name) for name in key.names):
                return None
            confidence *= 1.0 if words[0].capital else WRITTEN_SMALL
        return _Match(stop, key, kind, confidence)

    def _stands_alone(self, key: _Key, name: int) -> bool:
        """Whether a single lower-case word is a name all the same."""
        return self._names[name].given or self._counts is None or self._seldom_apart(key.words[0], name)

    def _in_part(
        self, line: GazetteerText, readings: Sequence[dict[str, _Reading]], taken: Sequence[bool], *, told: bool
    ) -> Iterable[tuple[NameMatch, Sequence[int]]]:
        """Names of which free words, one after the other, are parts that no other name has together."""
        at = 0
        while at < len(line.words):
            stop, count, owners, confidence = self._part_at(line, readings, taken, at)
            if len(owners) == 1 and (told or count > 1 or self._stands_for(line.words[at], min(owners))):
                here = line.words[at:stop]
                matched = line.text[here[0].start : here[-1].end]
                yield NameMatch("", CONFIDENCE["part"] * confidence, matched, "part", here[0].start), tuple(owners)
            at = max(stop, at + 1)

    def _part_at(
        self, line: GazetteerText, readings: Sequence[dict[str, _Reading]], taken: Sequence[bool], at: int
    ) -> tuple[int, int, frozenset[int], float]:
        """The longest part of a name from a word on: its end, its significant words, whose it is, and how surely."""
        stop, count, owners, confidence = at, 0, frozenset[int](), 1.0
        for place in range(at, len(line.words)):
            frequent = is_frequent(line.words[place].key)
            if taken[place] or (frequent and not count):
                break
            if frequent:
                continue
            of_word, surest = self._owners_of(readings[place])
            both = owners & of_word if count else of_word
            if not both:
                break
            stop, count, owners, confidence = place + 1, count + 1, both, min(confidence, surest)
        return stop, count, owners, confidence

    def _owners_of(self, readings: Mapping[str, _Reading]) -> tuple[frozenset[int], float]:
        """The names that a word may be a part of, and how surely it is one of their words."""
        of_word = {known: one for known, one in readings.items() if known in self._owners}
        owners = frozenset[int]().union(*(self._owners[known] for known in of_word))
        return owners, max((CONFIDENCE[one.kind] * one.likeness for one in of_word.values()), default=0.0)

    def _stands_for(self, word: Word, name: int) -> bool:
        """Whether a word is more than a word that a name happens to have."""
        return _tells(word) or self._seldom_apart(word.key, name)

    def _seldom_apart(self, word: str, name: int) -> bool:
        return self._counts is not None and self._counts(word) <= RARELY_APART * max(1, self._names[name].passages)

    def _owners_of_words(self, aliases: Sequence[tuple[str, Sequence[str]]]) -> dict[str, frozenset[int]]:
        """The names with each word. A lower-case alias is a description, whose single words name nobody."""
        described = {way for _, others in aliases for one in others if one.islower() for way in ways_of(one)}
        owners: defaultdict[str, set[int]] = defaultdict(set)
        for key in self._keys:
            if key.words not in described:
                for word in key.words:
                    owners[word].update(key.names)
        return {word: frozenset(names) for word, names in owners.items() if _is_part(word, len(names))}


def _tells(word: Word) -> bool:
    """Whether a word's capital shows that it is a name."""
    return word.capital and not word.opens


def _is_part(word: str, owners: int) -> bool:
    """Whether a word by itself can stand for a name that has it."""
    return owners <= MAX_OWNERS and len(word) >= _LEAST_PART and not is_frequent(word) and not word.isdecimal()


def _read_as(
    key: _Key, readings: Sequence[dict[str, _Reading]], taken: Sequence[bool], at: int
) -> list[_Reading] | None:
    """How free words from a place on are a name's; None if they are not."""
    stop = at + len(key.words)
    if stop > len(readings) or any(taken[at:stop]):
        return None
    read = [here[word] for here, word in zip(readings[at:stop], key.words, strict=True) if word in here]
    return read if len(read) == len(key.words) else None


def _kind_of(key: _Key, read: Sequence[_Reading]) -> tuple[Kind, float]:
    """The least sure kind of a name's words, and the confidence in them."""
    kind: Kind = "alias" if key.alias else "exact"
    confidence = CONFIDENCE[kind]
    for other in _LESS_SURE:
        if any(one.kind == other for one in read):
            kind, confidence = other, min(confidence, CONFIDENCE[other])
    return kind, confidence * min(one.likeness for one in read)


_LESS_SURE: Sequence[Kind] = ("inflected", "alike")
_EXACT = _Reading("exact", 1.0)
_INFLECTED = _Reading("inflected", 1.0)


def _significant(line: GazetteerText) -> int:
    """How many words a text has but for an article at its beginning."""
    words = [word.key for word in line.words]
    return len(words) - (len(words) > 1 and words[0] in ARTICLES)
