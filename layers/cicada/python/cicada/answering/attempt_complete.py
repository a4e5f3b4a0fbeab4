"""The last event of a complete answer: its metrics and limits, and its line in the request trace."""

from __future__ import annotations

import logging
from dataclasses import replace

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.chain import WORKER_LOSSES
from cicada.attempts.strategy import Answered, Retrieved
from cicada.delivery.record import RequestHead, RequestSpend
from cicada.errors import CacheMiss
from cicada.models.prices import price_date
from cicada.protocol.events import Complete, Degraded, Metrics, StrategyName
from cicada.request_trace import log_event
from cicada.usage.reservations import left_after

logger = logging.getLogger(__name__)


def metrics_of(
    head: RequestHead,
    retrieved: Retrieved | None,
    answered: Answered,
    attempt_budget: AttemptBudget,
    *,
    started: float,
    first_chunk_at: float | None,
    now_s: float,
) -> Metrics:
    """The metrics of a complete answer.

    ``started`` and ``first_chunk_at``, when its first text was committed, are on the clock of ``attempt_budget``;
    ``first_chunk_at`` is None if no text is committed yet.
    """
    retrieved = retrieved or Retrieved((), found=0, index_version="")
    now = attempt_budget.monotonic()
    accepted_ago_ms = now_s * 1000 - head.accepted_at_ms
    # A very short text is committed together with the event that carries these metrics.
    waited_s = 0.0 if first_chunk_at is None else now - first_chunk_at
    spent = head.spent + attempt_budget.spent
    # A lost worker could not report what it had spent.
    usd = None if any(one.code in WORKER_LOSSES for one in head.failed) else spent.usd
    used = () if retrieved.offered else retrieved.sources
    return Metrics(
        latency_ms=max(0, round(accepted_ago_ms)),
        attempt_ms=round((now - started) * 1000),
        first_chunk_ms=max(0, round(accepted_ago_ms - waited_s * 1000)),
        retrieval_latency_ms=retrieved.retrieval_ms,
        cache_latency_ms=retrieved.cache_ms,
        model_calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=usd,
        price_date=None if usd is None else price_date(),
        sources_found=retrieved.found,
        sources_used=len({source.origin for source in used}),
        passages_cited=answered.passages_cited,
    )


def complete_event(
    head: RequestHead,
    strategy: StrategyName,
    answered: Answered,
    metrics: Metrics,
    spent: RequestSpend,
    degraded: tuple[Degraded, ...],
) -> Complete:
    """The event of an attempt that has spent so much, with what is left of the asker's limits."""
    used = replace(head, spent=head.spent + spent).used
    return Complete(
        attempt=head.attempt,
        answered_by=strategy,
        attempted=(*(one.strategy for one in head.failed), strategy),
        model=answered.model_id,
        grounded=answered.grounded,
        stop_reason=answered.stop_reason,
        changes=answered.changes,
        failed=head.failed,
        metrics=metrics,
        degraded=degraded,
        limits=() if head.reservation is None else left_after(head.reservation, used),
    )


def fell_back(complete: Complete) -> bool:
    """Whether another strategy had failed before; the cache's misses are no failures."""
    return any(failure.code != CacheMiss.code for failure in complete.failed)


def log_complete(complete: Complete) -> None:
    """Log a complete answer in the request trace."""
    log_event(
        logger,
        "complete",
        "answer complete",
        level=logging.WARNING if fell_back(complete) else logging.INFO,
        attempt=complete.attempt,
        answered_by=complete.answered_by,
        attempted=list(complete.attempted),
        failed=[f"{one.strategy}: {one.code}" for one in complete.failed],
        model_id=complete.model,
        grounded=complete.grounded,
        stop_reason=complete.stop_reason,
        **complete.metrics.model_dump(exclude_none=True),
    )
