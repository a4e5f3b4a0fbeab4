"""One attempt: open it, run its strategy, deliver what it yields, close it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from cicada.answering.failures import strategy_failures
from cicada.answering.fit import fit_citations, fit_sources
from cicada.answering.strategy import Answered, Retrieved, Strategy
from cicada.answering.workflow import AttemptTask, ExhaustedTask
from cicada.delivery.courier import Courier
from cicada.delivery.decide import NotYours, begin, has_landed, may_drive
from cicada.delivery.outbox import Fenced, Outbox, OutboxLimits
from cicada.delivery.ports import Conflict, Connections, RequestLog, StoreFault
from cicada.delivery.posting import CONTENTION_TRIES, end_request
from cicada.delivery.record import Commit, Head, Question, RequestKey
from cicada.errors import (
    AllStrategiesFailed,
    AnswerTooLong,
    DeliveryUnavailable,
    OutOfTime,
    RequestUnknown,
    StreamBroken,
)
from cicada.models.ports import TextDelta
from cicada.models.prices import cost
from cicada.protocol.events import Complete, Failed, Metrics, Sources, StrategyFailure, StrategyName

logger = logging.getLogger(__name__)

CLOSING_RESERVE_S = 8.0
"""Seconds at the end of a worker's time that no strategy may use: the last events are stored and posted in them."""
LEASE_MARGIN_S = 5
"""How long a claim outlives its worker's time-out."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended, for the workflow and the metrics.

    ``superseded``: another attempt, another execution or the asker's cancellation came first: nothing was changed.
    ``too_long``: the request ended with that error; no other strategy is tried.
    """

    outcome: Literal["answered", "superseded", "too_long"]
    metrics: Metrics | None = None


