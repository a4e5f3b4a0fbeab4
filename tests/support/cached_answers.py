"""Questions, answers and an embedder for tests of the semantic cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cicada.answering.prompt import number_sources
from cicada.attempts.strategy import Answered, AnswerGiven, AskedQuestion, Retrieved
from cicada.citations import check_citations, without_markers
from cicada.delivery.record import Question, RequestKey
from cicada.errors import ModelUnavailable
from cicada.retrieval.ports import Hit, Unlimited
from cicada.rights import EVERYTHING, Readable
from cicada.semantic_cache.cache import SemanticCache
from cicada.semantic_cache.decision import Thresholds
from cicada.text.sentences import quotations
from tests.support.cache_store import InMemoryCacheStore
from tests.support.questions import NOW_S, REQUEST_ID, passage

THRESHOLDS = Thresholds(replay=0.8, near=0.7)
VERSION = "000007-g"
ANSWER = "Mara says: “I locked the boathouse myself.” [1]"


class AngledEmbedder:
    """Gives every text the cosine to all others' default direction that a test names; 1 where it names none."""

    def __init__(self, model_id: str = "test.angles", dimensions: int = 8, **cosines: float) -> None:
        self.model_id = model_id
        self.dimensions = dimensions
        self.cosines: dict[str, float] = dict(cosines)
        self.texts: list[str] = []
        self.down = False

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        if self.down:
            raise ModelUnavailable("switched off")
        self.texts += texts
        return [self._vector(self.cosines.get(text, 1.0)) for text in texts]

    def _vector(self, cosine: float) -> list[float]:
        return [cosine, math.sqrt(1 - cosine * cosine), *[0.0] * (self.dimensions - 2)]


def asked(
    query: str,
    *,
    subject: str = "mara",
    completed: str | None = None,
    readable: Readable = EVERYTHING,
    **question: Any,
) -> AskedQuestion:
    """A question; ``completed`` is what it became in the conversation."""
    return AskedQuestion(
        RequestKey(subject, REQUEST_ID), Question(query, **question), completed or query, readable=lambda: readable
    )


def given(query: str, text: str = ANSWER, **changes: Any) -> AnswerGiven:
    """A grounded answer, as RAG gives it; a text of the test's own stands in its first passage."""
    of_asked = {
        name: changes.pop(name)
        for name in (
            "subject",
            "completed",
            "readable",
            "tenant",
            "collections",
            "episodes",
            "documents",
            "sections",
            "top_k",
        )
        if name in changes
    }
    own = "" if text == ANSWER else " ".join(quotations(text)) or without_markers(text)
    told = f"I locked the boathouse myself. {own}".strip()
    passages = (passage(1, told), passage(2, "The church bell rang at nine."))
    sources = number_sources([Hit(one, 0.9) for one in passages])
    retrieved: dict[str, Any] = {
        "sources": sources,
        "found": 5,
        "index_version": VERSION,
    }
    answered: dict[str, Any] = {
        "stop_reason": "end_turn",
        "model_id": "model-a",
        "citations": check_citations(text, sources),
    }
    retrieved |= {name: changes.pop(name) for name in list(changes) if name in Retrieved.__dataclass_fields__}
    answered |= {name: changes.pop(name) for name in list(changes) if name in Answered.__dataclass_fields__}
    values: dict[str, Any] = {"strategy": "rag", "at_ms": NOW_S * 1000} | changes
    return AnswerGiven(
        asked=asked(query, **of_asked),
        text=text,
        retrieved=Retrieved(**retrieved),
        answered=Answered(**answered),
        **values,
    )


class Shelf:
    """A cache over a store in memory, with a clock and an embedder in the test's hands."""

    def __init__(self, store: InMemoryCacheStore | None = None, **options: Any) -> None:
        self.store = store or InMemoryCacheStore()
        self.embedder: AngledEmbedder = options.pop("embedder", None) or AngledEmbedder()
        self.now_s = float(NOW_S)
        self.monotonic_s = 0.0
        self._numbers = iter(range(10**6))
        values: dict[str, Any] = {
            "thresholds": THRESHOLDS,
            "generation_model_id": "model-a",
            "prompt_version": "p1",
            "ttl_s": 3600,
            "max_entries": 50,
        }
        self.cache = SemanticCache(
            self.store,
            self.embedder,
            **(values | options),
            now_s=lambda: self.now_s,
            monotonic=lambda: self.monotonic_s,
            new_suffix=lambda: f"{next(self._numbers):08d}",
        )

    def keep(self, query: str, text: str = ANSWER, **changes: Any) -> None:
        self.cache.keep(given(query, text, **({"at_ms": int(self.now_s * 1000)} | changes)))

    def look_up(self, query: str, version: str = VERSION, **question: Any) -> Any:
        return self.cache.look_up(asked(query, **question), version, Unlimited(), time_budget_s=1.0)
