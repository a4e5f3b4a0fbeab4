"""The production code of a deployment, between twins of every service."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.finalisation import close_exhausted
from cicada.answering.profile_api import ProfileApi
from cicada.answering.question_gate import QuestionGate, SharedItems
from cicada.answering.recovery import Recovery
from cicada.answering.workflow import AttemptTask, ExhaustedTask, StepFunctionsStarter
from cicada.delivery.connections import ApiGatewayConnections
from cicada.delivery.dynamodb import OPEN_INDEX, DynamoDbLog
from cicada.delivery.ports import StoreFault
from cicada.dynamodb import read_items
from cicada.errors import CicadaError
from cicada.identity import caller_of
from cicada.profiles.dynamodb import DynamoDbProfiles
from cicada.profiles.service import ProfileService
from cicada.protocol.actions import parse_action, request_id_of
from cicada.protocol.events import Refused, reply_frame
from cicada.usage.accounts import HOLD_S
from stacks.answer_states import CLOSING_TIMEOUT_S, WORKER_TIMEOUT_S
from tests.simulation.concurrency import SimulatedConcurrency
from tests.simulation.corpus import Access, Index
from tests.simulation.environment import Environment
from tests.simulation.expressions import Item
from tests.simulation.faults import Faults
from tests.simulation.functions import Failure, Functions, Invocation
from tests.simulation.gateway import Gateway
from tests.simulation.judge import Judge
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.table import Table
from tests.simulation.usage import MOST, UsageJudge, drawn_limits
from tests.simulation.workflow import ANSWER, Workflow

EPOCH_S = 1_800_000_000.0
NEXT_MONTH_S = 1_801_440_000.0
"""When the next month begins."""
RETENTION_S = 7 * 24 * 3600
PROCESSOR_TIMEOUT_S = 25.0
SWEEP_TIMEOUT_S = 55.0
WARM_SHARE = 0.8
"""How often an invocation meets an environment that has worked before."""


def drawn_epoch_s(random: Random) -> float:
    """When a world begins: half of them before the turn of a month, half of these with the first questions."""
    if random.random() < 0.5:
        return EPOCH_S
    share = random.random()
    return NEXT_MONTH_S - (90 * share if share > 0.5 else 0.02 + 0.04 * share)


class Deployment:
    """What is deployed. Handlers are written out here as in ``lambdas/``, which read the environment as they load."""

    def __init__(self, seed: int, counts: Counter[str], *, keeps_history: bool = False) -> None:
        self.seed = seed
        self.violations: list[str] = []
        self.history: list[tuple[float, str, str]] = []
        self.keeps_history = keeps_history
        random = Random(seed)
        self.scheduler = scheduler = Scheduler(random)
        self.faults = faults = Faults(random, counts)
        self.people = Process("people", "world")
        self.processes: list[Process] = [self.people]
        self.index = Index(scheduler, faults)
        self.access = Access(scheduler, faults)
        self.shares_answers = random.random() < 0.5
        self.judge = Judge(scheduler, self.index, self.access, self.fail, shares_answers=self.shares_answers)
        limits = drawn_limits(random)
        self.epoch_s = drawn_epoch_s(random)
        self.usage = UsageJudge(limits, self.fail)
        self.table = Table(scheduler, faults, self._wrote, index=(OPEN_INDEX, "open_in", "accepted_at_ms"))
        self.judge.event_item = lambda pk, sk: str(self.table.items[pk][sk]["body"]["S"])
        self.gateway = Gateway(
            scheduler,
            faults,
            self.people,
            handle=self._handle,
            shown=self.judge.shown,
            sent=lambda socket, frame: self.judge.sent(socket, frame, own_now_s=self.now_s()),
            now_s=lambda: self.true_now_s,
        )
        self.functions = Functions(scheduler, faults, self.processes, self.crashed, self.tell)
        self.workflow = Workflow(
            scheduler, faults, self.processes, invoke=self._invoke, crashed=self.crashed, tell=self.tell
        )
        self.concurrency = SimulatedConcurrency(scheduler, self.crashed)
        self.log = DynamoDbLog(self.table, "table", sleep=scheduler.sleep, random=scheduler.random)
        self.connections = ApiGatewayConnections(self.gateway)
        starter = StepFunctionsStarter(self.workflow, "machine")
        self.recovery = Recovery(self.log, self.connections, starter, now_s=self.now_s)
        self.action_handlers = ActionHandlers(
            self.log,
            self.connections,
            self.recovery,
            ProfileApi(ProfileService(DynamoDbProfiles(self.table, "table"), now_s=self.now_s), now_s=self.now_s),
            QuestionGate(
                self.log,
                lambda keys: read_items(self.table, StoreFault, "table", keys, sleep=scheduler.sleep),
                most=MOST,
                limits=limits,
                now_s=self.now_s,
                sleep=scheduler.sleep,
                random=scheduler.random,
                shared=SharedItems(HOLD_S),
            ),
            retention_s=RETENTION_S,
            now_s=self.now_s,
            monotonic=self.monotonic,
        )
        self._environments: list[Environment] = []

    def _wrote(self, pk: str, sk: str, before: Item | None, after: Item | None) -> None:
        self.judge.wrote(pk, sk, before, after)
        self.usage.wrote(pk, sk, after)

    # --- time ---

    @property
    def true_now_s(self) -> float:
        """Epoch seconds."""
        return self.epoch_s + self.scheduler.now

    @property
    def month_turns_at_once(self) -> bool:
        """Whether a month turns while the first questions are asked."""
        return NEXT_MONTH_S - self.epoch_s < 1

    def now_s(self) -> float:
        """Epoch seconds on the clock of whoever asks."""
        return self.epoch_s + self.scheduler.now + self.scheduler.current.process.skew_s

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

    def crashed(self, who: str, error: BaseException) -> None:
        """Something ends with an error that nothing may end with."""
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
                reply(self.action_handlers.handle(action, caller))

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
                lambda _: self._close(payload),
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

    def _answer(self, invocation: Invocation, payload: dict[str, Any]) -> dict[str, str]:
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
        return {"outcome": ended.outcome}

    def _close(self, payload: dict[str, Any]) -> dict[str, bool]:
        """The function that closes an exhausted request, as its handler has it."""
        task = ExhaustedTask.model_validate(payload)
        return {"ended": close_exhausted(task, self.log, self.connections, now_s=self.now_s) is not None}

    def _environment(self) -> Environment:
        free = [one for one in self._environments if not one.busy]
        if free and self.scheduler.random() < WARM_SHARE:
            return free[int(self.scheduler.random() * len(free))]
        made = Environment(self, f"e{len(self.processes)}")
        self._environments.append(made)
        return made

    def sweep(self) -> None:
        """The scheduled sweep, as its handler has it."""
        self.functions.start(
            "sweep",
            lambda invocation: self.recovery.sweep(lambda: invocation.deadline - self.scheduler.now),
            timeout_s=SWEEP_TIMEOUT_S,
            may_raise=(StoreFault,),
        )
