"""The states of a circuit breaker and their transitions, without I/O.

*Closed*: every call is made, and failures are counted until one succeeds. After :attr:`Policy.failures` within
:attr:`Policy.window_s` it is *open*: no call is made for a while. Then it is *half open*: one call at a time, the
probe. A successful probe closes the breaker; a failed one opens it for twice as long. A probe that is released, or
whose worker died :attr:`Policy.probe_s` ago, makes room for another.

Source: M. Nygard, Release It! (2nd ed., 2018), "Circuit Breaker".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Stage = Literal["closed", "open", "half_open"]


@dataclass(frozen=True)
class Policy:
    """When a breaker opens, and for how long."""

    failures: int = 5
    """The failures within the window that open it."""
    window_s: float = 30.0
    first_rest_s: float = 5.0
    """How long it is open at first; doubles with every failed probe."""
    longest_rest_s: float = 120.0
    jitter: float = 0.25
    """The share by which a rest is shortened at random, so that breakers that opened together probe apart."""
    probe_s: float = 60.0
    """After which a probe without an outcome counts as dead."""


@dataclass(frozen=True)
class Breaker:
    """One breaker as it is stored. Times are epoch milliseconds."""

    revision: int = 0
    """0 before the first change. At least the time of the change, so that an item that was deleted and created again
    never repeats a revision."""
    failures_ms: tuple[int, ...] = ()
    """The recent failures while closed, in order."""
    open_since_ms: int | None = None
    """None while it is closed."""
    openings: int = 0
    """How often it has opened since it was last closed."""
    retry_at_ms: int = 0
    """When it may be probed."""
    probe: str | None = None
    """The id of the probe under way."""
    probe_until_ms: int = 0
    cause: str | None = None
    """The code of the error that opened it last."""

    def stage(self, now_ms: int) -> Stage:
        """Its state now."""
        if self.open_since_ms is None:
            return "closed"
        return "open" if now_ms < self.retry_at_ms else "half_open"

    def probing(self, now_ms: int) -> bool:
        """Whether a probe is under way."""
        return self.probe is not None and now_ms < self.probe_until_ms


@dataclass(frozen=True)
class ProbePermit:
    """Permission for one call to probe a breaker."""

    id: str
    open_since_ms: int
    """Identifies the outage that the probe belongs to."""


def entry(breaker: Breaker, now_ms: int) -> Literal["go", "probe", "refuse"]:
    """Whether a call may be made, may be made as the probe once it is claimed, or is refused."""
    stage = breaker.stage(now_ms)
    if stage == "closed":
        return "go"
    return "probe" if stage == "half_open" and not breaker.probing(now_ms) else "refuse"


def claimed(breaker: Breaker, probe_id: str, now_ms: int, policy: Policy) -> Breaker:
    """The breaker with its probe claimed; unchanged if that is not possible."""
    if entry(breaker, now_ms) != "probe":
        return breaker
    return _changed(breaker, now_ms, probe=probe_id, probe_until_ms=now_ms + _ms(policy.probe_s))


def failed(breaker: Breaker, code: str, now_ms: int, policy: Policy, share: float) -> Breaker:
    """After a failed call other than a probe; unchanged if it is already open."""
    if breaker.open_since_ms is not None:
        return breaker
    recent = [at for at in breaker.failures_ms if at > now_ms - _ms(policy.window_s)]
    failures = tuple(sorted([*recent, now_ms]))
    if len(failures) < policy.failures:
        return _changed(breaker, now_ms, failures_ms=failures)
    return _opened(replace(breaker, failures_ms=(), open_since_ms=now_ms), code, now_ms, policy, share)


def went_well(breaker: Breaker, now_ms: int) -> Breaker:
    """After a successful call other than a probe: forgets its failures. Only a probe closes an open breaker."""
    if breaker.open_since_ms is not None or not breaker.failures_ms:
        return breaker
    return _changed(breaker, now_ms, failures_ms=())


def probe_failed(breaker: Breaker, probe: ProbePermit, code: str, now_ms: int, policy: Policy, share: float) -> Breaker:
    """After a failed probe; unchanged if another call is the probe by now."""
    if breaker.probe != probe.id:
        return breaker
    return _opened(breaker, code, now_ms, policy, share)


def probe_succeeded(breaker: Breaker, probe: ProbePermit, now_ms: int) -> Breaker:
    """After a successful probe; unchanged if the breaker has closed since.

    A late success counts even if another call is the probe by now. Otherwise the breaker of a model that takes longer
    than :attr:`Policy.probe_s` would never close.
    """
    return closed(breaker, now_ms) if breaker.open_since_ms == probe.open_since_ms else breaker


def closed(breaker: Breaker, now_ms: int) -> Breaker:
    """Closed, with no failures remembered."""
    return Breaker(revision=_next_revision(breaker, now_ms))


def probe_released(breaker: Breaker, probe: ProbePermit, now_ms: int) -> Breaker:
    """After a probe without an outcome; unchanged if it is not the probe any more."""
    return _changed(breaker, now_ms, probe=None, probe_until_ms=0) if breaker.probe == probe.id else breaker


def _opened(breaker: Breaker, code: str, now_ms: int, policy: Policy, share: float) -> Breaker:
    openings = breaker.openings + 1
    rest_s = min(policy.longest_rest_s, policy.first_rest_s * 2.0 ** min(openings - 1, 32))
    return _changed(
        breaker,
        now_ms,
        openings=openings,
        retry_at_ms=now_ms + _ms(rest_s * (1 - policy.jitter * share)),
        probe=None,
        probe_until_ms=0,
        cause=code,
    )


def _changed(breaker: Breaker, now_ms: int, **changes: object) -> Breaker:
    return replace(breaker, revision=_next_revision(breaker, now_ms), **changes)  # type: ignore[arg-type]


def _next_revision(breaker: Breaker, now_ms: int) -> int:
    return max(breaker.revision + 1, now_ms)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


@dataclass(frozen=True)
class BreakerState:
    """One breaker as the command line shows it. Times are epoch seconds; see :class:`Breaker`."""

    name: str
    stage: Stage
    recent_failures: int
    open_since_s: float | None
    openings: int
    retry_at_s: float | None
    """None while it is closed."""
    probing: bool
    cause: str | None


def state_of(name: str, breaker: Breaker, now_ms: int, policy: Policy) -> BreakerState:
    """A breaker as the command line shows it."""
    since_ms = breaker.open_since_ms
    return BreakerState(
        name=name,
        stage=breaker.stage(now_ms),
        recent_failures=sum(at > now_ms - policy.window_s * 1000 for at in breaker.failures_ms),
        open_since_s=None if since_ms is None else since_ms / 1000,
        openings=breaker.openings,
        retry_at_s=None if since_ms is None else breaker.retry_at_ms / 1000,
        probing=breaker.probing(now_ms),
        cause=breaker.cause,
    )
