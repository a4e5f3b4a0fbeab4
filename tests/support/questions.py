"""Requests, events and models for tests of delivery and answering."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from cicada.attempts.strategy import AnswerGiven, AskedQuestion
from cicada.citations import check_citations
from cicada.corpus.passages import Passage, ScriptLocator
from cicada.delivery.decide import begin
from cicada.delivery.record import Commit, Question, RequestHead, RequestKey, Subscriber
from cicada.models.ports import CallScope, Finished, Prompt, Stopped, TextDelta, Usage
from cicada.protocol.events import Accepted, Source, StrategyFailure, StrategyName, dump_event
from cicada.retrieval.ports import Hit, SearchLimits, SearchQuery, SearchResult
from cicada.semantic_cache.ports import Looked

REQUEST_ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
KEY = RequestKey("mara", REQUEST_ID)
NOW_S = 1_800_000_000
UNUSED: Any = None
"""In the place of what a test never calls."""
ACCEPTED = dump_event(Accepted(route="rag", confidence=0.6, reasoning="a question", strategy="rag"))


def following(*connection_ids: str) -> tuple[Subscriber, ...]:
    """Subscribers whose tokens do not expire."""
    return tuple(Subscriber(connection_id) for connection_id in connection_ids)


def new_head(
    *subscribers: str | Subscriber,
    key: RequestKey = KEY,
    query: str = "Who locked the boathouse?",
    **changes: Any,
) -> RequestHead:
    """A request as its acceptance creates it. Subscribers that are only named have tokens that do not expire."""
    values: dict[str, Any] = {
        "key": key,
        "question": Question(query),
        "origin": "frame-1",
        "accepted_at_ms": NOW_S * 1000,
        "expires_at": NOW_S + 7 * 24 * 3600,
        "log_bytes": len(ACCEPTED.encode()),
        "subscribers": tuple(one if isinstance(one, Subscriber) else Subscriber(one) for one in subscribers),
    }
    return RequestHead(**(values | changes))


def beginning(
    head: RequestHead,
    strategy: StrategyName = "rag",
    failed: Sequence[StrategyFailure] = (),
    *,
    execution: str = "x",
    worker: str = "w",
    now_s: float = NOW_S,
    **allot: Callable[[StrategyName, int], int],
) -> Commit:
    """The commit that begins the next attempt of a request that is this worker's to drive."""
    commit = begin(head, strategy, failed, execution=execution, worker=worker, now_s=now_s, **allot)
    assert isinstance(commit, Commit)
    return commit


def passage(n: int, text: str, *, episode: str = "ep1", speaker: str = "Mara") -> Passage:
    """A message of a script."""
    return Passage(
        id=f"{episode}-{n:04}",
        collection="script",
        text=text,
        context=text,
        locator=ScriptLocator(
            episode_id=episode,
            episode_name=f"The {episode}",
            chapter_id=f"{episode}-ch1",
            message_id=f"{episode}-{n:04}",
            speaker=speaker,
        ),
    )


class FixedRetriever:
    """Finds what it was given, and keeps the queries."""

    def __init__(self, *passages: Passage, error: Exception | None = None) -> None:
        self.hits = tuple(Hit(found, 0.9) for found in passages)
        self.error = error
        self.queries: list[SearchQuery] = []

    def search(self, query: SearchQuery) -> SearchResult:
        self.queries.append(query)
        if self.error is not None:
            raise self.error
        return SearchResult(self.hits[: query.top_k], "v1", len(self.hits))

    def version(self) -> str:
        if self.error is not None:
            raise self.error
        return "v1"


class ScriptedModel:
    """Writes the pieces it was given; an exception among them is raised in its place."""

    model_id = "local.extractive"
    max_tokens = 512

    def __init__(self, *pieces: str | Exception) -> None:
        self.pieces = pieces
        self.prompts: list[Prompt] = []
        self.closed_early = 0

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        call_scope.call()
        self.prompts.append(prompt)
        stopped = threading.Event()
        forget = call_scope.on_stop(stopped.set)
        try:
            for piece in self.pieces:
                if stopped.is_set():
                    raise Stopped
                if isinstance(piece, Exception):
                    raise piece
                yield TextDelta(piece)
            yield Finished("end_turn", Usage(100, 10))
        except GeneratorExit:
            self.closed_early += 1
            raise
        finally:
            forget()


def looked(use: str, *sources: Source, **changes: Any) -> Looked:
    """What a semantic cache finds; as a miss, one that nothing came near to."""

    text = 'Mara says: "I locked the boathouse at ten." [1]'
    values: dict[str, Any] = {
        "use": use,
        "similarity": 0.0 if use == "miss" else 0.96,
        "question": "Who had locked the boathouse?",
        "answered_at_ms": (NOW_S - 3600) * 1000,
        "text": text,
        "sources": sources,
        "citations": check_citations(text, sources),
        "model_id": "model-of-then",
        "stop_reason": "end_turn",
        "found": len(sources),
        "index_version": "v1",
        "compared": 3,
    }
    return Looked(**(values | changes))


class FixedCache:
    """A semantic cache that answers every look-up with what it was given, and keeps what it was asked and told."""

    def __init__(self, looked: Looked, *, error: Exception | None = None) -> None:
        self.looked = looked
        self.error = error
        self.asked: list[tuple[AskedQuestion, str]] = []
        self.kept: list[AnswerGiven] = []

    def look_up(
        self, asked: AskedQuestion, index_version: str, limits: SearchLimits, *, time_budget_s: float
    ) -> Looked:
        self.asked.append((asked, index_version))
        if self.error is not None:
            raise self.error
        return self.looked

    def keep(self, given: AnswerGiven) -> None:
        self.kept.append(given)


def joined(frames: Sequence[dict[str, Any]]) -> str:
    """The text that a client shows after these frames."""
    text = ""
    for frame in sorted(frames, key=lambda frame: frame["seq"]):
        if frame["type"] == "fallback":
            text = ""
        elif frame["type"] == "chunk":
            text += frame["content"]
    return text
