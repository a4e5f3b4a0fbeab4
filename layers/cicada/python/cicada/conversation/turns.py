"""The turns of a conversation, and how many of them are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from cicada.protocol.markers import without_markers
from cicada.rights import EVERYTHING, Readable
from cicada.text.tokens import estimated_tokens

MAX_ASKED_CHARS = 1_000  # kept of a question
MAX_ANSWER_CHARS = 600  # kept of an answer: its beginning says who and what it is about


@dataclass(frozen=True)
class SessionKey:
    """A user and the client's id of a conversation; other users may use the same id for theirs."""

    subject: str
    tenant: str | None
    session_id: str

    @property
    def digest(self) -> str:
        """A hexadecimal key of fixed length: a hash, because the client chooses its ids."""
        parts = (self.subject, self.tenant or "", self.session_id)
        spelled = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class ConversationTurn:
    """One question and the beginning of its answer."""

    request_id: str
    at_ms: int  # when it was answered, in epoch milliseconds
    asked: str  # the question as it was asked
    query: str  # the same, or its completion from the turns before
    answer: str  # its beginning, without citation markers
    collections: tuple[str, ...] | None = None
    """Those that the answer, and the question's completion, rested on; None where that is not known."""

    @classmethod
    def of(
        cls,
        *,
        request_id: str,
        at_ms: int,
        asked: str,
        query: str,
        answer: str,
        collections: tuple[str, ...] | None = None,
    ) -> ConversationTurn:
        """The turn of a question and an answer, cut to what a turn keeps."""
        return cls(
            request_id=request_id,
            at_ms=at_ms,
            asked=clipped(asked, MAX_ASKED_CHARS),
            query=clipped(query, MAX_ASKED_CHARS),
            answer=clipped(without_markers(answer), MAX_ANSWER_CHARS),
            collections=collections,
        )

    def readable_by(self, readable: Readable) -> bool:
        """Whether everything that it rests on may be read."""
        if self.collections is None:
            return readable == EVERYTHING
        return all(map(readable.allows, self.collections))

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        completed = estimated_tokens(self.query) if self.query != self.asked else 0
        return estimated_tokens(self.asked) + completed + estimated_tokens(self.answer)


@dataclass(frozen=True)
class Bounds:
    """How much of a conversation is kept."""

    turns: int = 6
    tokens: int = 2_000  # of all turns together
    age_s: int = 12 * 3600  # of each turn


@dataclass(frozen=True)
class ConversationSession:
    """A conversation as it is kept."""

    turns: tuple[ConversationTurn, ...] = ()  # oldest first
    forgotten_until_ms: int = 0
    """When the newest dropped turn was answered, 0 if none was dropped: turns that old are never added again."""
    deleted_at_ms: int = 0
    """When the user deleted it, 0 if it is not deleted: its turns stay for a while, and are not used."""

    @property
    def had_turns(self) -> bool:
        """Whether it has or had any turn."""
        return bool(self.turns) or self.forgotten_until_ms > 0

    def deleted_since(self, at_ms: int) -> bool:
        """Whether it was deleted at a time or later."""
        return self.deleted_at_ms > 0 and at_ms <= self.deleted_at_ms

    def holds(self, turn: ConversationTurn) -> bool:
        """Whether a turn is in it, or was dropped."""
        return turn.at_ms <= self.forgotten_until_ms or any(turn.request_id == one.request_id for one in self.turns)

    def plus(self, turn: ConversationTurn, bounds: Bounds) -> ConversationSession:
        """The session with one more turn in its place; the oldest turns beyond the bounds are dropped."""
        if self.deleted_at_ms:  # the deleted turns give way to the new one
            return ConversationSession((turn,), min(turn.at_ms - 1, max(self.forgotten_until_ms, self.deleted_at_ms)))
        turns = sorted((*self.turns, turn), key=lambda one: (one.at_ms, one.request_id))
        return self._newest(turns, bounds)

    def at(self, now_s: float, bounds: Bounds) -> ConversationSession:
        """The session at a time: without turns that are too old, or deleted."""
        if self.deleted_at_ms:
            return ConversationSession((), max(self.forgotten_until_ms, self.deleted_at_ms))
        young = [turn for turn in self.turns if turn.at_ms > (now_s - bounds.age_s) * 1000]
        return self._newest(young, bounds)

    def _newest(self, turns: Iterable[ConversationTurn], bounds: Bounds) -> ConversationSession:
        kept: list[ConversationTurn] = []
        tokens = 0
        for turn in reversed(list(turns)):
            tokens += turn.tokens
            if len(kept) == bounds.turns or tokens > bounds.tokens:
                return ConversationSession(tuple(reversed(kept)), max(self.forgotten_until_ms, turn.at_ms))
            kept.append(turn)
        oldest_ms = kept[-1].at_ms if kept else None
        gone = [turn.at_ms for turn in self.turns if oldest_ms is None or turn.at_ms < oldest_ms]
        return ConversationSession(tuple(reversed(kept)), max([self.forgotten_until_ms, *gone]))


def clipped(text: str, max_chars: int) -> str:
    """A text on one line, cut between words if it is longer."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    head = cut.rpartition(" ")[0]
    return (head if len(head) > max_chars // 2 else cut) + "…"
