"""The answer workflow: its shape, and the synthesised definition run by an interpreter against functions of ours."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import boto3
import pytest
from moto.core.config import default_user_config
from moto.server import ThreadedMotoServer
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.utils.boto_client import boto_client_for

from cicada.answering.workflow import AttemptTask, ExhaustedTask
from cicada.attempts.chain import FALLS_TO, longest_path
from cicada.protocol.events import StrategyName
from stacks.answer_states import ENDING, TIME_BUDGETS_S, WORKER_TIMEOUT_S, definition, state_of
from tests.template.templates import Synthesis

ACCOUNT = "arn:aws:lambda:us-east-1:123456789012:function"
ARNS = {"answer": f"{ACCOUNT}:answer", "exhausted": f"{ACCOUNT}:exhausted"}


def deployed(synthesis: Synthesis) -> dict[str, Any]:
    """The definition as CloudFormation hands it over, with the functions' ARNs in place."""
    machine = synthesis.machine("Workflow").properties
    arns = {synthesis.function(folder).id: arn for folder, arn in ARNS.items()}

    def text(part: Any) -> str:
        match part:
            case str():
                return part
            case {"Ref": "AWS::Partition"}:
                return "aws"
            case {"Fn::GetAtt": [id, "Arn"]}:
                return arns[id]
        raise AssertionError(part)

    _, parts = machine["DefinitionString"]["Fn::Join"]
    found: dict[str, Any] = json.loads("".join(text(part) for part in parts))
    return found


@pytest.fixture(scope="module")
def workflow(shipped: Synthesis) -> dict[str, Any]:
    return deployed(shipped)


def tasks(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: state for name, state in workflow["States"].items() if state["Type"] == "Task"}


# --- shape ---


def test_the_workflow_is_deployed_as_it_is_defined(each: Synthesis) -> None:
    """What holds of the definition (its paths, its time, its model calls) is tested beside the library."""
    assert deployed(each) == definition(partition="aws", answer_arn=ARNS["answer"], exhausted_arn=ARNS["exhausted"])


def test_one_state_a_strategy(workflow: dict[str, Any]) -> None:
    assert tasks(workflow).keys() == {"Hybrid", "Rag", "Cag", "Direct", "ProfileAgent", "TheoryAgent", "Exhausted"}


def test_every_failure_is_remembered_with_its_strategy(workflow: dict[str, Any]) -> None:
    for name in FALLS_TO:
        catchers = workflow["States"][state_of(name)]["Catch"]
        assert [catcher["ErrorEquals"] for catcher in catchers] == [list(ENDING), ["States.ALL"]]
        assert {catcher["ResultPath"] for catcher in catchers} == {f"$.failures.{name}"}


def test_only_throttles_and_faults_of_the_service_are_retried(workflow: dict[str, Any]) -> None:
    strategies = {name: state for name, state in tasks(workflow).items() if name != "Exhausted"}
    for state in strategies.values():
        (retrier,) = state["Retry"]
        assert set(retrier["ErrorEquals"]) == {
            "Lambda.TooManyRequestsException",
            "Lambda.ServiceException",
            "Lambda.AWSLambdaException",
            "Lambda.SdkClientException",
        }
        assert retrier["JitterStrategy"] == "FULL"
        assert retrier["MaxAttempts"] <= 3
        assert retrier["MaxDelaySeconds"] <= 8


def test_the_closing_is_repeated_whatever_it_fails_of(workflow: dict[str, Any]) -> None:
    (retrier,) = workflow["States"]["Exhausted"]["Retry"]
    assert retrier["ErrorEquals"] == ["States.ALL"]
    assert retrier["MaxAttempts"] >= 3


def test_one_function_runs_every_strategy_for_as_long_as_the_longest_takes(shipped: Synthesis) -> None:
    assert shipped.function("answer").properties["Timeout"] == WORKER_TIMEOUT_S
    assert all(budget_s <= WORKER_TIMEOUT_S for budget_s in TIME_BUDGETS_S.values())


def test_a_killed_closing_is_reported_before_its_state_gives_up(shipped: Synthesis, workflow: dict[str, Any]) -> None:
    assert workflow["States"]["Exhausted"]["TimeoutSeconds"] > shipped.function("exhausted").properties["Timeout"]


