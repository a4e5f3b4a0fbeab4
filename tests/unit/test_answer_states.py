"""The answer workflow's definition, walked state by state: its paths, its time, and the model calls that it allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain as together
from itertools import combinations
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada.answering.attempt import AttemptRunner
from cicada.answering.workflow import AttemptTask, ExhaustedTask
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.chain import FALLS_TO, LAST_RESORT, MAX_MODEL_CALLS, allotted_calls, longest_path, next_strategy
from cicada.attempts.chain import entry_strategy as entry_of_route
from cicada.attempts.strategy import AskedQuestion, Step, Strategy
from cicada.delivery.decide import START_GRACE_S, NotYours, begin
from cicada.delivery.record import Question, RequestHead, RequestKey
from cicada.errors import CicadaError, ModelBusy
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.ports import Prompt, TextDelta
from cicada.models.retries import RetryPolicy
from cicada.protocol.events import Accepted, Route, StrategyName, dump_event
from cicada.routing.classifier import classify
from stacks.answer_states import (
    CLOSING_TIMEOUT_S,
    EXECUTION_LIMIT_S,
    EXHAUSTED,
    FAILED,
    IN_DOUBT,
    NO_WORKER,
    RETRY_WAITS_S,
    STATE_MARGIN_S,
    SUPERSEDED,
    TIME_BUDGETS_S,
    WORKER_TIMEOUT_S,
    definition,
    longest_execution_s,
    state_of,
)
from tests.support.access import GivenRules
from tests.support.memory import InMemoryConnections, InMemoryLog

WORKFLOW = definition(partition="aws", answer_arn="answer", exhausted_arn="exhausted")
STATES: dict[str, dict[str, Any]] = WORKFLOW["States"]
STRATEGY_OF = {state_of(strategy): strategy for strategy in FALLS_TO}
KEY = RequestKey("mara", "r-1")
Failures = frozenset[StrategyName]


def subsets(names: tuple[StrategyName, ...]) -> Iterator[Failures]:
    return map(frozenset, together.from_iterable(combinations(names, n) for n in range(len(names) + 1)))


# --- an interpreter of the definition, as far as it goes ---


def value_at(document: dict[str, Any], path: str) -> Any:
    for name in path.removeprefix("$.").split("."):
        document = document[name]
    return document


def has(document: dict[str, Any], path: str) -> bool:
    try:
        value_at(document, path)
    except KeyError:
        return False
    return True


def chosen(state: dict[str, Any], document: dict[str, Any]) -> str:
    """Where a Choice leads."""
    for choice in state["Choices"]:
        if "IsPresent" in choice:
            holds = has(document, choice["Variable"]) == choice["IsPresent"]
        else:
            wanted = choice["StringEquals"] if "StringEquals" in choice else choice["BooleanEquals"]
            holds = value_at(document, choice["Variable"]) == wanted
        if holds:
            return str(choice["Next"])
    return str(state["Default"])


def entered(name: str, document: dict[str, Any]) -> str:
    """The next state that does something."""
    while STATES[name]["Type"] == "Choice":
        name = chosen(STATES[name], document)
    return name


def start_input(strategy: str, failed: Failures = frozenset()) -> dict[str, Any]:
    failures = {name: {"Error": "WorkerLost", "Cause": "lost"} for name in failed}
    return {"subject": KEY.subject, "requestId": KEY.request_id, "strategy": strategy, "failures": failures}


def run(
    document: dict[str, Any], task: Callable[[str, dict[str, Any]], str | None], *, ended: bool = True
) -> list[str]:
    """Execute the workflow; ``task`` gets a function's name and its event, and returns its error's name, if any.

    ``ended``: whether the closing ended the request.
    """
    name, path = entered(WORKFLOW["StartAt"], document), []
    while True:
        path.append(name)
        state = STATES[name]
        if state["Type"] in ("Fail", "Succeed"):
            return path
        error = task(state["Parameters"]["FunctionName"], event_of(state, document))
        if error is None and state.get("End"):
            return path
        if error is None:
            document = {"Payload": {"ended": ended}}
            name = entered(state["Next"], document)
            continue
        catcher = next(one for one in state["Catch"] if {error, "States.ALL"} & set(one["ErrorEquals"]))
        document["failures"][catcher["ResultPath"].removeprefix("$.failures.")] = {"Error": error, "Cause": "{}"}
        name = entered(catcher["Next"], document)


def event_of(state: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    event = {}
    for name, value in state["Parameters"]["Payload"].items():
        if value == "$$.Execution.Id":
            event["execution"] = "arn:execution:1"
        elif name.endswith(".$"):
            event[name.removesuffix(".$")] = value_at(document, value)
        else:
            event[name] = value
    parsed: dict[str, Any] = json.loads(json.dumps(event))
    return parsed


# --- paths ---


@pytest.mark.parametrize("entry", FALLS_TO)
def test_an_execution_falls_through_the_chain_as_the_library_says(entry: StrategyName) -> None:
    path = run(start_input(entry), lambda function, _: "ModelBusy" if function == "answer" else None)
    assert path == [*(state_of(strategy) for strategy in longest_path(entry)), EXHAUSTED, FAILED]


@pytest.mark.parametrize("strategy", FALLS_TO)
def test_whatever_failed_before_the_next_strategy_is_the_librarys(strategy: StrategyName) -> None:
    for failed in subsets(tuple(FALLS_TO)):
        document = start_input(strategy, failed | {strategy})
        following = next_strategy(strategy, failed | {strategy})
        found = entered(STATES[state_of(strategy)]["Catch"][-1]["Next"], document)
        assert found == (state_of(following) if following else EXHAUSTED)


@pytest.mark.parametrize("entry", FALLS_TO)
def test_a_restarted_execution_tries_nothing_twice(entry: StrategyName) -> None:
    for failed in subsets(tuple(set(FALLS_TO) - {entry})):
        path = run(start_input(entry, failed), lambda function, _: "ModelBusy" if function == "answer" else None)
        tried = [STRATEGY_OF[name] for name in path if name in STRATEGY_OF]
        assert tried == list(longest_path(entry, failed))
        assert not failed & set(tried)


@pytest.mark.parametrize("entry", FALLS_TO)
def test_where_no_worker_is_free_no_other_strategy_is_tried(entry: StrategyName) -> None:
    path = run(start_input(entry), lambda function, _: NO_WORKER if function == "answer" else None)
    assert path == [state_of(entry), EXHAUSTED, FAILED]


def test_an_execution_that_found_its_request_ended_has_not_failed() -> None:
    path = run(start_input("direct"), lambda function, _: "ModelBusy" if function == "answer" else None, ended=False)
    assert path[-1] == SUPERSEDED


def test_a_request_is_awaited_for_longer_than_a_state_waits_for_a_free_worker() -> None:
    assert sum(RETRY_WAITS_S) + 10 <= START_GRACE_S


def test_an_answer_ends_the_execution() -> None:
    for entry in FALLS_TO:
        assert run(start_input(entry), lambda *_: None) == [state_of(entry)]


def test_a_route_enters_at_its_strategy() -> None:
    routes: tuple[Route, ...] = ("direct", "rag", "hybrid", "cag", "profile_agent", "theory_agent")
    for route in routes:
        assert run(start_input(entry_of_route(route)), lambda *_: None) == [state_of(entry_of_route(route))]
    assert run(start_input("unheard of"), lambda *_: None) == [state_of(IN_DOUBT)]


def test_each_state_hands_over_what_the_functions_read() -> None:
    tasks: list[AttemptTask] = []

    def fails(function: str, event: dict[str, Any]) -> str | None:
        if function == "exhausted":
            assert set(ExhaustedTask.model_validate(event).failures) == set(longest_path("hybrid"))
            return None
        tasks.append(AttemptTask.model_validate(event))
        return "StreamBroken"

    run(start_input("hybrid"), fails)
    assert [task.strategy for task in tasks] == list(longest_path("hybrid"))
    assert [task.time_budget_s for task in tasks] == [TIME_BUDGETS_S[task.strategy] for task in tasks]
    assert {task.entry for task in tasks} == {"hybrid"}
    assert {task.key for task in tasks} == {KEY}
    assert [len(task.failures) for task in tasks] == list(range(len(tasks)))


# --- time ---


def wait_s(retrier: dict[str, Any]) -> float:
    waits = [retrier["IntervalSeconds"] * retrier["BackoffRate"] ** n for n in range(retrier["MaxAttempts"])]
    return float(sum(min(wait, retrier["MaxDelaySeconds"]) for wait in waits))


def test_the_longest_path_with_every_wait_and_the_closing_fits_into_one_execution() -> None:
    def most_s(document: dict[str, Any]) -> float:
        path = run(document, lambda function, _: "Sandbox.Timedout" if function == "answer" else None)
        tasks = [STATES[name] for name in path if STATES[name]["Type"] == "Task"]
        return sum((float(state["TimeoutSeconds"]) + wait_s(state["Retry"][0]) for state in tasks), 0.0)

    longest_s = max(most_s(start_input(entry)) for entry in FALLS_TO)
    assert longest_s == longest_execution_s()
    assert longest_s <= WORKFLOW["TimeoutSeconds"] == EXECUTION_LIMIT_S


def test_a_worker_has_the_time_of_the_longest_strategy_and_each_state_waits_a_little_longer() -> None:
    assert max(TIME_BUDGETS_S.values()) == WORKER_TIMEOUT_S
    for strategy, budget_s in TIME_BUDGETS_S.items():
        state = STATES[state_of(strategy)]
        assert state["TimeoutSeconds"] == budget_s + STATE_MARGIN_S
        assert state["Parameters"]["Payload"]["timeBudgetS"] == budget_s
    assert STATES[EXHAUSTED]["TimeoutSeconds"] == CLOSING_TIMEOUT_S + STATE_MARGIN_S
    assert TIME_BUDGETS_S.keys() == FALLS_TO.keys()


# --- model calls ---


def test_no_request_may_call_models_more_often_than_four_times() -> None:
    """Over every path of the definition, however often the service repeats a state whose worker had run after all, and
    with a take-over after any attempt: what the attempts are allotted never adds up to more."""
    repeats = max(STATES[state_of(strategy)]["Retry"][0]["MaxAttempts"] for strategy in FALLS_TO)

    @cache
    def most(strategy: StrategyName, failed: Failures, reserved: int, repeats_left: int, takeovers_left: int) -> int:
        head = RequestHead(KEY, Question("?"), origin="f", accepted_at_ms=0, expires_at=1, reserved_calls=reserved)
        begun = begin(head, strategy, (), execution="e", worker="w", now_s=0.0, allot=allotted_calls)
        assert not isinstance(begun, NotYours)
        assert begun.claim is not None
        calls, spent = begun.claim.calls, begun.claim.reserved_calls
        assert spent == reserved + calls
        further = [0]
        if repeats_left:
            further.append(most(strategy, failed, spent, repeats_left - 1, takeovers_left))
        if takeovers_left:  # the worker is lost, and so is the execution: started again at what was lost
            further.append(most(strategy, failed - {strategy}, spent, repeats, takeovers_left - 1))
        following = next_strategy(strategy, failed | {strategy})
        if following is not None:
            further.append(most(following, failed | {strategy}, spent, repeats, takeovers_left))
        return calls + max(further)

    worst = {entry: most(entry, frozenset(), 0, repeats, 1) for entry in FALLS_TO}
    assert max(worst.values()) == MAX_MODEL_CALLS
    assert all(calls <= MAX_MODEL_CALLS for calls in worst.values())


def test_the_last_resort_always_has_a_call_when_it_is_fallen_to() -> None:
    for reserved in range(MAX_MODEL_CALLS):
        for strategy in set(FALLS_TO) - {LAST_RESORT}:
            spent = reserved + allotted_calls(strategy, reserved)
            assert spent == reserved or allotted_calls(LAST_RESORT, spent) >= 1


class Throttling:
    """A Bedrock client that refuses every call, and counts them."""

    def __init__(self) -> None:
        self.calls = 0

    def converse_stream(self, **_: Any) -> Any:
        self.calls += 1
        told = {"Error": {"Code": "ThrottlingException", "Message": "slow down"}}
        raise ClientError(told | {"ResponseMetadata": {"HTTPStatusCode": 429}}, "ConverseStream")


class Calling:
    """A strategy that calls its model for as long as it may."""

    needs: tuple[str, ...] = ()

    def __init__(self, name: StrategyName, model: BedrockTextModel) -> None:
        self.name: StrategyName = name
        self._model = model

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        error: CicadaError = ModelBusy("no call is left")
        while attempt_budget.calls_left:
            try:
                for step in self._model.stream(Prompt("", asked.query), time_budget_s=20.0, call_scope=attempt_budget):
                    assert isinstance(step, TextDelta)
                    yield step
            except CicadaError as failed:
                error = failed
        raise error


@pytest.mark.parametrize("entry", FALLS_TO)
@pytest.mark.parametrize("lost_after", [None, 0, 1, 2, 3])
def test_a_throttled_model_is_called_four_times_at_most_by_the_workers_themselves(
    entry: StrategyName, lost_after: int | None
) -> None:
    """The whole definition over the production attempts and the production model, a worker lost after any attempt."""
    client = Throttling()
    model = BedrockTextModel(client, "m", retry=RetryPolicy(base_s=0.0))
    log = accepted_request(entry)
    strategies: dict[StrategyName, Strategy] = {name: Calling(name, model) for name in FALLS_TO}
    runner = AttemptRunner(log, InMemoryConnections(), strategies, now_s=lambda: 1000.0, access=GivenRules())
    attempts = 0

    class Lost(Exception):
        pass

    def task(function: str, event: dict[str, Any]) -> str | None:
        nonlocal attempts
        if function == "exhausted":
            return None
        attempts += 1
        try:
            runner.run(AttemptTask.model_validate(event), worker=f"w-{attempts}", remaining_s=WORKER_TIMEOUT_S)
        except CicadaError as error:
            if lost_after is not None and attempts == lost_after + 1:
                raise Lost from None
            return type(error).__name__
        raise AssertionError("no attempt can succeed")

    try:
        run(start_input(entry), task)
    except Lost:
        head = log.head(KEY)
        assert head.strategy is not None
        log.requests[KEY] = (replace(head, execution=None, takeovers=1), log.requests[KEY][1])
        failed = frozenset(one.strategy for one in head.failed) - {head.strategy}
        run(start_input(head.strategy, failed), task)
    assert 1 <= client.calls <= MAX_MODEL_CALLS


def accepted_request(strategy: StrategyName) -> InMemoryLog:
    log = InMemoryLog()
    classification = classify("What does Aoi say?")
    accepted = Accepted(
        route=classification.route,
        confidence=classification.confidence,
        reasoning=classification.reasoning,
        strategy=strategy,
    )
    head = RequestHead(KEY, Question("What does Aoi say?"), origin="f", accepted_at_ms=1_000_000, expires_at=10**10)
    log.create(head, dump_event(accepted))
    return log
