"""A user who has left something in every place of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cicada.conversation.record_store import DynamoDbConversationRecords
from cicada.conversation.sessions import DynamoDbSessions
from cicada.conversation.turns import ConversationSession, ConversationTurn, SessionKey
from cicada.delivery.decide import append
from cicada.delivery.dynamodb import INLINE_BYTES, DynamoDbLog
from cicada.delivery.record import Question, RequestHead, RequestKey
from cicada.dynamodb import attributes
from cicada.errors import AllStrategiesFailed
from cicada.feedback.record import record_of
from cicada.feedback.store import DynamoDbFeedback
from cicada.profiles.changes import By, FieldGiven
from cicada.profiles.dynamodb import DynamoDbProfiles
from cicada.profiles.record import NoteProof
from cicada.profiles.service import ProfileService
from cicada.protocol.actions import GiveFeedback
from cicada.protocol.events import Chunk, Failed, LogEvent
from cicada.semantic_cache.dynamodb import DynamoDbCacheStore
from cicada.semantic_cache.entries import CachedAnswer, CacheEntry, pack_body
from cicada.usage.accounts import user
from cicada.usage.reservations import Claim
from tests.support.dynamodb import TABLE
from tests.support.questions import ACCEPTED, NOW_S, beginning, following, new_head


class Resident:
    """A user; all that the user wrote, or was answered, holds ``word``."""

    def __init__(
        self, client: Any, owner: str, word: str, *, number: int = 0, tenant: str | None = None, table: str = TABLE
    ) -> None:
        self.client, self.owner, self.word, self.tenant, self.table = client, owner, word, tenant, table
        self.log = DynamoDbLog(client, table)
        self._number = number * 100

    def key(self, n: int) -> RequestKey:
        return RequestKey(self.owner, f"00000000-0000-4000-8000-{self._number + n:012}")

    def ask(self, n: int, *, claims: Sequence[Claim] = (), **changes: Any) -> RequestHead:
        """An accepted request, whose workflow has not begun."""
        question = Question(f"Where is {self.word}?", session_id="s1", tenant=self.tenant, groups=("readers",))
        head = new_head(*following(f"socket-{self.owner}"), key=self.key(n), question=question, **changes)
        self.log.create(head, ACCEPTED, claims)
        return self.log.head(head.key)

    def begin(self, n: int, **changes: Any) -> RequestHead:
        """A request that a worker is answering, with a long event, which is an item of its own."""
        head = self.ask(n, **changes)
        head = self.log.commit(head, beginning(head))
        return self.write(head, Chunk(attempt=1, content=f"{self.word} " * INLINE_BYTES))

    def write(self, head: RequestHead, *events: LogEvent) -> RequestHead:
        return self.log.commit(head, append(head, events))

    def converse(self, session_id: str = "s1") -> None:
        turn = ConversationTurn("r", NOW_S * 1000, f"Where is {self.word}?", f"Where is {self.word}?", self.word)
        sessions, key = DynamoDbSessions(self.client, self.table), SessionKey(self.owner, self.tenant, session_id)
        sessions.write(key, ConversationSession((turn,)), over=sessions.read(key).version, expires_at=NOW_S + 3600)

    def list_conversation(self, session_id: str = "s1") -> None:
        """As the message processor does for each question."""
        records = DynamoDbConversationRecords(self.client, self.table)
        key = SessionKey(self.owner, self.tenant, session_id)
        records.add(key, self.key(1).request_id, f"Where is {self.word}?", at_ms=NOW_S * 1000, age_s=3600)

    def rate(self, n: int) -> None:
        action = GiveFeedback(requestId=self.key(n).request_id, rating="down", comment=f"No {self.word}")
        head, entries = self.log.read(self.key(n))
        record = record_of(action, "down", head, entries, now_s=NOW_S)
        DynamoDbFeedback(self.client, self.table).put(head, record, expires_at=NOW_S + 3600)

    def cache(self, scope: str, n: int = 0) -> None:
        """An answer in a scope, which others may share."""
        question = f"Where is {self.word}?"
        entry = CacheEntry(f"{self._number + n:013}-ab", question, b"\x01", NOW_S * 1000, NOW_S + 3600)
        body = CachedAnswer(
            question=question, text=self.word, sources=(), citations=(), model_id="m", stop_reason="end_turn", found=1
        )
        DynamoDbCacheStore(self.client, self.table).put(scope, entry, pack_body(body), owner=self.owner)

    def profile(self, name: str) -> None:
        service = ProfileService(DynamoDbProfiles(self.client, self.table), now_s=lambda: NOW_S)
        by = By(self.owner, "r", f"operation-{name}")
        proof = NoteProof(request_id="r", words=self.word, said_at_ms=1)
        service.create(by, "character", f"{name} {self.word}", (FieldGiven("hair", self.word, proof),))

    def delete_profile(self, name: str) -> None:
        self.profile(name)
        service = ProfileService(DynamoDbProfiles(self.client, self.table), now_s=lambda: NOW_S)
        profile = service.find(self.owner, f"{name} {self.word}")
        service.delete(By(self.owner, "r", f"deletion-{name}"), profile.id, profile.version)

    def use(self) -> None:
        """As the settlement of a request counts it, whether or not the month has an item."""
        self.client.update_item(
            TableName=self.table,
            Key=user(self.owner).key("2027-01"),
            UpdateExpression="ADD requests :one, tokens :tokens",
            ExpressionAttributeValues=attributes(**{":one": 1, ":tokens": 700}),
        )

    def limit(self) -> None:
        self.client.put_item(
            TableName=self.table, Item=user(self.owner).limits_key | attributes(limits='{"requestsMinute": 3}')
        )

    def move_in(self) -> None:
        """Leave something everywhere: finished, failed and open requests, and all that comes of them."""
        self.write(self.begin(1), Failed.of(AllStrategiesFailed()))
        self.begin(2)
        self.ask(3)
        self.converse()
        self.list_conversation()
        self.rate(1)
        for n, scope in enumerate(("a" * 32, "b" * 32, "c" * 32)):
            self.cache(scope, n)
        self.profile("Ada")
        self.delete_profile("Ben")
        self.use()
        self.limit()
