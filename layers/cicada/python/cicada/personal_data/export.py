"""Exports what the table holds of one owner, as JSON. ``docs/personal-data.schema.json`` is made from its models."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from boto3.dynamodb.types import TypeDeserializer
from pydantic import Field, JsonValue
from pydantic.alias_generators import to_camel

from cicada.conversation.record_store import stored_record
from cicada.conversation.sessions import stored_turns
from cicada.corpus.passages import CorpusModel
from cicada.delivery.ports import RequestLog, StoreFault
from cicada.delivery.record import LogEntry, RequestHead, RequestKey
from cicada.dynamodb import Item
from cicada.errors import ProfilesUnavailable, RequestUnknown
from cicada.feedback.record import FeedbackRecord
from cicada.feedback.store import stored_feedback
from cicada.personal_data.instants import instant
from cicada.personal_data.items import Kind, OwnedItem, OwnedItems, PersonalDataFault
from cicada.profiles.record import ProfileRecord
from cicada.profiles.service import ProfileService
from cicada.semantic_cache.entries import BodyUnreadable, unpack_body

FORMAT = 1
"""Of the export. It changes when a field changes its meaning or goes."""
_BODY = "body#"
_VALUES = TypeDeserializer()


class ExportedRequest(CorpusModel):
    """A question, and everything that the client was sent for it."""

    request_id: str
    accepted_at: str = Field(description="ISO 8601, UTC, as all times")
    expires_at: str = Field(description="when it can no longer be resumed; the table deletes it within days after that")
    state: str = Field(description="open, complete or failed")
    query: str = Field(description="the question as it was asked")
    completed_query: str | None = Field(None, description="as it was completed from the conversation")
    session_id: str | None = None
    collections: tuple[str, ...] = Field((), description="that the question was limited to")
    episodes: tuple[str, ...] = Field((), description="that the question was limited to")
    documents: tuple[str, ...] = Field((), description="that the question was limited to, by source")
    sections: tuple[str, ...] = Field((), description="that the question was limited to, by heading")
    tenant: str | None = None
    groups: tuple[str, ...] = Field((), description="the user's, when it was asked")
    events: tuple[dict[str, JsonValue], ...] = Field(
        description="the frames in their order, as docs/protocol.md describes them: text, sources, citations, cost"
    )


class ExportedConversation(CorpusModel):
    """A session's last turns."""

    expires_at: str
    turns: tuple[dict[str, JsonValue], ...] = Field(
        description="oldest first: requestId, atMs (epoch milliseconds), asked, query (as it was completed), "
        "answer (its beginning) and collections (that it rests on; null of an earlier release)"
    )


class ExportedConversationRecord(CorpusModel):
    """A conversation as it is listed."""

    session_id: str
    title: str = Field(description="the first question, shortened, or as the user renamed it")
    created_at: str
    updated_at: str
    expires_at: str
    deleted_at: str | None = Field(None, description="of one that can still be restored")
    questions: int
    requests: tuple[str, ...] = Field(description="ids of the last questions, the oldest first")


class ExportedAnswer(CorpusModel):
    """An answer that can be given again."""

    question: str
    answered_at: str
    expires_at: str
    text: str
    model_id: str
    sources: tuple[dict[str, JsonValue], ...] = Field(description="the passages that it rests on")
    citations: tuple[dict[str, JsonValue], ...]


class Export(CorpusModel):
    """Everything that the deployment stores of one user."""

    format: int = FORMAT
    subject: str = Field(description="the `sub` of the user's tokens")
    tenant: str | None = None
    exported_at: str
    account: dict[str, JsonValue] | None = Field(
        None, description="of the user pool: email, status, groups, createdAt; absent without one"
    )
    tokens_refused_up_to: str | None = Field(None, description="tokens that were issued up to then are refused")
    requests: tuple[ExportedRequest, ...] = Field(description="oldest first")
    conversations: tuple[ExportedConversation, ...]
    conversation_records: tuple[ExportedConversationRecord, ...] = Field(
        description="the list of conversations, with their titles"
    )
    feedback: tuple[FeedbackRecord, ...] = Field(description="ratings of answers, with the question and the comment")
    profiles: tuple[ProfileRecord, ...] = Field(description="with their history; of deleted ones what is left")
    cached_answers: tuple[ExportedAnswer, ...] = Field(description="to this user's questions, whoever shares them")
    usage: tuple[dict[str, JsonValue], ...] = Field(
        description="one object a month of UTC (`sk`): requests, tokens and millionths of US dollars (`microusd`); the "
        "tokens of the 25th are `t25`, the money `m25`"
    )
    limits: tuple[dict[str, JsonValue], ...] = Field(description="of this user alone, where an administrator set any")
    others: tuple[dict[str, JsonValue], ...] = Field(
        description="items that this release cannot read, as they are stored; bytes in base64"
    )


