"""What becomes of the nearest earlier questions: the answer again, its contexts, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cicada.answering.semantic_cache.records import Body, Entry
from cicada.answering.semantic_cache.thresholds import Thresholds
from cicada.protocol.events import Source
from cicada.text.sameness import may_be_same, same_question
from cicada.text.words import content_words, is_among, words_of

CANDIDATES = 8
"""The nearest entries that are looked at: the best one may be about another episode, and the next one fit."""

Confirms = Callable[[str], bool]
"""Whether an earlier question asks what is asked now."""


@dataclass(frozen=True)
class Choice:
    """An entry that may be made use of, and how."""

    use: Literal["answer", "contexts"]
    entry: Entry
    similarity: float


def decide(
    query: str, nearest: Sequence[tuple[Entry, float]], thresholds: Thresholds, confirms: Confirms | None = None
) -> tuple[Choice, ...]:
    """What may be used, best first.

    Args:
        query: the question.
        nearest: entries with their cosines, nearest first.
        thresholds: of the embedding model.
        confirms: is asked of the nearest entry that is no equal question and from ``thresholds.replay`` on; of none
            where it is absent.
    """
    same = [Choice("answer", entry, cosine) for entry, cosine in nearest if same_question(query, entry.question)]
    near = [(entry, cosine) for entry, cosine in nearest if cosine >= thresholds.near]
    if not same and confirms is not None:
        likely = (one for one in near if one[1] >= thresholds.replay and may_be_same(query, one[0].question))
        found = next(likely, None)
        if found is not None and confirms(found[0].question):
            same = [Choice("answer", *found)]
    taken = {choice.entry.id for choice in same}
    return (*same, *(Choice("contexts", entry, cosine) for entry, cosine in near if entry.id not in taken))


def serves(query: str, body: Body) -> bool:
    """Whether an entry, its question and its passages, speaks of every telling word of a question, in some form."""
    texts = " ".join(part for source in body.sources for part in _texts(source))
    there = frozenset(words_of(f"{body.question} {texts}"))
    return all(is_among(word, there) for word in content_words(query))


def _texts(source: Source) -> Iterator[str]:
    yield from source.locator.names().values()
    yield source.text
    yield source.context or ""
