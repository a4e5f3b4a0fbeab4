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
"""A regular expression of a character that could do something to a terminal, or hide in it."""
_UNSAFE = re.compile(rf"\x1b\[[0-?]*[ -/]*[@-~]|{UNSAFE}")  # control sequences whole


def printable(text: str) -> str:
    """The text without what could do something to a terminal, or hide in it: nobody vouches for what a model writes."""
    return _UNSAFE.sub("", text)


def one_line(text: str) -> str:
    """The text fit for a line of several fields: it can begin no line and no field of its own."""
    return printable(" ".join(text.split()))


def clipped(text: str, chars: int) -> str:
    """The text on one line, cut with an ellipsis if it is longer than so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """``1 passage``, ``2 passages``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
