"""Text analysis: from a token to its terms (folding, stemming, parts of codes), and from passages to their terms."""

from __future__ import annotations

import re
import threading
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, pairwise

import numpy as np
import Stemmer  # type: ignore[import-not-found]  # it has no stubs
from numpy.typing import NDArray

from cicada.corpus.indexable import Part
from cicada.index.lexical import MAX_POSITION, MAX_WEIGHT_UNITS, WEIGHT_UNITS
from cicada.index.lexical.codec import TermRows, stack
from cicada.index.lexical.languages import (
    BY_SCRIPT,
    STEMMED,
    UNSTEMMED_SCRIPTS,
    Language,
    canonical,
    clusters,
    detect,
    is_wordlike,
    pairs,
    script_of,
)
from cicada.text.letters import is_unspaced
from cicada.text.tokens import MAX_TOKEN_CHARS, normalised, tokens

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


def folded(word: str, language: str = "") -> str:
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
    """The language whose stemmer a word of a document in ``language`` (ISO 639-3) gets.

    It is that language if the word is in its script; else the script's most usual language, for an English word in a
    Russian text. None if the document's language is written in this script, but has no stemmer.
    """
    script = script_of(word[0])
    if language in STEMMED and STEMMED[language].script == script:
        return STEMMED[language]
    if language not in STEMMED and language and UNSTEMMED_SCRIPTS.get(language, "latin") == script:
        return None
    return STEMMED.get(BY_SCRIPT.get(script, ""))


def stemmed(word: str, language: str) -> str:
    """The term of a plain word in a document of a language: its stem with that language's tag, or the folded word."""
    stemming = language_for(word, language)
    if stemming is None:
        return folded(word, language)
    return f"{folded(_STEMMERS.stem(word, stemming), stemming.code)}{TAG}{stemming.tag}"


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
    return folded(cut) if _DIGIT.search(cut) else stemmed(cut, language)


def _without_apostrophes(piece: str, language: str) -> list[str]:
    """One word, in a language that writes apostrophes inside words; else the words between the apostrophes."""
    if "'" not in piece:
        return [piece]
    if language not in STEMMED or not STEMMED[language].elides:
        return [piece.removesuffix("'s").replace("'", "") or piece.replace("'", "")]
    *before, last = piece.split("'")
    return [*(word for word in before if len(word) > _MAX_ELIDED), last]


BATCH_PASSAGES = 8192  # passages whose terms are gathered in plain lists before they become arrays
MAX_REMEMBERED_TOKENS = 500_000
"""Distinct tokens, over all languages, whose terms are remembered while texts are analysed."""
MAX_LANGUAGES = 255
"""Languages that one call distinguishes; passages in further languages count as of an unknown one."""
UNKNOWN = ""


def analyse(documents: Iterable[Sequence[Part]], languages: Iterable[str | None]) -> TermRows:
    """Analyse passages.

    ``documents`` has the parts of each passage: its own text first, then other texts, whose words count by the part's
    weight in steps of 1/64. ``languages`` has a code for each (ISO 639-3 or 639-1), or None to detect the language.
    """
    analysis = _Analysis()
    passages = zip(documents, languages, strict=True)
    batches = [analysis.batch([])]  # so that there is one, even without passages
    while batch := list(islice(passages, BATCH_PASSAGES)):
        batches.append(analysis.batch(batch))
    return stack(batches, list(analysis.numbers), tuple(analysis.languages))


