"""``cicada usage`` and ``cicada limits`` against a table, a bucket and a user pool, as their stand-ins speak."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cicada.audit.listing import list_records
from cicada.index.s3 import S3Store
from cicada.usage.accounts import Account, pool, user
from cicada.usage.limits import Limits
from cicada.usage.records import DynamoDbUsageRecords, UsageFault
from cicada_cli import limits, usage
from cicada_cli.main import main
from tests.wire.administering import Run, table_and_bucket
from tests.wire.local_services import Services, running_services
from tests.wire.test_client_cli import no_surroundings

__all__ = ["no_surroundings"]

TABLE, BUCKET = "requests-of-limits", "index-of-limits"
NOW = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)
MINUTE = int(NOW.timestamp()) // 60
SETTINGS = {
    "request": {"tokens": 120_000, "usd": 0.4},
    "user": {"requestsMinute": 10, "usdDay": 2},
    "members": {"users": {"usdDay": 4}},
    "groups": {"users": {"usdMonth": 100}},
}
_numbers = itertools.count()


@dataclass(frozen=True)
class Service:
    """The services, with a user pool."""

    services: Services
    pool_id: str

    @property
    def cognito(self) -> Any:
        return self.services.client("cognito-idp")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running_services() as services, table_and_bucket(services, TABLE, BUCKET):
        made = services.client("cognito-idp").create_user_pool(PoolName="limits", UsernameAttributes=["email"])
        pool_id = made["UserPool"]["Id"]
        services.client("cognito-idp").create_group(UserPoolId=pool_id, GroupName="users")
        yield Service(services, pool_id)


@pytest.fixture
def records(service: Service) -> DynamoDbUsageRecords:
    """Of an empty table."""
    client = service.services.client("dynamodb")
    for item in client.scan(TableName=TABLE)["Items"]:
        client.delete_item(TableName=TABLE, Key={name: item[name] for name in ("pk", "sk")})
    return DynamoDbUsageRecords(client, TABLE)


@pytest.fixture
def run(
    service: Service,
    records: DynamoDbUsageRecords,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    monkeypatch.setattr(usage, "utc_now", lambda: NOW)
    monkeypatch.setattr(limits, "sleep", lambda _s: None)
    outputs = {
        "RequestsTable": TABLE,
        "IndexBucket": BUCKET,
        "AuthMode": "cognito",
        "UserPoolId": service.pool_id,
        "UsageLimits": json.dumps(SETTINGS),
    }
    told = {"endpointUrl": service.services.endpoint_url, "webSocketUrl": "ws://localhost:1/live", "outputs": outputs}
    Path(".cicada").mkdir()
    Path(".cicada/running.json").write_text(json.dumps(told))

    def run_one(*words: str, status: int = 0) -> Any:
        capsys.readouterr()
        assert main([*words]) == status
        said = capsys.readouterr()
        if status:
            return said.err
        return json.loads(said.out) if "--json" in words else said.out + said.err

    return run_one


@pytest.fixture
def member(service: Service) -> tuple[str, str]:
    """A user in the group *users*: e-mail address and subject."""
    email = f"user-{next(_numbers)}@example.com"
    made = service.cognito.admin_create_user(UserPoolId=service.pool_id, Username=email)
    service.cognito.admin_add_user_to_group(UserPoolId=service.pool_id, Username=email, GroupName="users")
    return email, next(one["Value"] for one in made["User"]["Attributes"] if one["Name"] == "sub")


def used(service: Service, account: Account, counts: dict[str, int], month: str = "2026-11") -> None:
    """Have an account use something."""
    numbers = {name: {"N": str(count)} for name, count in counts.items()}
    service.services.client("dynamodb").put_item(TableName=TABLE, Item=account.key(month) | numbers)


def audited(service: Service) -> Any:
    """The newest record of a change."""
    return next(list_records(S3Store(service.services.client("s3"), BUCKET)))


def test_what_users_have_used_is_listed_against_their_limits(
    service: Service, run: Run, member: tuple[str, str]
) -> None:
    email, subject = member
    counts = {"requests": 7, "open": 1, "tokens": 300_000, "microusd": 1_250_000, "t25": 200_000, "m25": 1_000_000}
    used(service, user(subject), counts | {"reserved_tokens": 120_000, "reserved_microusd": 400_000})
    used(service, user("who-has-left"), {"requests": 1, "tokens": 10, "microusd": 500_000})
    used(service, user(subject), {"tokens": 1, "microusd": 1, "t31": 1}, "2026-10")
    used(service, pool("group", "users")[2], {"tokens": 300_000, "microusd": 25_000_000})
    used(service, pool("group", "users")[5], {"microusd": 25_000_000})
    lines = [line.split("\t") for line in run("usage").splitlines()]
    assert lines == [
        [email, "8", "300,000", "1.2500", "200,000", "1.0000", "requestsMinute 0%, usdDay 25%"],
        ["who-has-left", "1", "10", "0.5000", "0", "0.0000", "unknown"],
        ["group users", "0", "300,000", "50.0000", "0", "0.0000", "usdMonth 50%"],
    ]
    told = run("usage", "--json")
    assert [one["name"] for one in told["users"]] == [subject, "who-has-left"]
    assert told["users"][0]["days"]["25"] == {"tokens": 200_000, "usd": 1.0}
    assert told["pools"][0]["limits"][0]["left"] == 50
    assert run("usage", "--month", "2026-10").split("\t")[:4] == [email, "0", "1", "0.0000"]


def test_one_user_is_shown_day_by_day_with_what_is_left(
    service: Service, run: Run, member: tuple[str, str], records: DynamoDbUsageRecords
) -> None:
    email, subject = member
    counts = {"requests": 3, "open": 1, "tokens": 130_000, "microusd": 900_000, "t24": 1_000, "m24": 250_000}
    counts |= {"t25": 129_000, "m25": 650_000, "minute": MINUTE, "minute_requests": 4}
    used(service, user(subject), counts | {"reserved_tokens": 120_000, "reserved_microusd": 400_000})
    records.set_limits(user(subject), Limits(tokens_day=500_000))
    told = run("usage", "--user", email)
    lines = [line.split("\t") for line in told.splitlines()]
    assert lines[:3] == [
        ["2026-11-24", "1,000", "0.2500"],
        ["2026-11-25", "129,000", "0.6500"],
        ["2026-11", "130,000", "0.9000"],
    ]
    assert [line[:4] for line in lines[3:6]] == [
        ["requestsMinute", "4", "10", "6"],
        ["tokensDay", "129,000", "500,000", "371,000"],
        ["usdDay", "$0.65", "$4.00", "$3.35"],
    ]
    assert "1 question being answered: the totals include 120,000 tokens and $0.4000 reserved for them" in told
    assert run("usage", "--user", subject, "--json")["limits"][2]["resetsAtMs"] == 1_795_651_200_000
    assert run("usage", "--user", "ann", "--tenant", "a b", "--json")["name"] == "a%20b/ann"
    assert "unknown user nobody@example.com" in run("usage", "--user", "nobody@example.com", status=1)
    with pytest.raises(SystemExit):
        run("usage", "--month", "2026-13")


def test_limits_are_overridden_one_by_one_and_recorded(
    service: Service, run: Run, member: tuple[str, str], records: DynamoDbUsageRecords
) -> None:
    email, subject = member
    told = run("limits", "set", "--user", email, "--usd-day", "5", "--requests-minute", "none")
    assert told == f"{email}: requestsMinute none, usdDay $5.00. It applies to the next question.\n"
    changed = run("limits", "set", "--user", subject, "--usd-day", "7.5", "--json")
    assert changed["before"] == {"requestsMinute": None, "usdDay": 5}
    assert records.overrides().limits == {user(subject): Limits(requests_minute=None, usd_day=7.5)}
    record = audited(service)
    assert (record.action, record.subject, record.outcome) == ("limits_set", f"user/{subject}", "done")
    assert record.details == {"usdDay": 7.5, "before": {"requestsMinute": None, "usdDay": 5}}
    assert record.actor.startswith("arn:aws:")

    assert [line.split("\t") for line in run("limits").splitlines()] == [
        ["each user", "requestsMinute", "10", "settings"],
        ["each user", "usdDay", "$2.00", "settings"],
        ["each member of users", "usdDay", "$4.00", "settings"],
        ["group users", "usdMonth", "$100.00", "settings"],
        [f"user {subject}", "requestsMinute", "none", "override"],
        [f"user {subject}", "usdDay", "$7.50", "override"],
    ]
    run("limits", "unset", "--user", email, "--requests-minute")
    assert records.overrides().limits == {user(subject): Limits(usd_day=7.5)}
    assert run("limits", "unset", "--user", email) == f"{email}: the limits of the settings apply again.\n"
    assert audited(service).details["before"] == {"usdDay": 7.5}
    assert records.overrides().limits == {}
    assert service.services.client("dynamodb").scan(TableName=TABLE)["Items"] == []


def test_pools_are_overridden_too(run: Run, records: DynamoDbUsageRecords) -> None:
    run("limits", "set", "--group", "users", "--usd-month", "0")
    run("limits", "set", "--deployment", "--tokens-month", "9000000")
    run("limits", "stop")
    found = records.overrides()
    assert found.limits == {
        Account("group", "users"): Limits(usd_month=0),
        Account("deployment"): Limits(tokens_month=9_000_000),
    }
    run("limits", "unset", "--deployment")
    assert records.overrides().stopped
    assert run("limits", "show", "--json")["overrides"] == [
        {"account": "group", "name": "users", "limits": {"usdMonth": 0}}
    ]


def test_the_switch_is_turned_and_seen(service: Service, run: Run, records: DynamoDbUsageRecords) -> None:
    assert "Questions are stopped." in run("limits", "stop")
    assert records.overrides().stopped
    assert audited(service).action == "spending_stopped"
    for seen in (run("limits"), run("usage")):
        assert "questions are stopped: `cicada limits start` allows them again" in seen
    assert run("limits", "start", "--json") == {"stopped": False, "stoppedBefore": True}
    assert not records.overrides().stopped


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--usd-day", "3"), "missing an account: --user, --group or --deployment"),
        (("--user", "ann"), "missing a limit, such as --usd-day 2"),
        (("--user", "ann", "--usd-day", "0.3"), "usdDay must be 0, none or at least $0.40, which a question reserves"),
        (("--deployment", "--tokens-day", "5"), "tokensDay must be 0, none or at least 120,000"),
        (
            ("--group", "poets", "--usd-day", "3"),
            "the usage of group poets is not counted: the setting usageLimits.groups has users",
        ),
    ],
)
def test_a_limit_that_could_not_hold_is_refused(
    run: Run, records: DynamoDbUsageRecords, words: tuple[str, ...], said: str
) -> None:
    assert said in run("limits", "set", *words, status=2)
    assert records.overrides().limits == {}


def test_two_administrators_lose_nothing(service: Service, records: DynamoDbUsageRecords) -> None:
    """A change that another one overtakes is made of what stands then."""

    class Overtaken:
        """A table that somebody else changes between a read and the write that follows it."""

        def __init__(self, times: int) -> None:
            self.times = times

        def __getattr__(self, name: str) -> Any:
            client = service.services.client("dynamodb")
            if name == "update_item" and self.times:
                self.times -= 1
                records.set_limits(user("ann"), Limits(requests_open=self.times + 1))
            return getattr(client, name)

    DynamoDbUsageRecords(Overtaken(2), TABLE).set_limits(user("ann"), Limits(usd_day=1))
    assert records.overrides().limits == {user("ann"): Limits(requests_open=1, usd_day=1)}
    with pytest.raises(UsageFault, match="too many concurrent changes"):
        DynamoDbUsageRecords(Overtaken(99), TABLE).set_limits(user("ann"), Limits(usd_day=2))
