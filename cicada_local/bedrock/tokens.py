"""Tokens as a count and as pieces of a stream. Estimates: every model has a tokenizer of its own."""

from __future__ import annotations

import math
import re

_PIECE = re.compile(r"\s*\S{1,12}\s?|\s+")


def count_tokens(text: str) -> int:
    """About a token to four characters of ASCII text, and one to each other character (Japanese comes near that)."""
    ascii_characters = sum(character.isascii() for character in text)
    return math.ceil(ascii_characters / 4) + len(text) - ascii_characters


def split_pieces(text: str) -> list[str]:
    """The text in word-sized pieces, whose concatenation it is."""
    return _PIECE.findall(text)
