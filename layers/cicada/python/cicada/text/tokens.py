"""From normalised text to tokens (words, codes, runs of scripts without spaces), and estimates of models' tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from cicada.text.characters import UNSPACED, marks, spaced_letter

MAX_TOKEN_CHARS = 64  # what is longer (encoded data, mostly) is cut, in texts and queries alike

_JOINERS = r"(?:::|[-_.:@'’])"
_ASCII_WORD = "[a-z0-9]"


def _tokens(letter: str, *, unspaced: str = "") -> re.Pattern[str]:
    """Letters and digits joined by single joiners, or by a comma between digits; *c++* and *c#* keep their signs."""
    word = rf"{letter}+(?:(?:{_JOINERS}|(?<=\d),(?=\d)){letter}+)*(?:\+\+|#(?!{letter}))?"
    return re.compile(f"[{unspaced}]+|{word}" if unspaced else word)


_IN_ASCII = _tokens(_ASCII_WORD)
_IN_WORDS = _tokens(r"[^\W_]")


@cache
def _beyond_words() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}{marks()}]")


@cache
def _in_any_script() -> re.Pattern[str]:
    return _tokens(spaced_letter(), unspaced=UNSPACED)


class WrittenToken(NamedTuple):
    """A token as it is written."""

    text: str
    start: int


def written_tokens(text: str) -> Iterator[WrittenToken]:
    """The tokens of a text in compatibility form, as it writes them: with capitals, accents and apostrophes."""
    return (WrittenToken(match[0], match.start()) for match in _in_any_script().finditer(text))


def tokens(text: str) -> list[str]:
    """The tokens of a normalised text, in order: words, codes with their joiners, runs of scripts without spaces."""
    if text.isascii():
        return _IN_ASCII.findall(text)
    if _beyond_words().search(text):
        return _in_any_script().findall(text)
    return _IN_WORDS.findall(text)


_LETTERS_A_TOKEN = 3.5
_LETTERS = re.compile(r"[A-Za-z\s]+")


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    English takes about four characters a token with today's models; a digit, a sign and a character beyond ASCII are
    counted as one each.
    """
    return round(share_of_tokens(text))


def share_of_tokens(text: str) -> float:
    """What a text adds to the tokens of one that it is part of: before rounding, so that these add up."""
    letters = sum(map(len, _LETTERS.findall(text)))
    return letters / _LETTERS_A_TOKEN + len(text) - letters
