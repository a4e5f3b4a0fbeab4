"""Step Functions' twin: interprets the deployed definition, in JSONPath, one task an execution.

It knows the states and the fields that the definition uses, and refuses others: Choice, Task, Fail, Succeed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from stacks.answer_states import EXECUTION_LIMIT_S, definition
from tests.simulation.faults import Faults
from tests.simulation.functions import Failure
from tests.simulation.scheduler import Process, Scheduler

ANSWER, EXHAUSTED = "answer", "exhausted"
UNCATCHABLE = ("States.DataLimitExceeded", "States.Runtime")


@cache
def states() -> dict[str, Any]:
    """The deployed definition."""
    return definition(partition="aws", answer_arn=ANSWER, exhausted_arn=EXHAUSTED)


class Workflow:
    """The client that starts executions. It calls functions by their names, with a payload and how long to wait."""

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        processes: list[Process],
        *,
        invoke: Callable[[str, dict[str, Any], float], Any],
        crashed: Callable[[str, BaseException], None],
        tell: Callable[[str, str], None],
    ) -> None:
        """``invoke`` returns what the function does; ``crashed`` hears of an error of the interpreter itself."""
        self._scheduler = scheduler
        self._faults = faults
        self._processes = processes
        self._invoke = invoke
        self._crashed = crashed
        self._tell = tell
        self._executions = 0

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> dict[str, str]:  # noqa: N803
        """See boto3. Names of Express executions are not idempotent: each start is an execution of its own."""
        scheduler, faults = self._scheduler, self._faults
        scheduler.sleep(0.005 + 0.02 * scheduler.random())
        if faults.hit("start_refused"):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "StartExecution")
        data = json.loads(input)
        if not faults.hit("start_lost"):
            self._executions += 1
            arn = f"x{self._executions}"
            delay_s = faults.between(1, 40) if faults.hit("start_late") else 0.02
            self._execute(arn, data, delay_s)
            if faults.hit("execution_repeated"):
                self._execute(arn, data, delay_s + faults.between(0, 30))
        if faults.hit("start_ack_lost"):
            scheduler.sleep(3.0)
            raise ReadTimeoutError(endpoint_url="states")
        scheduler.sleep(0.01)
        return {}

    def _execute(self, arn: str, data: dict[str, Any], delay_s: float) -> None:
        process = Process(f"execution-{arn}", "execution", about=(data["subject"], data["requestId"]))
        self._processes.append(process)
        self._tell(process.name, f"is to begin with {data['strategy']}, {sorted(data['failures'])} failed")
        if self._faults.drawn("execution_died"):
            process.fate_at = 1 + int(self._scheduler.random() * 6)
            process.fate = lambda: self._die(process)

        def run() -> None:
            try:
                self._run(arn, dict(data))
            except Exception as error:
                self._crashed(process.name, error)

        self._scheduler.spawn(process, run, "main", delay_s=delay_s)
        self._scheduler.call_at(
            self._scheduler.now + delay_s + EXECUTION_LIMIT_S, lambda: self._scheduler.kill(process)
        )

    def _die(self, process: Process) -> None:
        self._faults.note("execution_died")
        self._tell(process.name, "dies")
        self._scheduler.kill(process)

    def _run(self, arn: str, data: dict[str, Any]) -> None:
        machine = states()
        context = {"$": data, "$$": {"Execution": {"Id": arn}}}
        name = machine["StartAt"]
        while True:
            state = machine["States"][name]
            kind = state["Type"]
            self._scheduler.sleep(0.01)
            if kind == "Choice":
                name = _choose(state, context)
            elif kind == "Task":
                following = self._task(state, context)
                if following is None:
                    return
                name = following
            elif kind in ("Fail", "Succeed"):
                return
            else:
                raise AssertionError(f"the twin knows no state of type {kind}")

    def _task(self, state: dict[str, Any], context: dict[str, Any]) -> str | None:
        """Run a task with its retries. Returns the next state, None at the end of the execution."""
        retried = [0] * len(state.get("Retry", ()))
        while True:
            parameters = _filled(state["Parameters"], context)
            try:
                result = self._invoke(parameters["FunctionName"], parameters["Payload"], state["TimeoutSeconds"])
            except Failure as failure:
                wait_s = self._retry(state, failure, retried)
                if wait_s is not None:
                    self._scheduler.sleep(wait_s)
                    continue
                for catcher in state.get("Catch", ()):
                    if _matches(catcher["ErrorEquals"], failure.error):
                        _put(context["$"], catcher["ResultPath"], {"Error": failure.error, "Cause": failure.cause})
                        return str(catcher["Next"])
                return None
            context["$"] = {"Payload": result}
            return state.get("Next")

    def _retry(self, state: dict[str, Any], failure: Failure, retried: list[int]) -> float | None:
        for place, retrier in enumerate(state.get("Retry", ())):
            if _matches(retrier["ErrorEquals"], failure.error):
                if retried[place] >= retrier["MaxAttempts"]:
                    return None
                wait_s = retrier["IntervalSeconds"] * retrier["BackoffRate"] ** retried[place]
                retried[place] += 1
                return float(min(wait_s, retrier["MaxDelaySeconds"])) * self._scheduler.random()
        return None


def _matches(names: list[str], error: str) -> bool:
    if error in names:
        return True
    return "States.ALL" in names and error not in UNCATCHABLE


def _choose(state: dict[str, Any], context: dict[str, Any]) -> str:
    for choice in state["Choices"]:
        found = _get(context, choice["Variable"])
        if "StringEquals" in choice:
            met = found == choice["StringEquals"]
        elif "BooleanEquals" in choice:
            met = found is choice["BooleanEquals"]
        elif "IsPresent" in choice:
            met = (found is not None) == choice["IsPresent"]
        elif "BooleanEquals" in choice:
            met = found is choice["BooleanEquals"]
        else:
            raise AssertionError(f"the twin knows no such choice: {choice}")
        if met:
            return str(choice["Next"])
    return str(state["Default"])


def _get(context: dict[str, Any], path: str) -> Any:
    root, *parts = path.split(".")
    found: Any = context[root]
    for part in parts:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _put(data: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")[1:]
    for part in parents:
        data[part] = dict(data[part])
        data = data[part]
    data[last] = value


def _filled(template: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for name, value in template.items():
        if name.endswith(".$"):
            filled[name[:-2]] = _get(context, value)
        else:
            filled[name] = _filled(value, context) if isinstance(value, dict) else value
    return filled
