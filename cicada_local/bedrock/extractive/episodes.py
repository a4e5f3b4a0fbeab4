"""Which episodes a question is about, so that an answer about one cites no other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.text import NUMBER_WORDS, ORDINAL_WORDS, stem, words

_COUNT = rf"(?:{'|'.join(NUMBER_WORDS)}|\d{{1,3}})"
_ORDINAL = rf"(?:{'|'.join(ORDINAL_WORDS)}|last|final|\d{{1,3}}(?:st|nd|rd|th))"
_EPISODE_NOUN = r"(?:episode|draft|version|retelling)s?"
_BETWEEN = r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|than|from)\s+)(?:(?:in|of)\s+)?(?:the\s+)?"
_ELLIPSIS = re.compile(
    rf"\b(?:in|of)\s+the\s+({_ORDINAL}(?:{_BETWEEN}{_ORDINAL}){{0,9}})(?=\s*(?:[?.,;:!]|$|(?:and|or)\b))"
)
_BEFORE_NOUN = re.compile(rf"\b({_ORDINAL}(?:{_BETWEEN}{_ORDINAL}){{0,9}})(?:\s+({_COUNT}))?\s+{_EPISODE_NOUN}\b")
_AFTER_NOUN = re.compile(rf"\b(?:{_EPISODE_NOUN}|ep\.?)\s*({_COUNT}(?:{_BETWEEN}{_COUNT}){{0,9}})\b")

_SPANNING = re.compile(
    r"\b(?:compare|differ|differs|different|differences?|contrast|(?:each|every|all|both|several|any|other)(?: of)?"
    r"(?: the)?(?: \w+)? (?:episode|draft|version|retelling)s?|(?:episodes|drafts|versions|retellings))\b"
)


@dataclass(frozen=True)
class AskedEpisodes:
    """The episodes that a question names, by number or as the last, and whether it is about several."""

    numbers: frozenset[int] = frozenset()
    last: bool = False
    several: bool = False


def in_asked_episodes(question: str, passages: Sequence[NumberedPassage]) -> list[NumberedPassage]:
    """The passages of the episodes that the question names; all of them if it names none that can be told."""
    lowered = " ".join(words(question))
    named = {
        passage.episode_id
        for passage in passages
        if any(f" {name} " in f" {lowered} " for name in _episode_names(passage.episode))
    }
    numbers = {passage.episode_id: _trailing_number(passage.episode_id) for passage in passages}
    asked = asked_episodes(question)
    if asked.numbers or asked.last:
        if None in numbers.values():
            return [passage for passage in passages if passage.episode_id in named] or list(passages)
        wanted = set(asked.numbers)
        if asked.last:
            wanted.add(max((number for number in numbers.values() if number is not None), default=0))
        named |= {episode for episode, number in numbers.items() if number in wanted}
        return [passage for passage in passages if passage.episode_id in named]
    return [passage for passage in passages if passage.episode_id in named] if named else list(passages)


def asked_episodes(question: str) -> AskedEpisodes:
    """The numbers of the episodes in expressions such as *episode 3*, *the first two drafts*, *ep. 1 and 2*."""
    text = question.lower()
    numbers: set[int] = set()
    ordinals: list[str] = []
    for match in _BEFORE_NOUN.finditer(text):
        if match[2] and match[1] == "first":
            numbers.update(range(1, _number(match[2]) + 1))
        else:
            ordinals += re.findall(_ORDINAL, match[1])
    for match in _AFTER_NOUN.finditer(text):
        numbers.update(_number(count) for count in re.findall(rf"\b{_COUNT}\b", match[1]))
    if numbers or ordinals:  # "in the first episode, and in the second?"
        ordinals += [ordinal for match in _ELLIPSIS.finditer(text) for ordinal in re.findall(_ORDINAL, match[1])]
    numbers.update(_number(ordinal) for ordinal in ordinals if ordinal not in ("last", "final"))
    last = any(ordinal in ("last", "final") for ordinal in ordinals)
    several = len(numbers) + last > 1 or _SPANNING.search(text) is not None
    return AskedEpisodes(frozenset(numbers), last, several)


def _episode_names(episode: str) -> list[str]:
    """An episode's name, and the parts that a colon or a dash divides, as they stand in running words."""
    names = [" ".join(words(name)) for name in [episode, *re.split(r"[:–—]| - ", episode)]]
    return [name for name in names if " " in name]


def _trailing_number(episode_id: str) -> int | None:
    found = re.search(r"([0-9]{1,6})$", episode_id)
    return int(found[1]) if found else None


def _number(word: str) -> int:
    return int(stem(word))
