"""From text to tokens: words, codes, and runs of scripts without spaces, in one normal form."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from cicada.text.letters import UNSPACED, marks, spaced_letter

MAX_TOKEN_CHARS = 64
"""What is longer (encoded data, mostly) is cut, in texts and queries alike."""

_RAISED = re.compile(r"(?<=[\w)])([\u00b2\u00b3\u00b9\u2070-\u209c]+)")
_JOINERS = r"(?:::|[-_.:@'])"
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


class _Plain(dict[int, str | int]):
    """For ``str.translate``: one sign for each of several that mean the same. Filled as characters are met."""

    _SIGNS = str.maketrans("’ʼʹ′‘‛`´ꞌ‐‑‒−﹣", "'''''''''-----")
    _VOWEL_POINTS = re.compile(
        "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f]"
    )
    _DROPPED = re.compile("[\u00ad\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")

    def __missing__(self, code: int) -> str | int:
        sign = chr(code)
        plain: str | int = self._SIGNS.get(code, code)
        if self._VOWEL_POINTS.match(sign) or self._DROPPED.match(sign):
            plain = ""  # written or left out at will
        elif code > 127 and sign.isdecimal():
            plain = str(unicodedata.decimal(sign))
        self[code] = plain
        return plain


_PLAIN = _Plain()


def normalised(text: str, *, dotless_i: bool = False) -> str:
    """Text in compatibility form (NFKC), case folded, with one apostrophe, one hyphen and one set of digits.

    Args:
        text: anything; unpaired surrogates are dropped.
        dotless_i: whether the capital of *ı* is *I*, as in Turkish.
    """
    if dotless_i:
        text = text.replace("İ", "i").replace("I", "ı")
    if text.isascii():
        return text.lower()
    text = text.encode("utf-8", "ignore").decode()
    return unicodedata.normalize("NFKC", text.casefold()).casefold().translate(_PLAIN)


def raised_apart(text: str) -> str:
    """Text with raised and lowered digits apart from what they stand on: in compatibility form 10² would be 102."""
    return _RAISED.sub(r" ^ \1 ", text)


def tokens(text: str) -> list[str]:
    """The tokens of a normalised text, in order: words, codes with their joiners, runs of scripts without spaces."""
    if text.isascii():
        return _IN_ASCII.findall(text)
    if _beyond_words().search(text):
        return _in_any_script().findall(text)
    return _IN_WORDS.findall(text)
