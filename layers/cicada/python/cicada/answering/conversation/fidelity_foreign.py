"""Whether a completed question in a language other than English still asks what was asked, by word lists."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from cicada.answering.conversation import fidelity_words as words_of
from cicada.answering.conversation.fidelity_words import KIND, NAME, NEGATION, WORDS
from cicada.answering.conversation.foreign_words import SPACED, UNSPACED, Leaning
from cicada.answering.conversation.names import names_in
from cicada.index.lexical.stopwords import EVIDENCE

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SHORTEST = 2
_LEAST_STEM = 3
_MOST_ENDING = 2
_BRIEF_CHARS = 12
"""A question of so few characters, in a script without spaces, leaves out what the one before it said."""
_NONE: frozenset[str] = frozenset()
_NO_LEANING = Leaning(_NONE, (), _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)


def foreign_change(completed: str, question: str, language: str) -> str | None:
    """See :func:`cicada.answering.conversation.fidelity.change`; ``language``: the question's, as ISO 639-3."""
    if language in UNSPACED:
        asked, done = _unspaced(question), _unspaced(completed)
        if len(asked[0]) > len(done[0]) or (not _is_brief(question) and len(asked[0]) != len(done[0])):
            return NEGATION
        return None if asked[1] <= done[1] else KIND
    leaning = SPACED.get(language, _NO_LEANING)
    negations = words_of.FOREIGN_NEGATIONS.get(language, frozenset())
    asked_words, done_words = parts_of(question), parts_of(completed)
    small = leaning.all | negations
    content = [word for word in asked_words if word not in small and word not in EVIDENCE and len(word) > _SHORTEST]
    brief = not content or asked_words[0] in leaning.starters
    many, now = (sum(word in negations for word in one) for one in (asked_words, done_words))
    if many > now or (many < now and not brief):
        return NEGATION
    if not leaning.asking & set(asked_words) <= set(done_words):
        return KIND
    names = {part for name in names_in(question) for part in parts_of(name)} - small  # "Alors, …" is none
    if not all(_there(part, done_words) for part in names):
        return NAME
    return None if all(_there(word, done_words) for word in content) else WORDS


def _unspaced(text: str) -> tuple[list[str], set[str]]:
    plain = unicodedata.normalize("NFKC", text)
    return words_of.UNSPACED_NEGATION.findall(plain), set(words_of.UNSPACED_ASKING.findall(plain))


def _is_brief(question: str) -> bool:
    return len(question) <= _BRIEF_CHARS


def parts_of(text: str) -> list[str]:
    """Words, cut where an apostrophe or a hyphen joins two; case folded."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [part for word in _WORD.findall(plain) for part in re.split(r"['’-]", word) if part]


def _there(word: str, words: Iterable[str]) -> bool:
    """Whether it is there, be it in another case: *Марой*, *Hauses*."""
    stem = word[: max(_LEAST_STEM, len(word) - _MOST_ENDING)]
    return any(one.startswith(stem) and abs(len(one) - len(word)) <= _MOST_ENDING for one in words)
