"""An answer's sentences, and what each of their markers stands for."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from cicada.citations.quotes import QUOTED
from cicada.corpus.chunking.sentences import sentences as split_sentences
from cicada.protocol.markers import Marker, Reference, markers_in, without_markers

MIN_PIECE_WORDS = 4
"""A marker inside a sentence stands for the words since the one before it, if they are at least so many."""

_LINE = re.compile(r"[^\n]*(?:\n+|\Z)")
_LETTER = re.compile(r"[^\W\d_]")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+")


@dataclass(frozen=True)
class Citing:
    """Markers that stand together, and the words that they stand for."""

    references: tuple[Reference, ...]
    claim: str


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer."""

    text: str
    """Without its markers."""
    start: int
    end: int
    """In characters of the answer, its markers included."""
    citing: tuple[Citing, ...] = field(default=())


def sentences_of(answer: str) -> list[Sentence]:
    """The sentences, in order. A marker belongs to the sentence before it or around it; at a line's head, to the line.

    A quotation of several sentences belongs to the sentence that quotes it.
    """
    markers = list(markers_in(answer))
    spans = [*_spans(answer, markers)]
    starts = [start for start, _ in spans]
    found: list[Sentence] = []
    for at, (start, end) in enumerate(spans):
        mine = markers[_first(markers, start) : _first(markers, end)]
        if not _LETTER.search(without_markers(answer[start:end])) and mine and found and starts[at] > 0:
            found[-1] = _sentence(answer, found[-1].start, end, markers)  # a marker on a line of its own
        elif answer[start:end].strip():
            found.append(_sentence(answer, start, end, markers))
    return found


def _first(markers: list[Marker], at: int) -> int:
    return bisect_left(markers, at, key=lambda marker: marker.start)


def _spans(answer: str, markers: list[Marker]) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end: a line's end ends one, too.

    Markers are blanked out first, so that no period in them ends one, and the white space that they become stays with
    the sentence before them.
    """
    blanked = list(answer)
    for marker in markers:
        blanked[marker.start : marker.end] = " " * (marker.end - marker.start)
    text = "".join(blanked)
    quotes = [match.span() for match in QUOTED.finditer(text)]
    start = end = 0
    for line in _LINE.findall(text):
        for sentence in split_sentences(line):
            end += len(sentence)
            before = bisect_left(quotes, (end, end)) - 1
            if before >= 0 and end < quotes[before][1]:
                continue
            yield start, end
            start = end
    if start < end:
        yield start, end


def _sentence(answer: str, start: int, end: int, markers: list[Marker]) -> Sentence:
    while start < end and answer[start].isspace():
        start += 1
    while end > start and answer[end - 1].isspace():
        end -= 1
    text = without_markers(answer[start:end])
    mine = markers[_first(markers, start) : _first(markers, end)]
    return Sentence(text, start, end, tuple(_citing(answer, start, end, text, mine)))


def _citing(answer: str, start: int, end: int, text: str, markers: list[Marker]) -> Iterator[Citing]:
    groups: list[list[Marker]] = []
    for marker in markers:
        if groups and not _LETTER.search(answer[groups[-1][-1].end : marker.start]):
            groups[-1].append(marker)
        else:
            groups.append([marker])
    if not groups:
        return
    ends = [*(group[-1].end for group in groups[:-1]), end]  # what follows the last marker is its, too
    starts = [start, *ends[:-1]]
    pieces = [without_markers(answer[one:other]) for one, other in zip(starts, ends, strict=True)]
    whole = len(pieces) < 2 or any(len(piece.split()) < MIN_PIECE_WORDS for piece in pieces)
    for group, piece in zip(groups, pieces, strict=True):
        references = dict.fromkeys(reference for marker in group for reference in marker.references)
        yield Citing(tuple(references), _BULLET.sub("", text if whole else piece.lstrip(" ,;)").rstrip(" ,;")))
