"""``cicada trace`` and ``cicada breakers`` against a deployed stack: moto, the Insights stand-in, boto3's own code."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada import request_trace
from cicada.breakers.decide import Breaker
from cicada.breakers.dynamodb import DynamoDbBreakerStore
from cicada_cli import log_groups, trace
from cicada_cli.aws import Aws
from cicada_cli.deployment import Deployment
from cicada_cli.log_groups import Insights as Queries
from cicada_cli.log_groups import LogsUnavailable
from cicada_cli.main import main
from cicada_local.faults import Faults
from cicada_local.functions.logs import FunctionLog
from cicada_local.insights import Insights, function_groups
from tests.wire.local_services import ACCOUNT_ID, Services, create_role, deployed_stack, running_services

REQUEST, ANOTHER = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "0b0d1f6e-3c1e-4d52-9f39-7a2f6f0f1c11"
FUNCTION: dict[str, Any] = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Code": {"S3Bucket": "trace-assets", "S3Key": "code.zip"},
        "Handler": "handler.handler",
        "Runtime": "python3.13",
        "Role": f"arn:aws:iam::{ACCOUNT_ID}:role/trace",
    },
}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 7}},
        "WorkflowLogs": {
            "Type": "AWS::Logs::LogGroup",
            "Properties": {"LogGroupName": "/aws/vendedlogs/states/traced"},
        },
        "Answer": {
            **FUNCTION,
            "Properties": {**FUNCTION["Properties"], "LoggingConfig": {"LogGroup": {"Ref": "Logs"}}},
        },
        "Plain": FUNCTION,
        "Permission": {
            "Type": "AWS::Lambda::Permission",
            "Properties": {
                "Action": "lambda:InvokeFunction",
                "FunctionName": {"Ref": "Plain"},
                "Principal": "apigateway.amazonaws.com",
            },
        },
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
            },
        },
    },
    "Outputs": {"Function": {"Value": {"Ref": "Answer"}}, "RequestsTable": {"Value": {"Ref": "Table"}}},
}


class House:
    """A deployment whose functions' logs are written by the test."""

    def __init__(self, services: Services, faults: Faults, logs: Path, outputs: Mapping[str, str]) -> None:
        self.services, self.faults, self.logs, self.outputs = services, faults, logs, outputs

    @property
    def store(self) -> DynamoDbBreakerStore:
        return DynamoDbBreakerStore(self.services.client("dynamodb"), self.outputs["RequestsTable"])

    def log(self, *lines: Mapping[str, Any] | str) -> None:
        log = FunctionLog(self.logs / f"{self.outputs['Function']}.log")
        for line in lines:
            log.write("2026/11/21/[$LATEST]0123", line if isinstance(line, str) else json.dumps(line))
        log.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    faults, logs = Faults(), tmp_path_factory.mktemp("logs")
    insights = Insights(lambda: function_groups(logs), faults)
    with running_services(insights) as services:
        prepare(services)
        with deployed_stack(services, "Traced-Answering", TEMPLATE) as stack:
            assert stack["StackStatus"] == "CREATE_COMPLETE", stack
            outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
            yield House(services, faults, logs, outputs)


