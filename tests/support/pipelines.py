"""Retrievers, models and re-rankers for tests of the pipelines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import ModelUnavailable
from cicada.models.ports import CallScope, Filled, ModelUse, Prompt, Reranked, TokenBudget, Usage
from cicada.retrieval.pipelines.api import RetrieveRequest, RetrieveResponse
from cicada.retrieval.pipelines.expansion import HypotheticalPassage, Wordings
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.ports import Degradation, Hit, SearchQuery, SearchResult
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder

USAGE = Usage(input_tokens=100, output_tokens=10)
MODEL_ID = "amazon.nova-micro-v1:0"
WAIT_S = 20.0
"""Longer than any test takes: a thread that is held this long has been forgotten."""


def document(name: str, text: str = "", **fields: Any) -> Passage:
    """A passage of a document."""
    text = text or f"The text of {name}."
    given: dict[str, Any] = {"locator": DocumentLocator(source=f"{name}.pdf", title=f"About {name}", page=2)} | fields
    return Passage(id=name, collection="shelf", text=text, context=text, **given)


class ScriptedRetriever:
    """Finds what it is told to, by the query's text; an exception is raised, and an event waited for."""

    def __init__(self, found: Mapping[str, Any], **result: Any) -> None:
        self.found = found
        self.result = result
        self.asked: list[SearchQuery] = []

    def search(self, query: SearchQuery) -> SearchResult:
        self.asked.append(query)
        found = self.found.get(query.text, ())
        if isinstance(found, threading.Event):
            found.wait(WAIT_S)
            found = ()
        if isinstance(found, Exception):
            raise found
        if isinstance(found, SearchResult):
            return found
        return result(*found, **self.result)

    def version(self) -> str:
        return "v1"

    def query(self, text: str) -> SearchQuery:
        """What was asked with these words."""
        (found,) = [query for query in self.asked if query.text == text]
        return found


def result(*passages: Passage, scores: Sequence[float] = (), version: str = "v1", **rest: Any) -> SearchResult:
    """A search's result, its scores falling from 0.9."""
    given = scores or [round(0.9 - place / 100, 4) for place in range(len(passages))]
    return SearchResult(tuple(map(Hit, passages, given)), version, rest.pop("searched", 41), **rest)


class ScriptedModel:
    """Fills in forms as it is told to, by the form's class; an exception is raised, and an event waited for."""

    max_tokens = 500

    def __init__(self, answers: Mapping[type[BaseModel], Any]) -> None:
        self.answers = answers
        self.prompts: list[Prompt] = []
        self.budgets_s: list[float] = []
        self.stopped = threading.Event()

    @property
    def model_id(self) -> str:
        return MODEL_ID

    def fill(self, prompt: Prompt, form: type[Any], *, time_budget_s: float, call_scope: CallScope) -> Filled[Any]:
        self.prompts.append(prompt)
        self.budgets_s.append(time_budget_s)
        call_scope.call()
        answer = self.answers[form]
        if callable(answer):
            answer = answer(prompt)
        if isinstance(answer, threading.Event):
            call_scope.on_stop(self.stopped.set)
            answer.wait(WAIT_S)
            raise ModelUnavailable("nobody waits for this any more")
        if isinstance(answer, Exception):
            raise answer
        return Filled(answer, USAGE, 1)


def writing(*wordings: str, passage: str | Exception = "The made-up passage.") -> ScriptedModel:
    """A model for query expansion and HyDE."""
    made = passage if isinstance(passage, Exception) else HypotheticalPassage(passage=passage)
    return ScriptedModel({Wordings: Wordings(queries=list(wordings)), HypotheticalPassage: made})


class ScriptedReranker:
    """Scores texts as it is told to."""

    model_id = "amazon.rerank-v1:0"

    def __init__(
        self, score: Callable[[str], float], *, unscored: Sequence[int] = (), error: Exception | None = None
    ) -> None:
        self.score = score
        self.unscored = tuple(unscored)
        self.error = error
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, call_scope: TokenBudget) -> Reranked:
        self.asked.append((query, tuple(texts)))
        call_scope.call()
        if self.error is not None:
            raise self.error
        use = ModelUse("rerank", self.model_id, 1, Usage(queries=1), 5)
        scores = (0.0 if place in self.unscored else self.score(text) for place, text in enumerate(texts))
        return Reranked(tuple(scores), (use,), self.unscored)


def degraded(code: str) -> tuple[Degradation, ...]:
    return (Degradation(code, "Less than all."),)


def run(pipelines: Pipelines, query: str = "fog bell", **request: Any) -> RetrieveResponse:
    """Run a request."""
    return pipelines.run(RetrieveRequest(query=query, **request), readable=EVERYTHING)


def pipelines_over(retriever: Any, **parts: Any) -> Pipelines:
    """Pipelines with an embedder that knows words."""
    return Pipelines(retriever, parts.pop("embedder", None) or WordEmbedder(), **parts)
