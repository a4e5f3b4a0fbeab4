"""Markers of an answer: ``[3]``, ``[1][3]``, ``[1, 3]``, ``[1-3]``, ``[Doc 2: report.pdf, Page 4]`` and their kin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_RANGE = 20
"""Numbers that one range stands for at most; of a longer one only its ends are taken."""
MAX_LEAD_CHARS = 40
"""How far before a marker the words are looked for that introduce it."""
_MARKERS_KEPT = 4_096

_BRACKET = re.compile(r"\[([^\[\]\n]{1,400})\]")
_ONE = r"\d{1,3}(?:\s*[-–—]\s*\d{1,3})?"
_NUMBER_LIST = re.compile(rf"\s*#?{_ONE}(?:\s*[,;]\s*#?{_ONE})*\s*")
_AND = r"\s*(?:,\s*(?:and\b)?|&|and\b)\s*"
_SPAN = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
_DOC = r"(?:doc(?:ument)?|source|passage)s?\b\.?"
_BETWEEN_DOCUMENTS = re.compile(rf"\s*;\s*|\s*,\s*(?={_DOC}\s*#?\s*\d)", re.IGNORECASE)
_DOCUMENT = re.compile(rf"{_DOC}\s*#?\s*(\d{{1,3}}\b)?\s*", re.IGNORECASE)
_DOCUMENTS = re.compile(rf"{_DOC}\s*(#?{_ONE}(?:{_AND}#?{_ONE})*)", re.IGNORECASE)
_PAGE = r"\d{1,6}(?:\s*[-–—]\s*\d{1,6})?"
_PAGES = re.compile(
    rf"(?:^|[,:\s])\s*(?:pages?|pgs?\.?|pp?\.?|seiten?|s\.)\s*({_PAGE}(?:{_AND}{_PAGE})*)$", re.IGNORECASE
)
_TOGETHER = re.compile(r"(?:\s*(?:[,;&]|and\b))?\s*")
_LEAD = (
    r"(?:see(?:\s+also)?|cf\.?|compare|siehe(?:\s+auch)?|vgl\.?|voir|véase|vedi|zie|veja|参见|参照|"
    r"(?:sources?|references?|refs?\.?|quellen?|fuentes?|fontes?|fonti?|bron(?:nen)?|来源|出典)\s*[:：]?)"
)
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
    for start, after in _cut_out(text):
        kept.append(text[end:start])
        end = after
    plain = " ".join("".join([*kept, text[end:]]).split())
    return re.sub(r"\s+([.,;:!?。、])", r"\1", plain) if end else plain


def _cut_out(text: str) -> Iterator[tuple[int, int]]:
    """Where markers stand together, with the bracket around them and the words before them that say nothing else."""
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
    for part in _BETWEEN_DOCUMENTS.split(inside):
        documents = _DOCUMENTS.fullmatch(part.strip())
        if documents or (found and _NUMBER_LIST.fullmatch(part)):
            found += (Reference(n) for n in _listed(documents[1] if documents else part))
            continue
        reference = _document(part)
        if reference is None:
            return ()
        found.append(reference)
    return tuple(dict.fromkeys(found))


def _listed(text: str) -> Iterator[int]:
    for start, end in _spans(text):
        yield from range(start, end + 1) if end - start < MAX_RANGE else (start, end)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of a list, a lone number being one; of one that runs backwards only its ends are taken."""
    for first, last in _SPAN.findall(text):
        start, end = int(first), int(last or first)
        yield from ((start, end),) if start <= end else ((start, start), (end, end))


def _document(part: str) -> Reference | None:
    part = part.strip()
    pages = _PAGES.search(part)
    rest = part[: pages.start()].strip(" ,:") if pages else part
    word = _DOCUMENT.match(rest)
    named = rest[word.end() :] if word else rest
    file = named.strip(" \t,:\"'“”‘’`") or None
    n = int(word[1]) if word and word[1] else None
    if n is not None:
        known = file is None or named.startswith((":", ",")) or _EXTENSION.search(file) is not None
    else:
        known = file is not None and _EXTENSION.search(file) is not None
    return Reference(n, file, tuple(_spans(pages[1])) if pages else ()) if known else None
