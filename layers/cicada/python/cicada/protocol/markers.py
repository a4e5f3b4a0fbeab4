"""Markers of an answer: ``[3]``, ``[1][3]``, ``[1, 3]``, ``[1-3]``, ``[Doc 2: report.pdf, Page 4]`` and their kin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from cicada.text.word_lists import any_word, word_lists

MAX_RANGE = 20
"""Numbers that one range stands for at most; of a longer one only its ends are taken."""
MAX_LEAD_CHARS = 40
"""How far before a marker the words are looked for that introduce it."""
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
"""What stands before markers and only introduces them, and what must then follow: in brackets, after a comma, alone."""
_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{1,5}$", re.IGNORECASE)


@dataclass(frozen=True)
class Reference:
    """What one marker points at: a number, a place, or both. Never neither."""

    n: int | None
    file: str | None = None
    pages: tuple[tuple[int, int], ...] = ()
    """From which page to which, both inclusive; none for the whole file."""


@dataclass(frozen=True)
class Marker:
    """One bracket, in characters of the answer."""

    start: int
    end: int
    references: tuple[Reference, ...]


def markers_in(text: str) -> Iterator[Marker]:
    """The markers of a text, in order. Brackets that name neither a number nor a file are words of the text."""
    for bracket in _BRACKET.finditer(text):
        references = _references(bracket.group(1))
        if references:
            yield Marker(bracket.start(), bracket.end(), references)


def without_markers(text: str) -> str:
    """The text as it is read: without its markers and what only introduces them (*see [3]*), with single spaces."""
    kept, end = [], 0
    for start, after in marked_spans(text):
        kept.append(text[end:start])
        end = after
    plain = " ".join("".join([*kept, text[end:]]).split())
    return re.sub(r"\s+([.,;:!?。、])", r"\1", plain) if end else plain


def heads_sources(text: str) -> bool:
    """Whether a text without its markers only announces a list of sources: ``## Sources``, ``**Quellen:**``."""
    return _HEADING.fullmatch(text) is not None


def marked_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where markers stand together, with the bracket around them and the words before them that say nothing else.

    Yields:
        Start and exclusive end, in characters of the text, in order.
    """
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
    """The ranges of a list, a lone number being one; of one that runs backwards only its ends are taken."""
    for first, last in _SPAN.findall(text):
        start, end = int(first), int(last or first)
        yield from ((start, end),) if start <= end else ((start, start), (end, end))


def _of_documents(part: str) -> list[Reference]:
    """What is said of one place: a file and pages are those of all its numbers. Nothing where it names neither."""
    pages = _PAGES.search(part)
    rest = part[: pages.start()].strip(" ,:") if pages else part
    word = _DOCUMENTS.match(rest)
    named = rest[word.end() :] if word else rest
    file = named.strip(" \t,:\"'“”‘’`") or None
    numbers = [*_listed(word[1])] if word and word[1] else []
    known = (file is not None and _EXTENSION.search(file) is not None) or (
        numbers and (file is None or named.startswith((":", ",")))
    )
    within = tuple(_spans(pages[1])) if pages else ()
    return [Reference(n, file, within) for n in numbers or (None,)] if known else []
