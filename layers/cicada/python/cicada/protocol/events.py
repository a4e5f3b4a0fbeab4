"""What a client receives: events of a request's log, and replies outside of it.

Every frame has ``requestId``, ``seq`` and ``type``. A request's events have ``seq`` 1, 2, 3…; a reply has ``seq`` 0 and
is never replayed.
"""

from __future__ import annotations

from functools import cache
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from cicada.corpus.passages import CitedLocator, CorpusModel
from cicada.errors import CicadaError, LimitReached, NameUnknown
from cicada.profiles.record import Kind, Operation
from cicada.profiles.record import Verdict as VerdictWord
from cicada.protocol.actions import PROTOCOL_VERSION
from cicada.usage.limits import LimitState

MAX_EVENT_BYTES = 24 * 1024  # of an event in UTF-8: API Gateway's limit is 32 KB per frame, envelope included

Route = Literal["direct", "rag", "hybrid", "cag", "profile_agent", "theory_agent"]
"""The classifier's result; each route has the name of the strategy it enters at."""
StrategyName = Literal["hybrid", "rag", "cag", "direct", "profile_agent", "theory_agent"]


class Payload(CorpusModel):
    """What events and replies are made of."""


# --- parts of events ---


class Reason(Payload):
    """Why a passage is among the sources."""

    kind: Literal["intention", "entity", "similarity", "tool"] = Field(
        description="intention: its section serves what the question wants of its collection; entity: it names who or "
        "what the question names; similarity: it is near to the question; tool: an agent's tool brought it"
    )
    name: str | None = Field(None, description="of the intention, the entity or the tool")
    section: str | None = Field(None, description="the collection's section that was included for it")
    matched: str | None = Field(None, description="of an entity: the words of the question or the passage that name it")
    confidence: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="of the intention's choice, or the entity's match"
    )


class Source(Payload):
    """A retrieved passage as the prompt numbers it."""

    n: Annotated[int, Field(ge=1, description="the number that the answer cites as [n]")]
    passage_id: str
    collection: str
    locator: CitedLocator
    score: Annotated[float, Field(ge=0, le=1)]
    text: str
    context: str | None = Field(None, description="the text with its neighbours, a line each; absent if it did not fit")
    clipped: bool = Field(False, description="the text was shortened to fit the event")
    origin: Literal["search", "cache", "profile"] = Field(
        "search",
        description="who brought it: the search for this question, an earlier answer's contexts, or a profile of the "
        "asker's",
    )
    why: tuple[Reason, ...] = Field(
        (),
        exclude_if=not_,
        description="why it is here, where collections declare what they serve, or an agent "
        "answers; the weightiest first",
    )


class Degraded(Payload):
    """What a search, or an answer, had to do without."""

    code: str = Field(
        description="stable: partial_index, words_only, engine_fallback, mode_fallback, top_k_capped, "
        "cache_unavailable, question_not_completed, query_expansion_incomplete, hyde_incomplete, search_incomplete, "
        "rerank_incomplete, named_left_out, plain_search, collection_unknown, episode_unknown, "
        "document_unknown, section_unknown, guardrail_unavailable"
    )
    message: str = Field(description="a sentence for people")


class Reused(Payload):
    """An earlier answer that this one makes use of."""

    use: Literal["answer", "contexts"] = Field(
        description="answer: its text is given again; contexts: a new text is written from its passages"
    )
    question: str = Field(description="what was asked then")
    answered_at_ms: int = Field(description="when, in epoch milliseconds")
    similarity: Annotated[float, Field(ge=0, le=1)] = Field(description="of the two questions")


class Citation(Payload):
    """One use of one marker in the answer (``[n]``, ``[Doc n: file, Page p]``), checked against its passage."""

    n: int = Field(description="the passage's number; 0 where the marker has none and names no passage")
    verdict: Literal["verified", "unverified", "unchecked"] = Field(
        description="verified: quoted from the passage word by word, or found by a judge model to be what it says; "
        "unverified: something speaks against it, see code; unchecked: nothing could tell"
    )
    sentence: str = Field(description="the sentence of the answer that carries the marker")
    passage_id: str | None = Field(None, description="absent when the marker names no passage")
    locator: CitedLocator | None = None
    code: str | None = Field(
        None,
        description="why it is unverified; stable: no_such_passage, wrong_place, quote_not_found, number_missing, "
        "name_missing, contradicted, unsupported",
    )
    reason: str | None = Field(None, description="why it is unverified or unchecked, in words for people")


