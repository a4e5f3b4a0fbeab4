"""Text without characters that nobody sees: with them it would say one thing to people and another to a model."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t\u200c\u200d")


def visible(value: str) -> str:
    """Without the characters that nobody sees: a text that looks like another must be the other.

    Format characters, the tags and the supplementary variation selectors among them, and control characters are left
    out; line feeds and tabs stay, and the joiners, with which Persian and Indic words are written.
    """
    unseen = {char for char in set(value) if char not in _KEPT and is_unseen(char)}
    return value.translate(dict.fromkeys(map(ord, unseen))) if unseen else value


def is_unseen(char: str) -> bool:
    """Whether a character is a format, control, private or surrogate one, or a supplementary variation selector."""
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs") or "\U000e0100" <= char <= "\U000e01ef"
