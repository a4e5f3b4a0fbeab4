"""Requests, events and models for tests of delivery and answering."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from cicada.corpus.passages import Passage, ScriptLocator
from cicada.delivery.record import Head, Question, RequestKey
from cicada.models.ports import Finished, Prompt, TextDelta, Usage
from cicada.protocol.events import Accepted, dump_event
from cicada.retrieval.ports import Hit, SearchQuery, SearchResult

REQUEST_ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
KEY = RequestKey("mara", REQUEST_ID)
NOW_S = 1_800_000_000
ACCEPTED = dump_event(Accepted(route="rag", confidence=0.6, reasoning="a question", strategy="rag"))


def new_head(
    *subscribers: str, key: RequestKey = KEY, query: str = "Who locked the boathouse?", **changes: Any
) -> Head:
    """A request as its acceptance creates it."""
    values: dict[str, Any] = {
        "key": key,
        "question": Question(query),
        "origin": "frame-1",
        "accepted_at_ms": NOW_S * 1000,
        "expires_at": NOW_S + 7 * 24 * 3600,
        "log_bytes": len(ACCEPTED.encode()),
        "subscribers": subscribers,
    }
    return Head(**(values | changes))


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


class ScriptedModel:
    """Writes the pieces it was given; an exception among them is raised in its place."""

    model_id = "local.extractive"

    def __init__(self, *pieces: str | Exception) -> None:
        self.pieces = pieces
        self.prompts: list[Prompt] = []
        self.closed_early = 0

    def stream(self, prompt: Prompt, *, time_budget_s: float) -> Generator[TextDelta | Finished, None, None]:
        self.prompts.append(prompt)
        try:
            for piece in self.pieces:
                if isinstance(piece, Exception):
                    raise piece
                yield TextDelta(piece)
            yield Finished("end_turn", Usage(100, 10))
        except GeneratorExit:
            self.closed_early += 1
            raise


def joined(frames: Sequence[dict[str, Any]]) -> str:
    """The text that a client shows after these frames."""
    text = ""
    for frame in sorted(frames, key=lambda frame: frame["seq"]):
        if frame["type"] == "fallback":
            text = ""
        elif frame["type"] == "chunk":
            text += frame["content"]
    return text
