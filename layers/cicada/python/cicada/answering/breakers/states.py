"""The states of circuit breakers, for people."""

from __future__ import annotations

from dataclasses import dataclass

from cicada.answering.breakers.decide import Breaker, Policy, Stage


@dataclass(frozen=True)
class BreakerState:
    """One breaker, for people. Times are epoch seconds."""

    name: str
    stage: Stage
    recent_failures: int
    """While it is closed, those that are remembered; 0 else."""
    open_since_s: float | None
    openings: int
    """How often it has opened since it was last closed."""
    retry_at_s: float | None
    """From when on it may be probed, while it is not closed."""
    probing: bool
    cause: str | None
    """The code of the error that opened it last."""


def state_of(name: str, breaker: Breaker, now_ms: int, policy: Policy) -> BreakerState:
    """What there is to say of a breaker now."""
    closed = breaker.open_since_ms is None
    recent = sum(at > now_ms - policy.window_s * 1000 for at in breaker.failures_ms)
    return BreakerState(
        name=name,
        stage=breaker.stage(now_ms),
        recent_failures=recent,
        open_since_s=None if breaker.open_since_ms is None else breaker.open_since_ms / 1000,
        openings=breaker.openings,
        retry_at_s=None if closed else breaker.retry_at_ms / 1000,
        probing=breaker.probing(now_ms),
        cause=breaker.cause,
    )
