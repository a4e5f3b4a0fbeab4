"""Drop invisible characters, with which a text says one thing to people and another to a model."""

from __future__ import annotations

import re
import unicodedata

_KEPT = frozenset("\n\t\u200c\u200d")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks by category that show nothing: the fillers of Hangul and Khmer, and the grapheme joiner."""
_LOOSE = re.compile("(?<!\\S)[\u200c\u200d\u180b-\u180d\u180f\u2800\ufe00-\ufe0f]+|[\u200c\u200d]+(?!\\S)")
"""Joiners at the edges of a word, variation selectors and braille blanks at its beginning: they do nothing there."""


def visible(value: str) -> str:
    """A text without invisible characters, so that texts that look alike are equal.

    Format characters (tags and supplementary variation selectors included), fillers and control characters are dropped;
    line feeds, tabs, and joiners inside words stay, which Persian, Indic scripts and some emoji need.
    """
    if value.isascii() and value.isprintable():
        return value
    unseen = {char for char in set(value) if char not in _KEPT and is_unseen(char)}
    return _LOOSE.sub("", value.translate(dict.fromkeys(map(ord, unseen))) if unseen else value)


def is_unseen(char: str) -> bool:
    """Whether a character is a format, control, private or surrogate one, a filler, or a further variation selector."""
    return (
        unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
        or char in _FILLERS
        or "\U000e0100" <= char <= "\U000e01ef"
    )
