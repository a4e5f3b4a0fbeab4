"""How the answer workflow is started."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from cicada.answering.workflow import START_TRIES, AttemptTask, StepFunctionsStarter
from cicada.errors import WorkflowUnavailable
from cicada.protocol.events import StrategyFailure
from tests.support.questions import KEY

BUSY = ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "StartExecution")
SILENT = ReadTimeoutError(endpoint_url="https://states")


class Client:
    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.calls = []

    def start_execution(self, **call):
        self.calls.append(call)
        if self.outcomes and (error := self.outcomes.pop(0)) is not None:
            raise error


def test_an_execution_begins_with_the_request_and_the_strategy_it_enters_at():
    client = Client()
    StepFunctionsStarter(client, "arn:machine").start(KEY, "hybrid")
    (call,) = client.calls
    assert call["stateMachineArn"] == "arn:machine"
    assert json.loads(call["input"]) == {
        "subject": KEY.subject,
        "requestId": KEY.request_id,
        "strategy": "hybrid",
        "failures": {},
    }


def test_a_take_over_carries_what_failed_before_and_tries_the_lost_strategy_again():
    client = Client()
    broken = {"code": "stream_broken", "reason": "It broke off."}
    failed = (StrategyFailure(strategy="hybrid", **broken), StrategyFailure(strategy="rag", **broken))
    StepFunctionsStarter(client, "arn:machine").start(KEY, "rag", failed)
    started = json.loads(client.calls[0]["input"])
    assert started["failures"] == {"hybrid": {"Error": "stream_broken", "Cause": "It broke off."}}


@pytest.mark.parametrize("error", [BUSY, SILENT])
def test_a_start_that_fails_is_tried_again_under_a_name_of_its_own(error):
    client = Client(error, error)
    StepFunctionsStarter(client, "arn:machine").start(KEY, "rag")
    assert len({call["name"] for call in client.calls}) == 3


def test_a_start_that_keeps_failing_says_so():
    client = Client(*[BUSY] * START_TRIES)
    with pytest.raises(WorkflowUnavailable, match="slow down"):
        StepFunctionsStarter(client, "arn:machine").start(KEY, "rag")
    assert len(client.calls) == START_TRIES


def test_a_state_hands_the_worker_its_task():
    task = AttemptTask.model_validate(
        {
            "subject": "mara",
            "requestId": KEY.request_id,
            "execution": "arn:x",
            "entry": "cag",
            "strategy": "rag",
            "timeBudgetS": 65,
            "failures": {"cag": {"Error": "CacheMiss", "Cause": "{}"}},
        }
    )
    assert (task.key, task.entry, task.strategy, task.time_budget_s) == (KEY, "cag", "rag", 65)
