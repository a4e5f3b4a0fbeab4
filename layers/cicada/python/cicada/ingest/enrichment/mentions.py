"""Capitalised runs of words in a sentence, and whether grammar alone explains the capital."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from cicada.text.frequent import FREQUENT
from cicada.text.languages import CAPITALISES_NOUNS
from cicada.text.names import NameWord, name_words
from cicada.text.word_lists import word_lists
from cicada.text.words import POSSESSIVE

_LISTS = word_lists("cicada.ingest.enrichment", "words.json")

PARTICLES = _LISTS["particles"]  # small words inside names
OF_WHAT = _LISTS["of_what"]  # words that *of* continues into one name; between others it separates two
HONORIFICS = _LISTS["honorifics"]  # dropped before names; not names by themselves
DESCRIBING = _LISTS["describing"]  # words that begin names; not names by themselves
REFERENCES = _LISTS["references"]  # not names when a number follows
NAMING_FIELDS = _LISTS["naming_fields"]  # words in the headers of columns that hold names
GERMAN_ARTICLES = _LISTS["german_articles"]
NOBODY = _LISTS["nobody"]  # Japanese words before an honorific that are not names
GERMAN_NOUN_ENDINGS = tuple(_LISTS["german_noun_endings"])
NARRATORS = frozenset(name.replace("-", " ") for name in _LISTS["narrators"])  # speakers that are not persons
_COMMON = _LISTS["dates"] | _LISTS["tongues"] | _LISTS["formats"] | _LISTS["openers"]


@cache
def common_words(language: str) -> frozenset[str]:
    """Lower-case words that are not names by themselves: dates, tongues, formats, frequent openers, and the most
    frequent words of English and of a language (ISO 639-3)."""
    return _COMMON | FREQUENT.get(language, frozenset()) | FREQUENT["eng"]


MAX_NAME_WORDS = 6
_OPENING = "\"'“‘„«‹「『([{:—–|•*>"
_MOSTLY = 0.5  # share of capitalised words above which a sentence is taken for a title or a shout
_NEARLY_ALL = 0.9  # likewise, where lower-case function words or German nouns speak against a title
_LEAST_TITLE_WORDS = 3
_CONTRACTED = re.compile(r"['’](?:s|m|d|re|ve|ll|t)$")


@dataclass(frozen=True)
class Mention:
    """A run of capitalised words, with the particles between them."""

    words: tuple[str, ...]
    opens: bool  # whether it begins its sentence, which explains its first capital
    after: str  # the word before it in lower case, or empty

    @property
    def text(self) -> str:
        """As written, on one line."""
        return " ".join(self.words)

    def rest(self) -> Mention | None:
        """Without its first word and the particles after it."""
        left = list(self.words[1:])
        while left and left[0].lower() in PARTICLES and not left[0][0].isupper():
            left.pop(0)
        return Mention(tuple(left), opens=False, after=self.words[0].lower()) if left else None


class MentionReader:
    """Reads the mentions of texts in one language (ISO 639-3)."""

    def __init__(self, language: str) -> None:
        self._common = common_words(language)
        self._many_capitals = language in CAPITALISES_NOUNS
        self._particles = PARTICLES - {"der", "den", "des"} if self._many_capitals else PARTICLES

    def read(self, sentence: str) -> list[Mention]:
        """The capitalised runs of a sentence; none of a title or a shout."""
        words = list(name_words(sentence))
        if self._is_title(words):
            return []
        found: list[Mention] = []
        at = 0
        while at < len(words):
            if not words[at].capital:
                at += 1
                continue
            end = _run_end(sentence, words, at, self._particles)
            mention = self._mention(sentence, words, at, end)
            if mention is not None:
                found.append(mention)
            at = end
        return found

    def _is_title(self, words: list[NameWord]) -> bool:
        """Whether capitals tell nothing. A sentence about many people has many, but also function words."""
        telling = [word for word in words if word.text.lower() not in PARTICLES and not word.text[0].isdigit()]
        if len(telling) < _LEAST_TITLE_WORDS:
            return False
        capitals = sum(word.capital for word in telling) / len(telling)
        grammar = any(word.text in self._common for word in telling)
        return capitals > (_NEARLY_ALL if grammar or self._many_capitals else _MOSTLY)

    def _mention(self, sentence: str, words: list[NameWord], at: int, end: int) -> Mention | None:
        run = [word.text for word in words[at:end]]
        gap = sentence[words[end - 1].end : words[end].start] if end < len(words) else "."
        if end < len(words) and words[end].text[0].isdigit() and not gap.strip() and run[-1].lower() in REFERENCES:
            run.pop()
        before = sentence[words[at - 1].end if at else 0 : words[at].start].rstrip()
        opens = before[-1] in _OPENING if before else at == 0
        while run and self._droppable(run[0], first=True):
            run.pop(0)
            opens = False
        while run and self._droppable(run[-1], first=False):
            run.pop()
        if not run:
            return None
        run[-1] = POSSESSIVE.sub("", run[-1])
        return Mention(tuple(run), opens, words[at - 1].text.lower() if at else "")

    def _droppable(self, word: str, *, first: bool) -> bool:
        lower = word.lower()
        return (
            lower in self._common
            or lower.removesuffix("s") in self._common
            or _CONTRACTED.sub("", lower) in self._common
            or (first and lower in HONORIFICS)
            or (lower in PARTICLES and not word[0].isupper())
        )


def _run_end(sentence: str, words: list[NameWord], at: int, particles: frozenset[str]) -> int:
    """Where the run that begins with the word ``at`` ends."""
    end = at + 1
    while end < len(words) and end - at < MAX_NAME_WORDS:
        if POSSESSIVE.search(words[end - 1].text):
            break
        gap = sentence[words[end - 1].end : words[end].start]
        if gap.strip() and not (gap == ". " and _is_abbreviation(words[end - 1].text)):
            break
        if words[end].capital:
            end += 1
            continue
        if words[end].text == "of" and words[end - 1].text.lower() not in OF_WHAT:
            break
        onward = _over_particles(sentence, words, end, particles)
        if onward is None or onward - at >= MAX_NAME_WORDS:
            break
        end = onward + 1
    return end


def _over_particles(sentence: str, words: list[NameWord], at: int, particles: frozenset[str]) -> int | None:
    """The capitalised word after one or two particles, if there is one."""
    for end in range(at, min(at + 2, len(words) - 1)):
        if words[end].text not in particles or sentence[words[end].end : words[end + 1].start] != " ":
            return None
        if words[end + 1].capital:
            return end + 1
    return None


def _is_abbreviation(word: str) -> bool:
    return len(word) == 1 or word.lower() in HONORIFICS or word == "St"
