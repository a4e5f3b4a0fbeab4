"""All checks together: which are made when, side by side and in bounded time, and what is reported."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from cicada.index.ports import ObjectStore
from cicada_cli.doctor.calls import CallFailed, Failure
from cicada_cli.doctor.changes import check_changes, read_assembly
from cicada_cli.doctor.examine import Ports, Report, Wanted, examine
from cicada_cli.doctor.findings import Finding, Status, worst
from cicada_cli.doctor.running import Check, run_all
from cicada_cli.doctor.settings import SettingsRead, read_settings
from cicada_cli.doctor.view import as_json, lines
from cicada_cli.doctor.web import Page
from tests.unit.test_doctor_account import described

ROOT = Path(__file__).resolve().parents[2]
NOVA = "amazon.nova-lite-v1:0"
AVAILABLE = {
    "agreementAvailability": {"status": "AVAILABLE"},
    "authorizationStatus": "AUTHORIZED",
    "entitlementAvailability": "AVAILABLE",
    "regionAvailability": "AVAILABLE",
}
ANSWERS: Mapping[str, Any] = {
    "sts.GetCallerIdentity": {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/me"},
    "ssm.GetParameter": {"Parameter": {"Value": "33"}},
    "lambda.GetAccountSettings": {
        "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 1000}
    },
    "apigateway.GetAccount": {},
    "lambda.ListFunctions": {},
    "logs.DescribeLogGroups": {},
    "events.ListRules": {},
    "stepfunctions.ListStateMachines": {},
    "s3.ListBuckets": {},
    "dynamodb.ListTables": {},
    "cognito-idp.ListUserPools": {},
    "cognito-idp.DescribeUserPoolDomain": {"DomainDescription": {}},
    "bedrock.GetFoundationModelAvailability": AVAILABLE,
    "bedrock-runtime.Converse": {"usage": {"inputTokens": 1, "outputTokens": 1}, "metrics": {"latencyMs": 9}},
    "events.DescribeRule": {"State": "ENABLED"},
    "cloudwatch.GetMetricStatistics": {},
    "cloudwatch.DescribeAlarms": {},
}
STACKS = {
    f"Cicada-{part}": {"StackName": f"Cicada-{part}", "StackStatus": "CREATE_COMPLETE"}
    for part in ("Data", "SignIn", "Answering", "Ingest", "Integrators")
} | {
    "Cicada-Gateway": {
        "StackName": "Cicada-Gateway",
        "StackStatus": "UPDATE_COMPLETE",
        "Outputs": [
            {"OutputKey": name, "OutputValue": value}
            for name, value in {"WebSocketUrl": "wss://x/live", "AuthMode": "none", "IndexBucket": "b"}.items()
        ],
    }
}


class Account:
    """Answers what an account would, and notes what it was asked."""

    def __init__(self, answers: Mapping[str, Any] = ANSWERS, stacks: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers)
        self.stacks = stacks or {}
        self.asked: list[str] = []

    def __call__(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        name = f"{service}.{operation}"
        self.asked.append(name)
        if name == "cloudformation.DescribeStacks":
            if params["StackName"] not in self.stacks:
                raise CallFailed(Failure.REFUSED, service, operation, "ValidationError", "Stack x does not exist")
            return {"Stacks": [self.stacks[params["StackName"]]]}
        found = self.answers[name]
        if isinstance(found, CallFailed):
            raise found
        return cast(Mapping[str, Any], found)


class Empty:
    def read(self, key: str) -> Any:
        from cicada.index.ports import ObjectMissing

        raise ObjectMissing(key)


def look(account: Account, read: SettingsRead | None = None, **wanted: Any) -> Report:
    ports = Ports(
        calls=account,
        elsewhere=account,
        fetch=lambda url: Page(200, {}, b"{}"),
        store=lambda bucket: cast(ObjectStore, Empty()),
        read_settings=lambda number: read or SettingsRead("cdk.json", described(models={"models.directModelId": NOVA})),
        token=lambda url: None,
        ask=lambda url, token: (_ for _ in ()).throw(TimeoutError()),
    )
    return examine(Wanted(project=ROOT, region="us-east-1", **wanted), ports, "Cicada")


def statuses(report: Report) -> dict[str, Status]:
    return {one.check: one.status for one in report.findings if one.check != "tools"}


def test_an_empty_account_is_ready() -> None:
    report = look(Account())
    assert (report.stage, report.account, report.prefix) == ("before", "111122223333", "Cicada")
    assert statuses(report) == dict.fromkeys(
        ("settings", "credentials", "bootstrap", "stacks", "leftovers", "concurrency", "api-logs", "model"), Status.OK
    )


def test_a_deployment_is_looked_at_where_there_is_one() -> None:
    report = look(Account(stacks=STACKS))
    assert report.stage == "deployed"
    found = statuses(report)
    assert (found["drift"], found["index"], found["question"]) == (Status.UNKNOWN, Status.WARNING, Status.PROBLEM)
    assert {"sweep", "alarms", "page", "sign-in"} <= found.keys()
    assert "question" not in statuses(look(Account(stacks=STACKS), with_question=False))
    assert look(Account(stacks=STACKS), stage="before").stage == "before"


def test_a_deployment_that_is_missed_is_a_problem() -> None:
    report = look(Account(), stage="deployed")
    assert worst(report.findings) is Status.PROBLEM
    assert any(one.message == "not deployed" for one in report.findings)


def test_without_credentials_nothing_else_of_aws_is_asked() -> None:
    expired = CallFailed(Failure.EXPIRED, "sts", "GetCallerIdentity", "ExpiredToken", "expired")
    account = Account({"sts.GetCallerIdentity": expired})
    report = look(account)
    assert set(account.asked) == {"sts.GetCallerIdentity"}
    assert statuses(report) == {"settings": Status.OK, "credentials": Status.PROBLEM}


def test_what_one_check_may_not_ask_is_unknown_and_the_others_go_on() -> None:
    denied = CallFailed(Failure.DENIED, "lambda", "GetAccountSettings", "AccessDeniedException", "no")
    report = look(Account({**ANSWERS, "lambda.GetAccountSettings": denied}))
    (finding,) = [one for one in report.findings if one.check == "concurrency"]
    assert (finding.status, finding.permission) == (Status.UNKNOWN, "lambda:GetAccountSettings")
    assert statuses(report)["model"] is Status.OK


def test_settings_that_are_wrong_leave_the_account_checked() -> None:
    report = look(Account(), SettingsRead("cdk.json", error="models: wrong"))
    assert statuses(report).keys() == {"settings", "credentials", "bootstrap", "stacks", "leftovers"}
    assert worst(report.findings) is Status.PROBLEM


def test_the_doctor_only_reads_and_asks_models() -> None:
    """GetMetricStatistics, Converse and the question are the only calls that cost anything."""
    account = Account(stacks=STACKS)
    look(account)
    verbs = ("Get", "List", "Describe", "Converse", "InvokeModel")
    assert all(name.partition(".")[2].startswith(verbs) for name in account.asked)


def test_only_the_stacks_are_looked_at_after_a_failure() -> None:
    failed = {"Cicada-Data": {"StackName": "Cicada-Data", "StackStatus": "ROLLBACK_COMPLETE"}}
    report = look(Account(stacks=failed), only_stacks=True)
    assert statuses(report).keys() == {"settings", "credentials", "stacks"}


# --- running ---


def test_checks_run_side_by_side_and_a_late_one_is_left_to_itself() -> None:
    met = threading.Barrier(2)
    never = threading.Event()

    def meets() -> list[Finding]:
        met.wait(10)
        return [Finding("a", Status.OK, "it", "met")]

    def hangs() -> list[Finding]:
        never.wait()
        return []

    found = run_all([Check("a", "it", meets), Check("b", "it", meets), Check("c", "late", hangs, timeout_s=0.05)])
    never.set()
    assert [(one.check, one.status) for one in found] == [("a", Status.OK), ("a", Status.OK), ("c", Status.UNKNOWN)]


def test_a_check_that_is_wrong_hides_nothing() -> None:
    def breaks() -> list[Finding]:
        raise KeyError("Parameter")

    (finding,) = run_all([Check("a", "it", breaks)])
    assert (finding.status, "KeyError" in finding.message) == (Status.UNKNOWN, True)


# --- the settings ---


def test_a_projects_settings_are_read_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # it would offer this project's stacks to any folder
    read = read_settings(ROOT, "cdk.local.json", account=None, region="us-east-1")
    assert read.described is not None
    assert read.described.models["models.generationModelId"] == "local.extractive"
    wrong = read_settings(ROOT, "no-such-file.json", account=None, region=None)
    assert "no-such-file.json" in (wrong.error or "")
    assert read_settings(None, None, account=None, region=None).absent
    assert "cannot read" in (read_settings(tmp_path, None, account=None, region=None).error or "")


# --- the report ---

FOUND = Report(
    "before",
    "us-east-1",
    "111122223333",
    "Cicada",
    (
        Finding("credentials", Status.OK, "us-east-1", "account 111122223333"),
        Finding("model", Status.UNKNOWN, NOVA, "you may not ask for it", "a role", "bedrock:GetInferenceProfile"),
        Finding("stacks", Status.PROBLEM, "Cicada-Data\x1b[2J", "it failed:\n  because", "make deploy"),
    ),
)


def test_the_report_as_json_keeps_its_shape() -> None:
    assert json.loads(json.dumps(as_json(FOUND))) == {
        "formatVersion": 1,
        "stage": "before",
        "status": "problem",
        "region": "us-east-1",
        "account": "111122223333",
        "stackPrefix": "Cicada",
        "findings": [
            {"check": "credentials", "status": "ok", "subject": "us-east-1", "message": "account 111122223333"},
            {
                "check": "model",
                "status": "unknown",
                "subject": NOVA,
                "message": "you may not ask for it",
                "mend": "a role",
                "permission": "bedrock:GetInferenceProfile",
            },
            {
                "check": "stacks",
                "status": "problem",
                "subject": "Cicada-Data\x1b[2J",
                "message": "it failed:\n  because",
                "mend": "make deploy",
            },
        ],
    }


def test_the_report_for_people_has_a_line_each_and_what_to_do() -> None:
    told = lines(FOUND)
    assert told[0] == "ok  credentials  us-east-1: account 111122223333"
    assert told[3:6] == ["✗   stacks  Cicada-Data: it failed:", "      because", "    → make deploy"]
    assert told[-1] == "Not ready to deploy. 1 problem, 0 warnings, 1 unknown, 1 ok."


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ((), Status.OK),
        ((Status.OK, Status.UNKNOWN), Status.UNKNOWN),
        ((Status.WARNING, Status.UNKNOWN), Status.WARNING),
    ],
)
def test_the_worst_status_is_that_of_the_report(found: tuple[Status, ...], status: Status) -> None:
    assert worst([Finding("a", one, "it", "so") for one in found]) is status


def test_every_permission_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "cicada_cli" / "doctor").glob("*.py"))
    asked = re.findall(r'(?:calls\(|_pages\(\s*calls, )\s*"([a-z0-9-]+)",\s*"([A-Z][A-Za-z]+)"', sources)
    needed = {CallFailed(Failure.DENIED, service, operation, "", "").permission for service, operation in asked}
    page = (ROOT / "docs" / "cli.md").read_text()
    section = page.partition("## `cicada doctor`")[2].partition("\n### ")[0]
    documented = set(re.findall(r"`([a-z0-9-]+:[A-Z][A-Za-z]+)`", section))
    of_the_index = {"s3:GetObject", "s3:ListBucket"}
    assert needed | of_the_index == documented | {"sts:GetCallerIdentity"}


def test_what_deployed_stacks_do_not_bear_is_a_problem(tmp_path: Path) -> None:
    def table(key: str) -> dict[str, Any]:
        schema = [{"AttributeName": key, "KeyType": "HASH"}]
        properties = {"KeySchema": schema, "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}]}
        return {"Resources": {"Requests": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}}

    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "Cicada-Data.template.json"}}
    manifest = {"artifacts": {"Cicada-Data": artifact, "Tree": {"type": "cdk:tree"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "Cicada-Data.template.json").write_text(json.dumps(table("other")))
    account = Account({"cloudformation.GetTemplate": {"TemplateBody": table("pk")}})
    stacks = {"Cicada-Data": STACKS["Cicada-Data"], "Cicada-Page": {"StackStatus": "ROLLBACK_COMPLETE"}}
    found = list(check_changes(account, stacks, read_assembly(tmp_path)))
    assert account.asked == ["cloudformation.GetTemplate"], "of the stack whose resources are there"
    assert Status.PROBLEM in {one.status for one in found}
    account.answers["cloudformation.GetTemplate"] = {"TemplateBody": table("other")}
    (fine,) = check_changes(account, stacks, read_assembly(tmp_path))
    assert (fine.check, fine.status) == ("changes", Status.OK)


def test_every_check_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text().partition("| check |")[2].partition("\n\n")[0]
    documented = set(re.findall(r"^\| `([a-z-]+)` \| ", page, re.MULTILINE))
    assert {one.check for one in look(Account(stacks=STACKS)).findings} | {"changes"} == documented
