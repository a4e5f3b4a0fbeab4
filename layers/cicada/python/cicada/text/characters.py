"""Characters: which are letters, which scripts have no spaces, and the normal forms that texts are compared in.

- :func:`normalised` is what a text is searched by; passages are on disk in it.
- :func:`compared` tells texts apart that a search need not: ``10²`` is not ``102``.
- :func:`folded` is for names and lines, which keep their signs.
- :func:`compatible` and :func:`unaccented` are steps on the way to others.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from itertools import pairwise

from cicada.text.word_lists import word_lists

HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"
BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
LAO = "\u0e81-\u0ece\u0edc-\u0edf"
BURMESE = "\u1000-\u103f\u1050-\u108f\u109a-\u109f\uaa60-\uaa7f"
KHMER = "\u1780-\u17d3"

UNSPACED = HAN + KANA + BOPOMOFO + HANGUL + THAI + LAO + BURMESE + KHMER
"""Characters (as the inside of a regular expression's class) of scripts that are written without spaces.

Searches cut their runs into overlapping pairs. Hangul has spaces, but its words carry their particles: by pairs of
syllables a word is found whatever it ends in, which has been as good as morphological analysis for retrieval (Lee and
Ahn, SIGIR 1996).
"""
HIRAGANA = re.compile(r"[\u3041-\u309f]+")  # in Japanese, grammar for the most part


@cache
def marks() -> str:
    """All combining marks, as the inside of a regular expression's class: they are no ``\\w``, but parts of words."""
    # From a file: a look at every character takes tens of milliseconds of a cold start.
    ranges = sorted(word_lists("cicada.text", "combining_marks.json")["ranges"])
    return "".join("-".join(chr(int(code, 16)) for code in one.split("-")) for one in ranges)


@cache
def spaced_letter() -> str:
    """A regular expression of one character of a word, a letter, digit or mark, in scripts with spaces."""
    return rf"(?:[^\W_{UNSPACED}]|(?![{UNSPACED}])[{marks()}])"


@cache
def word_pattern() -> re.Pattern[str]:
    """A word; or, in scripts without spaces, a character with its marks."""
    return re.compile(rf"[{UNSPACED}][{marks()}]*|{spaced_letter()}+")


@cache
def written_word() -> re.Pattern[str]:
    """A word with the apostrophes inside of it; or a run of a script without spaces."""
    letter = spaced_letter()
    return re.compile(rf"[{UNSPACED}]+|{letter}+(?:['’]{letter}+)*")


def stands_in(text: str, part: str) -> bool:
    """Whether a text has a part as whole words; in scripts without spaces, wherever it stands."""
    at = text.find(part)
    while at >= 0:
        if part and _is_whole(text, at, at + len(part)):
            return True
        at = text.find(part, at + 1)
    return False


def written_as(text: str, part: str) -> str | None:
    """A part as a text writes it, in whatever case, as whole words; None if it does not."""
    found = re.finditer(re.escape(part), text, re.IGNORECASE)
    return next((match[0] for match in found if match[0] and _is_whole(text, *match.span())), None)


def _is_whole(text: str, start: int, end: int) -> bool:
    return not (_one_word(text[max(start - 1, 0) : start + 1]) or _one_word(text[end - 1 : end + 1]))


def _one_word(two: str) -> bool:
    """Whether two characters are of the same word."""
    found = word_pattern().match(two)
    return len(two) == 2 and found is not None and found.end() == 2


_SPOKEN_AROUND = (  # vowels and tones that belong to the consonant before them
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    "\u17b4-\u17d3"
)
_CLUSTERS = re.compile(f"[^{_SPOKEN_AROUND}]?[{_SPOKEN_AROUND}]+|.", re.DOTALL)

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
_WORDLIKE = f"[{HAN}{HANGUL}]"  # compiled when it is first used
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_UNSPACED_SCRIPTS = frozenset({"hangul", "kana", "han", "thai", "lao", "burmese", "khmer"})
_UNSPACED_WEIGHT = 3  # letters that one of a script without spaces counts as: *Energiprojekt公司位于何处?* is Chinese
_MIN_KANA = 0.1  # a share of kana that Japanese does not fall below, and names in Chinese texts do not reach
_SCRIPTS = tuple(
    (name, first, last or first) for name, letters in _BY_LETTER for first, last in re.findall("(.)(?:-(.))?", letters)
)
"""Scripts with ranges of their letters. A regular expression of such ranges takes milliseconds to compile."""


@cache
def script_of(letter: str) -> str:
    """The name of the script that a letter belongs to; empty for those that no decision depends on."""
    return next((name for name, first, last in _SCRIPTS if first <= letter <= last), "")


def is_unspaced(token: str) -> bool:
    """Whether a token is a run of a script written without spaces."""
    return script_of(token[:1]) in _UNSPACED_SCRIPTS


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
    return re.match(_WORDLIKE, character) is not None


def clusters(run: str) -> list[str]:
    """The characters of a run, each with the vowels and tones that are written around it."""
    return _CLUSTERS.findall(run)


def pairs(characters: list[str]) -> list[str]:
    """The overlapping pairs of a run's characters: one fewer than those."""
    return [first + second for first, second in pairwise(characters)]


_RAISED = re.compile(r"(?<=[\w)])([\u00b2\u00b3\u00b9\u2070-\u209c]+)")

_AT_WILL = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f"
    "\u00ad\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]+"
)
"""Optional characters: vowel points, and signs without a width."""


class _Plain(dict[int, str | int]):
    """For ``str.translate``: one sign for each of several that mean the same. Filled as characters are met."""

    _SIGNS = str.maketrans("’ʼʹ′‘‛`´ꞌ‐‑‒−﹣", "'''''''''-----")

    def __missing__(self, code: int) -> str | int:
        sign = chr(code)
        plain: str | int = self._SIGNS.get(code, code)
        if _AT_WILL.match(sign):
            plain = ""
        elif code > 127 and sign.isdecimal():
            plain = str(unicodedata.decimal(sign))
        self[code] = plain
        return plain


_PLAIN = _Plain()


def well_formed(text: str) -> str:
    """A text without unpaired surrogates, which no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def compatible(text: str) -> str:
    """A text in compatibility form (NFKC), without unpaired surrogates."""
    return text if text.isascii() else unicodedata.normalize("NFKC", well_formed(text))


def composed(text: str) -> str:
    """A text in composed form (NFC): letters that look the same are the same."""
    return unicodedata.normalize("NFC", text)


def normalised(text: str, *, dotless_i: bool = False) -> str:
    """Text in compatibility form (NFKC), case folded, with one apostrophe, one hyphen and one set of digits, without
    unpaired surrogates; ``dotless_i``: the capital of *ı* is *I*, as in Turkish."""
    if dotless_i:
        text = text.replace("İ", "i").replace("I", "ı")
    if text.isascii():
        return text.lower()
    seen = _AT_WILL.sub("", well_formed(text))
    return unicodedata.normalize("NFKC", seen.casefold()).casefold().translate(_PLAIN)


def raised_apart(text: str) -> str:
    """Text with raised and lowered digits apart from what they stand on: in compatibility form 10² would be 102."""
    return text if text.isascii() else _RAISED.sub(r" ^ \1 ", text)


def compared(text: str) -> str:
    """Text as :func:`normalised`, with raised and lowered digits apart from what they stand on."""
    return normalised(raised_apart(text))


def folded(text: str) -> str:
    """A name or a line without case, in compatibility form (NFKC), single-spaced; its signs and accents stay."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def unaccented(text: str) -> str:
    """The text without accents, which many people leave out when they type."""
    if text.isascii():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))
