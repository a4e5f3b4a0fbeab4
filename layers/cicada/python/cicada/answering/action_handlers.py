"""Handles a client's actions: one method per action, each returns the reply frame.

The message processor imports it and must start fast, so nothing here may import numpy.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeVar, assert_never

from cicada import __version__
from cicada.answering.conversation_api import ConversationApi
from cicada.answering.feedback_api import FeedbackApi
from cicada.answering.profile_api import ProfileApi
from cicada.answering.question_gate import QuestionGate
from cicada.answering.recovery import Recovery
from cicada.attempts.chain import entry_strategy
from cicada.delivery.decide import START_GRACE_S, answering, with_subscriber
from cicada.delivery.outbox import Post
from cicada.delivery.ports import Conflict, Connections, RequestLog, StoreFault
from cicada.delivery.posting import CONTENTION_TRIES, end_request, post_frames
from cicada.delivery.record import LogEntry, Question, RequestHead, RequestKey, Subscriber
from cicada.errors import (
    Cancelled,
    CicadaError,
    ConfirmationUnknown,
    DeliveryUnavailable,
    LimitReached,
    ProfileConflict,
    ProfileInvalid,
    RequestConflict,
    RequestExpired,
    RequestUnknown,
    Unauthorized,
    UnknownAction,
)
from cicada.identity import Caller
from cicada.protocol.actions import (
    Ask,
    Cancel,
    ConfirmChange,
    GiveFeedback,
    ManageConversations,
    ManageProfile,
    Ping,
    ProcessedAction,
    Resume,
)
from cicada.protocol.events import (
    Accepted,
    Confirm,
    Failed,
    Pong,
    Refused,
    Reply,
    Resumed,
    dump_event,
    reply_frame,
)
from cicada.request_trace import log_event
from cicada.routing.classifier import classify

logger = logging.getLogger(__name__)

Api = TypeVar("Api")

REPLAY_BUDGET_S = 5.0
"""How long one resume may replay: well below API Gateway's time limit for the reply."""