def prepare(services: Services) -> None:
    """What the functions' template refers to."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("handler.py", "x = 1")
    s3 = services.client("s3")
    s3.create_bucket(Bucket="trace-assets")
    s3.put_object(Bucket="trace-assets", Key="code.zip", Body=archive.getvalue())
    create_role(services, "trace", allowed={})


@pytest.fixture(autouse=True)
def surroundings(house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No deployment but the test's."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CICADA_STACK_PREFIX", "Traced")
    monkeypatch.setenv("AWS_ENDPOINT_URL", house.services.endpoint_url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(log_groups, "FIRST_POLL_S", 0.01)
    for path in house.logs.glob("*.log"):
        path.unlink()


def step(name: str, request: str = REQUEST, **fields: Any) -> dict[str, Any]:
    return {
        "level": "INFO",
        "message": name,
        "request_id": request,
        "function_request_id": "w-1",
        "step": name,
        **fields,
    }


STORY = (
    step("accepted", route="rag", confidence=0.9, reasoning="asks", strategy="rag"),
    step("attempt", attempt=1, strategy="rag", worker="w-1"),
    step("complete", attempt=1, answered_by="rag", attempted=["rag"], failed=[], grounded=True),
)


def test_the_story_is_told_from_the_functions_own_log_groups(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log("START RequestId: w-1", STORY[0], step("accepted", ANOTHER), *STORY[1:], "END RequestId: w-1")
    assert main(["trace", REQUEST.upper()]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[2] for line in out if "\t" in line] == ["accepted", "attempt", "complete"]
    assert any(line.startswith("Answered by rag, grounded, in 0.0") for line in out)
    assert out[-1].endswith(" Traced/Story of a request")


def test_for_machines_it_is_one_object(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log(*STORY)
    assert main(["trace", REQUEST, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["answeredBy"], len(told["lines"])) == ("complete", "rag", 3)
    assert told["savedQuery"] == "Traced/Story of a request"
    assert all("Logs" in line["logGroup"] for line in told["lines"])


def test_another_deployment_whose_prefix_begins_alike_is_left_out(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    template = {"Resources": {"Logs": TEMPLATE["Resources"]["Logs"]}}
    with deployed_stack(house.services, "Traced-Dev-Answering", template):
        deployment = Deployment({}, Aws(endpoint_url=house.services.endpoint_url), "Traced")
        groups = log_groups.log_groups(deployment)
        others = log_groups.log_groups(replace(deployment, stack_prefix="Traced-Dev"))
    assert len(groups) == len(others) == 1
    assert (log_groups.stack_prefix(groups), log_groups.stack_prefix(others)) == ("Traced", "Traced-Dev")
    assert groups != others


ASKED = [{**one, "asker": "1a2b3c4d"} for one in STORY]
BY_ANOTHER = (
    step("accepted", route="direct", strategy="direct", asker="0f0f0f0f", function_request_id="w-2"),
    step("ended", code="cancelled", asker="0f0f0f0f", function_request_id="w-2"),
)


def test_requests_of_two_users_under_one_id_are_told_one_after_the_other(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.log(*ASKED, *BY_ANOTHER)
    assert main(["trace", REQUEST]) == 0
    told = capsys.readouterr()
    assert told.out.index("Answered by rag") < told.out.index("Ended with cancelled")
    assert "requests of 2 users have this id: 1a2b3c4d, 0f0f0f0f. --asker selects one" in told.err


def test_one_of_them_can_be_chosen(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log(*ASKED, *BY_ANOTHER)
    assert main(["trace", REQUEST, "--asker", "0F0F0F0F", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["asker"], told["code"], len(told["lines"])) == ("0f0f0f0f", "cancelled", 2)


def test_an_asker_that_no_line_names_is_status_1(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log(*ASKED)
    assert main(["trace", REQUEST, "--asker", "ffffffff"]) == 1
    assert "has the asker ffffffff: its asker is 1a2b3c4d" in capsys.readouterr().err


def test_the_end_is_found_behind_more_lines_than_a_query_returns(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(request_trace, "MOST_LINES", 4)
    monkeypatch.setattr(trace, "MOST_LINES", 4)
    resumes = [step("resumed", after=n, last_seq=n, outcome="live", function_request_id="p") for n in range(9)]
    house.log(*STORY[:2], *resumes, STORY[2])
    assert main(["trace", REQUEST, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["cut"]) == ("complete", True)
    steps = [line["step"] for line in told["lines"]]
    assert sorted(steps) == ["accepted", "attempt", "complete", "resumed", "resumed"]
    assert steps[-1] == "complete"


def test_numbers_that_json_has_no_word_for_are_left_out(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log(f'{{"request_id": "{REQUEST}", "step": "resumed", "after": Infinity, "last_seq": 1e999, "x": NaN}}')
    assert main(["trace", REQUEST, "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["lines"]
    assert (line["after"], line["last_seq"], line["x"]) == (None, None, None)


def test_a_request_that_no_line_names_is_status_1(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log(*STORY)
    assert main(["trace", ANOTHER, "--since", "30m"]) == 1
    assert "no log line of the last 30 minutes names request" in capsys.readouterr().err


def test_what_is_older_than_the_window_is_not_found(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    path = house.logs / f"{house.outputs['Function']}.log"
    long_ago = datetime.fromtimestamp(time.time() - 7200, UTC).isoformat(timespec="milliseconds")
    path.write_text(f"{long_ago} 2026/11/21/[$LATEST]0123 {json.dumps(STORY[0])}\n")
    assert main(["trace", REQUEST, "--since", "1h"]) == 1
    assert main(["trace", REQUEST, "--since", "3h"]) == 0
    assert "accepted" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["trace"], ["trace", REQUEST, "--since", "soon"], ["trace", REQUEST, "--asker", "me"], ["breakers", "shut", "x"]],
)
def test_a_command_line_that_is_not_valid_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("arguments", [["trace", "6d68"], ["breakers", "close"], ["breakers", "list", "index"]])
def test_a_value_that_is_not_valid_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("cicada: ")


def test_a_deployment_without_log_groups_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CICADA_STACK_PREFIX", "Nothing")
    assert main(["trace", REQUEST]) == 1
    assert "no log groups in stacks Nothing-…" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "told"),
    [("logs.fail_query", "the query ended with Failed"), ("logs.limit", "LimitExceededException")],
)
def test_a_query_that_fails_is_status_1_and_says_why(
    house: House, fault: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    house.log(*STORY)
    house.faults.arm(fault)
    try:
        assert main(["trace", REQUEST]) == 1
    finally:
        house.faults.disarm()
    assert told in capsys.readouterr().err


def test_a_throttled_call_is_made_again(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.log(*STORY)
    house.faults.arm("logs.throttle", times=2)
    assert main(["trace", REQUEST]) == 0
    assert "Answered by rag" in capsys.readouterr().out


def test_a_query_that_runs_too_long_is_stopped() -> None:
    client, clock = _Endless(), iter(range(0, 10_000, 30))
    waits: list[float] = []
    queries = Queries(client, monotonic=lambda: float(next(clock)), sleep=waits.append)
    with pytest.raises(LogsUnavailable, match="use a shorter --since"):
        queries.lines(["g"], "fields @message", start_s=0.0, end_s=1.5)
    assert client.stopped == ["q-1"]
    assert client.window == (0, 2)
    assert waits == sorted(waits)
    assert len(waits) > 1


class _Endless:
    """A CloudWatch whose query never ends."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.window = (0, 0)

    def start_query(self, *, startTime: int, endTime: int, **_: Any) -> dict[str, str]:  # noqa: N803 - boto3's names
        self.window = startTime, endTime
        return {"queryId": "q-1"}

    def get_query_results(self, **_: Any) -> dict[str, Any]:
        return {"status": "Running", "results": []}

    def stop_query(self, *, queryId: str) -> None:  # noqa: N803 - boto3's name
        self.stopped.append(queryId)
        raise ClientError({"Error": {"Code": "InvalidParameterException"}}, "StopQuery")


