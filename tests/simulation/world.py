"""One world: a deployment, a few people and their questions, from the first to the last."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cicada.attempts.budgets import RequestBudget
from cicada.delivery.decide import LEASE_GRACE_S, LEASE_S
from tests.simulation.corpus import EPISODES, FOLLOW_UP, QUESTIONS
from tests.simulation.deployment import PROCESSOR_TIMEOUT_S, RETENTION_S, Deployment
from tests.simulation.functions import MAX_SKEW_S
from tests.simulation.people import Person
from tests.simulation.records import Key

SWEEP_EVERY_S = 120.0
CALM_BOUND_S = 60.0
"""Where nothing fails, a request ends within so many seconds."""
CLOSING_S = 60.0
"""How long the last strategy, the closing of a request, or a sweep may take to do what it does."""
LATE_ASK_S = 120.0
"""How long after the last fault somebody may still ask whose frames were all lost."""
ROUND_S = 30.0
READERS: tuple[tuple[str, ...], ...] = ((), ("readers",), (), ("users",))
"""Of the diary, by turns; see :data:`tests.simulation.gateway.GROUPS`."""
MAX_SWITCHES = 50_000
"""No world has any need of as many."""


@dataclass
class Verdict:
    """What became of one world."""

    seed: int
    violations: list[str]
    requests: int
    injected: int
    outcomes: Counter[str]
    switches: int
    simulated_s: float
    history: list[tuple[float, str, str]] = field(default_factory=list)


class World(Deployment):
    """Builds and runs a world from its seed alone."""

    def __init__(self, seed: int, counts: Counter[str], *, keeps_history: bool = False) -> None:
        """``counts``: of the faults by kind, which are added to."""
        super().__init__(seed, counts, keeps_history=keeps_history)
        self.persons: list[Person] = []
        self._asked_at: list[float] = []
        self._sweeps_end = False

    def run(self) -> Verdict:
        """Run it to its end."""
        faults, scheduler = self.faults, self.scheduler
        self._people_come()
        hard_s = 0.0 if faults.off else faults.between(5, 200) if scheduler.random() < 0.8 else faults.between(200, 700)
        if faults.drawn("version_published"):
            scheduler.call_at(faults.between(0, 90), self._publish)
        if faults.drawn("rights_changed"):
            self.access.restrict(*READERS[int(scheduler.random() * len(READERS))])
            for _ in range(1 + int(scheduler.random() * 3)):
                scheduler.call_at(faults.between(0, 120), self._change_rights)
        self._schedule_sweep(faults.between(0, SWEEP_EVERY_S))
        last_ask_s = max(self._asked_at)
        while scheduler.now < hard_s and not scheduler.halted:
            self._run_for(min(ROUND_S, hard_s - scheduler.now))
        faults.cease()
        self.tell("world", "nothing fails any more")
        within_s = self._stated_time_s()
        self._go_on(max(hard_s, last_ask_s) + within_s + LATE_ASK_S)
        if not self.violations:
            unharmed = faults.off or faults.absorbed
            self.judge.settled(calm_from_s=hard_s, within_s=within_s, unharmed=unharmed)
            self.usage.at_rest(self.judge.records)
        simulated_s = scheduler.now
        if not self.violations:
            self._look_back()
        scheduler.halted = False
        scheduler.end(self.processes)
        return Verdict(
            self.seed,
            self.violations,
            len(self.judge.records),
            faults.injected,
            Counter(self._outcome(record.terminal) for record in self.judge.records.values()),
            scheduler.switches,
            simulated_s,
            self.history,
        )

    def _stated_time_s(self) -> float:
        """Within what time after the faults, or after its creation, every request ends, whoever waits for it.

        No attempt outlasts the request's own time. Whoever works on it then may be lost: its lease runs out, a sweep
        comes, and ends it. A clock that is wrong sets a lease wrong, and is asked whether it is over.
        """
        if self.faults.off:
            return CALM_BOUND_S
        own_s = RequestBudget().time_s + LEASE_S + LEASE_GRACE_S + SWEEP_EVERY_S + CLOSING_S
        return own_s + (2 * MAX_SKEW_S if self.faults.has("clock_skewed") else 0.0)

    def _go_on(self, until_s: float) -> None:
        """Run until nothing is left to happen, at most until then."""
        scheduler = self.scheduler
        while scheduler.now < until_s and not scheduler.halted:
            self._run_for(min(ROUND_S, until_s - scheduler.now))
            ended = all(record.terminal is not None for record in self.judge.records.values()) and not self.usage.held
            waking = scheduler.now < self.functions.busy_until or self._to_purge()
            if ended and not waking and scheduler.now > max(self._asked_at) and all(p.satisfied for p in self.persons):
                return

    def _to_purge(self) -> bool:
        """Whether a sweep has yet to delete what is left of a blocked answer."""
        return any("withdrawn" in record.item for record in self.judge.records.values())

    def _run_for(self, seconds: float) -> None:
        self.scheduler.run(self.scheduler.now + seconds)
        if self.scheduler.switches > MAX_SWITCHES:
            self.fail(
                f"I10: {self.scheduler.switches} switches within {self.scheduler.now:.0f} s: something runs in circles"
            )

    def _people_come(self) -> None:
        """Draw who asks what, and when."""
        faults, random = self.faults, self.scheduler.random
        asked_at = 0.0
        count = 1 + (random() < 0.45) + (random() < 0.3)
        asking = QUESTIONS[int(random() * len(QUESTIONS))]
        session = f"s{int(random() * 10)}" if random() < 0.4 else None
        for number in range(count):
            owner = "house/mara" if number == 0 or random() < 0.7 else "house/tess"
            frame: dict[str, Any] = {
                "action": "ask",
                "requestId": str(UUID(int=int(random() * 2**64) << 64 | number, version=4)),
                "query": asking.query,
            }
            if session is not None:
                frame["sessionId"] = session
            if random() < 0.15:
                frame["episodes"] = [EPISODES[int(random() * 2)]]
            self._asker(owner, frame, asked_at)
            self._asked_at.append(asked_at)
            at_once = self.usage.limited and (random() < 0.4 or self.month_turns_at_once)
            asked_at += faults.between(0, 0.02 if at_once else 60)
            if session is not None and faults.has("rights_changed") and random() < 0.8:
                asking = FOLLOW_UP
                self.scheduler.call_at(max(0.0, asked_at - 1), self._change_rights)
            elif random() < 0.6:  # about the same matter, so that the cache has something to say
                near = [one for one in QUESTIONS if one.topic == asking.topic]
                asking = near[int(random() * len(near))]
            else:
                asking = QUESTIONS[int(random() * len(QUESTIONS))]

    def _asker(self, owner: str, frame: dict[str, Any], at: float, *, probed: bool = True) -> None:
        faults, scheduler = self.faults, self.scheduler
        key = (owner, frame["requestId"])
        asker = self._person(f"{owner}-{len(self.persons)}", key, frame)
        asker.start(self.people, at)
        if faults.hit("second_device"):
            phone = self._person(f"{owner}-{len(self.persons)}-phone", key, None)
            phone.follows = asker
            phone.start(self.people, at + faults.between(0.5, 20))
        if faults.drawn("cancelled"):
            scheduler.call_at(at + faults.between(0.02, 30), asker.cancel)
        if faults.drawn("asked_again"):
            scheduler.call_at(at + faults.between(0.02, 30), asker.ask_again)
        if probed and faults.hit("stranger_probes"):
            stranger = self._person(f"eve-{len(self.persons)}", ("house/eve", key[1]), None)
            scheduler.call_at(at + faults.between(0.02, 20), lambda: self._probe(stranger, frame))

    def _publish(self) -> None:
        self.faults.note("version_published")
        self.tell("index", "a new version is published")
        self.index.publish()

    def _change_rights(self) -> None:
        self.faults.note("rights_changed")
        groups = READERS[int(self.scheduler.random() * len(READERS))]
        self.tell("access", f"the diary is for {groups}")
        self.access.restrict(*groups)

    def _probe(self, stranger: Person, frame: dict[str, Any]) -> None:
        """Another user tries a request id that is not hers."""
        choice = int(self.scheduler.random() * 3)
        if choice == 2:  # that is a request of her own
            self._asker(stranger.key[0], frame, self.scheduler.now, probed=False)
        else:
            stranger.try_out("resume" if choice else "cancel")

    def _person(self, name: str, key: Key, ask: dict[str, Any] | None) -> Person:
        person = Person(
            name,
            key,
            ask,
            scheduler=self.scheduler,
            faults=self.faults,
            gateway=self.gateway,
            judge=self.judge,
            fails=self.fail,
            crashed=self.crashed,
            tell=self.tell,
        )
        self.persons.append(person)
        return person

    def _schedule_sweep(self, at: float) -> None:
        self.scheduler.call_at(at, lambda: self._sweep(at))

    def _sweep(self, at: float) -> None:
        if self._sweeps_end:
            return
        self._schedule_sweep(at + SWEEP_EVERY_S)
        faults = self.faults
        if faults.hit("sweep_lost"):
            return
        for _ in range(2 if faults.hit("sweep_doubled") else 1):
            self.sweep()

    def _look_back(self) -> None:
        """Somebody reads every request again, from its beginning; and once more when its retention has ended."""
        readers = [self._person(f"reader-{n}", key, None) for n, key in enumerate(self.judge.records)]
        for reader in readers:
            reader.start(self.people, 0.01)
        self._go_on(self.scheduler.now + ROUND_S)
        for reader in readers:
            if reader.screen.terminal is None and not self.violations:
                self.fail(f"I3: a reader of {reader.key[1][:8]} does not see its end: {reader.outcome}")
            if self.judge.records[reader.key].blocked and reader.screen.chunks:
                self.fail("B1: a later reader sees text of a blocked answer")
        self.judge.nothing_left(self.table.items)
        if self.scheduler.random() < 0.03 and not self.violations:
            self._long_after(list(self.judge.records))

    def _long_after(self, keys: list[Key]) -> None:
        """The retention has ended: what is left is expired, or unknown once it is deleted."""
        self._sweeps_end = True
        self.scheduler.now += RETENTION_S + self.faults.between(MAX_SKEW_S, 4 * 24 * 3600)
        self.table.delete_expired(self.true_now_s, 0.5)
        late = [self._person(f"late-{n}", key, None) for n, key in enumerate(keys)]
        for person in late:
            person.start(self.people, 0.01)
        self.scheduler.run(self.scheduler.now + PROCESSOR_TIMEOUT_S)
        for person in late:
            if person.screen.seq or person.outcome not in ("expired", "unknown"):
                self.fail(f"F33: after its retention a request is resumed: {person.outcome}, seq {person.screen.seq}")

    def _outcome(self, terminal: dict[str, Any] | None) -> str:
        if terminal is None:
            return "not ended"
        return (
            f"answered by {terminal['answeredBy']}" if terminal["type"] == "complete" else f"error {terminal['code']}"
        )
