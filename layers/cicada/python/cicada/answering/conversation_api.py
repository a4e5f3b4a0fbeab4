"""The action ``conversations``: the list of the caller's conversations, kept as questions are asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from cicada.answering.reply_pages import PAGE_BYTES, page_of
from cicada.conversation.records import ConversationRecord, ConversationRecords
from cicada.conversation.turns import SessionKey, clipped
from cicada.delivery.ports import StoreFault
from cicada.delivery.record import RequestHead
from cicada.errors import ConversationUnknown, InvalidMessage
from cicada.identity import Caller
from cicada.protocol.actions import MAX_TITLE_CHARS, ManageConversations
from cicada.protocol.conversations import (
    ConversationListed,
    ConversationReply,
    ConversationRequest,
    Conversations,
    ConversationShown,
)
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

SHOWN_AT_ONCE = 50
"""Requests of one page, at most: a read of each is billed by the size of its log."""


@dataclass(frozen=True)
class ConversationApi:
    """Serves the action ``conversations``."""

    records: ConversationRecords
    _: KW_ONLY
    age_s: int
    """How long a conversation is kept after its last question."""
    now_s: Callable[[], float] = time.time

    def add(self, head: RequestHead) -> None:
        """Add a new request to its conversation, if it has one. A failure is logged: no answer depends on it."""
        question = head.question
        if question.session_id is None:
            return
        key = SessionKey(head.key.subject, question.tenant, question.session_id)
        try:
            self.records.add(key, head.key.request_id, question.query, at_ms=head.accepted_at_ms, age_s=self.age_s)
        except StoreFault as fault:
            log_event(
                logger,
                "fault",
                "request not listed",
                level=logging.WARNING,
                code="conversation_unwritten",
                why=str(fault),
            )

    def handle(self, action: ManageConversations, caller: Caller) -> ConversationReply:
        """Carry out an operation. Raises ConversationUnknown, InvalidMessage or StoreFault."""
        if action.operation == "list":
            return self._list(action, caller.owner)
        key = SessionKey(caller.owner, caller.tenant, action.session_id or "")
        match action.operation:
            case "show":
                record = self._open(key)
            case "rename":
                record = self.records.rename(key, clipped(action.title or "", MAX_TITLE_CHARS), now_s=self.now_s())
            case "delete":
                record = self.records.delete(key, now_s=self.now_s())
            case "restore":
                record = self._restored(key)
        if record is None:
            raise ConversationUnknown
        return self._shown(action, record, caller.owner)

    def _open(self, key: SessionKey) -> ConversationRecord | None:
        record = self.records.read(key)
        return record if record is not None and record.open_at(self.now_s()) else None

    def _restored(self, key: SessionKey) -> ConversationRecord | None:
        now_s = self.now_s()
        record = self.records.read(key)
        if record is None or record.expired(now_s):
            return None
        if record.deleted_at_ms is not None:
            self.records.restore(record, key, now_s=now_s, age_s=self.age_s)
        return self._open(key)

    def _list(self, action: ManageConversations, owner: str) -> Conversations:
        after = _place(action.cursor)
        found = sorted(
            ((-one.updated_at_ms, one.session_id, one) for one in self.records.owned_by(owner, self.now_s())),
            key=lambda place: place[:2],
        )
        listed = (
            ConversationListed(
                session_id=one.session_id,
                title=one.title,
                created_at_ms=one.created_at_ms,
                updated_at_ms=one.updated_at_ms,
                questions=one.questions,
            )
            for *place, one in found
            if after is None or tuple(place) > after
        )
        page, more = page_of(listed, PAGE_BYTES)
        cursor = f"{page[-1].updated_at_ms} {page[-1].session_id}" if more else None
        return Conversations(request_id=action.request_id, conversations=page, next=cursor)

    def _shown(self, action: ManageConversations, record: ConversationRecord, owner: str) -> ConversationShown:
        """A page of a conversation: its requests that can be replayed."""
        ids = record.requests
        if action.cursor in ids:
            ids = ids[ids.index(action.cursor) + 1 :]
        asked = ids[:SHOWN_AT_ONCE]
        now_s = self.now_s()
        requests = [
            ConversationRequest(
                request_id=one.request_id, query=one.query, asked_at_ms=one.asked_at_ms, state=one.state
            )
            for one in self.records.requests(owner, asked)
            if one.expires_at > now_s
        ]
        page, more = page_of(requests, PAGE_BYTES)
        last = page[-1].request_id if more else asked[-1] if len(ids) > len(asked) else None
        return ConversationShown(
            request_id=action.request_id,
            session_id=record.session_id,
            title=record.title,
            created_at_ms=record.created_at_ms,
            updated_at_ms=record.updated_at_ms,
            expires_at_ms=record.expires_at * 1000,
            deleted_at_ms=record.deleted_at_ms,
            questions=record.questions,
            requests=page,
            next=last,
        )


def _place(cursor: str | None) -> tuple[int, str] | None:
    """The place in the list that a cursor names. Raises InvalidMessage."""
    if cursor is None:
        return None
    updated, _, session_id = cursor.partition(" ")
    if not updated.isdecimal() or not updated.isascii():
        raise InvalidMessage("cursor: invalid")
    return -int(updated), session_id
