"""What becomes of the nearest earlier questions: the answer again, its contexts, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cicada.answering.semantic_cache.records import Body, Entry
from cicada.answering.semantic_cache.thresholds import Thresholds
from cicada.guards import GuardName, difference
from cicada.index.lexical.scripts import is_unspaced
from cicada.protocol.events import Source
from cicada.text.tokens import normalised

_BEGINNING = 5
"""Letters of a word that must be found, at the start of one; of a shorter word all, and no more after them."""
CANDIDATES = 8
"""The nearest entries that are looked at: the best one may be about another episode, and the next one fit."""


@dataclass(frozen=True)
class Choice:
    """An entry that may be made use of, and how."""

    use: Literal["answer", "contexts"]
    entry: Entry
    similarity: float
    beyond: frozenset[str] = frozenset()
    """Words of the question that the entry's question has no match for."""


@dataclass(frozen=True)
class Decision:
    """What may be used, best first, and which guard kept a nearer question from being answered again."""

    choices: tuple[Choice, ...]
    refused_by: GuardName | None


def decide(query: str, language: str, nearest: Sequence[tuple[Entry, float]], thresholds: Thresholds) -> Decision:
    """Choose among entries.

    Args:
        query: the question, of which nothing but its words is looked at here.
        language: of the question and all entries, ISO 639-3.
        nearest: entries with their cosines, nearest first.
        thresholds: of the embedding model.
    """
    answers: list[Choice] = []
    contexts: list[Choice] = []
    refused_by: GuardName | None = None
    for entry, similarity in nearest:
        if similarity < thresholds.near:
            break
        found = difference(query, entry.question, language)
        if found is None and similarity >= thresholds.replay:
            answers.append(Choice("answer", entry, similarity))
        elif found is None or found.same_subject:
            beyond = frozenset() if found is None else found.beyond
            contexts.append(Choice("contexts", entry, similarity, beyond))
        if found is not None and refused_by is None and not answers and similarity >= thresholds.replay:
            refused_by = found.guard
    return Decision((*answers, *contexts), refused_by)


def serves(choice: Choice, body: Body) -> bool:
    """Whether an entry's passages speak of every word that the question has and the entry's question has not.

    Words are compared by their beginnings, so that inflections meet; those of scripts without spaces are looked for
    anywhere.
    """
    if not choice.beyond:
        return True
    texts = " ".join(part for source in body.sources for part in _texts(source))
    there = normalised(f"{body.question} {texts}")
    return all(_stands_in(there, word) for word in choice.beyond)


def _stands_in(text: str, word: str) -> bool:
    if is_unspaced(word):
        return word in text
    pattern = rf"(?<!\w){re.escape(word[:_BEGINNING])}"
    return re.search(pattern if len(word) >= _BEGINNING else rf"{pattern}(?!\w)", text) is not None


def _texts(source: Source) -> Iterator[str]:
    yield from source.locator.names().values()
    yield source.text
    yield source.context or ""
