"""The in-memory twin of the store of conversations. The contract tests run over it and over DynamoDB alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cicada.conversation.records import UNDO_S, ConversationListed, ConversationRecord, RequestAsked
from cicada.conversation.turns import SessionKey
from cicada.delivery.ports import StoreFault
from cicada.delivery.record import RequestKey
from cicada.errors import RequestUnknown
from tests.support.memory import InMemoryLog
from tests.support.sessions import InMemorySessions


class InMemoryConversations:
    """A :class:`cicada.conversation.records.ConversationRecords`."""

    def __init__(self, log: InMemoryLog, sessions: InMemorySessions | None = None) -> None:
        self.stored: dict[SessionKey, ConversationRecord] = {}
        self.fault: StoreFault | None = None
        self._log = log
        self._sessions = sessions or InMemorySessions()

    def add(self, key: SessionKey, request_id: str, query: str, *, at_ms: int, age_s: int) -> None:
        self._enter()
        stored = self.stored.get(key)
        if stored is None or not stored.open_at(at_ms / 1000):
            new = ConversationRecord.begun(key.session_id, request_id, query, at_ms=at_ms, age_s=age_s)
            self.stored[key] = new
        elif request_id not in stored.requests:
            self.stored[key] = stored.plus(request_id, at_ms=at_ms, age_s=age_s)

    def read(self, key: SessionKey) -> ConversationRecord | None:
        self._enter()
        return self.stored.get(key)

    def owned_by(self, owner: str, now_s: float) -> Sequence[ConversationListed]:
        self._enter()
        return [
            ConversationListed(one.session_id, one.title, one.created_at_ms, one.updated_at_ms, one.questions)
            for key, one in self.stored.items()
            if key.subject == owner and one.open_at(now_s)
        ]

    def requests(self, owner: str, request_ids: Sequence[str]) -> Sequence[RequestAsked]:
        found = []
        for request_id in request_ids:
            try:
                head = self._log.head(RequestKey(owner, request_id))
            except RequestUnknown:
                continue
            asked = (head.question.query, head.accepted_at_ms, head.state, head.expires_at)
            found.append(RequestAsked(request_id, *asked))
        return found

    def rename(self, key: SessionKey, title: str, *, now_s: float) -> ConversationRecord | None:
        return self._changed(key, now_s, title=title)

    def delete(self, key: SessionKey, *, now_s: float) -> ConversationRecord | None:
        at_ms = int(now_s * 1000)
        changed = self._changed(key, now_s, deleted_at_ms=at_ms, expires_at=int(now_s) + UNDO_S)
        if changed is None:
            stored = self.stored.get(key)
            return None if stored is None or stored.expired(now_s) else stored
        self._mark(key, at_ms)
        return changed

    def restore(self, record: ConversationRecord, key: SessionKey, *, now_s: float, age_s: int) -> bool:
        stored = self.stored.get(key)
        if stored is None or stored.deleted_at_ms != record.deleted_at_ms or stored.expired(now_s):
            return False
        self._mark(key, 0)
        self.stored[key] = replace(stored, deleted_at_ms=None, expires_at=int(now_s) + age_s)
        return True

    def _changed(self, key: SessionKey, now_s: float, **changes: object) -> ConversationRecord | None:
        self._enter()
        stored = self.stored.get(key)
        if stored is None or not stored.open_at(now_s):
            return None
        self.stored[key] = replace(stored, **changes)  # type: ignore[arg-type]
        return self.stored[key]

    def _mark(self, key: SessionKey, deleted_at_ms: int) -> None:
        stands = self._sessions.read(key)
        session = replace(stands.session, deleted_at_ms=deleted_at_ms)
        self._sessions.write(key, session, over=stands.version, expires_at=0)

    def _enter(self) -> None:
        if self.fault is not None:
            raise self.fault
