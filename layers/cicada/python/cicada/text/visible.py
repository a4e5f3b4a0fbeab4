"""Text without characters that nobody sees: with them it would say one thing to people and another to a model."""

from __future__ import annotations

import re
import unicodedata

_KEPT = frozenset("\n\t\u200c\u200d")
_LOOSE_JOINERS = re.compile("(?<!\\S)[\u200c\u200d]+|[\u200c\u200d]+(?!\\S)")
"""At the beginning or the end of a word they join nothing."""


def visible(value: str) -> str:
    """Without the characters that nobody sees: a text that looks like another must be the other.

    Format characters, the tags and the supplementary variation selectors among them, and control characters are left
    out; line feeds and tabs stay, and the joiners within words, with which Persian and Indic words and some emoji are
    written.
    """
    if value.isascii() and value.isprintable():
        return value
    unseen = {char for char in set(value) if char not in _KEPT and is_unseen(char)}
    return _LOOSE_JOINERS.sub("", value.translate(dict.fromkeys(map(ord, unseen))) if unseen else value)


def is_unseen(char: str) -> bool:
    """Whether a character is a format, control, private or surrogate one, or a supplementary variation selector."""
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs") or "\U000e0100" <= char <= "\U000e01ef"
