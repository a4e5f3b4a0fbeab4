"""Passages and vectors for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage, ScriptLocator

SPEAKERS = ("Mira", "Jon", "Ada")


def make_passage(number: int, *, collection: str = "script", episode: str = "", context: str = "") -> Passage:
    """A passage of ten to an episode, with three speakers in turn."""
    episode = episode or f"ep{number // 10 + 1}"
    return Passage(
        id=f"m{number}",
        collection=collection,
        text=f"Line {number} of {collection}.",
        context=context or f"Line {number} of {collection}, word{number} word{number % 7}.",
        locator=ScriptLocator(
            episode_id=episode,
            episode_name=f"Episode {episode}",
            chapter_id=f"{episode}-c1",
            message_id=f"m{number}",
            speaker=SPEAKERS[number % 3],
        ),
    )


def make_passages(count: int, *, collection: str = "script", start: int = 0) -> list[Passage]:
    return [make_passage(number, collection=collection) for number in range(start, start + count)]


def indexable(passages: Iterable[Passage]) -> list[Indexable]:
    """Each passage embedded as its context."""
    return [Indexable(passage, (WeightedText(passage.context, 1.0),)) for passage in passages]


def unit_rows(count: int, dimensions: int, seed: int = 7) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def script_place(passage: Passage) -> ScriptLocator:
    assert isinstance(passage.locator, ScriptLocator)
    return passage.locator


def document_place(passage: Passage) -> DocumentLocator:
    assert isinstance(passage.locator, DocumentLocator)
    return passage.locator
