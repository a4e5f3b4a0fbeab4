"""The states of a circuit breaker, what changes them, and the leave for one call.

*Closed*: every call goes, and failures are remembered until one goes well. After :attr:`Policy.failures` within
:attr:`Policy.window_s` it is *open*: no call goes for a while. Then it is *half open*: one call at a time goes, the
probe. A probe that goes well closes the breaker; one that fails opens it for twice as long. A probe that is given up
leaves its place to the next; one whose worker died does so when its time is over.

Source: M. Nygard, Release It! (2nd ed., 2018), "Circuit Breaker".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, Protocol

Stage = Literal["closed", "open", "half_open"]


@dataclass(frozen=True)
class Policy:
    """When a breaker opens, and for how long."""

    failures: int = 5
    """Within the window, after which it opens."""
    window_s: float = 30.0
    first_rest_s: float = 5.0
    """How long it is open at first; doubled each time that the probe fails."""
    longest_rest_s: float = 120.0
    jitter: float = 0.25
    """The share of a rest by which it may be shorter, at random: breakers that opened together probe apart."""
    probe_s: float = 60.0
    """After which a probe without an outcome is taken for dead."""


@dataclass(frozen=True)
class Breaker:
    """One breaker as it is stored. Times are epoch milliseconds."""

    revision: int = 0
    """Grows with every change; 0 before the first. It grows with the clock too, so that one that was deleted and begins
    anew is not mistaken for what it was."""
    failures_ms: tuple[int, ...] = ()
    """The last failures while it was closed, in order."""
    open_since_ms: int | None = None
    """When it opened, and has not closed since; None while it is closed."""
    openings: int = 0
    """How often it has opened since it was last closed."""
    retry_at_ms: int = 0
    """From when on it may be probed."""
    probe: str | None = None
    """The call that probes it."""
    probe_until_ms: int = 0
    cause: str | None = None
    """The code of the error that opened it last."""

    def stage(self, now_ms: int) -> Stage:
        """Where it stands."""
        if self.open_since_ms is None:
            return "closed"
        return "open" if now_ms < self.retry_at_ms else "half_open"

    def probing(self, now_ms: int) -> bool:
        """Whether a probe is under way."""
        return self.probe is not None and now_ms < self.probe_until_ms


@dataclass(frozen=True)
class ProbePermit:
    """One call's leave to probe a breaker."""

    id: str
    open_since_ms: int
    """Of the breaker when it was claimed: tells this outage from another."""


def entry(breaker: Breaker, now_ms: int) -> Literal["go", "probe", "refuse"]:
    """What a call may do: go, go as the probe once it has claimed that, or not go."""
    stage = breaker.stage(now_ms)
    if stage == "closed":
        return "go"
    return "probe" if stage == "half_open" and not breaker.probing(now_ms) else "refuse"


def claimed(breaker: Breaker, probe_id: str, now_ms: int, policy: Policy) -> Breaker:
    """With its probe claimed; unchanged where it cannot be."""
    if entry(breaker, now_ms) != "probe":
        return breaker
    return _changed(breaker, now_ms, probe=probe_id, probe_until_ms=now_ms + _ms(policy.probe_s))


def failed(breaker: Breaker, code: str, now_ms: int, policy: Policy, share: float) -> Breaker:
    """After a failed call that was no probe. One that is open already says nothing new."""
    if breaker.open_since_ms is not None:
        return breaker
    recent = [at for at in breaker.failures_ms if at > now_ms - _ms(policy.window_s)]
    failures = tuple(sorted([*recent, now_ms]))
    if len(failures) < policy.failures:
        return _changed(breaker, now_ms, failures_ms=failures)
    return _opened(replace(breaker, failures_ms=(), open_since_ms=now_ms), code, now_ms, policy, share)


def went_well(breaker: Breaker, now_ms: int) -> Breaker:
    """After a call, no probe, that went well: its failures were passing ones. An open breaker waits for its probe."""
    if breaker.open_since_ms is not None or not breaker.failures_ms:
        return breaker
    return _changed(breaker, now_ms, failures_ms=())


def probe_failed(breaker: Breaker, probe: ProbePermit, code: str, now_ms: int, policy: Policy, share: float) -> Breaker:
    """After a failed probe; unchanged where another call probes by now. For the rest see :func:`failed`."""
    if breaker.probe != probe.id:
        return breaker
    return _opened(breaker, code, now_ms, policy, share)


def probe_succeeded(breaker: Breaker, probe: ProbePermit, now_ms: int) -> Breaker:
    """After a probe that went well; unchanged where the breaker has closed since.

    A late one counts too, though another call probes by now: it began after the breaker had opened. Else a model that
    takes longer to answer than a probe may take would never be found well.
    """
    if breaker.open_since_ms != probe.open_since_ms:
        return breaker
    return closed(breaker, now_ms)


def closed(breaker: Breaker, now_ms: int) -> Breaker:
    """Closed, whatever it was, with nothing remembered."""
    return Breaker(revision=_next_revision(breaker, now_ms))


def probe_released(breaker: Breaker, probe: ProbePermit, now_ms: int) -> Breaker:
    """After a probe that was given up; unchanged where it is not the probe any more."""
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


class Outcomes(Protocol):
    """Takes the outcomes of calls: :class:`cicada.breakers.registry.BreakerRegistry`."""

    def succeeded(self, name: str, probe: ProbePermit | None = None) -> None:
        """A call went well."""
        ...

    def failed(self, name: str, error: BaseException, probe: ProbePermit | None = None) -> None:
        """A call failed."""
        ...

    def released(self, name: str, probe: ProbePermit | None = None) -> None:
        """A call was given up."""
        ...


class Permit:
    """Leave for one call. Its outcome is told once; a block that ends without one gives the call up."""

    def __init__(self, outcomes: Outcomes, name: str, probe: ProbePermit | None = None) -> None:
        self._outcomes = outcomes
        self._name = name
        self._probe = probe
        self._told = False

    def succeeded(self) -> None:
        """The call went well."""
        if not self._told:
            self._told = True
            self._outcomes.succeeded(self._name, self._probe)

    def failed(self, error: BaseException) -> None:
        """The call failed, or told nothing of the dependency: see :func:`~.names.verdict`."""
        if not self._told:
            self._told = True
            self._outcomes.failed(self._name, error, self._probe)

    def released(self) -> None:
        """The call was given up, and tells nothing."""
        if not self._told:
            self._told = True
            self._outcomes.released(self._name, self._probe)

    def __enter__(self) -> Permit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.released()
        else:
            self.failed(error)


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
