"""Writing systems: what script a letter is of, and how runs of scripts without spaces are cut."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

from cicada.text.letters import BOPOMOFO, BURMESE, HAN, HANGUL, KANA, KHMER, LAO, THAI

_SPOKEN_AROUND = (  # vowels and tones that belong to the consonant before them
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    "\u17b4-\u17d3"
)
_CLUSTERS = re.compile(f"[^{_SPOKEN_AROUND}]?[{_SPOKEN_AROUND}]+|.", re.DOTALL)
_WORDLIKE = re.compile(f"[{HAN}{HANGUL}]")

_BY_LETTER = (  # the first that fits; a script without an entry has no stemmer and needs none
    ("hangul", HANGUL),
    ("kana", KANA),
    ("han", HAN + BOPOMOFO),
    ("thai", THAI),
    ("lao", LAO),
    ("burmese", BURMESE),
    ("khmer", KHMER),
    ("latin", "a-zA-Z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff"),
    ("cyrillic", "\u0400-\u052f\u1c80-\u1c8f"),
    ("greek", "\u0370-\u03ff\u1f00-\u1fff"),
    ("arabic", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe"),
    ("hebrew", "\u0591-\u05f4\ufb1d-\ufb4f"),
    ("devanagari", "\u0900-\u097f"),
    ("armenian", "\u0531-\u058f"),
    ("tamil", "\u0b80-\u0bff"),
)
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_UNSPACED_SCRIPTS = frozenset({"hangul", "kana", "han", "thai", "lao", "burmese", "khmer"})
_UNSPACED_WEIGHT = 3
"""Letters that one of a script without spaces counts as: *Energiprojekt AB公司位于何处?* is Chinese."""
_MIN_KANA = 0.1
"""A share of kana that Japanese does not fall below, and names in Chinese texts do not reach."""
_SCRIPTS = tuple((name, re.compile(f"[{letters}]")) for name, letters in _BY_LETTER)


@cache
def script_of(letter: str) -> str:
    """The name of the script that a letter belongs to; empty for those that no decision depends on."""
    for name, pattern in _SCRIPTS:
        if pattern.match(letter):
            return name
    return ""


def main_script(text: str) -> str:
    """The name of the script that a text is written in for the most part; ``kana`` for Japanese; ``latin`` if none."""
    counted: Counter[str] = Counter()
    for letter in filter(str.isalpha, text):
        script = script_of(letter)
        counted[script] += _UNSPACED_WEIGHT if script in _UNSPACED_SCRIPTS else 1
    return most_used(counted)


def most_used(letters: Counter[str]) -> str:
    """The script with the most letters, of letters counted by script; kanji are Japanese where there are kana."""
    del letters[""]
    if letters["kana"] > _MIN_KANA * (letters["kana"] + letters["han"]):
        letters["kana"] += letters["han"]
    return letters.most_common(1)[0][0] if letters.total() else "latin"


def katakana_in(text: str) -> list[str]:
    """The words of a text in katakana: names and borrowed words."""
    return _KATAKANA.findall(text)


def is_wordlike(character: str) -> bool:
    """Whether a single character of a run can be a word: Han characters and Hangul syllables can, kana hardly."""
    return _WORDLIKE.match(character) is not None


def clusters(run: str) -> list[str]:
    """The characters of a run, each with the vowels and tones that are written around it."""
    return _CLUSTERS.findall(run)


def pairs(characters: list[str]) -> list[str]:
    """The overlapping pairs of a run's characters: one fewer than those."""
    return [first + second for first, second in pairwise(characters)]