@dataclass(frozen=True)
class ActionHandlers:
    """Handles a client's actions."""

    log: RequestLog
    connections: Connections
    recovery: Recovery
    profiles: ProfileApi
    gate: QuestionGate
    _: KW_ONLY
    retention_s: int
    conversations: ConversationApi | None = None
    """None where conversations are not kept."""
    feedback: FeedbackApi | None = None
    """None where answers are not rated."""
    knowledge: bool = False
    agents: bool = True
    on_accepted: Callable[[], None] = lambda: None
    """Is called for each new question."""
    on_failed: Callable[[], None] = lambda: None
    """Is called for each question that a fault of the system refused."""
    now_s: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def handle(self, action: ProcessedAction, caller: Caller) -> str:
        """Carry out an action and return the reply frame. An action that fails is refused in the reply.

        Raises Unauthorized if the caller's tokens were revoked, which is looked at here for a question only.
        If the caller's token expires meanwhile, the reply is a refusal too, although the action was carried out.
        """
        request_id = None if isinstance(action, Ping) else action.request_id
        reply = self._carry_out(action, caller, request_id)
        if _subscriber(caller).expired(self.now_s()):
            return reply_frame(Refused.of(Unauthorized(), request_id))
        return reply

    def _carry_out(self, action: ProcessedAction, caller: Caller, request_id: str | None) -> str:
        try:
            match action:
                case Ask():
                    return self._ask(action, caller)
                case Resume():
                    return self._resume(action, caller)
                case Cancel():
                    return self._cancel(action, caller)
                case ConfirmChange():
                    return self._confirm(action, caller)
                case Ping():
                    return reply_frame(Pong(release=__version__))
                case ManageProfile() | ManageConversations() | GiveFeedback():
                    return reply_frame(self._managed(action, caller))
                case _:
                    assert_never(action)
        except Unauthorized:
            raise
        except (StoreFault, CicadaError) as error:
            return reply_frame(_refusal(error, action, request_id))

    def _managed(self, action: ManageProfile | ManageConversations | GiveFeedback, caller: Caller) -> Reply:
        """Carry out an action on what is kept of the user."""
        match action:
            case ManageProfile():
                return self.profiles.handle(action, caller.owner)
            case ManageConversations():
                return _served(self.conversations).handle(action, caller)
            case GiveFeedback():
                return _served(self.feedback).handle(action, caller.owner)

    # --- ask ---

    def _ask(self, ask: Ask, caller: Caller) -> str:
        question = Question(
            query=ask.query,
            session_id=ask.session_id,
            collections=ask.collections,
            episodes=ask.episodes,
            top_k=ask.top_k,
            tenant=caller.tenant,
            groups=caller.groups,
            documents=ask.documents,
            sections=ask.sections,
        )
        classification = classify(ask.query)
        strategy = entry_strategy(classification.route, knowledge=self.knowledge, agents=self.agents)
        accepted = dump_event(
            Accepted(
                route=classification.route,
                confidence=classification.confidence,
                reasoning=classification.reasoning,
                strategy=strategy,
            )
        )
        now_s = self.now_s()
        head = RequestHead(
            key=RequestKey(caller.owner, ask.request_id),
            question=question,
            origin=caller.frame_id,
            accepted_at_ms=int(now_s * 1000),
            expires_at=int(now_s) + self.retention_s,
            lease_until=int(now_s) + START_GRACE_S,
            log_bytes=len(accepted.encode()),
            subscribers=(_subscriber(caller),),
        )
        try:
            self.gate.create(head, accepted, caller)
        except Conflict as conflict:
            # The same frame again is our own write whose acknowledgement was lost.
            if conflict.head.origin != caller.frame_id:
                return self._ask_again(question, conflict.head, caller)
        except (StoreFault, CicadaError) as error:
            if isinstance(error, StoreFault) or error.fault:
                code = DeliveryUnavailable.code if isinstance(error, StoreFault) else error.code
                log_event(logger, "fault", "question not taken", level=logging.WARNING, code=code, why=str(error))
                self.on_failed()
            raise
        self.on_accepted()
        log_event(
            logger,
            "accepted",
            "request accepted",
            route=classification.route,
            confidence=classification.confidence,
            strategy=strategy,
        )
        try:
            self.recovery.start(head, strategy)
        finally:
            if self.conversations is not None:
                self.conversations.add(head)
        return head.frame(1, accepted)

    def _ask_again(self, question: Question, head: RequestHead, caller: Caller) -> str:
        """Answer a repeated ``ask`` with the same ``requestId`` like a resume from the start."""
        if head.expired(self.now_s()):
            raise RequestExpired(head.key.request_id)
        if head.question != question:
            raise RequestConflict(head.key.request_id)
        log_event(logger, "asked_again", "request repeated", last_seq=head.last_seq)
        _, entries, _ = self._tail(head.key, _subscriber(caller), after=1)
        return entries[0].frame(head.key.request_id)

    # --- resume ---

    def _resume(self, resume: Resume, caller: Caller) -> str:
        key = RequestKey(caller.owner, resume.request_id)
        try:
            head, entries, replayed = self._tail(key, _subscriber(caller), resume.after)
        except RequestUnknown:
            return reply_frame(Resumed(request_id=resume.request_id, outcome="unknown"))
        except RequestExpired:
            return reply_frame(Resumed(request_id=resume.request_id, outcome="expired"))
        outcome: Literal["live", "finished"] = "finished" if head.state != "open" and replayed else "live"
        log_event(logger, "resumed", "request resumed", after=resume.after, last_seq=len(entries), outcome=outcome)
        return reply_frame(Resumed(request_id=resume.request_id, outcome=outcome, last_seq=len(entries)))

    def _tail(
        self, key: RequestKey, subscriber: Subscriber, after: int
    ) -> tuple[RequestHead, tuple[LogEntry, ...], bool]:
        """Make a connection a subscriber, then replay every event above ``after`` to it.

        The order matters: an event that is appended in between is replayed and pushed; the other order could lose it.

        Returns:
            The head, all entries, and whether the replay is complete. It stops early if the connection accepts no more
            frames or time runs out; the client sees by ``lastSeq`` what is missing, and resumes from there.

        Raises:
            RequestUnknown, RequestExpired, StoreFault.
        """
        head = self.log.head(key)
        if head.expired(self.now_s()):
            raise RequestExpired(key.request_id)
        head = self.recovery.recover(head, "resume")
        if head.state == "open":
            self._subscribe(head, subscriber)
        head, entries = self.log.read(key)
        return head, entries, self._replay(head, entries[after:], subscriber)

    def _replay(self, head: RequestHead, entries: Sequence[LogEntry], subscriber: Subscriber) -> bool:
        deadline = self.monotonic() + REPLAY_BUDGET_S
        for entry in entries:
            if self.monotonic() > deadline:
                return False
            frame = entry.frame(head.key.request_id)
            if post_frames(self.connections, Post(subscriber, (frame,)), self.now_s) != "delivered":
                return False
        return True

    def _subscribe(self, head: RequestHead, subscriber: Subscriber) -> None:
        for _ in range(CONTENTION_TRIES):
            wanted = with_subscriber(head.subscribers, subscriber)
            if wanted == head.subscribers:
                return
            try:
                self.log.set_subscribers(head, wanted)
            except Conflict as conflict:
                head = conflict.head
            else:
                return
        raise DeliveryUnavailable("too many concurrent changes of the subscribers")

    # --- cancel ---

    def _cancel(self, cancel: Cancel, caller: Caller) -> str:
        """End a request. The reply is its terminal event: the cancellation, or an earlier one."""
        key = RequestKey(caller.owner, cancel.request_id)
        head = self.log.head(key)
        if head.expired(self.now_s()):
            raise RequestExpired(key.request_id)
        end_request(
            self.log,
            self.connections,
            head,
            Failed.of(Cancelled(), head.failed),
            still=lambda head: True,  # noqa: ARG005 - its user may end it at any time
            now_s=self.now_s,
            spare=caller.connection_id,
            settles=lambda head: not answering(head, self.now_s()),  # otherwise its worker knows what was spent
        )
        _, entries = self.log.read(key)
        return entries[-1].frame(key.request_id)

    # --- confirm ---

    def _confirm(self, action: ConfirmChange, caller: Caller) -> str:
        """Carry out or decline what a ``confirm`` event of this user's request asks for."""
        head, entries = self.log.read(RequestKey(caller.owner, action.request_id))
        if head.expired(self.now_s()):
            raise RequestExpired(action.request_id)
        for entry in entries:
            event = entry.event()
            if isinstance(event, Confirm) and event.confirmation_id == action.confirmation_id:
                return reply_frame(self.profiles.confirm(event, action, caller.owner))
        raise ConfirmationUnknown(action.confirmation_id)


def _refusal(error: StoreFault | CicadaError, action: ProcessedAction, request_id: str | None) -> Refused:
    match error:
        case StoreFault():
            logger.warning("the request log is unavailable", extra={"why": str(error)})
            return Refused.of(DeliveryUnavailable(), request_id)
        case LimitReached():
            logger.warning("question refused by a limit", extra={"code": error.code, "why": str(error)})
            return Refused.of(error, request_id)
        case ProfileConflict() | ProfileInvalid():  # their messages are for the client
            logger.info("action refused", extra={"action": action.action, "code": error.code})
            return Refused.of(error, request_id, detail=str(error))
        case _:
            logger.info("action refused", extra={"action": action.action, "code": error.code, "why": str(error)})
            return Refused.of(error, request_id)


def _served(api: Api | None) -> Api:
    """What serves an action. Raises UnknownAction where nothing does."""
    if api is None:
        raise UnknownAction("not available on this deployment")
    return api


def _subscriber(caller: Caller) -> Subscriber:
    return Subscriber(caller.connection_id, caller.expires_at)
