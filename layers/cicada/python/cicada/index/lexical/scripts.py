"""Writing systems: which characters form words, and which are written without spaces between words."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from itertools import pairwise

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"
_BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_LAO = "\u0e81-\u0ece\u0edc-\u0edf"
_BURMESE = "\u1000-\u103f\u1050-\u108f\u109a-\u109f\uaa60-\uaa7f"
_KHMER = "\u1780-\u17d3"

UNSPACED = _HAN + _KANA + _BOPOMOFO + _HANGUL + _THAI + _LAO + _BURMESE + _KHMER
"""Characters (as the inside of a regular expression's class) whose runs are cut into overlapping pairs.

Hangul has spaces, but its words carry their particles: by pairs of syllables a word is found whatever it ends in, which
has been as good as morphological analysis for retrieval (Lee and Ahn, SIGIR 1996).
"""

_SPOKEN_AROUND = (  # vowels and tones that belong to the consonant before them
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    "\u17b4-\u17d3"
)
_CLUSTERS = re.compile(f"[^{_SPOKEN_AROUND}]?[{_SPOKEN_AROUND}]+|.", re.DOTALL)
_WORDLIKE = re.compile(f"[{_HAN}{_HANGUL}]")
_UNSPACED_START = re.compile(f"[{UNSPACED}]")

_BY_LETTER = (  # the first that fits; a script without an entry has no stemmer and needs none
    ("hangul", _HANGUL),
    ("kana", _KANA),
    ("han", _HAN + _BOPOMOFO),
    ("thai", _THAI),
    ("lao", _LAO),
    ("burmese", _BURMESE),
    ("khmer", _KHMER),
    ("latin", "a-zA-Z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff"),
    ("cyrillic", "\u0400-\u052f\u1c80-\u1c8f"),
    ("greek", "\u0370-\u03ff\u1f00-\u1fff"),
    ("arabic", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe"),
    ("hebrew", "\u0591-\u05f4\ufb1d-\ufb4f"),
    ("devanagari", "\u0900-\u097f"),
    ("armenian", "\u0531-\u058f"),
    ("tamil", "\u0b80-\u0bff"),
)
_SCRIPTS = tuple((name, re.compile(f"[{letters}]")) for name, letters in _BY_LETTER)

_FIRST_MARK, _LAST_MARK = 0x300, 0x1E94A


@cache
def marks() -> str:
    """All combining marks, as the inside of a regular expression's class: they are no ``\\w``, but parts of words."""
    codes = [
        code
        for code in range(_FIRST_MARK, min(_LAST_MARK, sys.maxunicode) + 1)
        if not 0x3400 <= code < 0xA66F and unicodedata.category(chr(code))[0] == "M"
    ]
    starts = [code for at, code in enumerate(codes) if at == 0 or codes[at - 1] != code - 1]
    ends = [code for at, code in enumerate(codes) if at + 1 == len(codes) or codes[at + 1] != code + 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


@cache
def script_of(letter: str) -> str:
    """The name of the script that a letter belongs to; empty for those that no decision depends on."""
    for name, pattern in _SCRIPTS:
        if pattern.match(letter):
            return name
    return ""


def is_unspaced(token: str) -> bool:
    """Whether a token is a run of a script written without spaces."""
    return _UNSPACED_START.match(token) is not None


def is_wordlike(character: str) -> bool:
    """Whether a single character of a run can be a word: Han characters and Hangul syllables can, kana hardly."""
    return _WORDLIKE.match(character) is not None


def clusters(run: str) -> list[str]:
    """The characters of a run, each with the vowels and tones that are written around it."""
    return _CLUSTERS.findall(run)


def pairs(characters: list[str]) -> list[str]:
    """The overlapping pairs of a run's characters: one fewer than those."""
    return [first + second for first, second in pairwise(characters)]