def test_a_failed_request_is_a_failed_execution(workflow: dict[str, Any]) -> None:
    states = workflow["States"]
    (ended,) = states[states["Exhausted"]["Next"]]["Choices"]
    assert (ended["Variable"], ended["BooleanEquals"]) == ("$.Payload.ended", True)
    assert states[ended["Next"]]["Type"] == "Fail"


def test_the_path_is_logged_and_what_people_ask_is_not(each: Synthesis) -> None:
    machine = each.machine("Workflow").properties
    assert machine["LoggingConfiguration"]["Level"] == "ALL"
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False
    assert machine["TracingConfiguration"] == {"Enabled": True}


def test_the_language_is_the_one_that_the_local_cloud_interprets(workflow: dict[str, Any]) -> None:
    assert workflow.get("QueryLanguage", "JSONPath") == "JSONPath"


# --- in motion ---

Behaviour = Callable[[str, dict[str, Any]], tuple[int, dict[str, str], Any]]
"""Of a function's name and its event: the status, the headers and the body of the Lambda service's response."""


def succeeds(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    return 200, {}, {"ended": True} if function == "exhausted" else {"outcome": "completed"}


def raises(error: str) -> tuple[int, dict[str, str], Any]:
    return 200, {"X-Amz-Function-Error": "Unhandled"}, {"errorType": error, "errorMessage": "why"}


class Functions(ThreadingHTTPServer):
    """The Lambda service's Invoke, with what the functions do as one function of ours."""

    def __init__(self) -> None:
        super().__init__(("localhost", 0), _Invoke)
        self.behaviour: Behaviour = succeeds
        self.invoked: list[tuple[str, dict[str, Any]]] = []


class _Invoke(BaseHTTPRequestHandler):
    server: Functions

    def do_POST(self) -> None:
        function = unquote(self.path).split("/functions/")[1].split("/")[0].rsplit(":", 1)[-1]
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.invoked.append((function, event))
        status, headers, body = self.server.behaviour(function, event)
        payload = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(payload)), "x-amzn-RequestId": "i-1"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def interpreter() -> Iterator[tuple[Any, Functions]]:
    """A Step Functions client whose state machines really run, and the functions that they invoke."""
    functions = Functions()
    threading.Thread(target=functions.serve_forever, daemon=True).start()
    server = ThreadedMotoServer(ip_address="localhost", port=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_PORT", str(functions.server_port))
        patch.setitem(default_user_config, "stepfunctions", {"execute_state_machine": True})
        # A test before this one, in the same process, may have put the local cloud's in its place.
        patch.setattr(lambda_eval_utils, "boto_client_for", boto_client_for)
        patch.setattr(retrier_decl, "time", SimpleNamespace(sleep=lambda _: None))  # a retry comes at once
        server.start()
        host, port = server.get_host_and_port()
        yield (
            boto3.client(
                "stepfunctions",
                endpoint_url=f"http://{host}:{port}",
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",
            ),
            functions,
        )
        server.stop()
    functions.shutdown()
    functions.server_close()


Run = Callable[..., tuple[str, list[tuple[str, dict[str, Any]]]]]


@pytest.fixture
def run(interpreter: tuple[Any, Functions], workflow: dict[str, Any]) -> Iterator[Run]:
    client, functions = interpreter
    machine = client.create_state_machine(
        name="workflow", definition=json.dumps(workflow), roleArn="arn:aws:iam::123456789012:role/workflow"
    )["stateMachineArn"]

    def run_once(
        strategy: str, behaviour: Behaviour, **failures: dict[str, str]
    ) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        functions.behaviour = behaviour
        functions.invoked = []
        start = {"subject": "anna", "requestId": "r-1", "strategy": strategy, "failures": failures}
        execution = client.start_execution(stateMachineArn=machine, name="e-1", input=json.dumps(start))["executionArn"]
        while (status := client.describe_execution(executionArn=execution)["status"]) == "RUNNING":
            time.sleep(0.02)
        return status, functions.invoked

    yield run_once
    client.delete_state_machine(stateMachineArn=machine)


def strategies_of(invoked: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [event["strategy"] if function == "answer" else function for function, event in invoked]


@pytest.mark.parametrize(
    ("route", "entered"),
    [
        ("rag", "rag"),
        ("direct", "direct"),
        ("hybrid", "hybrid"),
        ("cag", "cag"),
        ("theory_agent", "theory_agent"),
        ("unheard_of", "rag"),
    ],
)
def test_a_request_enters_at_its_routes_strategy(run: Run, route: str, entered: str) -> None:
    status, invoked = run(route, succeeds)
    assert status == "SUCCEEDED"
    assert strategies_of(invoked) == [entered]


def test_the_worker_is_told_what_the_library_expects(run: Run) -> None:
    _, ((_, event),) = run("rag", succeeds)
    execution = event.pop("execution")
    assert execution.startswith("arn:aws:states:")
    assert execution.endswith("e-1")
    assert event == {
        "subject": "anna",
        "requestId": "r-1",
        "entry": "rag",
        "failures": {},
        "strategy": "rag",
        "timeBudgetS": TIME_BUDGETS_S["rag"],
    }
    assert AttemptTask.model_validate(event | {"execution": execution}).strategy == "rag"


@pytest.mark.parametrize("error", ["StreamBroken", "Sandbox.Timedout", "Runtime.ExitError"])
def test_a_failed_strategy_hands_its_failure_to_the_next(run: Run, error: str) -> None:
    def rag_fails(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        return raises(error) if event["strategy"] == "rag" else succeeds(function, event)

    status, invoked = run("rag", rag_fails)
    assert status == "SUCCEEDED"
    assert strategies_of(invoked) == ["rag", "cag"]
    failures = AttemptTask.model_validate(invoked[1][1]).failures
    assert failures["rag"]["Error"] == error
    assert json.loads(failures["rag"]["Cause"])["errorMessage"] == "why"


@pytest.mark.parametrize("entry", FALLS_TO)
def test_an_exhausted_request_is_closed_with_all_that_was_tried(run: Run, entry: StrategyName) -> None:
    def answers_fail(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        return raises("ModelBusy") if function == "answer" else succeeds(function, event)

    status, invoked = run(entry, answers_fail)
    path = longest_path(entry)
    assert status == "FAILED"
    assert strategies_of(invoked) == [*path, "exhausted"]
    task = ExhaustedTask.model_validate(invoked[-1][1])
    assert {name: failure["Error"] for name, failure in task.failures.items()} == dict.fromkeys(path, "ModelBusy")


def test_an_execution_that_finds_its_request_ended_succeeds(run: Run) -> None:
    def answers_fail(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        return raises("ModelBusy") if function == "answer" else (200, {}, {"ended": False})

    assert run("direct", answers_fail)[0] == "SUCCEEDED"


@pytest.mark.parametrize("error", ["Lambda.TooManyRequestsException", "AnswerBlocked"])
def test_what_ends_a_request_lets_it_try_no_other_strategy(run: Run, error: str) -> None:
    def answers_fail(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        return raises(error) if function == "answer" else succeeds(function, event)

    status, invoked = run("rag", answers_fail)
    assert status == "FAILED"
    assert set(strategies_of(invoked)) == {"rag", "exhausted"}


def test_a_restarted_request_tries_nothing_that_had_failed(run: Run) -> None:
    def answers_fail(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        return raises("ModelBusy") if function == "answer" else succeeds(function, event)

    before = {"Error": "cache_miss", "Cause": "no earlier answer"}
    _, invoked = run("rag", answers_fail, cag=before)
    assert strategies_of(invoked) == ["rag", "direct", "exhausted"]
    assert invoked[0][1]["failures"] == {"cag": before}


def test_a_throttled_worker_is_tried_again_in_the_same_state(run: Run) -> None:
    remaining = [1]

    def throttled_once(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if remaining and remaining.pop():
            body = {"Type": "User", "Message": "Rate Exceeded."}
            return 429, {"x-amzn-ErrorType": "TooManyRequestsException"}, body
        return succeeds(function, event)

    status, invoked = run("rag", throttled_once)
    assert status == "SUCCEEDED"
    assert strategies_of(invoked) == ["rag", "rag"]


def test_a_worker_that_failed_is_not_tried_again(run: Run) -> None:
    def answers_fail(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        return raises("ModelUnavailable") if function == "answer" else succeeds(function, event)

    _, invoked = run("direct", answers_fail)
    assert strategies_of(invoked) == ["direct", "exhausted"]


def test_a_closing_that_failed_is_tried_again(run: Run) -> None:
    failures = iter([True, False])

    def closing_fails_once(function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if function == "answer":
            return raises("ModelUnavailable")
        return raises("StoreFault") if next(failures) else succeeds(function, event)

    _, invoked = run("direct", closing_fails_once)
    assert strategies_of(invoked) == ["direct", "exhausted", "exhausted"]
