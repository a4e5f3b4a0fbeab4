"""Drop invisible characters, with which a text says one thing to people and another to a model."""

from __future__ import annotations

import re
import unicodedata

_KEPT = frozenset("\n\t\u200c\u200d")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks by category that show nothing: the fillers of Hangul and Khmer, and the grapheme joiner."""
_LOOSE = re.compile("(?<!\\S)[\u200c\u200d\u180b-\u180d\u180f\u2800\ufe00-\ufe0f]+|[\u200c\u200d]+(?!\\S)")
"""Joiners at the edges of a word, variation selectors and braille blanks at its beginning: they do nothing there."""

SHOWN_AS_NOTHING = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufffc"
    "\U00013441\U00013442\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What is shown as nothing, whatever its category: Unicode's Default_Ignorable_Code_Point (without joiners, which words
of some scripts need), the empty Braille pattern, notehead and hieroglyphs, and the place of an object."""


def is_blank(value: str) -> bool:
    """Whether a text shows nothing: it has no letter, digit, punctuation or symbol that is seen.

    Spaces, controls, unassigned and private characters show nothing, nor do marks that stand on nothing.
    """
    return not any(unicodedata.category(char)[0] in "LNPS" and not SHOWN_AS_NOTHING.match(char) for char in value)


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
