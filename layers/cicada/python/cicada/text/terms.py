"""From a token to its terms: folding, stemming, and the parts of codes."""

from __future__ import annotations

import re
import threading
import unicodedata
from dataclasses import dataclass
from functools import cache

import Stemmer  # type: ignore[import-not-found]  # it has no stubs

from cicada.text.characters import clusters, is_unspaced, is_wordlike, pairs, script_of
from cicada.text.languages import BY_SCRIPT, STEMMED, Language, script_of_language
from cicada.text.tokens import MAX_TOKEN_CHARS

TAG = "\t"
"""Separates a stem from its language's tag: stems of different languages are different terms. It sorts before every
character of a stem, so that the stems with a prefix are neighbours in all languages."""

_PLAIN_WORD = re.compile(r"[a-z]+")
_DIGIT = re.compile(r"\d")
_JOINER = re.compile(r"::|[-_.:@,]")
_SIGNS_AFTER = re.compile(r"[+#]+$")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_INITIALS = re.compile(r"[^\W\d](?:\.[^\W\d])+")
_MAX_ELIDED = 2
"""The longest article or pronoun before an apostrophe (*l'*, *d'*, *qu'*), which is not indexed as a word."""

_LETTERS_ALONE = {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŋ": "n"}
_ONE_OF_TWO = {"ک": "ك", "ی": "ي", "ى": "ي", "ہ": "ه", "ة": "ه"}  # the same letter as typed on two keyboards
_CYRILLIC_LETTERS = "йїў"
_TONAL = frozenset({"vie"})  # languages whose accents carry the meaning: nothing is folded


@dataclass(frozen=True)
class Terms:
    """The terms of a token. Offsets count from the token's own position."""

    parts: tuple[str, ...]  # terms of consecutive positions, from offset 0
    beside: tuple[tuple[str, int], ...] = ()
    """More terms, with their offsets: a code in one piece; the single characters of a run."""
    width: int = 1  # positions that the token takes; each has a term


class _Folding(dict[int, str | int]):
    """For ``str.translate``: letters without their accents. Filled as letters are met."""

    def __init__(self, letters: str) -> None:
        super().__init__({ord(letter): letter for letter in letters + _CYRILLIC_LETTERS})

    def __missing__(self, code: int) -> str | int:
        letter = chr(code)
        folded = _LETTERS_ALONE.get(letter) or _ONE_OF_TWO.get(letter)
        if folded is None:
            accented = code < 0x700 or 0x1E00 <= code < 0x2000  # Latin, Greek, Cyrillic, Hebrew, Arabic
            bare = unicodedata.normalize("NFD", letter) if accented else letter
            folded = "".join(sign for sign in bare if unicodedata.category(sign) != "Mn") if accented else letter
        self[code] = folded
        return folded


_folding = cache(_Folding)


def accent_folded(word: str, language: str = "") -> str:
    """A word without the accents that its language (ISO 639-3) treats as such."""
    if word.isascii() or language in _TONAL:
        return word
    return word.translate(_folding(STEMMED[language].letters if language in STEMMED else "")) or word


class _Stemmers(threading.local):
    """Snowball's stemmers, which are not safe to share between threads: each has its own."""

    def __init__(self) -> None:
        self._of: dict[str, Stemmer.Stemmer] = {}

    def stem(self, word: str, language: Language) -> str:
        stemmer = self._of.get(language.stemmer)
        if stemmer is None:
            stemmer = self._of[language.stemmer] = Stemmer.Stemmer(language.stemmer)
        stem: str = stemmer.stemWord(word)
        return stem or word


_STEMMERS = _Stemmers()


def language_for(word: str, language: str) -> Language | None:
    """The language that stems a word of a document in ``language`` (ISO 639-3): this one if the word is in its script,
    else the script's usual one (English in a Russian text); None if ``language`` has this script, but no stemmer."""
    script = script_of(word[0])
    if language in STEMMED and STEMMED[language].script == script:
        return STEMMED[language]
    if language not in STEMMED and language and script_of_language(language) == script:
        return None
    return STEMMED.get(BY_SCRIPT.get(script, ""))


def stemmed(word: str, language: str) -> str:
    """The term of a plain word in a document of a language: its stem with that language's tag, or the folded word."""
    stemming = language_for(word, language)
    if stemming is None:
        return accent_folded(word, language)
    return f"{accent_folded(_STEMMERS.stem(word, stemming), stemming.code)}{TAG}{stemming.tag}"


def terms_of(token: str, language: str) -> Terms:
    """The terms of a token in a document in a language (ISO 639-3); they depend on these two only."""
    if _PLAIN_WORD.fullmatch(token):
        return Terms((stemmed(token[:MAX_TOKEN_CHARS], language),))
    if is_unspaced(token):
        return _terms_of_run(token)
    if _THOUSANDS.fullmatch(token):
        return Terms((token.replace(",", "")[:MAX_TOKEN_CHARS],))
    if _INITIALS.fullmatch(token):
        return Terms((_word(token.replace(".", ""), language),))
    bare = _SIGNS_AFTER.sub("", token)
    pieces = _JOINER.split(bare)
    words = [word for piece in pieces for word in _without_apostrophes(piece, language)]
    is_code = bare != token or (len(pieces) > 1 and (_DIGIT.search(token) or len(bare.split("-")) < len(pieces)))
    beside = ((token[:MAX_TOKEN_CHARS], 0),) if is_code else ()
    return Terms(tuple(_word(word, language) for word in words), beside, len(words))


def _terms_of_run(run: str) -> Terms:
    """Pairs, and each character that can be a word by itself, so that it is found whatever is written around it."""
    characters = clusters(run)
    if len(characters) == 1:
        return Terms((run,))
    beside = tuple((character, at) for at, character in enumerate(characters) if is_wordlike(character))
    last = len(characters) - 1
    return Terms(tuple(pairs(characters)), beside, last + (bool(beside) and beside[-1][1] == last))


def _word(word: str, language: str) -> str:
    cut = word[:MAX_TOKEN_CHARS]
    return accent_folded(cut) if _DIGIT.search(cut) else stemmed(cut, language)


def _without_apostrophes(piece: str, language: str) -> list[str]:
    """One word, in a language that writes apostrophes inside words; else the words between the apostrophes."""
    if "'" not in piece:
        return [piece]
    if language not in STEMMED or not STEMMED[language].elides:
        return [piece.removesuffix("'s").replace("'", "") or piece.replace("'", "")]
    *before, last = piece.split("'")
    return [*(word for word in before if len(word) > _MAX_ELIDED), last]
