"""The checks of a deployment. Answers are held to botocore's service models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cicada import __version__
from cicada.errors import IndexUnavailable
from cicada.index.ports import ObjectStore
from cicada_cli.doctor import tools
from cicada_cli.doctor.findings import Finding, Status
from cicada_cli.doctor.index import check_index
from cicada_cli.doctor.operations import check_alarms, check_sweep
from cicada_cli.doctor.page import check_page
from cicada_cli.doctor.question import check_question
from cicada_cli.doctor.settings import SettingsRead, check_drift, check_settings
from cicada_cli.doctor.sign_in import check_sign_in
from cicada_cli.doctor.stacks import check_release
from cicada_cli.doctor.web import Page, PageUnavailable, fetch
from cicada_client import Answer, Unauthorized
from cicada_client.errors import ConnectionLost
from tests.support.stubbed_aws import Refusal, Step, StubbedAws
from tests.unit.test_doctor_account import described, only

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
PAGE, SOCKET = "https://d111.cloudfront.net", "wss://abc.execute-api.us-east-1.amazonaws.com/live"
ISSUER, POOL, CLIENT = "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_AbCdEf", "us-east-1_AbCdEf", "client1"
OUTPUTS = {
    "PageUrl": PAGE,
    "WebSocketUrl": SOCKET,
    "AuthMode": "cognito",
    "Issuer": ISSUER,
    "ClientId": CLIENT,
    "UserPoolId": POOL,
}


# --- settings ---


def test_settings_that_cannot_be_deployed_are_told_in_the_words_of_a_synthesis() -> None:
    finding = only(check_settings(SettingsRead("cdk.json", error="cdk.json: not ready to deploy.\n  models: wrong")))
    assert finding.status is Status.PROBLEM
    assert "models: wrong" in finding.message
    assert only(check_settings(SettingsRead("cdk.json", absent=True))).status is Status.UNKNOWN


def test_a_setting_that_was_changed_since_the_deployment_is_named() -> None:
    read = SettingsRead("cdk.json", described(record={"models": "aaa", "cache": "bbb", "new": "c"}))
    finding = only(check_drift(read, {"Settings": "models=aaa cache=zzz old=y"}))
    assert (finding.status, finding.message) == (Status.WARNING, "changed since the deployment: cache, new, old")
    assert only(check_drift(read, {"Settings": "models=aaa cache=bbb new=c"})).status is Status.OK
    assert only(check_drift(read, {})).status is Status.UNKNOWN


# --- tools ---


def test_tools_that_are_old_or_missing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = {"packages": {"node_modules/aws-cdk": {"version": "2.1148.1"}}}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))

    def found(node: str | None, says: str = "") -> dict[str, Finding]:
        monkeypatch.setattr(shutil, "which", lambda name: node)
        monkeypatch.setattr(tools, "_output", lambda command: says)
        return {one.subject: one for one in tools.check_tools(tmp_path)}

    assert found(None)["Node.js"].status is Status.PROBLEM
    assert found("/bin/node", "v18.20.0")["Node.js"].status is Status.PROBLEM
    assert found("/bin/node", "v20.20.2")["Node.js"].status is Status.WARNING
    assert found("/bin/node", "v24.1.0")["Node.js"].status is Status.OK
    assert found("/bin/node", "no such thing")["Node.js"].status is Status.UNKNOWN
    assert found(None)["CDK CLI"].mend == "run make setup"
    package = tmp_path / "node_modules" / "aws-cdk" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text('{"version": "2.1.0"}')
    assert "2.1148.1 is pinned" in found(None)["CDK CLI"].message
    package.write_text('{"version": "2.1148.1"}')
    assert found(None)["CDK CLI"].status is Status.OK


# --- the sweep ---


def sums(*at: datetime) -> Step:
    return "cloudwatch.GetMetricStatistics", {"Datapoints": [{"Timestamp": one, "Sum": 1.0} for one in at]}


def sweep(*steps: Step, made_at: datetime | None = None) -> Finding:
    rule: Step = ("events.DescribeRule", {"Name": "Cicada-recovery-sweep", "State": "ENABLED"})
    return only(check_sweep(StubbedAws(rule, *steps), "Cicada", 2, made_at=made_at, now=lambda: NOW))


def test_the_sweeps_last_run_is_told() -> None:
    finding = sweep(sums(NOW - timedelta(minutes=9), NOW - timedelta(minutes=3)), sums())
    assert (finding.status, finding.message) == (Status.OK, "every 2 minutes; last run 3 minutes ago")


def test_a_sweep_that_does_not_run_is_told() -> None:
    assert sweep(sums(), sums()).status is Status.WARNING
    assert sweep(sums(), sums(), made_at=NOW - timedelta(minutes=4)).status is Status.OK
    assert "1 runs failed to start" in sweep(sums(), sums(NOW)).message
    off = StubbedAws(("events.DescribeRule", {"Name": "Cicada-recovery-sweep", "State": "DISABLED"}))
    finding = only(check_sweep(off, "Cicada", 2))
    assert finding.mend == "aws events enable-rule --name Cicada-recovery-sweep"


# --- alarms ---


def alarm(name: str, state: str) -> dict[str, Any]:
    topic = "arn:aws:sns:us-east-1:111122223333:Cicada-Gateway-Topic"
    return {
        "AlarmName": f"Cicada-{name}",
        "AlarmDescription": "Something failed",
        "StateValue": state,
        "AlarmActions": [topic],
    }


def subscribed(arn: str) -> Step:
    return "sns.ListSubscriptionsByTopic", {"Subscriptions": [{"SubscriptionArn": arn, "Endpoint": "o@example.org"}]}


def test_no_alarms_are_said_to_be_none() -> None:
    finding = only(check_alarms(StubbedAws(("cloudwatch.DescribeAlarms", {"MetricAlarms": []})), "Cicada"))
    assert finding.status is Status.OK
    assert "alarmEmail" in finding.message


def test_alarms_that_ring_and_an_address_that_is_not_confirmed_are_told() -> None:
    alarms: Step = ("cloudwatch.DescribeAlarms", {"MetricAlarms": [alarm("a", "ALARM"), alarm("b", "OK")]})
    rings, address = check_alarms(StubbedAws(alarms, subscribed("PendingConfirmation")), "Cicada")
    assert (rings.subject, rings.status) == ("Cicada-a", Status.PROBLEM)
    assert (address.subject, address.status) == ("o@example.org", Status.WARNING)


def test_quiet_alarms_are_counted_without_those_of_another_deployment() -> None:
    found = [alarm("a", "OK"), alarm("b", "INSUFFICIENT_DATA"), alarm("2-a", "ALARM")]
    alarms: Step = ("cloudwatch.DescribeAlarms", {"MetricAlarms": found})
    finding = only(check_alarms(StubbedAws(alarms, subscribed("arn:aws:sns:us-east-1:1:t:s")), "Cicada"))
    assert finding.message == "2 alarms, none in state ALARM"


# --- the index ---


class Unavailable:
    def read(self, key: str) -> Any:
        raise IndexUnavailable("AccessDenied")


def test_an_index_that_may_not_be_read_names_the_permission() -> None:
    finding = only(check_index(cast(ObjectStore, Unavailable()), {"IndexBucket": "b"}))
    assert (finding.status, finding.permission) == (Status.UNKNOWN, "s3:GetObject")


# --- the question ---


def answer(**changes: Any) -> Answer:
    metrics = SimpleNamespace(first_chunk_ms=900, cost_usd=0.00031)
    values = {"request_id": "r1", "strategy": "rag", "model": "nova", "failed": (), "metrics": metrics} | changes
    return cast(Answer, SimpleNamespace(**values))


def asked(said: Any, *, token: str | None = "t", signs_in: bool = True, took_s: float = 2.0) -> Finding:
    def asking(url: str, token: Any) -> Answer:
        if isinstance(said, Exception):
            raise said
        return cast(Answer, said)

    times = iter([0.0, took_s])
    return only(check_question(SOCKET, token, signs_in=signs_in, asking=asking, clock=lambda: next(times)))


def test_a_question_tells_its_time_and_cost() -> None:
    finding = asked(answer())
    assert finding.status is Status.OK
    assert finding.message == "answered by rag (nova) in 2.0 s, first text after 0.9 s, for 0.00031 US dollars"


@pytest.mark.parametrize(
    ("said", "options", "status", "words"),
    [
        (answer(), {"token": None}, Status.UNKNOWN, "not signed in"),
        (answer(), {"token": None, "signs_in": False}, Status.OK, "answered by rag"),
        (answer(), {"took_s": 25.0}, Status.WARNING, "slow"),
        (
            answer(failed=(SimpleNamespace(strategy="hybrid", code="model_busy"),)),
            {},
            Status.WARNING,
            "failed before: hybrid (model_busy)",
        ),
        (answer(failed=(SimpleNamespace(strategy="rag", code="index_missing"),)), {}, Status.OK, "nothing is loaded"),
        (Unauthorized("401"), {}, Status.PROBLEM, "refused the connection"),
        (ConnectionLost("gave up"), {}, Status.PROBLEM, "no answer: gave up"),
        (TimeoutError(), {}, Status.PROBLEM, "timed out after 90 s"),
        (answer(metrics=None), {}, Status.OK, "cost unknown"),
    ],
)
def test_what_becomes_of_the_question_is_told(said: Any, options: Any, status: Status, words: str) -> None:
    finding = asked(said, **options)
    assert finding.status is status
    assert words in finding.message


# --- the page ---

HEADERS = {
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "strict-transport-security": "max-age=63072000",
}


def pages(served: dict[str, Page | PageUnavailable]) -> Callable[[str], Page]:
    def read(url: str) -> Page:
        found = served[url]
        if isinstance(found, PageUnavailable):
            raise found
        return found

    return read


def site(status: int = 200, headers: dict[str, str] = HEADERS, socket: str = SOCKET) -> Callable[[str], Page]:
    config = json.dumps({"webSocketUrl": socket}).encode()
    return pages({f"{PAGE}/": Page(status, headers, b""), f"{PAGE}/config.json": Page(200, {}, config)})


def test_the_page_is_served_with_its_headers_and_asks_this_deployment() -> None:
    assert only(check_page(OUTPUTS, site())).status is Status.OK
    assert only(check_page({}, site())).status is Status.OK
    without = only(check_page(OUTPUTS, site(headers={"content-security-policy": "x"})))
    assert (without.status, "strict-transport-security" in without.message) == (Status.WARNING, True)
    assert only(check_page(OUTPUTS, site(status=403))).status is Status.PROBLEM
    assert [one.status for one in check_page(OUTPUTS, site(socket="wss://other"))] == [Status.OK, Status.PROBLEM]
    gone = pages({f"{PAGE}/": PageUnavailable("no route to host")})
    assert "no route to host" in only(check_page(OUTPUTS, gone)).message


def test_only_web_addresses_are_read() -> None:
    with pytest.raises(PageUnavailable, match="invalid web address"):
        fetch("file:///etc/hosts")


# --- sign-in ---

ENDPOINTS = {"issuer": ISSUER, "authorization_endpoint": "a", "token_endpoint": "t", "jwks_uri": "j"}
KNOWN: Step = ("cognito-idp.DescribeUserPool", {"UserPool": {"Id": POOL, "EstimatedNumberOfUsers": 3}})


def issuer(document: Any = ENDPOINTS, status: int = 200) -> Callable[[str], Page]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return pages({f"{ISSUER}/.well-known/openid-configuration": Page(status, {}, body)})


def client(*callbacks: str, flows: tuple[str, ...] = ("code",)) -> Step:
    told = {"UserPoolId": POOL, "ClientId": CLIENT, "CallbackURLs": callbacks, "AllowedOAuthFlows": flows}
    return "cognito-idp.DescribeUserPoolClient", {"UserPoolClient": told}


def test_sign_in_that_works_is_told() -> None:
    calls = StubbedAws(KNOWN, client(f"{PAGE}/", "http://localhost:8741/callback"))
    assert [one.status for one in check_sign_in(calls, OUTPUTS, issuer(), PAGE)] == [Status.OK] * 3
    calls.assert_asked_all()
    assert only(check_sign_in(StubbedAws(), {"AuthMode": "none"}, issuer(), None)).status is Status.OK
    assert only(check_sign_in(StubbedAws(), {}, issuer(), None)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((KNOWN, client("http://localhost:8741/callback")), "not a callback URL of the client"),
        ((KNOWN, client(f"{PAGE}/")), "no callback URL on localhost"),
        ((KNOWN, client(f"{PAGE}/", "http://localhost:8741/callback", flows=("implicit",))), "code flow"),
    ],
)
def test_a_client_that_sends_people_elsewhere_is_a_problem(steps: tuple[Step, ...], said: str) -> None:
    *_, finding = check_sign_in(StubbedAws(*steps), OUTPUTS, issuer(), PAGE)
    assert finding.status is Status.PROBLEM
    assert said in finding.message


def test_a_pool_without_users_says_how_to_add_one() -> None:
    empty: Step = ("cognito-idp.DescribeUserPool", {"UserPool": {"Id": POOL, "EstimatedNumberOfUsers": 0}})
    good = client(f"{PAGE}/", "http://localhost:8741/callback")
    _, pool, _ = check_sign_in(
        StubbedAws(empty, ("cognito-idp.ListUsers", {"Users": []}), good), OUTPUTS, issuer(), PAGE
    )
    assert (pool.status, pool.mend) == (Status.WARNING, "cicada users add EMAIL")
    gone: Step = ("cognito-idp.DescribeUserPool", Refusal("ResourceNotFoundException"))
    _, pool, _ = check_sign_in(StubbedAws(gone, good), OUTPUTS, issuer(), PAGE)
    assert pool.message == "the user pool does not exist"


@pytest.mark.parametrize(
    ("fetch_page", "said"),
    [
        (issuer(ENDPOINTS | {"issuer": "https://other.example"}), "names the issuer https://other.example"),
        (issuer({"issuer": ISSUER}), "no authorization_endpoint, token_endpoint, jwks_uri"),
        (issuer(status=404), "returned HTTP 404"),
        (issuer(b"<html>"), "cannot read its configuration"),
        (pages({f"{ISSUER}/.well-known/openid-configuration": PageUnavailable("timed out")}), "timed out"),
    ],
)
def test_an_issuer_that_cannot_be_used_is_a_problem(fetch_page: Any, said: str) -> None:
    finding = only(check_sign_in(StubbedAws(), {"AuthMode": "oidc", "Issuer": ISSUER}, fetch_page, None))
    assert finding.status is Status.PROBLEM
    assert said in finding.message


# --- the release ---


@pytest.mark.parametrize(
    ("outputs", "status", "told"),
    [
        ({"Release": __version__}, Status.OK, "same as this command"),
        ({"Release": "9.9.9"}, Status.WARNING, f"the deployment is 9.9.9, this command is {__version__}"),
        ({}, Status.WARNING, f"the deployment is older than 0.2.0, this command is {__version__}"),
    ],
)
def test_a_deployment_of_another_release_than_the_commands_is_told(
    outputs: dict[str, str], status: Status, told: str
) -> None:
    finding = only(check_release(outputs))
    assert (finding.status, finding.message) == (status, told)
