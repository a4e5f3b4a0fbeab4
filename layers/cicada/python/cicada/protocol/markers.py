"""Markers of an answer: ``[3]``, ``[1][3]``, ``[1, 3]``, ``[1-3]``, ``[Doc 2: report.pdf, Page 4]`` and their kin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_RANGE = 20
"""Numbers that one range stands for at most; of a longer one only its ends are taken."""
_MARKERS_KEPT = 4_096

_BRACKET = re.compile(r"\[([^\[\]\n]{1,400})\]")
_NUMBER_LIST = re.compile(r"\s*#?\d{1,3}(?:\s*[-–—]\s*\d{1,3})?(?:\s*[,;]\s*#?\d{1,3}(?:\s*[-–—]\s*\d{1,3})?)*\s*")
_NUMBERS = re.compile(r"(\d{1,3})(?:\s*[-–—]\s*(\d{1,3}))?")
_DOC = r"(?:doc(?:ument)?|source|passage)s?\b\.?"
_BETWEEN_DOCUMENTS = re.compile(rf"\s*;\s*|\s*,\s*(?={_DOC}\s*#?\s*\d)", re.IGNORECASE)
_DOCUMENT = re.compile(rf"{_DOC}\s*#?\s*(\d{{1,3}}\b)?\s*", re.IGNORECASE)
_PAGE = re.compile(
    r"(?:^|[,:\s])\s*(?:pages?|pgs?\.?|pp?\.?|seiten?|s\.)\s*(\d{1,6})(?:\s*[-–—]\s*\d{1,6})?$", re.IGNORECASE
)
_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{1,5}$", re.IGNORECASE)


@dataclass(frozen=True)
class Reference:
    """What one marker points at: a number, a place, or both. Never neither."""

    n: int | None
    file: str | None = None
    page: int | None = None


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
    """The text as it is read: without its markers, with single spaces."""
    kept, end = [], 0
    for marker in markers_in(text):
        kept.append(text[end : marker.start])
        end = marker.end
    plain = " ".join("".join([*kept, text[end:]]).split())
    return re.sub(r"\s+([.,;:!?。、])", r"\1", plain) if end else plain


@lru_cache(_MARKERS_KEPT)
def _references(inside: str) -> tuple[Reference, ...]:
    if _NUMBER_LIST.fullmatch(inside):
        return tuple(Reference(n) for n in dict.fromkeys(_listed(inside)))
    found: list[Reference] = []
    for part in _BETWEEN_DOCUMENTS.split(inside):
        if found and _NUMBER_LIST.fullmatch(part):
            found += (Reference(n) for n in _listed(part))
            continue
        reference = _document(part)
        if reference is None:
            return ()
        found.append(reference)
    return tuple(dict.fromkeys(found))


def _listed(text: str) -> Iterator[int]:
    for first, last in _NUMBERS.findall(text):
        start, end = int(first), int(last or first)
        yield from range(start, end + 1) if 0 <= end - start < MAX_RANGE else (start, end)


def _document(part: str) -> Reference | None:
    part = part.strip()
    page = _PAGE.search(part)
    rest = part[: page.start()].strip(" ,:") if page else part
    word = _DOCUMENT.match(rest)
    named = rest[word.end() :] if word else rest
    file = named.strip(" \t,:\"'“”‘’`") or None
    n = int(word[1]) if word and word[1] else None
    if n is not None:
        known = file is None or named.startswith((":", ",")) or _EXTENSION.search(file) is not None
    else:
        known = file is not None and _EXTENSION.search(file) is not None
    return Reference(n, file, int(page[1]) if page else None) if known else None
