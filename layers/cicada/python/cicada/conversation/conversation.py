"""The conversation of a session: completes a question from its last turns, and keeps each answer as a turn."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AnswerGiven
from cicada.attempts.writing import write_whole
from cicada.conversation.completion import UNCHANGED, completing_prompt, in_askers_words, refusal
from cicada.conversation.leaning import is_whole
from cicada.conversation.one_call_budget import OneCallBudget
from cicada.conversation.sessions import SessionChanged, Sessions
from cicada.conversation.turns import Bounds, ConversationTurn, SessionKey
from cicada.delivery.ports import StoreFault
from cicada.delivery.record import Question
from cicada.errors import CicadaError
from cicada.models.ports import TextModel
from cicada.protocol.events import Degraded
from cicada.request_trace import log_event, log_fault
from cicada.text.quotes import unquoted

logger = logging.getLogger(__name__)

WRITE_TRIES = 8  # how often a turn is written while others write the same session: of as many at once, each succeeds
LEAST_CALLS = 2  # calls to models that must be left for a question to be completed by one: the other is the answer's

NOT_READ = "The question seems to lean on the conversation, which could not be read, so it was taken as it was asked."
FORGOTTEN = "The question seems to lean on a conversation that is no longer kept, so it was taken as it was asked."
NOT_COMPLETED = "The question seems to lean on the conversation and could not be completed, so it was taken as asked."


@dataclass(frozen=True)
class CompletedQuestion:
    """A question as it can be understood by itself."""

    query: str
    by: Literal["as_is", "model"]  # ``as_is``: in the asker's own words, which needed nothing or could not be helped
    degraded: Degraded | None = None  # what is to be told if it could not be completed as it should
    in_own_words: bool = False
    """Of a completed question: every telling word is the asker's, of this question or an earlier one."""


class Conversation:
    """Completes questions from the turns before them; a :class:`cicada.attempts.strategy.AnswerSink` of those turns."""

    def __init__(
        self,
        sessions: Sessions,
        model: TextModel,
        *,
        bounds: Bounds | None = None,
        time_budget_s: float = 4.0,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Wire the conversation.

        Args:
            model: completes questions; a small one will do.
            time_budget_s: how long the model may take for it.
        """
        self._sessions = sessions
        self._model = model
        self._bounds = bounds or Bounds()
        self._time_budget_s = time_budget_s
        self._now_s = now_s

    def complete(self, question: Question, subject: str, attempt_budget: AttemptBudget) -> CompletedQuestion:
        """A question, completed from its session's turns if it leans on them.

        What plainly needs none of them is never sent to a model. Where a model may not be asked, fails or writes
        something else than the question, it is taken as it was asked.

        Raises:
            Stopped: nobody wants the answer any more.
        """
        key = _session_key(question, subject)
        if key is None:
            return CompletedQuestion(question.query, "as_is")
        started = attempt_budget.monotonic()
        try:
            stored = self._sessions.read(key).session
        except StoreFault as fault:
            log_event(logger, "fault", "session not read", level=logging.WARNING, code="session_unread", why=str(fault))
            return _as_asked(question, None if is_whole(question.query) else NOT_READ)
        turns = stored.at(self._now_s(), self._bounds).turns
        had_any = bool(stored.turns) or stored.forgotten_until_ms > 0
        if not had_any or is_whole(question.query):
            return _as_asked(question)
        if not turns:
            return _as_asked(question, FORGOTTEN)
        completed = self._by_model(question.query, turns, attempt_budget) or _as_asked(question, NOT_COMPLETED)
        took_ms = round((attempt_budget.monotonic() - started) * 1000)
        log_event(logger, "question_completed", "question completed", by=completed.by, took_ms=took_ms)
        return completed

    def keep(self, given: AnswerGiven) -> None:
        """See :class:`cicada.attempts.strategy.AnswerSink`. The same answer kept twice is one turn."""
        asked = given.asked
        key = _session_key(asked.question, asked.key.subject)
        if key is None:
            return
        turn = ConversationTurn.of(
            request_id=asked.key.request_id,
            at_ms=given.at_ms,
            asked=asked.question.query,
            query=asked.query,
            answer=given.text,
        )
        try:
            self._write(key, turn)
        except StoreFault as fault:
            log_event(logger, "fault", "turn not kept", level=logging.WARNING, code="session_unwritten", why=str(fault))

    def _write(self, key: SessionKey, turn: ConversationTurn) -> None:
        """Add a turn to what stands, whoever else adds one. Raises StoreFault."""
        stored = self._sessions.read(key)
        for _ in range(WRITE_TRIES):
            if stored.session.holds(turn):
                return
            session = stored.session.plus(turn, self._bounds).at(self._now_s(), self._bounds)
            newest_ms = max((one.at_ms for one in session.turns), default=turn.at_ms)
            expires_at = math.ceil(newest_ms / 1000) + self._bounds.age_s
            try:
                self._sessions.write(key, session, over=stored.version, expires_at=expires_at)
            except SessionChanged as changed:
                stored = changed.stored
            else:
                log_event(logger, "kept", "turn kept", where="conversation")
                return
        raise StoreFault(f"the session changed {WRITE_TRIES} times while a turn was written")

    def _by_model(
        self, query: str, turns: Sequence[ConversationTurn], attempt_budget: AttemptBudget
    ) -> CompletedQuestion | None:
        """What the model makes of a question; None if it may not be asked, fails, or writes something else."""
        if attempt_budget.calls_left < LEAST_CALLS:
            return None
        sub_budget = OneCallBudget(attempt_budget, self._time_budget_s)
        try:
            written = write_whole(self._model, completing_prompt(query, turns), sub_budget, "complete_question")
        except CicadaError as error:
            log_fault(logger, "question not completed", error)
            return None
        completed = unquoted(written.text.strip())
        if completed.rstrip(".").upper() == UNCHANGED or completed == query.strip():
            return CompletedQuestion(query, "as_is")
        why = refusal(completed, query, turns)
        if why is not None:
            log_event(
                logger, "fault", "completed question refused", level=logging.WARNING, code="not_a_question", why=why
            )
            return None
        return CompletedQuestion(completed, "model", in_own_words=in_askers_words(completed, query, turns))


def _session_key(question: Question, subject: str) -> SessionKey | None:
    return SessionKey(subject, question.tenant, question.session_id) if question.session_id else None


def _as_asked(question: Question, message: str | None = None) -> CompletedQuestion:
    degraded = Degraded(code="question_not_completed", message=message) if message else None
    return CompletedQuestion(question.query, "as_is", degraded)
