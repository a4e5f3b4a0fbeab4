"""Cutting a sentence that is longer than a chunk: between clauses, or else between words, or else anywhere."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

from cicada.text.token_estimates import estimated_tokens

MAX_CHARS_A_TOKEN = 4
"""More characters than a token ever has by the estimate."""

_CLAUSE = re.compile(r"[,;:–—)\]]\s+|[、，；：）]")
_WORD = re.compile(r"\s+|[\u200b\u2028]")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def pieces(text: str, limit: int) -> Iterator[str]:
    """Cut a text into pieces of at most ``limit`` tokens; joined they are the text."""
    start = 0
    while len(text) - start > limit * MAX_CHARS_A_TOKEN or estimated_tokens(text[start:]) > limit:
        end = start + _reach(text[start : start + limit * MAX_CHARS_A_TOKEN], limit)
        cut = _last(_CLAUSE, text, start + (end - start) // 2, end) or _last(_WORD, text, start + 1, end)
        cut = cut or _between_characters(text, start, end)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _reach(text: str, limit: int) -> int:
    """How many characters from the beginning make ``limit`` tokens."""
    return max(1, bisect_right(range(len(text) + 1), limit, key=lambda end: estimated_tokens(text[:end])) - 1)


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """Where the last match between two positions ends."""
    last = None
    for match in pattern.finditer(text, start, end):
        last = match.end()
    return last


def _between_characters(text: str, start: int, end: int) -> int:
    """The position at or before ``end`` that takes no character apart, as people see characters."""
    cut = end
    while cut > start + 1 and _continues(text, cut):
        cut -= 1
    return end if cut == start + 1 and _continues(text, cut) else cut


def _continues(text: str, at: int) -> bool:
    return at < len(text) and (unicodedata.combining(text[at]) > 0 or text[at] in _JOINERS or text[at - 1] == "\u200d")
