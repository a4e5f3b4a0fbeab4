"""Feedback on an answer, beside what is known of how it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from cicada.corpus.passages import CorpusModel
from cicada.delivery.record import LogEntry, RequestHead
from cicada.protocol.actions import FeedbackReason, GiveFeedback, Rating
from cicada.protocol.events import Accepted, Complete, Failed, Sources


class FeedbackRecord(CorpusModel):
    """One request's rating. What the request had not come to when it was rated is null."""

    request_id: str
    rating: Rating
    reason: FeedbackReason | None = None
    comment: str | None = None
    given_at_ms: int = Field(description="epoch milliseconds")
    asked_at_ms: int = Field(description="epoch milliseconds")
    question: str = Field(description="as it was asked")
    completed_question: str | None = Field(None, description="as it was completed from its conversation")
    state: Literal["open", "complete", "failed"] = Field(description="of the request, when it was rated")
    code: str | None = Field(None, description="of the error that ended it")
    route: str | None = None
    strategies: tuple[str, ...] = Field((), description="that were tried, in order; the last one gave the answer")
    model: str | None = None
    grounded: bool | None = None
    index_version: str | None = None
    engine: str | None = None
    collections: tuple[str, ...] = Field((), description="of the sources")
    degraded: tuple[str, ...] = Field((), description="codes of what the search and the answer did without")


def record_of(
    action: GiveFeedback, rating: Rating, head: RequestHead, entries: Sequence[LogEntry], *, now_s: float
) -> FeedbackRecord:
    """The feedback on a request with this log."""
    events = [entry.event() for entry in entries]
    accepted = next((one for one in events if isinstance(one, Accepted)), None)
    complete = next((one for one in events if isinstance(one, Complete)), None)
    failed = next((one for one in events if isinstance(one, Failed)), None)
    sources = next((one for one in reversed(events) if isinstance(one, Sources)), None)
    tried = tuple(one.strategy for one in head.failed)
    degraded = (*(sources.degraded if sources else ()), *(complete.degraded if complete else ()))
    return FeedbackRecord(
        request_id=head.key.request_id,
        rating=rating,
        reason=action.reason,
        comment=action.comment,
        given_at_ms=int(now_s * 1000),
        asked_at_ms=head.accepted_at_ms,
        question=head.question.query,
        completed_question=head.standalone.query
        if head.standalone and head.standalone.query != head.question.query
        else None,
        state=head.state,
        code=failed.code if failed else None,
        route=accepted.route if accepted else None,
        strategies=complete.attempted if complete else tried,
        model=complete.model if complete else None,
        grounded=complete.grounded if complete else None,
        index_version=sources.index_version if sources else None,
        engine=sources.engine if sources else None,
        collections=tuple(sorted({source.collection for source in sources.sources})) if sources else (),
        degraded=tuple(dict.fromkeys(one.code for one in degraded)),
    )
