"""Answers for a scripted deployment, as the events of their logs."""

from __future__ import annotations

from cicada.corpus.passages import ScriptLocator
from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Citation,
    Citations,
    Complete,
    Failed,
    Fallback,
    LogEvent,
    Metrics,
    Source,
    Sources,
)

QUESTION = "Who rang the fog bell?"
WORDS = ("Ilse rang ", "the fog bell [1].")
TEXT = "".join(WORDS)
BROKEN_OFF = "The harbour master "
PLACE = ScriptLocator(
    episode_id="ep1", episode_name="The Fog Bell", chapter_id="1", message_id="ep1-12", speaker="Ilse Vane"
)
SOURCE = Source(
    n=1,
    passage_id="ep1/12",
    collection="script",
    locator=PLACE,
    score=0.9,
    text="I rang the fog bell thirteen times.",
)
OTHER_SOURCE = SOURCE.model_copy(update={"n": 2, "passage_id": "ep1-14", "text": "Nobody came."})
METRICS = Metrics(latency_ms=30, attempt_ms=20, first_chunk_ms=10, input_tokens=120, output_tokens=9, cost_usd=0.001)


def begun(strategy: str = "rag", attempt: int = 1) -> list[LogEvent]:
    """An attempt that has found its sources."""
    found = Sources(attempt=attempt, index_version="v7", searched=9, sources=(SOURCE, OTHER_SOURCE))
    return [Attempt.model_validate({"attempt": attempt, "strategy": strategy}), found]


def ended(attempt: int = 1) -> list[LogEvent]:
    """The rest of an attempt that has written its text."""
    cited = Citation(
        n=1, verdict="verified", sentence="Ilse rang the fog bell [1].", passage_id="ep1/12", locator=PLACE
    )
    return [
        Citations(attempt=attempt, citations=(cited,)),
        Complete(
            attempt=attempt,
            answered_by="rag",
            attempted=("rag",),
            model="quoting-model",
            grounded=True,
            stop_reason="end_turn",
            metrics=METRICS,
        ),
    ]


def accepted() -> LogEvent:
    """The first event of every request."""
    return Accepted(route="rag", confidence=0.9, reasoning="about the text", strategy="rag")


def answer(*words: str) -> list[LogEvent]:
    """A whole answer."""
    chunks = [Chunk(attempt=1, content=word) for word in words or WORDS]
    return [accepted(), *begun(), *chunks, *ended()]


def answer_after_fallback() -> list[LogEvent]:
    """An answer whose first attempt broke off in its text."""
    broken = [*begun("hybrid"), Chunk(attempt=1, content=BROKEN_OFF)]
    back = Fallback.model_validate(
        {"from": "hybrid", "to": "rag", "code": "stream_broken", "reason": "The answer was interrupted."}
    )
    chunks = [Chunk(attempt=2, content=word) for word in WORDS]
    return [accepted(), *broken, back, *begun("rag", 2), *chunks, *ended(2)]


def failed(code: str = "all_strategies_failed", *, retryable: bool = True) -> list[LogEvent]:
    """A request that ends without an answer."""
    return [accepted(), Failed(code=code, message="No strategy could answer.", retryable=retryable)]