class AttemptRunner:
    """Runs attempts in a worker."""

    def __init__(
        self,
        log: RequestLog,
        connections: Connections,
        strategies: Mapping[StrategyName, Strategy],
        *,
        limits: OutboxLimits | None = None,
        now_s: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._connections = connections
        self._strategies = strategies
        self._limits = limits
        self._now_s = now_s
        self._monotonic = monotonic

    def run(self, task: AttemptTask, *, worker: str, remaining_s: float) -> Outcome:
        """Run one attempt.

        Args:
            task: which request, which strategy, and what failed before.
            worker: the id of this very invocation.
            remaining_s: seconds until the worker is killed.

        Raises:
            CicadaError: the strategy failed; the workflow goes on to the next.
        """
        started = self._monotonic()
        deadline = started + remaining_s - CLOSING_RESERVE_S
        if deadline <= started:
            raise OutOfTime(f"{remaining_s:.1f} s left")
        failed = strategy_failures(task.failures)
        try:
            begun = self._begin(task, failed, worker, int(self._now_s() + remaining_s) + LEASE_MARGIN_S)
        except RequestUnknown:
            logger.warning("the request is gone")
            return Outcome("superseded")
        except StoreFault as fault:
            raise DeliveryUnavailable(str(fault)) from fault
        if isinstance(begun, NotYours):
            logger.info("attempt not begun", extra={"why": begun.why})
            return Outcome("superseded")
        head, commit = begun
        logger.info("attempt begun", extra={"attempt": head.attempt})
        outbox = Outbox(head, self._limits, begun=commit)
        return self._answer(task.strategy, outbox, failed, started=started, deadline=deadline)

    def _begin(
        self, task: AttemptTask, failed: tuple[StrategyFailure, ...], worker: str, lease_until: int
    ) -> tuple[Head, Commit] | NotYours:
        # A first attempt nearly always finds the log as it was created: it needs no read before its write.
        head = self._log.head(task.key) if failed else _as_created(task.key)
        for _ in range(CONTENTION_TRIES):
            commit = begin(
                head,
                task.strategy,
                failed,
                execution=task.execution,
                worker=worker,
                now_s=self._now_s(),
                lease_until=lease_until,
            )
            if isinstance(commit, NotYours):
                return commit
            try:
                return self._log.commit(head, commit), commit
            except Conflict as conflict:
                head = conflict.head
                if has_landed(commit, head, conflict.entries):
                    return head, commit
        raise DeliveryUnavailable("the attempt could not be begun")

    def _answer(
        self,
        name: StrategyName,
        outbox: Outbox,
        failed: tuple[StrategyFailure, ...],
        *,
        started: float,
        deadline: float,
    ) -> Outcome:
        strategy = self._strategies[name]
        head = outbox.head
        try:
            with Courier(outbox, self._log, self._connections, monotonic=self._monotonic) as courier:
                retrieved, answered = self._deliver(strategy, head, failed, courier, deadline=deadline)
                metrics = self._metrics(strategy, head, retrieved, answered, courier, started=started)
                complete = Complete(
                    attempt=head.attempt,
                    strategy=name,
                    model=strategy.model_id,
                    grounded=answered.grounded,
                    stop_reason=answered.stop_reason,
                    failed=failed,
                    metrics=metrics,
                )
                courier.close(complete, timeout_s=CLOSING_RESERVE_S - 1)
        except (Fenced, RequestUnknown) as fenced:
            logger.info("attempt superseded", extra={"attempt": head.attempt, "why": str(fenced)})
            return Outcome("superseded")
        except AnswerTooLong as error:
            logger.error("answer too long", extra={"attempt": head.attempt, "why": str(error)})
            ended = self._end_too_long(outbox.head, Failed.of(error, failed))
            return Outcome("too_long" if ended else "superseded")
        logger.info("answer complete", extra={"attempt": head.attempt, **metrics.model_dump(exclude_none=True)})
        return Outcome("answered", metrics)

    def _end_too_long(self, mine: Head, terminal: Failed) -> bool:
        """End the request, unless another attempt has begun meanwhile. Returns whether it did."""
        try:
            return end_request(
                self._log,
                self._connections,
                mine,
                terminal,
                still=lambda head: (head.attempt, head.worker) == (mine.attempt, mine.worker),
            )
        except StoreFault as fault:
            raise DeliveryUnavailable(str(fault)) from fault

    def _deliver(
        self,
        strategy: Strategy,
        head: Head,
        failed: tuple[StrategyFailure, ...],
        courier: Courier,
        *,
        deadline: float,
    ) -> tuple[Retrieved | None, Answered]:
        """Hand the strategy's steps to the courier as they come."""
        retrieved: Retrieved | None = None
        budget_s = deadline - self._monotonic()
        with closing(strategy.answer(head.question, failed, time_budget_s=budget_s)) as steps:
            for step in steps:
                match step:
                    case TextDelta():
                        courier.text(step.text)
                    case Retrieved():
                        retrieved = step
                        courier.event(
                            fit_sources(
                                Sources(
                                    attempt=head.attempt,
                                    index_version=step.index_version,
                                    searched=step.searched,
                                    engine=step.engine,
                                    degraded=step.degraded,
                                    sources=step.sources,
                                )
                            )
                        )
                    case Answered():
                        if step.citations is not None:
                            for event in fit_citations(head.attempt, step.citations):
                                courier.event(event)
                        return retrieved, step
        raise StreamBroken("the strategy ended without an answer")

    def _metrics(
        self,
        strategy: Strategy,
        head: Head,
        retrieved: Retrieved | None,
        answered: Answered,
        courier: Courier,
        *,
        started: float,
    ) -> Metrics:
        now = self._monotonic()
        accepted_ago_ms = self._now_s() * 1000 - head.accepted_at_ms
        # A text so short that none of it has gone out yet goes out with this very event.
        first_chunk_at = now if courier.first_chunk_at is None else courier.first_chunk_at
        price = cost(strategy.model_id, answered.usage)
        return Metrics(
            latency_ms=max(0, round(accepted_ago_ms)),
            attempt_ms=round((now - started) * 1000),
            first_chunk_ms=max(0, round(accepted_ago_ms - (now - first_chunk_at) * 1000)),
            retrieval_ms=retrieved.retrieval_ms if retrieved else None,
            input_tokens=answered.usage.input_tokens,
            output_tokens=answered.usage.output_tokens,
            cost_usd=price.usd if price else None,
            price_date=price.price_date if price else None,
            sources_found=retrieved.found if retrieved else 0,
            sources_used=answered.sources_used,
        )


def close_exhausted(
    task: ExhaustedTask, log: RequestLog, connections: Connections, *, now_s: Callable[[], float] = time.time
) -> bool:
    """Tell the client that every strategy failed, with what was tried. Returns whether this ended the request.

    Raises:
        StoreFault, DeliveryUnavailable: it could not be stored; the workflow tries again.
    """
    try:
        head = log.head(task.key)
    except RequestUnknown:
        logger.warning("the request is gone")
        return False
    refusal = may_drive(head, task.execution, now_s())
    if refusal is not None:
        logger.info("request not closed", extra={"why": refusal.why})
        return False
    terminal = Failed.of(AllStrategiesFailed(), strategy_failures(task.failures))
    return end_request(
        log, connections, head, terminal, still=lambda head: may_drive(head, task.execution, now_s()) is None
    )


def _as_created(key: RequestKey) -> Head:
    """A request's head as its creation leaves it, as far as a fence needs it; what lands returns the true one."""
    return Head(key=key, question=Question(""), origin="", accepted_at_ms=0, expires_at=0)
