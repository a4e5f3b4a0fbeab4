"""The turns of a conversation, and how many of them are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from cicada.protocol.markers import without_markers
from cicada.text.token_estimates import estimated_tokens

MAX_ASKED_CHARS = 1_000  # as much of a question as its turn keeps
MAX_ANSWER_CHARS = 600  # as much of an answer as its turn keeps: who and what it is about stands at its beginning


@dataclass(frozen=True)
class SessionKey:
    """Whose conversation it is, and the client's id of it: the same id of another user is another conversation."""

    subject: str
    tenant: str | None
    session_id: str

    @property
    def digest(self) -> str:
        """A name of fixed length that nobody can choose: ids are the client's. Hexadecimal."""
        parts = (self.subject, self.tenant or "", self.session_id)
        spelled = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class ConversationTurn:
    """One question and the beginning of its answer."""

    request_id: str
    at_ms: int  # when it was answered, in epoch milliseconds
    asked: str  # the question in the asker's words
    query: str  # the question as it was understood: the same, or completed from the turns before
    answer: str  # its beginning, without citation markers

    @classmethod
    def of(cls, *, request_id: str, at_ms: int, asked: str, query: str, answer: str) -> ConversationTurn:
        """The turn of a whole question and a whole answer, cut to what a turn keeps."""
        return cls(
            request_id=request_id,
            at_ms=at_ms,
            asked=clipped(asked, MAX_ASKED_CHARS),
            query=clipped(query, MAX_ASKED_CHARS),
            answer=clipped(without_markers(answer), MAX_ANSWER_CHARS),
        )

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
    """When the newest turn was answered that is no longer kept, 0 if none was dropped: nothing as old is kept again."""

    def holds(self, turn: ConversationTurn) -> bool:
        """Whether a turn is in it, or was and has been forgotten."""
        return turn.at_ms <= self.forgotten_until_ms or any(turn.request_id == one.request_id for one in self.turns)

    def plus(self, turn: ConversationTurn, bounds: Bounds) -> ConversationSession:
        """With one more turn in its place, and those dropped that are over the bounds, oldest first."""
        turns = sorted((*self.turns, turn), key=lambda one: (one.at_ms, one.request_id))
        return self._newest(turns, bounds)

    def at(self, now_s: float, bounds: Bounds) -> ConversationSession:
        """As it is at a time: without the turns that have grown too old."""
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