class _Analysis:
    """Numbers the terms, and remembers the terms of each token.

    A token's terms are kept as one number. A single term: twice its number, plus 1. Several: the place of a list of
    such numbers, counted down from -1. The lowest bit tells whether the next term stands one position further.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.languages: dict[str, int] = {}
        self._given: dict[str, _Given] = {}
        self._several: list[list[int]] = []

    def batch(self, passages: Sequence[tuple[Sequence[Part], str | None]]) -> TermRows:
        """Analyse some passages. The vocabulary and the languages are those of the analysis, and not in the result."""
        if sum(map(len, self._given.values())) > MAX_REMEMBERED_TOKENS:
            self._given.clear()
        self._several.clear()
        for known in self._given.values():
            known.forget_several()
        stream = array("q")
        runs: list[tuple[int, int, int, int]] = []  # passage, own text or not, weight, numbers in the stream
        spoken = []
        for passage, (parts, declared) in enumerate(passages):
            language = canonical(declared) if declared else UNKNOWN
            for at, part in enumerate(parts):
                before = len(stream)
                found, language = _tokens_and_language(part.text, language)
                given = self._given.get(language)
                if given is None:
                    given = self._given[language] = _Given(language, self.numbers, self._several)
                stream.extend(map(given.__getitem__, found))
                units = min(max(round(part.weight * WEIGHT_UNITS), 0), MAX_WEIGHT_UNITS)
                runs.append((passage, at == 0, units, len(stream) - before))
            if language not in self.languages and len(self.languages) >= MAX_LANGUAGES:
                language = UNKNOWN
            spoken.append(self.languages.setdefault(language, len(self.languages)))
        return self._arrays(np.frombuffer(stream, np.int64), runs, np.array(spoken, np.uint8))

    def _arrays(
        self, given: NDArray[np.int64], runs: list[tuple[int, int, int, int]], spoken: NDArray[np.uint8]
    ) -> TermRows:
        passage, own, units, sizes = np.array(runs, np.int64).reshape(-1, 4).T
        of_run = np.repeat(np.arange(len(runs)), sizes)
        given, of_run = self._expanded(given, of_run)
        steps = given & 1
        positions = np.cumsum(steps) - steps
        sizes = np.bincount(of_run, minlength=len(runs))
        first = np.minimum(np.cumsum(sizes) - sizes, max(len(positions) - 1, 0))
        if len(positions):
            positions -= positions[first][of_run]
        counted = units[of_run] > 0
        given, of_run, positions = given[counted], of_run[counted], positions[counted]

        key = (passage[of_run] << 32) | (given >> 1)
        order = np.argsort(key, kind="stable")
        key, of_run, positions = key[order], of_run[order], positions[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        placed = (own[of_run] == 1) & (positions <= MAX_POSITION)
        owner = key[starts] >> 32
        weights = np.minimum(_sums(units[of_run], starts), MAX_WEIGHT_UNITS)
        counts = np.bincount(owner, minlength=len(spoken))
        return TermRows(
            vocabulary=(),
            starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
            terms=(key[starts] & 0xFFFFFFFF).astype(np.uint32),
            weights=weights.astype(np.uint16),
            occurrences=np.minimum(_sums(placed.astype(np.int64), starts), MAX_POSITION).astype(np.uint16),
            positions=positions[placed].astype(np.uint16),
            lengths=np.bincount(owner, weights=weights, minlength=len(spoken)).astype(np.uint32),
            language_names=(),
            languages=spoken,
        )

    def _expanded(
        self, given: NDArray[np.int64], of_run: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """With lists in place of the negative numbers that stand for them."""
        at = np.flatnonzero(given < 0)
        if not len(at):
            return given, of_run
        lists = [self._several[~number] for number in given[at].tolist()]
        sizes = np.ones(len(given), np.int64)
        sizes[at] = list(map(len, lists))
        expanded = np.repeat(given, sizes)
        expanded[expanded < 0] = list(chain.from_iterable(lists))
        return expanded, np.repeat(of_run, sizes)


def _tokens_and_language(text: str, language: str) -> tuple[list[str], str]:
    """A text's tokens, and its language: the given one, or the one that is detected."""
    found = tokens(normalised(text, dotless_i=language == "tur"))
    if not language:
        language = detect(found)
        if language == "tur":
            found = tokens(normalised(text, dotless_i=True))
    return found, language


def _sums(values: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


class _Given(dict[str, int]):
    """The terms of each token in one language, as one number; filled as tokens are met."""

    def __init__(self, language: str, numbers: dict[str, int], several: list[list[int]]) -> None:
        super().__init__()
        self._language = language
        self._numbers = numbers
        self._several = several
        self._with_several: list[str] = []

    def __missing__(self, token: str) -> int:
        terms = terms_of(token, self._language)
        if len(terms.parts) == 1 and not terms.beside:
            given = 2 * self._number(terms.parts[0]) + 1
        else:
            self._several.append(self._listed(terms))
            self._with_several.append(token)
            given = -len(self._several)
        self[token] = given
        return given

    def forget_several(self) -> None:
        """Forget the tokens with several terms: most of them are met once."""
        for token in self._with_several:
            del self[token]
        self._with_several.clear()

    def _listed(self, terms: Terms) -> list[int]:
        placed = [*((at, term) for term, at in terms.beside), *enumerate(terms.parts)]
        placed.sort(key=lambda placed: placed[0])
        steps = [here[0] != there[0] for here, there in pairwise([*placed, (terms.width, "")])]
        return [2 * self._number(term) + step for (_, term), step in zip(placed, steps, strict=True)]

    def _number(self, term: str) -> int:
        return self._numbers.setdefault(term, len(self._numbers))
