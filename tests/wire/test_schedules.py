"""Schedules in the local cloud: what is deployed runs when it is due, and when somebody asks for it."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada.delivery.dynamodb import DynamoDbLog
from cicada.delivery.record import Question, RequestHead, RequestKey
from cicada.identity import ANONYMOUS
from cicada.protocol.events import Accepted, Complete, dump_event, load_event
from cicada_local import schedules
from cicada_local.calls import CallLog
from cicada_local.control import Control
from cicada_local.faults import Faults
from cicada_local.functions import InvokeResult
from cicada_local.functions.errors import ResourceNotFound
from cicada_local.rule_targets import RuleTargets, Target
from cicada_local.schedules import ScheduledRule, Schedules, deployed_rules
from cicada_local.testing import LocalCloud
from tests.wire.local_services import ACCOUNT_ID, Services, deployed_stack, running_services

FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:upkeep"
RULE_ARN = f"arn:aws:events:us-east-1:{ACCOUNT_ID}:rule/hourly"
START = datetime(2026, 3, 1, 10, 20, 30, tzinfo=UTC)


def rule(expression: str = "rate(1 hour)", *targets: Target) -> ScheduledRule:
    return ScheduledRule("hourly", RULE_ARN, expression, targets or (Target(FUNCTION),))


class Functions:
    """Notes the invocations; ``answer`` is what a function does."""

    def __init__(self) -> None:
        self.invoked: list[tuple[str, str, Any]] = []
        self.answer = InvokeResult(200, b'{"merged": 3}')
        self.refuses: Exception | None = None

    async def invoke(self, name_or_arn: str, payload: bytes, *, invocation_type: str) -> InvokeResult:
        if self.refuses is not None:
            raise self.refuses
        self.invoked.append((name_or_arn, invocation_type, json.loads(payload)))
        return self.answer


class House:
    """Schedules with a clock, rules and functions that a test holds in hand."""

    def __init__(self) -> None:
        self.now = START
        self.rules = [rule()]
        self.functions = Functions()
        self.counted: list[tuple[str, str]] = []
        self.schedules = Schedules(
            lambda: self.rules,
            self.functions.invoke,
            now=lambda: self.now,
            targets=RuleTargets(self.functions.invoke, count=lambda metric, rule: self.counted.append((metric, rule))),
        )

    def pass_time(self, **time: float) -> int:
        """Go on in time, run what is due, and return how many functions were invoked for that."""
        self.now += timedelta(**time)
        before = len(self.functions.invoked)
        asyncio.run(self.schedules.run_due())
        return len(self.functions.invoked) - before

    def due(self) -> str | None:
        (described,) = self.schedules.describe()
        due: str | None = described["due"]
        return due


@pytest.fixture
def house() -> House:
    return House()


# --- when ---


def test_a_rate_runs_one_period_after_it_was_deployed_and_then_by_its_period(house: House) -> None:
    assert house.pass_time(seconds=0) == 0
    assert house.pass_time(minutes=59, seconds=59) == 0
    assert house.pass_time(seconds=1) == 1
    assert house.pass_time(seconds=1) == 0
    assert house.pass_time(minutes=59, seconds=59) == 1


def test_runs_do_not_drift_from_their_period(house: House) -> None:
    house.pass_time(seconds=0)
    house.pass_time(hours=1, seconds=40)
    assert house.due() == "2026-03-01T12:20:30+00:00"


def test_runs_that_were_missed_are_made_up_for_by_one(house: House) -> None:
    house.pass_time(seconds=0)
    assert house.pass_time(hours=9, minutes=5) == 1
    assert house.due() == "2026-03-01T20:20:30+00:00"


def test_a_cron_expression_runs_at_its_minutes(house: House) -> None:
    house.rules = [rule("cron(0/30 9-11 ? * SUN *)")]
    assert house.pass_time(seconds=0) == 0
    assert house.pass_time(minutes=9, seconds=30) == 1
    assert house.due() == "2026-03-01T11:00:00+00:00"


def test_what_will_never_be_due_again_is_let_be(house: House) -> None:
    house.rules = [rule("cron(21 10 1 3 ? 2026)")]
    house.pass_time(seconds=0)
    assert house.pass_time(seconds=30) == 1
    assert house.due() is None
    assert house.pass_time(days=800) == 0


def test_a_changed_expression_and_a_rule_that_was_gone_begin_anew(house: House) -> None:
    house.pass_time(seconds=0)
    house.pass_time(minutes=30)
    house.rules = [rule("rate(40 minutes)")]
    assert house.pass_time(minutes=30) == 0
    assert house.pass_time(minutes=40) == 1
    house.rules = []
    assert house.pass_time(minutes=40) == 0
    house.rules = [rule("rate(40 minutes)")]
    assert house.pass_time(minutes=1) == 0
    assert house.pass_time(minutes=40) == 1


def test_the_schedules_go_on_when_the_rules_could_not_be_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "TICK_S", 0)
    outcomes: list[Exception | asyncio.CancelledError | None] = [
        RuntimeError("the rules are being changed"),
        None,
        None,
        asyncio.CancelledError(),
    ]

    def read() -> list[ScheduledRule]:
        house.now += timedelta(hours=1)
        if (failure := outcomes.pop(0)) is not None:
            raise failure
        return [rule()]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Schedules(read, house.functions.invoke, now=lambda: house.now).run())
    assert len(house.functions.invoked) == 1


# --- what ---


def test_a_function_gets_eventbridges_event_asynchronously(house: House) -> None:
    house.pass_time(seconds=0)
    house.pass_time(hours=1, seconds=20)
    ((function, invocation_type, event),) = house.functions.invoked
    assert (function, invocation_type) == (FUNCTION, "Event")
    assert len(event.pop("id")) == 36
    assert event == {
        "version": "0",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT_ID,
        "time": "2026-03-01T11:20:30Z",
        "region": "us-east-1",
        "resources": [RULE_ARN],
        "detail": {},
    }


def test_a_targets_own_input_takes_the_events_place(house: House) -> None:
    house.rules = [rule("rate(1 hour)", Target(FUNCTION, '{"sweep": true}'), Target(FUNCTION + "2"))]
    house.pass_time(seconds=0)
    house.pass_time(hours=1)
    first, second = house.functions.invoked
    assert first == (FUNCTION, "Event", {"sweep": True})
    assert (second[0], second[2]["source"]) == (FUNCTION + "2", "aws.events")


def test_an_invocation_that_is_refused_does_not_end_the_schedule(house: House) -> None:
    house.functions.refuses = ResourceNotFound("Function not found")
    house.pass_time(seconds=0)
    assert house.pass_time(hours=1) == 0
    house.functions.refuses = None
    assert house.pass_time(hours=1) == 1
    name = house.rules[0].name
    assert house.counted == [("FailedInvocations", name), ("Invocations", name)]


# --- what is deployed ---


@pytest.fixture(scope="module")
def controlled() -> House:
    return House()


@pytest.fixture(scope="module")
def services(controlled: House) -> Iterator[Services]:
    schedules.install()
    nothing: Any = None
    control = Control(
        faults=Faults(),
        calls=CallLog(),
        functions=nothing,
        gateway=nothing,
        executions=list,
        schedules=controlled.schedules,
        health=dict,
        save=lambda: None,
        stop=lambda: None,
    )
    with running_services(control) as running:
        yield running


def stack(**properties: Any) -> dict[str, Any]:
    targets = [{"Id": "Target0", "Arn": FUNCTION, "Input": "{}"}, {"Id": "Target1", "Arn": "arn:aws:sqs:::queue"}]
    return {"Resources": {"Rule": {"Type": "AWS::Events::Rule", "Properties": {"Targets": targets, **properties}}}}


def test_deployed_rules_are_found_with_the_functions_they_invoke(services: Services) -> None:
    with deployed_stack(services, "scheduled", stack(Name="sweep", ScheduleExpression="rate(5 minutes)")):
        (found,) = deployed_rules()
        assert (found.name, found.expression, found.targets) == ("sweep", "rate(5 minutes)", (Target(FUNCTION, "{}"),))
        assert found.arn == f"arn:aws:events:us-east-1:{ACCOUNT_ID}:rule/sweep"
        services.client("events").disable_rule(Name="sweep")
        assert deployed_rules() == []
    assert deployed_rules() == []


def test_rules_for_events_are_no_schedules(services: Services) -> None:
    with deployed_stack(services, "events", stack(EventPattern={"source": ["aws.s3"]})):
        assert deployed_rules() == []


def test_an_expression_that_eventbridge_refuses_cannot_be_deployed(services: Services) -> None:
    with pytest.raises(ClientError, match="ScheduleExpression is not valid"):
        services.client("events").put_rule(Name="wrong", ScheduleExpression="rate(1 hours)")
    with deployed_stack(services, "wrong", stack(ScheduleExpression="cron(0 0 * * * *)")) as description:
        assert description["StackStatus"] == "ROLLBACK_COMPLETE"
    assert deployed_rules() == []


# --- the control endpoints ---


def request(services: Services, method: str, path: str) -> tuple[int, Any]:
    call = urllib.request.Request(f"{services.endpoint_url}/_cicada/{path}", method=method)
    try:
        with urllib.request.urlopen(call, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_schedules_are_told(services: Services) -> None:
    told = {
        "name": "hourly",
        "expression": "rate(1 hour)",
        "functions": ["upkeep"],
        "due": "2026-03-01T11:20:30+00:00",
    }
    assert request(services, "GET", "schedules") == (200, [told])


def test_a_schedule_can_be_run_out_of_turn(services: Services, controlled: House) -> None:
    assert request(services, "POST", "schedules/hourly") == (200, [{"function": "upkeep", "result": {"merged": 3}}])
    assert controlled.functions.invoked[-1][:2] == (FUNCTION, "RequestResponse")
    assert controlled.due() == "2026-03-01T11:20:30+00:00"


def test_what_went_wrong_with_a_run_is_told(services: Services, controlled: House) -> None:
    failed = {"errorType": "IndexCorrupt", "errorMessage": "damaged"}
    controlled.functions.answer = InvokeResult(200, json.dumps(failed).encode(), function_error="Unhandled")
    assert request(services, "POST", "schedules/hourly") == (200, [{"function": "upkeep", "error": failed}])
    controlled.functions.refuses = ResourceNotFound("Function not found: upkeep")
    refused = {"errorType": "ResourceNotFound", "errorMessage": "Function not found: upkeep"}
    assert request(services, "POST", "schedules/hourly") == (200, [{"function": "upkeep", "error": refused}])


def test_a_schedule_that_is_not_deployed_is_not_found(services: Services) -> None:
    assert request(services, "POST", "schedules/weekly")[0] == 404


# --- the deployed thing ---


def told(cloud: LocalCloud) -> dict[str, tuple[str, list[str]]]:
    schedules = cloud.control("GET", "schedules")
    return {schedule["name"]: (schedule["expression"], schedule["functions"]) for schedule in schedules}


def test_the_upkeep_of_the_index_is_deployed_with_its_schedule_and_runs(deployed: LocalCloud) -> None:
    expression, functions = told(deployed)["Cicada-index-maintenance"]
    assert expression == "rate(1 day)"
    (outcome,) = deployed.control("POST", "schedules/Cicada-index-maintenance")
    assert outcome["function"] == functions[0]
    assert outcome["result"] == {
        "merged": 0,
        "publications": 0,
        "collected_objects": 0,
        "collected_bytes": 0,
        "put_off": [],
        "too_large": [],
    }


def test_the_recovery_sweep_is_deployed_with_its_schedule_and_runs(deployed: LocalCloud) -> None:
    expression, functions = told(deployed)["Cicada-recovery-sweep"]
    assert expression == "rate(2 minutes)"
    (outcome,) = deployed.control("POST", "schedules/Cicada-recovery-sweep")
    assert outcome["function"] == functions[0]
    assert outcome["result"] == {"looked_at": 0, "restarted": 0, "ended": 0, "settled": 0, "failed": 0}


def test_a_request_that_was_never_started_is_started_by_the_sweep_and_answered(deployed: LocalCloud) -> None:
    log = DynamoDbLog(deployed.client("dynamodb"), deployed.outputs["RequestsTable"])
    accepted = Accepted(route="direct", confidence=1.0, reasoning="a greeting", strategy="direct")
    now_s = int(time.time())
    key = RequestKey(ANONYMOUS, "r-orphan-1")
    head = RequestHead(
        key,
        Question("Hello!"),
        origin="frame",
        accepted_at_ms=(now_s - 60) * 1000,
        expires_at=now_s + 3600,
        lease_until=now_s - 45,
    )
    log.create(head, dump_event(accepted))
    (outcome,) = deployed.control("POST", "schedules/Cicada-recovery-sweep")
    assert outcome["result"] == {"looked_at": 1, "restarted": 1, "ended": 0, "settled": 0, "failed": 0}
    while (head := log.head(key)).state == "open":
        time.sleep(0.05)
    _, entries = log.read(key)
    complete = load_event(entries[-1].body)
    assert (head.state, head.takeovers) == ("complete", 1)
    assert isinstance(complete, Complete)
    assert complete.answered_by == "direct"
    (outcome,) = deployed.control("POST", "schedules/Cicada-recovery-sweep")
    assert outcome["result"]["looked_at"] == 0
