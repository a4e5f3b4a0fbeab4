"""The circuit breakers as a worker uses them: a view of what all workers know, and what this one adds to it."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Literal

from cicada.breakers.decide import (
    Breaker,
    BreakerState,
    Permit,
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
"""How old a worker's view may grow before it is read again, beside the answer."""
STALE_S = 30.0
"""How old a view may be, at most, to be acted on while a newer one is read. A worker that slept longer waits for it."""
FIRST_READ_S = 0.3
"""How long a new worker waits for its first view; without one every breaker counts as closed."""

Happening = Literal["opened", "closed", "skipped"]


def _unheard(_name: str, _happening: Happening) -> None:
    """Nobody counts."""


class BreakerRegistry:
    """All circuit breakers, by name. Thread-safe.

    Nothing is stored while calls go well, and no answer waits for a read but a new worker's first: the view is brought
    up to date beside the answers, and what is done upon it is done by conditional writes, which find out when it was
    old. Where the store fails, calls go as if every breaker were closed: the breakers fail no answer.
    """

    def __init__(
        self,
        store: BreakerStore,
        *,
        worker_id: str,
        policy: Policy | None = None,
        refresh_s: float = REFRESH_S,
        first_read_s: float = FIRST_READ_S,
        concurrency: Concurrency = THREADS,
        now_s: Callable[[], float] = time.time,
        share: Callable[[], float] = random.random,
        on_happening: Callable[[str, Happening], None] = _unheard,
    ) -> None:
        """Wire the board.

        Args:
            store: shared by all workers.
            worker_id: unlike any other worker's.
            refresh_s: how old the view may grow, in seconds.
            first_read_s: how long the first use waits for a view, in seconds.
            share: uniform in [0, 1), for the jitter.
            on_happening: told a breaker's name and what happened to it by this worker's doing: for metrics. It raises
                nothing.
        """
        self._store = store
        self._worker_id = worker_id
        self._policy = policy or Policy()
        self._refresh_s = refresh_s
        self._first_read_s = first_read_s
        self._concurrency = concurrency
        self._now_s = now_s
        self._share = share
        self._on_happening = on_happening
        self._changed = concurrency.condition()
        self._view: dict[str, Breaker] = {}
        self._asked_at_s = float("-inf")
        self._reading = False
        self._awaited = False
        self._has_read = False
        self._probes = count(1)

    def refresh_soon(self) -> None:
        """Have the view read beside the caller, unless that was done a moment ago."""
        now_s = self._now_s()
        with self._changed:
            age_s = now_s - self._asked_at_s
            if 0 <= age_s < (STALE_S if self._reading else self._refresh_s):
                return
            self._reading = True
            self._asked_at_s = now_s
            if not 0 <= age_s < STALE_S:  # the function slept: what it saw before is of no use
                self._awaited = self._has_read = False
        self._concurrency.spawn(self._read, "breakers")

    def allows(self, name: str) -> bool:
        """Whether a dependency may be called. It claims no probe."""
        self._look()
        return entry(self._seen(name), self._now_ms()) != "refuse"

    def check(self, names: Sequence[str]) -> None:
        """Find out whether all of these may be called, without calling them. It claims no probe.

        Raises:
            DependencyDown: one may not.
        """
        for name in names:
            if not self.allows(name):
                raise self._refusal(name, self._seen(name))

    def admit(self, name: str, *, last_resort: bool = False) -> Permit:
        """Ask for leave to call a dependency, as its probe where it needs one; the caller tells the outcome.

        Args:
            last_resort: whether nothing else is left to try: then the call goes even where the breaker is open.

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
        """A call went well. Nothing is stored of it unless it is a probe, or there were failures before it."""
        if probe is not None:
            self._change(name, lambda old: probe_succeeded(old, probe, self._now_ms()))
        else:
            self._change(name, lambda old: went_well(old, self._now_ms()))

    def failed(self, name: str, error: BaseException, probe: ProbePermit | None = None) -> None:
        """A call failed. What the error tells of the dependency is for :func:`~.names.verdict` to say."""
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
        """A call was given up, and tells nothing; another may be the probe."""
        if probe is not None:
            self._change(name, lambda old: probe_released(old, probe, self._now_ms()))

    def states(self) -> tuple[BreakerState, ...]:
        """All breakers that ever had a failure, by name, as the store has them now.

        Raises:
            StoreFault: it cannot be read.
        """
        now_ms = self._now_ms()
        stored = sorted(self._store.read().items())
        return tuple(state_of(name, breaker, now_ms, self._policy) for name, breaker in stored)

    # --- the view ---

    def _look(self) -> None:
        """Have the view renewed when it is due; a new worker waits a moment for its first."""
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
            self._tell_fault("breakers could not be read", str(fault))
        finally:
            with self._changed:
                self._reading = False
                self._has_read = True
                for name, breaker in found.items():
                    self._keep(name, breaker)
                self._changed.notify_all()

    def _seen(self, name: str) -> Breaker:
        with self._changed:
            return self._view.get(name, Breaker())

    def _keep(self, name: str, breaker: Breaker) -> None:
        """See a breaker, unless a newer one was seen before: reads lag behind."""
        if breaker.revision >= self._view.get(name, Breaker()).revision:
            self._view[name] = breaker

    # --- changes ---

    def _change(self, name: str, decide: Callable[[Breaker], Breaker]) -> Breaker:
        """Store what ``decide`` makes of a breaker; return what is believed to stand then.

        A lost swap means that another worker's change came first: it is decided again upon that. Each failure that
        comes first brings the breaker nearer to opening, after which failures change nothing; so this soon ends.
        """
        before = self._seen(name)
        for _ in range(2 * self._policy.failures):
            after = decide(before)
            if after is before:
                break
            try:
                self._store.swap(name, before, after)
            except Overtaken as overtaken:
                before = overtaken.stands
                continue
            except StoreFault as fault:  # it may have landed
                self._tell_fault(f"the breaker of {name} could not be changed", str(fault))
                return after
            with self._changed:
                self._keep(name, after)
            self._tell_change(name, before, after)
            return after
        with self._changed:
            self._keep(name, before)
        return before

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    # --- what is told ---

    def _refusal(self, name: str, breaker: Breaker) -> DependencyDown:
        self._on_happening(name, "skipped")
        why = f"{name} keeps failing ({breaker.cause}); it is left alone for now"
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

    def _tell_change(self, name: str, before: Breaker, after: Breaker) -> None:
        if after.openings > before.openings:
            self._on_happening(name, "opened")
            rest_s = (after.retry_at_ms - self._now_ms()) / 1000
            log_event(
                logger,
                "fault",
                "breaker opened",
                level=logging.WARNING,
                code="breaker_opened",
                why=f"{name} keeps failing ({after.cause}); it is tried again after {rest_s:.1f} s",
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
    def _tell_fault(message: str, why: str) -> None:
        log_event(logger, "fault", message, level=logging.WARNING, code="breakers_unavailable", why=why)