class StrategyFailure(Payload):
    """A strategy that was tried and failed."""

    strategy: StrategyName
    code: str
    reason: str = Field(description="a sentence for people")


class Metrics(Payload):
    """What an answer took."""

    latency_ms: int = Field(description="from the request's acceptance to this event")
    attempt_ms: int = Field(description="from the start of the attempt that answered")
    first_chunk_ms: int = Field(description="from the request's acceptance to the first piece of text")
    retrieval_latency_ms: int | None = Field(None, description="of the search, where there was one")
    cache_latency_ms: int | None = Field(None, description="of the look-up of earlier answers, where there was one")
    model_calls: int = Field(0, description="calls to text models by all attempts, retries included")
    input_tokens: int = Field(0, description="of all those calls, as far as they were reported")
    output_tokens: int = 0
    cost_usd: float | None = Field(
        None,
        description="of all those calls; absent when a price, or what a call or a lost worker used, is not known",
    )
    price_date: str | None = Field(None, description="the day of the price table, ISO 8601")
    sources_found: int = 0
    sources_used: int = Field(
        0, description="who brought the passages of the prompt: 1 the search or the cache, 2 both, 0 neither"
    )
    passages_cited: int = Field(0, description="distinct passages that the answer cites")


# --- events ---


class Event(Payload):
    """An entry of a request's log, before it has its place there."""


class Accepted(Event):
    """The request exists; always ``seq`` 1."""

    type: Literal["accepted"] = "accepted"
    protocol: int = PROTOCOL_VERSION
    route: Route
    confidence: Annotated[float, Field(ge=0, le=1)]
    reasoning: str
    strategy: StrategyName = Field(description="the strategy that the workflow enters at")


class Attempt(Event):
    """A strategy begins."""

    type: Literal["attempt"] = "attempt"
    attempt: Annotated[int, Field(ge=1)]
    strategy: StrategyName


class Sources(Event):
    """What was retrieved."""

    type: Literal["sources"] = "sources"
    attempt: int
    query: str | None = Field(
        None, description="what was searched for, where a question that leans on the conversation was completed"
    )
    reused: Reused | None = Field(None, description="the earlier answer that this one makes use of, if it does")
    offered: bool = Field(
        False, description="found by an attempt that failed, and offered: the answer does not rest on them"
    )
    index_version: str
    searched: int = Field(description="passages that were ranked; 0 where a managed engine does not tell")
    engine: str = Field("shards", description="what searched: shards, s3vectors, kendra, or cache (earlier answers)")
    degraded: tuple[Degraded, ...] = Field((), description="why this is less than the whole; empty when it is not")
    sources: tuple[Source, ...]


class Chunk(Event):
    """The next piece of the answer's text."""

    type: Literal["chunk"] = "chunk"
    attempt: int
    content: Annotated[str, Field(min_length=1)]


class Withdrawn(Event):
    """It stands in the place of an event that carried text of a blocked answer, and shows nothing. The request's
    terminal ``error`` has the code ``answer_blocked``."""

    type: Literal["withdrawn"] = "withdrawn"
    attempt: int = Field(description="of the event that stood here")


class Fallback(Event):
    """The attempt before failed: drop its text and sources; another strategy begins."""

    type: Literal["fallback"] = "fallback"
    from_: StrategyName = Field(alias="from")
    to: StrategyName
    code: str
    reason: str = Field(description="a sentence for people")