# --- breakers ---


@pytest.fixture
def store(house: House) -> Iterator[DynamoDbBreakerStore]:
    yield house.store
    client = house.services.client("dynamodb")
    for name in house.store.read():
        client.delete_item(TableName=house.outputs["RequestsTable"], Key={"pk": {"S": "breakers"}, "sk": {"S": name}})


def now_ms() -> int:
    return int(time.time() * 1000)


def opened(**changes: Any) -> Breaker:
    now = now_ms()
    told = {
        "revision": now,
        "open_since_ms": now - 9_000,
        "openings": 2,
        "retry_at_ms": now + 60_000,
        "cause": "model_busy",
    }
    return Breaker(**{**told, **changes})


def test_breakers_are_listed_with_their_states(store: DynamoDbBreakerStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.swap("model:m-1", Breaker(), opened())
    store.swap("index", Breaker(), opened(retry_at_ms=now_ms() - 1))
    store.swap("cache", Breaker(), opened(retry_at_ms=now_ms() - 1, probe="w-1", probe_until_ms=now_ms() + 60_000))
    store.swap("embedder:e-1", Breaker(), Breaker(revision=1, failures_ms=(now_ms(),)))
    assert main(["breakers"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [
        ["cache", "half open"],
        ["embedder:e-1", "closed"],
        ["index", "half open"],
        ["model:m-1", "open"],
    ]
    assert rows[0][2].endswith("probe in progress")
    assert rows[1][2] == "1 recent failure"
    assert rows[2][2].endswith("next call is a probe")
    assert ", opened 2 times, cause model_busy, next probe in " in rows[3][2]


def test_breakers_are_listed_for_machines(store: DynamoDbBreakerStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.swap("index", Breaker(), opened())
    assert main(["breakers", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["stage"], told["openings"], told["recentFailures"]) == ("index", "open", 2, 0)


@pytest.mark.usefixtures("store")
def test_where_nothing_has_failed_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["breakers"]) == 0
    assert "All breakers are closed" in capsys.readouterr().err


def test_a_breaker_is_closed_by_hand(store: DynamoDbBreakerStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.swap("index", Breaker(), opened())
    before = store.read()["index"].revision
    assert main(["breakers", "close", "index"]) == 0
    after = store.read()["index"]
    assert after.stage(now_ms()) == "closed"
    assert after.revision > before
    assert "Closed index." in capsys.readouterr().out


@pytest.mark.usefixtures("store")
def test_a_breaker_that_is_not_there_cannot_be_closed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["breakers", "close", "index"]) == 2
    assert "unknown breaker 'index'" in capsys.readouterr().err


def test_a_store_that_fails_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["breakers"], ["breakers", "close", "index"]):
        assert main([*command, "--table", "no-such-table"]) == 1
        assert "ResourceNotFoundException" in capsys.readouterr().err
