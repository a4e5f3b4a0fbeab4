"""Citation markers of an answer: ``[3]``, ``[1][3]``, ``[1, 3]``, ``[1-3]``, ``[Doc 2: report.pdf, Page 4]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from cicada.text.word_lists import any_word, word_lists

MAX_RANGE = 20  # numbers in one range; a longer range counts as its two ends
MAX_LEAD_CHARS = 40  # searched before a marker for words that introduce it
_MARKERS_KEPT = 4_096

_LISTS = word_lists("cicada.protocol", "marker_words.json")
_BRACKET = re.compile(r"\[([^\[\]\n]{1,400})\]")
_ONE = r"\d{1,3}(?:\s*[-–—]\s*\d{1,3})?"
_JOINING = any_word(_LISTS["joining"])
_AND = rf"\s*(?:,\s*(?:{_JOINING}\b)?|&|\b{_JOINING}\b)\s*"
_NUMBER_LIST = re.compile(rf"\s*#?{_ONE}(?:(?:{_AND}|\s*;\s*)#?{_ONE})*\s*")
_SPAN = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
_DOC = rf"{any_word(_LISTS['documents'])}\b\.?"
_BETWEEN_DOCUMENTS = re.compile(rf"\s*;\s*|{_AND}(?={_DOC}\s*#?\s*\d)", re.IGNORECASE)
_DOCUMENTS = re.compile(
    rf"{_DOC}\s*(#?{_ONE}(?:{_AND}#?{_ONE})*(?=\s*(?:[:,]|\Z))|#?\s*\d{{1,3}}\b)?\s*", re.IGNORECASE
)
_PAGE = r"\d{1,6}(?:\s*[-–—]\s*\d{1,6})?"
_PAGES = re.compile(rf"(?:^|[,:\s])\s*{any_word(_LISTS['pages'])}\s*({_PAGE}(?:{_AND}{_PAGE})*)$", re.IGNORECASE)
_STOP = re.compile(r"\s*[.,;:!?。、]")
_TOGETHER = re.compile(rf"(?:\s*(?:[,;&]|{_JOINING}\b))?\s*")
_LABEL = rf"{any_word(_LISTS['labels'])}\s*[:：]?"
_LEAD = rf"(?:{any_word(_LISTS['leads'])}|{_LABEL})"
_HEADING = re.compile(rf"[\s#*_>•–-]*{_LABEL}[\s*_:：]*", re.IGNORECASE)
_INTRODUCED = tuple(
    (re.compile(before, re.IGNORECASE), re.compile(after))
    for before, after in (
        (rf"[(（]\s*(?:{_LEAD}\s*)?\Z", r"\s*(?:[)）]|\Z)"),
        (rf"(?:[,;–—]|\s-)\s*{_LEAD}\s*\Z", r"(?=\s*(?:[.,;:!?)。、）]|\Z))"),
        (rf"(?:^|(?<=[.!?…]\s)|(?<=[。\n]))\s*{_LEAD}\s*\Z", r"\s*[.;。](?=\s|\Z)|\s*?(?=\n|\Z)"),
    )
)
"""Text that only introduces markers, and what must follow them: in brackets, after a comma, as a sentence."""
_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{1,5}$", re.IGNORECASE)


@dataclass(frozen=True)
class Reference:
    """A passage that a marker names by its number, its place, or both."""

    n: int | None
    file: str | None = None
    pages: tuple[tuple[int, int], ...] = ()  # first and last page, inclusive; empty for the whole file


@dataclass(frozen=True)
class Marker:
    """A marker's extent in characters of the answer, and its references."""

    start: int
    end: int
    references: tuple[Reference, ...]


def markers_in(text: str) -> Iterator[Marker]:
    """The markers of a text, in order. Brackets that name neither a number nor a file are plain text."""
    for bracket in _BRACKET.finditer(text):
        references = _references(bracket.group(1))
        if references:
            yield Marker(bracket.start(), bracket.end(), references)


def without_markers(text: str) -> str:
    """The text without its markers and the words that only introduce them (*see [3]*), single-spaced."""
    kept, end = "", 0
    for start, after in marked_spans(text):
        kept += text[end:start]
        if stop := _STOP.match(text, after):  # only here: the blank of "$ ./run" stays
            kept, after = kept.rstrip(), stop.end() - 1
        end = after
    return " ".join((kept + text[end:]).split())


def heads_sources(text: str) -> bool:
    """Whether a text without markers is a heading of a source list: ``## Sources``, ``**Quellen:**``."""
    return _HEADING.fullmatch(text) is not None


def marked_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and exclusive end of each group of adjacent markers, with the brackets and words that introduce it."""
    groups: list[tuple[int, int]] = []
    for marker in markers_in(text):
        if groups and _TOGETHER.fullmatch(text, groups[-1][1], marker.start):
            groups[-1] = (groups[-1][0], marker.end)
        else:
            groups.append((marker.start, marker.end))
    for start, end in groups:
        for before, after in _INTRODUCED:
            lead = before.search(text, max(0, start - MAX_LEAD_CHARS), start)
            rest = after.match(text, end) if lead else None
            if lead and rest:
                yield lead.start(), rest.end()
                break
        else:
            yield start, end


@lru_cache(_MARKERS_KEPT)
def _references(inside: str) -> tuple[Reference, ...]:
    if _NUMBER_LIST.fullmatch(inside):
        return tuple(Reference(n) for n in dict.fromkeys(_listed(inside)))
    found: list[Reference] = []
    for part in map(str.strip, _BETWEEN_DOCUMENTS.split(inside)):
        if found and _NUMBER_LIST.fullmatch(part):
            found += map(Reference, _listed(part))
            continue
        references = _of_documents(part)
        if not references:
            return ()
        found += references
    return tuple(dict.fromkeys(found))


def _listed(text: str) -> Iterator[int]:
    for start, end in _spans(text):
        yield from range(start, end + 1) if end - start < MAX_RANGE else (start, end)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of a list, a single number being one. A range that runs backwards counts as its two ends."""
    for first, last in _SPAN.findall(text):
        start, end = int(first), int(last or first)
        yield from ((start, end),) if start <= end else ((start, start), (end, end))


def _of_documents(part: str) -> list[Reference]:
    """The references of one place: all its numbers share its file and pages. Empty if it names neither."""
    pages = _PAGES.search(part)
    rest = part[: pages.start()].strip(" ,:") if pages else part
    word = _DOCUMENTS.match(rest)
    start, listed = (word.end(), word[1] or "") if word else (0, "")
    name = rest[start:]
    file = name.strip(" \t,:\"'“”‘’`") or None
    numbers = [*_listed(listed)]
    if not _is_named(numbers, file, name):
        return []
    within = tuple(_spans(pages[1])) if pages else ()
    return [Reference(n, file, within) for n in numbers or (None,)]


def _is_named(numbers: list[int], file: str | None, name: str) -> bool:
    if file is None:
        return bool(numbers)
    return _EXTENSION.search(file) is not None or (bool(numbers) and name.startswith((":", ",")))
