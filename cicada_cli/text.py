"""Text for terminals."""

from __future__ import annotations

import re

UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # directions: they could make text read as another
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u3164\ufeff\uffa0\ufff9-\ufffb"  # not seen
    "\ud800-\udfff"  # surrogates: no encoding takes them
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # not seen: shorthand's and music's
    "\U000e0000-\U000e0fff]"  # tags and variation selectors: text that nobody sees
)
"""A regular expression of a character that controls a terminal or is invisible."""
_UNSAFE = re.compile(rf"\x1b\[[0-?]*[ -/]*[@-~]|{UNSAFE}")  # whole control sequences
_SIGNS = str.maketrans("✓✗·…→←–—“”‘’✎↺×", "+x-~><--\"\"''*@x")
"""ASCII in place of our signs, for terminals whose encoding lacks them."""


def printable(text: str) -> str:
    """The text without control characters and invisible characters: it may come from a model or a document."""
    return _UNSAFE.sub("", text)


def encodable(text: str, encoding: str | None) -> str:
    """The text with our signs replaced by ASCII if the encoding cannot represent the text."""
    if text.isascii():
        return text
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_SIGNS)
    return text


def one_line(text: str) -> str:
    """The text as one field of a line: without line breaks and tabs."""
    return printable(" ".join(text.split()))


def clipped(text: str, chars: int) -> str:
    """The text on one line, shortened with an ellipsis to at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """``1 passage``, ``2 passages``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
