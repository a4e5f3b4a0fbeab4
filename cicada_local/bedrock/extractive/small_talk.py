"""Courtesies, and what the sources are, in the language of the message (``small_talk.json``)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from cicada.text.word_lists import word_lists
from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.text import STOP_WORDS, words

CANNOT_CONSULT = (
    "I cannot consult the sources in this answer, so I will not guess. "
    "Please ask the question again, and I will look it up in them."
)
MAX_LISTED = 6
"""Sources that are named to who asks what is there."""
_UNSPACED = frozenset({"ja", "zh", "ko"})
_MARKER = re.compile(r"[\[\]]")
_FILLERS = word_lists("cicada_local", "words.json")["fillers"]
_QUESTION_WORDS = word_lists("cicada_local", "words.json")["question_words"]


@dataclass(frozen=True)
class _Courtesy:
    phrases: Mapping[str, re.Pattern[str]]
    """By language."""
    replies: Mapping[str, Sequence[str]]
    """By language: without sources, and before a list of them."""
    lists: bool
    """Whether it asks what is there."""


def small_talk(message: str, passages: Sequence[NumberedPassage] = ()) -> str:
    """A short, friendly reply to a courtesy; empty for anything else.

    A courtesy is a message of nothing but polite phrases: *when does Petra say goodbye?* is not one. Where there are no
    passages, one more word is allowed: *thanks, that helped*. A question about what is there is answered by the sources
    of the prompt, if it has any.
    """
    rest = message.replace("’", "'")
    found: list[tuple[_Courtesy, str]] = []
    for courtesy in _courtesies():
        for language, phrases in courtesy.phrases.items():
            rest, times = phrases.subn(" ", rest)
            if times:
                found.append((courtesy, language))
    left_over = set(words(rest))
    more = left_over - STOP_WORDS - _FILLERS
    if not found or left_over & _QUESTION_WORDS or len(more) > (0 if passages or "?" in message else 1):
        return ""
    courtesy, language = found[0]
    replies = courtesy.replies[language]
    listed = _listed(passages) if courtesy.lists else ""
    return f"{replies[1]}\n{listed}" if listed else replies[0]


def _listed(passages: Sequence[NumberedPassage]) -> str:
    """A line for each document or episode, with its first passage's marker."""
    places: dict[str, int] = {}
    for passage in passages:
        name = " ".join(_MARKER.sub(" ", passage.title or passage.episode or passage.source).split())
        if name:
            places.setdefault(name, passage.number)
    return "\n".join(f"- {name} [{number}]" for name, number in list(places.items())[:MAX_LISTED])


@cache
def _courtesies() -> Sequence[_Courtesy]:
    told = json.loads((files(__package__) / "small_talk.json").read_text(encoding="utf-8"))
    return [
        _Courtesy(
            {language: _pattern(phrases, language) for language, phrases in one["phrases"].items()},
            one["replies"],
            one.get("lists", False),
        )
        for one in told
    ]


def _pattern(phrases: Sequence[str], language: str) -> re.Pattern[str]:
    """Whole phrases; in languages without spaces they may stand anywhere."""
    either = "|".join(phrases)
    return re.compile(either if language in _UNSPACED else rf"\b(?:{either})\b", re.IGNORECASE)
