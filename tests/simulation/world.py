"""One world: a few people, their questions, and the production code between twins of every service."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from cicada.answering.attempt import close_exhausted
from cicada.answering.intake import Intake
from cicada.answering.recovery import Recovery
from cicada.answering.spending import RequestBudget
from cicada.answering.workflow import AttemptTask, ExhaustedTask, StepFunctionsStarter
from cicada.delivery.connections import ApiGatewayConnections
from cicada.delivery.dynamodb import OPEN_INDEX, DynamoDbLog
from cicada.delivery.ports import StoreFault
from cicada.errors import CicadaError
from cicada.identity import caller_of
from cicada.protocol.actions import parse_action, request_id_of
from cicada.protocol.events import Refused, reply_frame
from stacks.answer_states import CLOSING_TIMEOUT_S, EXECUTION_LIMIT_S, WORKER_TIMEOUT_S
from tests.simulation.concurrency import SimulatedConcurrency
from tests.simulation.corpus import EPISODES, QUESTIONS, Index
from tests.simulation.environment import Environment
from tests.simulation.faults import Faults
from tests.simulation.functions import MAX_SKEW_S, Failure, Functions, Invocation
from tests.simulation.gateway import Gateway
from tests.simulation.judge import Judge, Key
from tests.simulation.people import Person
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.table import Table
from tests.simulation.workflow import ANSWER, Workflow

EPOCH_S = 1_800_000_000.0
RETENTION_S = 7 * 24 * 3600
PROCESSOR_TIMEOUT_S = 25.0
SWEEP_EVERY_S = 120.0
SWEEP_TIMEOUT_S = 55.0
WARM_SHARE = 0.8
"""How often an invocation meets an environment that has worked before."""
CALM_BOUND_S = 60.0
"""Where nothing fails, a request ends within so many seconds."""
ROUND_S = 30.0


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


class World:
    """Builds and runs a world from its seed alone."""

    def __init__(self, seed: int, counts: Counter[str], *, keeps_history: bool = False) -> None:
        self.seed = seed
        self.violations: list[str] = []
        self.history: list[tuple[float, str, str]] = []
        self.keeps_history = keeps_history
        self._random = random = Random(seed)  # noqa: S311 - repeatable, not secret
        self.scheduler = scheduler = Scheduler(random)
        self.faults = faults = Faults(random, counts)
        self.people = Process("people", "world")
        self.processes: list[Process] = [self.people]
        self.persons: list[Person] = []
        self.index = Index(scheduler, faults)
        self.shares_answers = random.random() < 0.5
        self.judge = Judge(scheduler, self.index, self.fail, shares_answers=self.shares_answers)
        self.table = Table(scheduler, faults, self.judge.wrote, index=(OPEN_INDEX, "open_in", "accepted_at_ms"))
        self.judge.event_item = lambda pk, sk: str(self.table.items[pk][sk]["body"]["S"])
        self.gateway = Gateway(
            scheduler, faults, self.people, handle=self._handle, shown=self.judge.shown, now_s=lambda: self.true_now_s
        )
        self.functions = Functions(scheduler, faults, self.processes, self._crashed, self.tell)
        self.workflow = Workflow(
            scheduler, faults, self.processes, invoke=self._invoke, tell=self.tell
        )
        self.concurrency = SimulatedConcurrency(scheduler, self._crashed)
        self.log = DynamoDbLog(self.table, "table")
        self.connections = ApiGatewayConnections(self.gateway)
        starter = StepFunctionsStarter(self.workflow, "machine")
        self.recovery = Recovery(self.log, self.connections, starter, now_s=self.now_s)
        self.intake = Intake(
            self.log,
            self.connections,
            self.recovery,
            retention_s=RETENTION_S,
            now_s=self.now_s,
            monotonic=self.monotonic,
        )
        self._environments: list[Environment] = []
        self._sweeps_end = False

    # --- time ---

    @property
    def true_now_s(self) -> float:
        """Epoch seconds."""
        return EPOCH_S + self.scheduler.now

    def now_s(self) -> float:
        """Epoch seconds on the clock of whoever asks."""
        task = self.scheduler.current
        return EPOCH_S + self.scheduler.now + (task.process.skew_s if task is not None else 0.0)

    def monotonic(self) -> float:
        """Seconds."""
        return self.scheduler.now

    # --- what is told ---

    def tell(self, who: str, what: str) -> None:
        """Add to the history."""
        if self.keeps_history:
            self.history.append((self.scheduler.now, who, what))

    def fail(self, why: str) -> None:
        """An invariant does not hold: the world ends here."""
        self.violations.append(why)
        self.tell("judge", why)
        self.scheduler.halted = True

    def _crashed(self, who: str, error: BaseException) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        self.fail(f"{who} ends with an unexpected {type(error).__name__}: {error} ({last.filename}:{last.lineno})")
        self.tell(who, "".join(traceback.format_exception(error)))

    # --- functions ---

    def _handle(self, event: dict[str, Any], reply: Callable[[str], None]) -> None:
        """The message processor, as its handler has it."""

        def run(invocation: Invocation) -> None:
            try:
                caller = caller_of(event, anonymous=False, now_s=self.now_s())
                action = parse_action(event["body"])
            except CicadaError as error:
                reply(reply_frame(Refused.of(error, request_id_of(event["body"]))))
            else:
                reply(self.intake.handle(action, caller))

        self.functions.start("processor", run, timeout_s=PROCESSOR_TIMEOUT_S, may_raise=())

    def _invoke(self, function: str, payload: dict[str, Any], timeout_s: float) -> Any:
        """What a state of the workflow calls."""
        faults = self.faults
        if faults.hit("function_throttled"):
            self.scheduler.sleep(0.05)
            raise Failure("Lambda.TooManyRequestsException")
        about = (payload["subject"], payload["requestId"])
        if function == ANSWER:
            invocation = self.functions.start(
                "answer",
                lambda invocation: self._answer(invocation, payload),
                timeout_s=WORKER_TIMEOUT_S,
                may_raise=(CicadaError,),
                about=about,
            )
        else:
            invocation = self.functions.start(
                "exhausted",
                lambda _: close_exhausted(
                    ExhaustedTask.model_validate(payload), self.log, self.connections, now_s=self.now_s
                ),
                timeout_s=CLOSING_TIMEOUT_S,
                may_raise=(CicadaError, StoreFault),
                about=about,
            )
        self.tell(invocation.process.name, f"is to run {payload.get('strategy', '')} for {about[1][:8]}")
        if faults.hit("function_service_fault"):
            self.scheduler.sleep(faults.between(0.05, 3))
            raise Failure("Lambda.ServiceException")
        result = self.functions.wait(invocation, timeout_s)
        if faults.hit("function_result_lost"):
            raise Failure("Lambda.SdkClientException")
        return result

    def _answer(self, invocation: Invocation, payload: dict[str, Any]) -> str:
        """The answer worker, as its handler has it."""
        environment = self._environment()
        environment.busy = True
        process = invocation.process
        process.on_death.append(lambda: self._environments.remove(environment))
        remaining_s = invocation.deadline - self.scheduler.now
        try:
            ended = environment.runner.run(
                AttemptTask.model_validate(payload), worker=process.name, remaining_s=remaining_s
            )
        finally:
            environment.busy = False
        process.on_death.clear()
        return ended.outcome

    def _environment(self) -> Environment:
        free = [one for one in self._environments if not one.busy]
        if free and self.scheduler.random() < WARM_SHARE:
            return free[int(self.scheduler.random() * len(free))]
        made = Environment(self, f"e{len(self.processes)}")
        self._environments.append(made)
        return made

    # --- the course of a world ---

    def run(self) -> Verdict:
        """Run it to its end."""
        faults, scheduler = self.faults, self.scheduler
        self._people_come()
        hard_s = 0.0 if faults.off else faults.between(5, 200) if scheduler.random() < 0.8 else faults.between(200, 700)
        if faults.drawn("version_published"):
            scheduler.call_at(faults.between(0, 90), self._publish)
        self._schedule_sweep(faults.between(0, SWEEP_EVERY_S))
        last_ask_s = max(self._asked_at)
        scheduler.run(hard_s)
        faults.cease()
        self.tell("world", "nothing fails any more")
        bound_s = last_ask_s + CALM_BOUND_S if faults.off else max(hard_s, last_ask_s) + self._bound_s()
        self._go_on(bound_s)
        if not self.violations:
            self.judge.settled(off=faults.off, bound_s=bound_s - hard_s)
        if not self.violations:
            self._look_back()
        simulated_s = scheduler.now
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

    def _bound_s(self) -> float:
        """Within what time after the faults every request ends, whoever waits for it.

        An execution and its worker may still be under way; then two sweeps pass, of which the first may start the
        request again, and a request past its time is not. Clocks that were wrong have set leases wrong.
        """
        return RequestBudget().time_s + 2 * EXECUTION_LIMIT_S + 3 * SWEEP_EVERY_S + 2 * MAX_SKEW_S

    def _go_on(self, until_s: float) -> None:
        """Run until nothing is left to happen, at most until then."""
        scheduler = self.scheduler
        while scheduler.now < until_s and not scheduler.halted:
            scheduler.run(min(until_s, scheduler.now + ROUND_S))
            ended = all(record.terminal is not None for record in self.judge.records.values())
            waking = scheduler.now < self.functions.busy_until
            if ended and not waking and scheduler.now > max(self._asked_at) and all(p.satisfied for p in self.persons):
                return

    def _people_come(self) -> None:
        """Draw who asks what, and when."""
        faults, random = self.faults, self.scheduler.random
        self._asked_at: list[float] = []
        asked_at = 0.0
        count = 1 + (random() < 0.45) + (random() < 0.3)
        asking = QUESTIONS[int(random() * len(QUESTIONS))]
        session = f"s{int(random() * 10)}" if random() < 0.4 else None
        for number in range(count):
            subject = "mara" if number == 0 or random() < 0.7 else "tess"
            frame: dict[str, Any] = {
                "action": "ask",
                "requestId": str(UUID(int=int(random() * 2**64) << 64 | number, version=4)),
                "query": asking.query,
            }
            if session is not None:
                frame["sessionId"] = session
            if random() < 0.15:
                frame["episodes"] = [EPISODES[int(random() * 2)]]
            self._asker(subject, frame, asked_at)
            self._asked_at.append(asked_at)
            asked_at += faults.between(0, 60)
            if random() < 0.6:  # about the same matter, so that the cache has something to say
                near = [one for one in QUESTIONS if one.topic == asking.topic]
                asking = near[int(random() * len(near))]
            else:
                asking = QUESTIONS[int(random() * len(QUESTIONS))]

    def _asker(self, subject: str, frame: dict[str, Any], at: float) -> None:
        faults, scheduler = self.faults, self.scheduler
        key = (subject, frame["requestId"])
        asker = self._person(f"{subject}-{len(self.persons)}", key, frame)
        asker.start(self.people, at)
        if faults.hit("second_device"):
            self._person(f"{subject}-{len(self.persons)}-phone", key, None).start(
                self.people, at + faults.between(0.5, 20)
            )
        if faults.drawn("cancelled"):
            scheduler.call_at(at + faults.between(0.02, 30), asker.cancel)
        if faults.drawn("asked_again"):
            scheduler.call_at(at + faults.between(0.02, 30), asker.ask_again)
        if faults.hit("stranger_probes"):
            stranger = self._person(f"eve-{len(self.persons)}", ("eve", key[1]), None)
            scheduler.call_at(at + faults.between(0.02, 20), lambda: self._probe(stranger, frame))

    def _publish(self) -> None:
        self.faults.note("version_published")
        self.tell("index", "a new version is published")
        self.index.publish()

    def _probe(self, stranger: Person, frame: dict[str, Any]) -> None:
        """Another user tries a request id that is not hers."""
        choice = int(self.scheduler.random() * 3)
        if choice == 2:  # that is a request of her own
            self._asker("eve", frame, self.scheduler.now)
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
            self.functions.start(
                "sweep",
                lambda invocation: self.recovery.sweep(lambda: invocation.deadline - self.scheduler.now),
                timeout_s=SWEEP_TIMEOUT_S,
                may_raise=(StoreFault,),
            )

    def _look_back(self) -> None:
        """Somebody reads every request again, from its beginning; and once more when its retention has ended."""
        readers = [self._person(f"reader-{n}", key, None) for n, key in enumerate(self.judge.records)]
        for reader in readers:
            reader.start(self.people, 0.01)
        self._go_on(self.scheduler.now + ROUND_S)
        for reader in readers:
            if reader.screen.terminal is None and not self.violations:
                self.fail(f"I3: a reader of {reader.key[1][:8]} does not see its end: {reader.outcome}")
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
        return f"answered by {terminal['answeredBy']}" if terminal["type"] == "complete" else f"error {terminal['code']}"