class Citations(Event):
    """Every marker of the answer, resolved and checked."""

    type: Literal["citations"] = "citations"
    attempt: int
    citations: tuple[Citation, ...]
    not_attributed: tuple[int, ...] = Field(
        (),
        description="the numbers of all sources, where the answer has no marker: none of its sentences says which of "
        "them it rests on. Empty for an answer with markers, and for one that says that nothing was found",
    )


class ChangedField(Payload):
    """What a change did to one field."""

    field: str = Field(description="its name; statement, episodes, evidence or verdict of a theory itself")
    before: str | None = Field(None, description="shortened to 300 characters; absent if there was none")
    after: str | None = Field(None, description="shortened to 300 characters; absent if it was removed")


class ProfileChanged(Payload):
    """A change of one of the user's profiles, from the record of what was done."""

    operation: Operation
    id: str = Field(description="of the profile")
    kind: Kind
    name: str
    version: int = Field(description="that the change made: the action profile takes it back with undo")
    fields: tuple[ChangedField, ...] = ()
    undoable: bool = Field(description="it can be taken back; a confirmed deletion cannot")


class Receipt(Event):
    """The answer has changed one of the user's profiles. It stays true whatever becomes of the attempt: a client keeps
    it on ``fallback``."""

    type: Literal["receipt"] = "receipt"
    attempt: int
    change: ProfileChanged


class Confirm(Event):
    """Something is to be deleted, and nothing is until the user confirms it by the action ``confirm``."""

    type: Literal["confirm"] = "confirm"
    attempt: int
    confirmation_id: str = Field(description="names this deletion within the request")
    operation: Literal["delete", "remove_fields"]
    id: str = Field(description="of the profile")
    kind: Kind
    name: str
    version: int = Field(description="that was looked at: a profile that was changed since stays as it is")
    fields: tuple[ChangedField, ...] = Field((), description="what would be removed")
    expires_at_ms: int = Field(description="epoch milliseconds; confirmed later, nothing is deleted")


StrengthWord = Literal["strong", "moderate", "weak"]


class VerdictPassage(Payload):
    """A passage that a verdict names."""

    n: Annotated[int, Field(ge=1, description="its number among the sources")]
    strength: StrengthWord = Field(description="how plainly it speaks for or against the theory, as it was judged")


class Verdict(Event):
    """The verdict on the theory of the question, as the agent's tool call gave it, whatever the answer's text says."""

    type: Literal["verdict"] = "verdict"
    attempt: int
    verdict: VerdictWord
    given: bool = Field(
        description="false where the agent ended without giving a verdict: it is open then, and the passages are all "
        "that were gathered"
    )
    for_: tuple[VerdictPassage, ...] = Field((), alias="for", description="passages that speak for the theory")
    against: tuple[VerdictPassage, ...] = Field((), description="passages that speak against it")


class Complete(Event):
    """The answer is whole. Terminal."""

    type: Literal["complete"] = "complete"
    attempt: int
    answered_by: StrategyName
    attempted: tuple[StrategyName, ...] = Field(
        description="every strategy that was tried, in order; the last answered"
    )
    model: str
    grounded: bool = Field(description="the answer rests on retrieved passages")
    stop_reason: str
    changes: int | None = Field(
        None,
        description="where the question asked to change profiles: how many changes it has receipts and confirmations "
        "for. With 0 nothing was changed, whatever the text says",
    )
    failed: tuple[StrategyFailure, ...] = Field((), description="why each of the others failed, in order")
    metrics: Metrics
    degraded: tuple[Degraded, ...] = Field(
        (), exclude_if=not_, description="what the answer had to do without after its `sources`"
    )
    limits: tuple[LimitState, ...] = Field(
        (),
        exclude_if=not_,
        description="what is left of the asker's limits after this answer, as far as was known when it was asked",
    )


class Failed(Event):
    """The request has ended without an answer. Terminal."""

    type: Literal["error"] = "error"
    code: str
    message: str
    retryable: bool
    failed: tuple[StrategyFailure, ...] = ()
    known: tuple[str, ...] = Field(
        (),
        exclude_if=not_,
        description="of collection_unknown, document_unknown, episode_unknown and section_unknown: some names that the "
        "asker may read, at most 10, in alphabetical order",
    )

    @classmethod
    def of(cls, error: CicadaError, failed: tuple[StrategyFailure, ...] = ()) -> Failed:
        """The event of an error."""
        known = error.known if isinstance(error, NameUnknown) else ()
        return cls(code=error.code, message=error.told, retryable=error.retryable, failed=failed, known=known)


