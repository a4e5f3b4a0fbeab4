"""An answer's sentences, the claim of each marker, and the sentences that say that nothing was found."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cicada.protocol.markers import Marker, Reference, heads_sources, marked_spans, markers_in, without_markers
from cicada.text.linear import LinearClassifier
from cicada.text.sentences import NEVER_LAST, QUOTED, without_item_sign, without_quotations
from cicada.text.sentences import sentences as split_sentences

ABSTAINS = "abstains"
LEAST_ABSTAINING = 0.9  # probability: high, since the markers of an abstaining sentence are not checked
MIN_PIECE_WORDS = 4  # a marker inside a sentence covers the words since the previous one, if there are so many

_LINE = re.compile(r"[^\n]*(?:\n+|\Z)")
_LETTER = re.compile(r"[^\W\d_]")
_LAST_WORD_CHARS = 40  # how far before a marker the word is looked for that a stop follows
_STOPPED = re.compile(r"(?<=[\w,;:]\s)(?P<word>[^\W\d_][\w.]*)(?P<stop>\.)[\"'”’»)\]*_]*\s*\Z")
_BEGINS = re.compile(r"\s+[^\w\s]{0,3}(?P<letter>[^\W\d_])")


@dataclass(frozen=True)
class Citing:
    """Adjacent markers, and the words that they cover."""

    references: tuple[Reference, ...]
    claim: str


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer."""

    text: str  # without its markers
    start: int
    end: int  # in characters of the answer, its markers included
    citing: tuple[Citing, ...] = field(default=())


def sentences_of(answer: str) -> list[Sentence]:
    """The sentences, in order. A marker belongs to the sentence before or around it; at a line's start, to the line.

    A quotation of several sentences belongs to the sentence that quotes it. A list of sources is not a sentence: its
    markers count only if no sentence before has them.
    """
    markers = list(markers_in(answer))
    found: list[_Draft] = []
    within: set[Reference | int] = set()
    listing = False
    for start, end in _spans(answer):
        mine = markers[_first(markers, start) : _first(markers, end)]
        words = without_markers(answer[start:end])
        heading = heads_sources(words)
        if found and (heading or (mine and not _LETTER.search(words))):
            listing = listing or heading or _LETTER.search(answer, start, mine[0].start) is not None
            known = within if listing or found[-1].markers else set()
            if kept := [*_without(mine, known)]:
                found[-1].end = end
                found[-1].markers += kept
        elif answer[start:end].strip():
            found.append(_Draft(start, end, words, mine))
            within.update(_named(reference) for marker in mine for reference in marker.references)
            listing = False
    return [_sentence(answer, draft) for draft in found]


@dataclass
class _Draft:
    """A sentence, to which markers on the lines after it may be added."""

    start: int
    end: int
    text: str
    markers: list[Marker]


def _named(reference: Reference) -> Reference | int:
    return reference if reference.n is None else reference.n


def _without(markers: list[Marker], known: set[Reference | int]) -> Iterator[Marker]:
    """The markers but for references that are known."""
    for marker in markers:
        if references := tuple(one for one in marker.references if _named(one) not in known):
            yield replace(marker, references=references)


def _first(markers: list[Marker], at: int) -> int:
    return bisect_left(markers, at, key=lambda marker: marker.start)


def _spans(answer: str) -> Iterator[tuple[int, int]]:
    """Start and end of sentences, which also end at line ends; a blanked marker stays with the sentence before it."""
    text = _blanked(answer)
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


def _blanked(answer: str) -> str:
    """The answer with blanks for markers, at equal length, so that no period in them ends a sentence.

    A stop next to a marker ends its sentence even after an abbreviation (*at 5 p.m. [1] Mara slept*): it becomes an
    exclamation mark.
    """
    blanked, cut = list(answer), [*marked_spans(answer)]
    for start, end in cut:
        blanked[start:end] = " " * (end - start)
    text = "".join(blanked)
    for start, end in cut:
        stopped = _STOPPED.search(text, max(0, start - _LAST_WORD_CHARS), start)
        begins = _BEGINS.match(text, end) if stopped else None
        if answer[end : end + 1] == ".":
            blanked[end] = "!"
        elif stopped and begins and begins["letter"].isupper() and stopped["word"].casefold() not in NEVER_LAST:
            blanked[stopped.start("stop")] = "!"
    return "".join(blanked)


def _sentence(answer: str, draft: _Draft) -> Sentence:
    start, end = draft.start, draft.end
    while start < end and answer[start].isspace():
        start += 1
    while end > start and answer[end - 1].isspace():
        end -= 1
    return Sentence(draft.text, start, end, tuple(_citing(answer, start, end, draft.text, draft.markers)))


def _groups(answer: str, markers: list[Marker]) -> list[list[Marker]]:
    """Markers without a letter between them."""
    groups: list[list[Marker]] = []
    for marker in markers:
        if groups and not _LETTER.search(answer[groups[-1][-1].end : marker.start]):
            groups[-1].append(marker)
        else:
            groups.append([marker])
    return groups


def _citing(answer: str, start: int, end: int, text: str, markers: list[Marker]) -> Iterator[Citing]:
    groups = _groups(answer, markers)
    if not groups:
        return
    ends = [*(group[-1].end for group in groups[:-1]), end]  # the last marker also covers what follows it
    starts = [start, *ends[:-1]]
    pieces = [without_markers(answer[one:other]) for one, other in zip(starts, ends, strict=True)]
    whole = len(pieces) < 2 or any(len(piece.split()) < MIN_PIECE_WORDS for piece in pieces)
    for group, piece in zip(groups, pieces, strict=True):
        references = dict.fromkeys(reference for marker in group for reference in marker.references)
        yield Citing(tuple(references), without_item_sign(text if whole else piece.lstrip(" ,;)").rstrip(" ,;")))


def abstains(sentence: str) -> bool:
    """Whether a sentence only says that the passages, or the search, do not tell.

    A trained classifier decides (``python -m training.abstentions``), without quotations: *Mara says: “I could not find
    it”* reports a passage.
    """
    classifier = LinearClassifier.of("cicada.citations", "abstentions")
    told = without_quotations(sentence)
    return classifier.decide(told, most_telling=0).probabilities[ABSTAINS] >= LEAST_ABSTAINING
