"""Whether a completed question still asks what was asked: of the same, in the same way, and no less of it.

A completion may say for a pronoun what it stands for, and add what a shortened question leaves out. What the asker said
is the asker's: names, numbers, negations, the question word and the words that tell something all stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import dropwhile

from cicada.answering.conversation.english_words import FUNCTION, STARTERS
from cicada.answering.conversation.fidelity_english import English, english_change
from cicada.answering.conversation.fidelity_foreign import foreign_change
from cicada.answering.conversation.fidelity_words import ADDED, KIND, NAME, NUMBER
from cicada.answering.conversation.foreign import ENGLISH, language_of
from cicada.answering.conversation.names import names_in
from cicada.answering.conversation.turns import Turn
from cicada.routing.text import read_words

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s$|['’]$")
_SENTENCE = re.compile(r"[?!？！。…]\s*(?=\w)|(?<=\w\w\w)[.;:]\s+(?=\w)")
_ASKS = ("?", "？")


def change(completed: str, question: str, turns: Sequence[Turn]) -> str | None:
    """What a completion changes of its question, in words without any of its text; None if it changes nothing.

    English is read by its grammar's small words; other languages by lists of negations and question words. A shortened
    question (*why?*, *and in episode 2?*) is held to the form and the negations of the last turn's. The question as it
    was asked, behind the one that it follows, is completed too.
    """
    if any(_continues(completed, question, turn.query) for turn in turns):
        return None
    if not set(_NUMBER.findall(question)) <= set(_NUMBER.findall(completed)):
        return NUMBER
    if question.rstrip().endswith(_ASKS) and not completed.rstrip().endswith(_ASKS):
        return KIND
    language = language_of(question, [turn.query for turn in turns])
    if language != ENGLISH:
        return foreign_change(completed, question, language)
    if not _own_names(question) <= set(_bare_words(completed)):
        return NAME
    asked, done = English.of(question), English.of(completed)
    if len(_SENTENCE.findall(completed)) > len(_SENTENCE.findall(question)):
        return ADDED
    return english_change(done, asked, [English.of(turn.query) for turn in turns[-1:]])


def _own_names(question: str) -> set[str]:
    words = (word for name in names_in(question) for word in _bare_words(name))
    return {word for word in words if not set(read_words(word).tokens) <= FUNCTION}  # "Didn't" is none


def _continues(completed: str, question: str, query: str) -> bool:
    """Whether it is a turn's question and then, word for word, this one: *Who locked the boathouse, and why?*"""
    begins = query.rstrip("?!. ")
    rest = completed[len(begins) :]
    return bool(begins) and completed.startswith(begins) and _without_starters(rest) == _without_starters(question)


def _without_starters(text: str) -> list[str]:
    return list(dropwhile(STARTERS.__contains__, _bare_words(text)))


def _bare_words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [_POSSESSIVE.sub("", word) for word in _WORD.findall(plain)]