LogEvent = (
    Accepted
    | Attempt
    | Sources
    | Chunk
    | Withdrawn
    | Fallback
    | Citations
    | Verdict
    | Receipt
    | Confirm
    | Complete
    | Failed
)
TERMINAL = (Complete, Failed)
TERMINAL_TYPES = frozenset({"complete", "error"})


# --- replies ---


class Reply(Payload):
    """An answer to one frame; it stands in no log."""

    request_id: str | None = None
    seq: Literal[0] = 0


class Pong(Reply):
    """The answer to ``ping``."""

    type: Literal["pong"] = "pong"
    release: str | None = Field(None, description="the release of the server, such as 0.2.0; absent before 0.2.0")


class Resumed(Reply):
    """The outcome of a ``resume``, sent after the replayed events.

    ``live``: replayed, and live events follow. ``finished``: replayed to its terminal event. ``expired``: its log is
    past its retention. ``unknown``: no such request of this user.
    """

    type: Literal["resumed"] = "resumed"
    outcome: Literal["live", "finished", "expired", "unknown"]
    last_seq: int = Field(0, description="the log's highest seq when it was replayed")


class Confirmed(Reply):
    """What became of a confirmation: done once, however often it is confirmed."""

    type: Literal["confirmed"] = "confirmed"
    confirmation_id: str
    outcome: Literal["done", "declined"]
    change: ProfileChanged | None = Field(None, description="what was deleted; absent if the user declined")


class Refused(Reply):
    """A frame that was refused: an ``error`` with ``seq`` 0, which ends no request."""

    type: Literal["error"] = "error"
    code: str
    message: str
    detail: str | None = Field(None, description="for the client's author: the field, and what is wrong with it")
    retryable: bool
    limit: LimitState | None = Field(
        None, exclude_if=not_, description="the limit that is reached; absent where another reason stands"
    )

    @classmethod
    def of(cls, error: CicadaError, request_id: str | None = None, detail: str | None = None) -> Refused:
        """The reply to a frame that caused an error."""
        return cls(
            request_id=request_id,
            code=error.code,
            message=error.told,
            detail=detail,
            retryable=error.retryable,
            limit=error.limit if isinstance(error, LimitReached) else None,
        )


class GatewayFault(Payload):
    """API Gateway's own frame, where it could not hand a frame on: the function was throttled, failed or timed out.

    It has no ``type``, and does not say which of a client's frames it is about.
    """

    message: str = Field(description="such as Internal server error, Forbidden, Too Many Requests")
    connection_id: str
    request_id: str = Field(description="API Gateway's own id of the frame: none of the client's requests")


@cache
def _log_event() -> TypeAdapter[LogEvent]:
    return TypeAdapter(Annotated[LogEvent, Field(discriminator="type")])


def dump_event(event: LogEvent) -> str:
    """An event as it is stored: JSON without ``requestId`` and ``seq``."""
    return event.model_dump_json(by_alias=True, exclude_none=True)


def load_event(body: str | bytes | dict[str, Any]) -> LogEvent:
    """Parse a stored event, without fields that a newer release added. Raises pydantic's ``ValidationError``."""
    if isinstance(body, dict):
        return _log_event().validate_python(body, extra="ignore")
    return _log_event().validate_json(body, extra="ignore")


def event_frame(request_id: str, seq: int, body: str) -> str:
    """The frame of a stored event: ``body`` with ``requestId`` and ``seq`` inserted in front, without parsing it."""
    return f'{{"requestId":"{request_id}","seq":{seq},{body[1:]}'


def reply_frame(reply: Reply) -> str:
    """The frame of a reply; ``requestId`` is null if the reply concerns no request."""
    return reply.model_dump_json(by_alias=True)
