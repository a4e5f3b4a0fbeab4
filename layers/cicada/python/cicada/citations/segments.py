"""A passage in parts: its sentences, what stands between commas, its rows and its turns of speech."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from cicada.citations.measures import measure_of
from cicada.citations.numbers import quantities
from cicada.citations.reading import read
from cicada.index.lexical.scripts import is_unspaced

_KEPT = 256
_PARTS = re.compile(
    r"(?<=[.!?])\s+|[;\n]+\s*|[。！？；、，]|,\s+(?!\d)|\s(?:and|but|while|whereas|then|und|aber|während|et|"
    r"mais|tandis que|"
    r"y|pero|mientras|e|ma|mentre|en|maar)\s"
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|[;\n]+\s*|[。！？；]")
_TURN = re.compile(r"(?:^|(?<=[.!?…\"”’;|/\n])\s*)(?P<key>[^\W\d_][\w .'’-]{0,28}?)\s?[:：]\s?(?=\S)")
_CODE = re.compile(r"(?:\b[^\W\d_]{1,4}-|\b[A-Z]{1,3})$")
"""What makes the number after it a part of a code: *B-104*, *F2*."""
_MIN_TURNS = 2


@dataclass(frozen=True)
class Segment:
    """A part of a text."""

    text: str
    terms: frozenset[str]
    """Of the words that carry meaning; numbers among them, with a sign before them."""
    numbers: frozenset[tuple[str, str]]
    """Each number's value and unit; a measure in its smallest unit."""


@lru_cache(_KEPT)
def parts_of(text: str, language: str) -> tuple[Segment, ...]:
    """What stands between a text's full stops, commas and conjunctions."""
    return tuple(segment for part in _PARTS.split(text) if part for segment in (segment_of(part, language),))


@lru_cache(_KEPT)
def sentences_in(text: str, language: str) -> tuple[Segment, ...]:
    """A text's sentences, and what stands between its semicolons and its line ends."""
    return tuple(segment_of(part, language) for part in _SENTENCES.split(text) if part)


@lru_cache(_KEPT)
def segment_of(text: str, language: str) -> Segment:
    """A text as one part."""
    terms = {
        word.term
        for clause in read(text, language)
        for word in clause.words
        if not word.turning or is_unspaced(word.term[:1])
    }
    found = set()
    plain = unicodedata.normalize("NFKC", text)
    for quantity in quantities(text, doubtful=True):
        code = _CODE.search(plain[: quantity.start])
        measure = measure_of(quantity)
        if code is not None:
            found.add((quantity.value, code[0]))
            continue
        found.add((str(measure[1].normalize()), measure[0]) if measure else (quantity.value, quantity.unit))
    return Segment(text, frozenset(terms), frozenset(found))


@dataclass(frozen=True)
class Turn:
    """What somebody says, or what stands in a row, under its key."""

    key: str
    text: str


@lru_cache(_KEPT)
def turns_of(text: str) -> tuple[Turn, ...]:
    """The turns of a text that has several: *ANNA: I know. BRUNO: You do not.*; empty for any other text."""
    found = list(_TURN.finditer(text))
    if len(found) < _MIN_TURNS or found[0].start() > 0 or len({match["key"].lower() for match in found}) < _MIN_TURNS:
        return ()
    ends = [match.start() for match in found[1:]] + [len(text)]
    return tuple(
        Turn(match["key"].strip(), text[match.end() : end].strip()) for match, end in zip(found, ends, strict=True)
    )


def rows_of(text: str) -> Iterator[str]:
    """The rows of a table: its lines, or what stands between slashes and semicolons, where cells are parted by bars."""
    if "|" in text:
        yield from (row for row in re.split(r"\n|\s/\s|;", text) if "|" in row)
