"""The conversation of a session: completes a question from its last turns, and keeps each answer as a turn."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AnswerGiven, collections_of
from cicada.attempts.writing import write_whole
from cicada.conversation.completion import UNCHANGED, completing_prompt, in_askers_words, refusal
from cicada.conversation.leaning import is_whole
from cicada.conversation.one_call_budget import OneCallBudget
from cicada.conversation.sessions import SessionChanged, Sessions
from cicada.conversation.turns import Bounds, ConversationSession, ConversationTurn, SessionKey
from cicada.delivery.ports import StoreFault
from cicada.delivery.record import Question, Standalone
from cicada.errors import CicadaError, IndexFailure, raise_final
from cicada.models.ports import TextModel
from cicada.protocol.events import Degraded
from cicada.request_trace import log_event, log_fault
from cicada.rights import Readable
from cicada.text.sentences import unquoted

logger = logging.getLogger(__name__)

WRITE_TRIES = 8  # with so many concurrent writers of a session, each succeeds
LEAST_CALLS = 2  # model calls that must be left to complete a question: one for that, one for the answer

NOT_READ = "The question seems to lean on the conversation, which could not be read, so it was taken as it was asked."
FORGOTTEN = "The question seems to lean on a conversation that is no longer kept, so it was taken as it was asked."
NOT_COMPLETED = "The question seems to lean on the conversation and could not be completed, so it was taken as asked."


class Conversation:
    """Completes questions from the turns before them, and stores new turns.

    It is a :class:`cicada.attempts.strategy.QuestionCompleter` and an :class:`~cicada.attempts.strategy.AnswerSink`.
    """

    def __init__(
        self,
        sessions: Sessions,
        model: TextModel,
        *,
        bounds: Bounds | None = None,
        time_budget_s: float = 4.0,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """``model`` completes questions, within ``time_budget_s``; a small one is enough."""
        self._sessions = sessions
        self._model = model
        self._bounds = bounds or Bounds()
        self._time_budget_s = time_budget_s
        self._now_s = now_s

    def complete(
        self, question: Question, subject: str, readable: Callable[[], Readable], attempt_budget: AttemptBudget
    ) -> Standalone:
        """Complete a question from its session's turns if it depends on them. Raises only Stopped.

        Turns that rest on what the asker may not read now are not used.

        A question that needs no context is never sent to a model. If the model may not be called, fails or writes
        anything but the question, the question stays as it was asked.
        """
        key = _session_key(question, subject)
        if key is None:
            return _as_asked(question)
        started = attempt_budget.monotonic()
        try:
            stored = self._sessions.read(key).session
        except StoreFault as fault:
            log_event(logger, "fault", "session not read", level=logging.WARNING, code="session_unread", why=str(fault))
            return _as_asked(question, None if is_whole(question.query) else NOT_READ)
        if not stored.had_turns or is_whole(question.query):
            return _as_asked(question)
        turns = self._readable_turns(stored, readable)
        if not turns:
            return _as_asked(question, NOT_READ if turns is None else FORGOTTEN)
        completed = self._by_model(question.query, turns, attempt_budget) or _as_asked(question, NOT_COMPLETED)
        took_ms = round((attempt_budget.monotonic() - started) * 1000)
        by = "as_is" if completed.query == question.query else "model"
        log_event(logger, "question_completed", "question completed", by=by, took_ms=took_ms)
        return completed

    def _readable_turns(
        self, stored: ConversationSession, readable: Callable[[], Readable]
    ) -> list[ConversationTurn] | None:
        """The turns that rest on what the asker may read now; None if that is not known."""
        try:
            may_read = readable()
        except IndexFailure as error:
            log_fault(logger, "session not used", error)
            return None
        return [one for one in stored.at(self._now_s(), self._bounds).turns if one.readable_by(may_read)]

    def keep(self, given: AnswerGiven) -> None:
        """See the port. The same answer kept twice is one turn."""
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
            collections=_rested_on(given),
        )
        try:
            self._write(key, turn, asked.at_ms)
        except StoreFault as fault:
            log_event(logger, "fault", "turn not kept", level=logging.WARNING, code="session_unwritten", why=str(fault))

    def _write(self, key: SessionKey, turn: ConversationTurn, asked_at_ms: int) -> None:
        """Add a turn to the stored session, which others may change meanwhile. Raises StoreFault.

        A turn that was asked for before the session was deleted is not added.
        """
        stored = self._sessions.read(key)
        for _ in range(WRITE_TRIES):
            if stored.session.deleted_since(asked_at_ms) or stored.session.holds(turn):
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
        raise StoreFault(f"the session changed {WRITE_TRIES} times while a turn was being written")

    def _by_model(
        self, query: str, turns: Sequence[ConversationTurn], attempt_budget: AttemptBudget
    ) -> Standalone | None:
        """The question as the model completes it; None if it may not be called, fails, or writes something else."""
        if attempt_budget.calls_left < LEAST_CALLS:
            return None
        call_budget = OneCallBudget(attempt_budget, self._time_budget_s)
        try:
            written = write_whole(self._model, completing_prompt(query, turns), call_budget, "complete_question")
        except CicadaError as error:
            raise_final(error)
            log_fault(logger, "question not completed", error)
            return None
        completed = unquoted(written.text.strip())
        if completed.rstrip(".").upper() == UNCHANGED or completed == query.strip():
            return Standalone(query)
        why = refusal(completed, query, turns)
        if why is not None:
            log_event(
                logger, "fault", "completed question refused", level=logging.WARNING, code="not_a_question", why=why
            )
            return None
        return Standalone(completed, None, in_askers_words(completed, query, turns), _together(turns))


def _rested_on(given: AnswerGiven) -> tuple[str, ...] | None:
    """The collections of an answer's passages, and of the turns that its question was completed from."""
    if given.asked.rests_on is None:
        return None
    shown = () if given.retrieved is None else collections_of(given.retrieved.sources)
    return tuple(sorted({*shown, *given.asked.rests_on}))


def _together(turns: Sequence[ConversationTurn]) -> tuple[str, ...] | None:
    """The collections of turns; None if those of one are not known."""
    known = [one.collections for one in turns if one.collections is not None]
    return tuple(sorted({name for names in known for name in names})) if len(known) == len(turns) else None


def _session_key(question: Question, subject: str) -> SessionKey | None:
    return SessionKey(subject, question.tenant, question.session_id) if question.session_id else None


def _as_asked(question: Question, message: str | None = None) -> Standalone:
    degraded = Degraded(code="question_not_completed", message=message) if message else None
    return Standalone(question.query, degraded)
