"""The circuit breakers of a worker: its view of the shared store, and the changes that it makes there."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Literal

from cicada.breakers.decide import (
    Breaker,
    BreakerState,
    Policy,
    ProbePermit,
    claimed,
    entry,
    failed,
    probe_failed,
    probe_released,
    probe_succeeded,
    state_of,
    went_well,
)
from cicada.breakers.dependencies import verdict
from cicada.breakers.ports import BreakerStore, Overtaken
from cicada.concurrency import THREADS, Concurrency
from cicada.delivery.ports import StoreFault
from cicada.errors import CicadaError, DependencyDown
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

REFRESH_S = 3.0
"""The age at which a worker's view is read again in the background while it shows a breaker with failures, or a call of
the worker has failed since."""
QUIET_S = 20.0
"""The same while all goes well: all workers read one partition, which takes 6,000 such reads a second."""
STALE_S = 30.0
"""The greatest age of a view that is used while a newer one is read. A worker that slept longer waits for the read."""
FIRST_READ_S = 0.3
"""How long a new worker waits for its first view; until then every breaker counts as closed."""

Happening = Literal["opened", "closed", "skipped"]


class Permit:
    """Permission for one call. Its first outcome is reported; a block that ends without one releases the call."""

    def __init__(self, registry: BreakerRegistry, name: str, probe: ProbePermit | None = None) -> None:
        self._registry = registry
        self._name = name
        self._probe = probe
        self._reported = False

    def succeeded(self) -> None:
        """The call succeeded."""
        if self._first():
            self._registry.succeeded(self._name, self._probe)

    def failed(self, error: BaseException) -> None:
        """The call failed; see :func:`cicada.breakers.dependencies.verdict` for what that means."""
        if self._first():
            self._registry.failed(self._name, error, self._probe)

    def released(self) -> None:
        """The call says nothing about the dependency."""
        if self._first():
            self._registry.released(self._name, self._probe)

    def _first(self) -> bool:
        first, self._reported = not self._reported, True
        return first

    def __enter__(self) -> Permit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.released()
        else:
            self.failed(error)


class BreakerRegistry:
    """All circuit breakers, by name. Thread-safe.

    Nothing is stored while calls succeed, and only a new worker waits for a read: the view is refreshed in the
    background. Changes are conditional writes, which detect an outdated view. While the store fails, every breaker
    counts as closed: breakers never fail an answer.
    """

    def __init__(
        self,
        store: BreakerStore,
        *,
        worker_id: str,
        policy: Policy | None = None,
        first_read_s: float = FIRST_READ_S,
        concurrency: Concurrency = THREADS,
        now_s: Callable[[], float] = time.time,
        share: Callable[[], float] = random.random,
        on_happening: Callable[[str, Happening], None] = lambda _name, _happening: None,
    ) -> None:
        """Wire the registry.

        Args:
            worker_id: unique to the worker.
            share: uniform in [0, 1), for the jitter.
            on_happening: called for every change that this worker makes to a breaker, for metrics. Raises nothing.
        """
        self._store = store
        self._worker_id = worker_id
        self._policy = policy or Policy()
        self._first_read_s = first_read_s
        self._concurrency = concurrency
        self._now_s = now_s
        self._share = share
        self._on_happening = on_happening
        self._changed = concurrency.condition()
        self._view: dict[str, Breaker] = {}
        self._asked_at_s = float("-inf")
        self._reading = False
        self._quiet = False
        self._awaited = False
        self._has_read = False
        self._probes = count(1)

    def refresh_soon(self) -> None:
        """Read the view in the background, unless that was done a moment ago."""
        now_s = self._now_s()
        with self._changed:
            age_s = now_s - self._asked_at_s
            if 0 <= age_s < (STALE_S if self._reading else QUIET_S if self._quiet else REFRESH_S):
                return
            self._reading = True
            self._asked_at_s = now_s
            if not 0 <= age_s < STALE_S:  # the function was frozen: its view is outdated
                self._awaited = self._has_read = False
        self._concurrency.spawn(self._read, "breakers")

    def allows(self, name: str) -> bool:
        """Whether a dependency may be called. Claims no probe."""
        self._look()
        return entry(self._seen(name), self._now_ms()) != "refuse"

    def check(self, names: Sequence[str]) -> None:
        """Raise DependencyDown if one of these may not be called. Claims no probe."""
        for name in names:
            if not self.allows(name):
                raise self._refusal(name, self._seen(name))

    def admit(self, name: str, *, last_resort: bool = False) -> Permit:
        """Get permission to call a dependency, as its probe if it needs one; the caller reports the outcome.

        A ``last_resort`` is permitted even while the breaker is open.

        Raises:
            DependencyDown: it may not be called.
        """
        self._look()
        breaker = self._seen(name)
        if entry(breaker, self._now_ms()) == "probe":
            probe_id = f"{self._worker_id}#{next(self._probes)}"
            breaker = self._change(name, lambda old: claimed(old, probe_id, self._now_ms(), self._policy))
            if breaker.probe == probe_id and breaker.open_since_ms is not None:
                return Permit(self, name, ProbePermit(probe_id, breaker.open_since_ms))
        if entry(breaker, self._now_ms()) == "refuse" and not last_resort:
            raise self._refusal(name, breaker)
        return Permit(self, name)

    def succeeded(self, name: str, probe: ProbePermit | None = None) -> None:
        """A call succeeded. That is stored only if it was a probe, or followed failures."""
        if probe is not None:
            self._change(name, lambda old: probe_succeeded(old, probe, self._now_ms()))
        else:
            self._change(name, lambda old: went_well(old, self._now_ms()))

    def failed(self, name: str, error: BaseException, probe: ProbePermit | None = None) -> None:
        """A call failed; see :func:`cicada.breakers.dependencies.verdict` for what the error means."""
        said = verdict(name, error)
        if said == "answered":
            self.succeeded(name, probe)
        elif said == "nothing":
            self.released(name, probe)
        else:
            code = error.code if isinstance(error, CicadaError) else CicadaError.code
            share = self._share()
            if probe is None:
                self._change(name, lambda old: failed(old, code, self._now_ms(), self._policy, share))
            else:
                self._change(name, lambda old: probe_failed(old, probe, code, self._now_ms(), self._policy, share))

    def released(self, name: str, probe: ProbePermit | None = None) -> None:
        """A call ended without an outcome; another may become the probe."""
        if probe is not None:
            self._change(name, lambda old: probe_released(old, probe, self._now_ms()))

    def states(self) -> tuple[BreakerState, ...]:
        """All stored breakers by name. Raises StoreFault."""
        now_ms = self._now_ms()
        stored = sorted(self._store.read().items())
        return tuple(state_of(name, breaker, now_ms, self._policy) for name, breaker in stored)

    # --- the view ---

    def _look(self) -> None:
        """Refresh the view if it is due; a new worker waits a moment for its first."""
        self.refresh_soon()
        with self._changed:
            if not self._awaited:
                self._awaited = True
                self._changed.wait_for(lambda: self._has_read, self._first_read_s)

    def _read(self) -> None:
        found: Mapping[str, Breaker] = {}
        try:
            found = self._store.read()
        except StoreFault as fault:
            self._log_store_fault("breakers could not be read", str(fault))
        finally:
            with self._changed:
                self._reading = False
                self._has_read = True
                for name, breaker in found.items():
                    self._keep(name, breaker)
                self._quiet = not any(map(self._is_troubled, self._view.values()))
                self._changed.notify_all()

    def _seen(self, name: str) -> Breaker:
        with self._changed:
            return self._view.get(name, Breaker())

    def _keep(self, name: str, breaker: Breaker) -> None:
        """Put a breaker into the view unless a newer revision is there: reads are eventually consistent."""
        if breaker.revision >= self._view.get(name, Breaker()).revision:
            self._view[name] = breaker

    def _is_troubled(self, breaker: Breaker) -> bool:
        """Whether it is open, or may open soon."""
        since_ms = self._now_ms() - STALE_S * 1000
        return breaker.open_since_ms is not None or any(at_ms > since_ms for at_ms in breaker.failures_ms)

    # --- changes ---

    def _change(self, name: str, decide: Callable[[Breaker], Breaker]) -> Breaker:
        """Store what ``decide`` makes of a breaker; return what is believed to be stored then.

        If another worker's change came first, the decision is made again on that. The loop ends soon: failures bring
        the breaker nearer to opening, and an open breaker ignores further ones.
        """
        before = self._seen(name)
        for _ in range(2 * self._policy.failures):
            after = decide(before)
            if after is before:
                break
            self._quiet = False
            try:
                self._store.swap(name, before, after)
            except Overtaken as overtaken:
                before = overtaken.stored
                continue
            except StoreFault as fault:  # it may have landed
                self._log_store_fault(f"the breaker of {name} could not be changed", str(fault))
                return after
            with self._changed:
                self._keep(name, after)
            self._log_change(name, before, after)
            return after
        with self._changed:
            self._keep(name, before)
        return before

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    # --- log lines and metrics ---

    def _refusal(self, name: str, breaker: Breaker) -> DependencyDown:
        self._on_happening(name, "skipped")
        why = f"{name} keeps failing ({breaker.cause}); its circuit breaker is open"
        log_event(
            logger,
            "fault",
            "dependency skipped",
            level=logging.WARNING,
            code=DependencyDown.code,
            why=why,
            dependency=name,
            openings=breaker.openings,
        )
        return DependencyDown(why)

    def _log_change(self, name: str, before: Breaker, after: Breaker) -> None:
        if after.openings > before.openings:
            self._on_happening(name, "opened")
            rest_s = (after.retry_at_ms - self._now_ms()) / 1000
            log_event(
                logger,
                "fault",
                "breaker opened",
                level=logging.WARNING,
                code="breaker_opened",
                why=f"{name} keeps failing ({after.cause}); next try in {rest_s:.1f} s",
                dependency=name,
                openings=after.openings,
            )
        elif before.open_since_ms is not None and after.open_since_ms is None:
            self._on_happening(name, "closed")
            open_s = (self._now_ms() - before.open_since_ms) / 1000
            log_event(
                logger,
                "fault",
                "breaker closed",
                code="breaker_closed",
                why=f"{name} works again, after {open_s:.1f} s",
                dependency=name,
            )

    @staticmethod
    def _log_store_fault(message: str, why: str) -> None:
        log_event(logger, "fault", message, level=logging.WARNING, code="breakers_unavailable", why=why)
