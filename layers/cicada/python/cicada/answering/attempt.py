"""Runs one attempt: begins it, runs its strategy, delivers its steps, and closes it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from cicada.answering.attempt_changes import AttemptChanges, EarlierChanges
from cicada.answering.attempt_complete import complete_event, log_complete, metrics_of
from cicada.answering.attempt_rights import AttemptRights
from cicada.answering.attempt_sources import found_before, sources_event
from cicada.answering.attempt_start import CLOSING_RESERVE_S, AttemptStarter, Begun, Late, store_required
from cicada.answering.workflow import AttemptTask
from cicada.attempts.budgets import AttemptBudget, RequestBudget
from cicada.attempts.chain import LAST_RESORT, strategy_failures
from cicada.attempts.frame_limits import fit_citations
from cicada.attempts.strategy import (
    Answered,
    AnswerGiven,
    AnswerSink,
    AskedQuestion,
    DependencyChecker,
    QuestionChecker,
    QuestionCompleter,
    Retrieved,
    Strategy,
)
from cicada.concurrency import THREADS, Concurrency
from cicada.delivery.decide import NotYours, answering, tried
from cicada.delivery.driver import DeliveryDriver
from cicada.delivery.outbox import Fenced, Outbox, OutboxLimits
from cicada.delivery.ports import Connections, RequestLog, StoreFault
from cicada.delivery.posting import end_request, settle
from cicada.delivery.record import RequestHead, RequestSpend
from cicada.errors import (
    CacheMiss,
    CicadaError,
    DeliveryUnavailable,
    GuardrailUnavailable,
    OutOfTime,
    RequestUnknown,
    StreamBroken,
)
from cicada.index.access_rules import AccessRulesStore
from cicada.models.ports import Stopped, TextDelta
from cicada.protocol.events import (
    Complete,
    Degraded,
    Failed,
    StrategyFailure,
    StrategyName,
    Verdict,
)
from cicada.request_trace import log_event, log_fault
from cicada.rights import Readable

logger = logging.getLogger(__name__)

STORE_PROGRESS_S = 2.0
"""How long a failed attempt may take to store what the next ones can use."""
UNCHECKED = Degraded(
    code=GuardrailUnavailable.code, message="The guardrail could not be asked: not all of this answer was checked."
)
KEEPING_RESERVE_S = 5.0
"""With less time left, a complete answer is not given to the sinks."""


@dataclass(frozen=True)
class AttemptOutcome:
    """How an attempt ended, for the workflow and the metrics.

    ``superseded``: another attempt, another execution or a cancellation came first, so nothing was changed.
    ``ended``: the request ended with an error; no other strategy is tried.
    """

    outcome: Literal["answered", "superseded", "ended"]
    complete: Complete | None = None
    """The event that ended the answer."""
    error: CicadaError | None = None
    """What ended the request."""


@dataclass
class _Progress:
    """What an attempt has yielded so far."""

    asked: AskedQuestion
    text: str = ""
    retrieved: Retrieved | None = None
    degraded: tuple[Degraded, ...] = ()
    """What the question lacked before its search."""
    unchecked: bool = False
    """The guardrail could not check all of it."""


class AttemptRunner:
    """Runs attempts in a worker."""

    def __init__(
        self,
        log: RequestLog,
        connections: Connections,
        strategies: Mapping[StrategyName, Strategy],
        *,
        access: AccessRulesStore,
        names: QuestionChecker | None = None,
        conversation: QuestionCompleter | None = None,
        breakers: DependencyChecker | None = None,
        sinks: Sequence[AnswerSink] = (),
        changes: EarlierChanges = lambda _: (),
        unchecked: Callable[[], bool] = lambda: False,
        on_spent: Callable[[RequestSpend], None] = lambda _: None,
        budget: RequestBudget | None = None,
        limits: OutboxLimits | None = None,
        concurrency: Concurrency = THREADS,
        now_s: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wire a runner.

        Args:
            strategies: one for each strategy state of the workflow.
            access: says what an asker may read.
            names: tells unknown collections and episodes; without it they are searched, and nothing is found.
            conversation: completes follow-up questions; without it none are completed.
            breakers: skip a strategy whose dependency is down; without them every strategy is tried.
            changes: the profile changes of earlier attempts at a request, from the profiles' records.
            unchecked: whether a text was used that the guardrail failed to check, since the last call.
            on_spent: gets what each attempt has spent, however it ended.
        """
        self._log = log
        self._connections = connections
        self._strategies = strategies
        self._access = access
        self._names = names
        self._conversation = conversation
        self._breakers = breakers
        self._sinks = sinks
        self._changes = changes
        self._unchecked = unchecked
        self._on_spent = on_spent
        self._budget = budget or RequestBudget()
        self._starter = AttemptStarter(log, self._budget, now_s)
        self._limits = limits
        self._concurrency = concurrency
        self._now_s = now_s
        self._monotonic = monotonic

    def run(self, task: AttemptTask, *, worker: str, remaining_s: float) -> AttemptOutcome:
        """Run one attempt in the invocation ``worker``, which is killed after ``remaining_s``.

        Raises:
            CicadaError: the strategy failed; the workflow continues with the next.
        """
        started = self._monotonic()
        deadline = started + min(remaining_s, task.time_budget_s or remaining_s) - CLOSING_RESERVE_S
        if deadline <= started:
            raise OutOfTime(f"{remaining_s:.1f} s left")
        strategy = self._strategies[task.strategy]
        if self._breakers is not None:
            self._breakers.check(strategy.needs)
        rights = AttemptRights(self._access, self._concurrency)
        try:
            begun = self._starter.begin(task, worker)
        except RequestUnknown:
            log_event(logger, "superseded", "the request no longer exists", level=logging.WARNING, why="gone")
            return AttemptOutcome("superseded")
        if isinstance(begun, NotYours):
            log_event(logger, "superseded", "attempt not begun", why=begun.why)
            return AttemptOutcome("superseded")
        if isinstance(begun, Late):
            return self._end_late(begun.head, task)
        head = begun.head
        log_event(
            logger,
            "attempt",
            "attempt begun",
            attempt=head.attempt,
            strategy=task.strategy,
            worker=worker,
            execution=task.execution,
            reserved_calls=head.reserved_calls,
            failed=[f"{one.strategy}: {one.code}" for one in head.failed],
        )
        attempt_budget = AttemptBudget(
            task.strategy,
            calls=begun.commit.claim.calls if begun.commit.claim else 0,
            deadline=min(deadline, self._monotonic() + self._starter.left_s(head)),
            budget=self._budget,
            monotonic=self._monotonic,
        )
        keep_until = started + remaining_s - KEEPING_RESERVE_S
        try:
            return self._answer(strategy, begun, rights, attempt_budget, started=started, keep_until=keep_until)
        finally:
            self._on_spent(attempt_budget.spent)

    def _end_late(self, head: RequestHead, task: AttemptTask) -> AttemptOutcome:
        error = OutOfTime(f"the request had {self._budget.time_s:.0f} s")
        log_fault(logger, "attempt failed", error, attempt=head.attempt)
        failed = tried(head, strategy_failures(task.failures, task.entry))
        ended = self._end(head, error, failed, still=lambda stored: stored.attempt == head.attempt)
        return AttemptOutcome("ended", error=error) if ended else AttemptOutcome("superseded")

    @store_required()
    def _end(
        self,
        head: RequestHead,
        error: CicadaError,
        failed: tuple[StrategyFailure, ...],
        *,
        still: Callable[[RequestHead], bool],
        spent: RequestSpend | None = None,
    ) -> bool:
        """End the request with an error. Returns whether this ended it."""
        terminal = Failed.of(error, failed)
        return end_request(self._log, self._connections, head, terminal, still=still, now_s=self._now_s, spent=spent)

    def _answer(
        self,
        strategy: Strategy,
        begun: Begun,
        rights: AttemptRights,
        attempt_budget: AttemptBudget,
        *,
        started: float,
        keep_until: float,
    ) -> AttemptOutcome:
        head = begun.head
        outbox = Outbox(head, self._limits, begun=begun.commit, now=self._monotonic(), now_s=self._now_s)
        driver = DeliveryDriver(
            outbox,
            self._log,
            self._connections,
            on_failure=attempt_budget.stop,
            concurrency=self._concurrency,
            now_s=self._now_s,
            monotonic=self._monotonic,
        )
        changes = AttemptChanges(self._log, head, driver, self._changes)
        try:
            with driver:
                progress = _Progress(self._asked(head, rights, changes))
                changes.deliver_lost_receipts()
                self._unchecked()  # what an earlier attempt left
                try:
                    answered = self._deliver(strategy, progress, driver, attempt_budget)
                except Stopped as stopped:
                    driver.raise_failure()
                    raise Fenced(str(stopped)) from stopped  # noticed before a tool would have written
                except CicadaError as error:
                    _store_progress(driver, attempt_budget, error)
                    raise
                metrics = metrics_of(
                    head,
                    progress.retrieved,
                    answered,
                    attempt_budget,
                    started=started,
                    first_chunk_at=driver.first_chunk_at,
                    now_s=self._now_s(),
                )
                degraded = self._left_unchecked(progress)
                complete = complete_event(head, strategy.name, answered, metrics, attempt_budget.spent, degraded)
                driver.close(complete, attempt_budget.spent, timeout_s=CLOSING_RESERVE_S - 1)
        except (Fenced, RequestUnknown) as fenced:
            log_event(logger, "superseded", "attempt superseded", attempt=head.attempt, why=str(fenced))
            changes.undo()
            self._settle_cancelled(head, head.spent + attempt_budget.spent)
            return AttemptOutcome("superseded")
        except CicadaError as error:
            log_fault(logger, "attempt failed", error, level=_level_of(error), attempt=head.attempt)
            if not error.final:
                raise
            return self._end_by(error, outbox.head, strategy.name, changes, head.spent + attempt_budget.spent)
        settle(self._log, driver.head)
        log_complete(complete)
        if not progress.unchecked:
            self._keep(progress, strategy.name, answered, until=keep_until)
        return AttemptOutcome("answered", complete)

    def _settle_cancelled(self, head: RequestHead, spent: RequestSpend) -> None:
        """Settle a request that was cancelled during this attempt: only the attempt knows what it spent."""
        try:
            stored = self._log.head(head.key)
        except (StoreFault, RequestUnknown) as error:
            log_event(logger, "fault", "use not settled", level=logging.WARNING, why=type(error).__name__)
            return
        mine = stored.state == "failed" and (stored.attempt, stored.worker) == (head.attempt, head.worker)
        # Whoever ended an orphaned request has settled it; without a reservation it would be counted twice.
        if mine and (stored.reservation is not None or answering(stored, self._now_s())):
            settle(self._log, replace(stored, spent=spent))

    def _end_by(
        self,
        error: CicadaError,
        head: RequestHead,
        strategy: StrategyName,
        changes: AttemptChanges,
        spent: RequestSpend,
    ) -> AttemptOutcome:
        """End the request by an attempt's error. Raises it if the end cannot be stored: the workflow ends it."""
        failed = tried(head, [StrategyFailure(strategy=strategy, code=error.code, reason=error.told)])
        owner = (head.attempt, head.worker)
        try:
            ended = self._end(
                head, error, failed, still=lambda stored: (stored.attempt, stored.worker) == owner, spent=spent
            )
        except DeliveryUnavailable as unavailable:
            raise error from unavailable
        changes.undo()
        if ended:
            return AttemptOutcome("ended", error=error)
        self._settle_cancelled(head, spent)
        return AttemptOutcome("superseded")

    def _left_unchecked(self, progress: _Progress) -> tuple[Degraded, ...]:
        """The notice for the client, if a check by the guardrail has failed since the last notice."""
        if not self._unchecked():
            return ()
        progress.unchecked = True
        return (UNCHECKED,)

    def _asked(self, head: RequestHead, rights: AttemptRights, changes: AttemptChanges) -> AskedQuestion:
        def readable() -> Readable:
            return rights.readable(head.question.groups)

        return AskedQuestion(
            key=head.key,
            question=head.question,
            query=head.standalone.query if head.standalone else head.question.query,
            in_own_words=head.standalone is not None and head.standalone.in_own_words,
            rests_on=head.standalone.rests_on if head.standalone else (),
            failed=head.failed,
            found_before=lambda: found_before(self._log, head.key, readable),
            at_ms=head.accepted_at_ms,
            may_write=lambda: self._starter.is_answering(head),
            on_change=changes.deliver,
            readable=readable,
        )

    def _deliver(
        self, strategy: Strategy, progress: _Progress, driver: DeliveryDriver, attempt_budget: AttemptBudget
    ) -> Answered:
        """Deliver the strategy's steps as they come."""
        if self._names is not None and strategy.name != LAST_RESORT:
            progress.degraded += self._names.check(progress.asked, attempt_budget)
        self._complete_question(progress, driver, attempt_budget)
        attempt = driver.head.attempt
        with closing(strategy.answer(progress.asked, attempt_budget)) as steps:
            for step in steps:
                match step:
                    case TextDelta():
                        progress.text += step.text
                        driver.text(step.text)
                    case Retrieved():
                        degraded = (*progress.degraded, *step.degraded, *self._left_unchecked(progress))
                        step = replace(step, degraded=degraded)
                        progress.retrieved = step
                        driver.event(sources_event(attempt, progress.asked, step))
                    case Answered():
                        if step.citations is not None:
                            for event in fit_citations(attempt, step.citations, step.not_attributed):
                                driver.event(event)
                        if step.verdict is not None:
                            driver.event(Verdict(attempt=attempt, **vars(step.verdict)))
                        return step
        raise StreamBroken("the strategy ended without an answer")

    def _complete_question(self, progress: _Progress, driver: DeliveryDriver, attempt_budget: AttemptBudget) -> None:
        asked = progress.asked
        completed = driver.head.standalone
        if completed is None and self._conversation is not None and asked.question.session_id is not None:
            completed = self._conversation.complete(asked.question, asked.key.subject, asked.readable, attempt_budget)
        if completed is None:
            return
        progress.degraded += (completed.degraded,) if completed.degraded is not None else ()
        if completed.query != asked.query:
            progress.asked = replace(
                asked, query=completed.query, in_own_words=completed.in_own_words, rests_on=completed.rests_on
            )
            driver.standalone(completed)

    def _keep(self, progress: _Progress, strategy: StrategyName, answered: Answered, *, until: float) -> None:
        """Give the answer to the sinks. It is already delivered, so their failures are only logged."""
        given = AnswerGiven(
            asked=progress.asked,
            strategy=strategy,
            text=progress.text,
            retrieved=progress.retrieved,
            answered=answered,
            at_ms=int(self._now_s() * 1000),
        )
        for sink in self._sinks:
            if self._monotonic() > until:
                log_event(logger, "fault", "no time left to keep the answer", code=OutOfTime.code)
                return
            try:
                sink.keep(given)
            except Exception as error:  # a bug of a sink
                why = type(error).__name__
                log_event(logger, "fault", "answer not kept", level=logging.ERROR, code=CicadaError.code, why=why)


def _level_of(error: CicadaError) -> int:
    """The level at which a failed attempt is logged. A look-up that finds nothing is no failure."""
    return logging.INFO if isinstance(error, CacheMiss) else logging.WARNING


def _store_progress(driver: DeliveryDriver, attempt_budget: AttemptBudget, error: CicadaError) -> None:
    """Store what a failed attempt has spent, and what the next ones can use: the completed question, the passages."""
    try:
        driver.fail(attempt_budget.spent, timeout_s=STORE_PROGRESS_S)
    except (CicadaError, Fenced):
        if not error.final:  # otherwise the ending finds out
            raise