def exported(
    items: OwnedItems,
    log: RequestLog,
    profiles: ProfileService,
    *,
    subject: str,
    tenant: str | None,
    account: dict[str, Any] | None = None,
    refused_up_to: int | None = None,
    now_s: Callable[[], float],
) -> Export:
    """Everything that is stored of an owner. Raises PersonalDataFault."""
    found: dict[Kind, list[OwnedItem]] = {}
    for one in items.find(whole=True):
        found.setdefault(one.kind, []).append(one)
    answers, unread = _cached_answers(found.get("cachedAnswers", ()))
    rated = [(one, stored_feedback(one.item)) for one in found.get("feedback", ())]
    unread += [one for one, record in rated if record is None]
    try:
        requests = [_request(*read) for read in _read(log, items.owner, found.get("requests", ()))]
        records = tuple(profiles.records(items.owner))
    except (StoreFault, ProfilesUnavailable) as error:
        raise PersonalDataFault(str(error)) from error
    return Export(
        subject=subject,
        tenant=tenant,
        exported_at=instant(now_s()),
        account=account,
        tokens_refused_up_to=None if refused_up_to is None else instant(refused_up_to),
        requests=tuple(sorted(requests, key=lambda request: (request.accepted_at, request.request_id))),
        conversations=tuple(_conversation(one.item) for one in found.get("conversations", ())),
        conversation_records=tuple(_listed(one.item) for one in found.get("conversationRecords", ())),
        feedback=tuple(record for _, record in rated if record is not None),
        profiles=records,
        cached_answers=tuple(answers),
        usage=_plain(found.get("usage", ())),
        limits=_plain(found.get("limits", ())),
        others=_plain([*found.get("others", ()), *unread]),
    )


def _read(
    log: RequestLog, owner: str, heads: Iterable[OwnedItem]
) -> Iterator[tuple[RequestHead, tuple[LogEntry, ...]]]:
    """The requests that are still there."""
    for one in heads:
        try:
            yield log.read(RequestKey(owner, one.request_id))
        except RequestUnknown:  # DynamoDB has deleted it, or one of its events, since
            continue


def _request(head: RequestHead, entries: Sequence[LogEntry]) -> ExportedRequest:
    question = head.question
    return ExportedRequest(
        request_id=head.key.request_id,
        accepted_at=instant(head.accepted_at_ms / 1000),
        expires_at=instant(head.expires_at),
        state=head.state,
        query=question.query,
        completed_query=head.standalone.query if head.standalone else None,
        session_id=question.session_id,
        collections=question.collections,
        episodes=question.episodes,
        documents=question.documents,
        sections=question.sections,
        tenant=question.tenant,
        groups=question.groups,
        events=tuple(json.loads(entry.frame(head.key.request_id)) for entry in entries),
    )


def _conversation(item: Item) -> ExportedConversation:
    return ExportedConversation(
        expires_at=instant(int(item["expires_at"]["N"])),
        turns=tuple({to_camel(name): value for name, value in turn.items()} for turn in stored_turns(item)),
    )


def _listed(item: Item) -> ExportedConversationRecord:
    record = stored_record(item)
    return ExportedConversationRecord(
        session_id=record.session_id,
        title=record.title,
        created_at=instant(record.created_at_ms / 1000),
        updated_at=instant(record.updated_at_ms / 1000),
        expires_at=instant(record.expires_at),
        deleted_at=None if record.deleted_at_ms is None else instant(record.deleted_at_ms / 1000),
        questions=record.questions,
        requests=record.requests,
    )


def _cached_answers(owned: Iterable[OwnedItem]) -> tuple[list[ExportedAnswer], list[OwnedItem]]:
    """The answers, and the items whose answers cannot be read."""
    answers, unread = list[ExportedAnswer](), list[OwnedItem]()
    for one in owned:
        if not one.item["sk"]["S"].startswith(_BODY):
            continue
        if answer := _answer(one.item):
            answers.append(answer)
        else:
            unread.append(one)
    return answers, unread


def _answer(item: Item) -> ExportedAnswer | None:
    """A cached answer's body; None if another release wrote it."""
    try:
        body = unpack_body(bytes(item["body"]["B"]))
    except BodyUnreadable:
        return None
    answered_at_ms = int(item["sk"]["S"].removeprefix(_BODY).partition("-")[0])
    plain = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    return ExportedAnswer(
        question=body.question,
        answered_at=instant(answered_at_ms / 1000),
        expires_at=instant(int(item["expires_at"]["N"])),
        text=body.text,
        model_id=body.model_id,
        sources=plain["sources"],
        citations=plain["citations"],
    )


def _plain(owned: Iterable[OwnedItem]) -> tuple[dict[str, JsonValue], ...]:
    return tuple({name: _value(_VALUES.deserialize(value)) for name, value in one.item.items()} for one in owned)


def _value(stored: Any) -> JsonValue:
    """A value of DynamoDB as JSON has it."""
    match stored:
        case dict():
            return {name: _value(value) for name, value in stored.items()}
        case list() | set():
            return [_value(value) for value in stored]
        case None | bool() | str():
            return stored
        case bytes() | bytearray():
            return base64.b64encode(stored).decode()
        case _ if hasattr(stored, "value"):  # boto3's Binary
            return base64.b64encode(stored.value).decode()
        case _:  # Decimal
            return int(stored) if stored == int(stored) else float(stored)


def schema() -> str:
    """The JSON schema of an export, as ``docs/personal-data.schema.json`` has it."""
    return (
        json.dumps(Export.model_json_schema(by_alias=True, mode="serialization"), indent=2, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    print(schema(), end="")
