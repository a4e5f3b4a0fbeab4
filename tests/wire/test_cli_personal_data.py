"""``cicada user`` against a table, a bucket and a user pool, as their stand-ins speak."""

from __future__ import annotations

import itertools
import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cicada.audit.listing import list_records
from cicada.identity import asker_of
from cicada.index.s3 import S3Store
from cicada.personal_data import erasure
from cicada.personal_data.export import Export
from cicada.revocation import DynamoDbRevocations
from cicada_cli.main import main
from tests.support.personal_data import Resident
from tests.wire.administering import Run, runner, table_and_bucket
from tests.wire.issuer_service import SignInService, sign_in_service
from tests.wire.test_client_cli import no_surroundings
from tests.wire.test_personal_data import SCHEMA

__all__ = ["no_surroundings"]

ROOT = SCHEMA.parents[1]
CDK = ROOT / "cdk.json"
PRIVACY = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
TABLE, BUCKET = "requests-of-persons", "bucket-of-persons"
WORD = "Zweibrücken"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def service() -> Iterator[SignInService]:
    with sign_in_service("persons") as service, table_and_bucket(service.services, TABLE, BUCKET):
        yield service


@pytest.fixture
def run(service: SignInService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for wait in ("PROCESSOR_S", "WORKER_S"):
        monkeypatch.setattr(erasure, wait, 0)
    return runner("user", service, (TABLE, BUCKET), monkeypatch, capsys, always_json=("export",))


@pytest.fixture
def mara(service: SignInService) -> Resident:
    """A user of the pool, with an open request that no worker has taken up, and what came of earlier ones."""
    email = f"mara-{next(_numbers)}@example.com"
    made = service.cognito.admin_create_user(UserPoolId=service.pool_id, Username=email, MessageAction="SUPPRESS")
    user = Resident(service.services.client("dynamodb"), made["User"]["Username"], WORD, table=TABLE)
    user.ask(1)
    user.converse()
    user.cache("a" * 32)
    user.profile("Ada")
    user.use()
    return user


def email_of(service: SignInService, user: Resident) -> str:
    told = service.cognito.admin_get_user(UserPoolId=service.pool_id, Username=user.owner)["UserAttributes"]
    return str(next(one["Value"] for one in told if one["Name"] == "email"))


def everything(service: SignInService) -> str:
    """All that the table and the bucket hold."""
    s3 = service.services.client("s3")
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())]
    objects = [s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode() for key in keys]
    return "\n".join((str(service.services.client("dynamodb").scan(TableName=TABLE)["Items"]), *keys, *objects))


def needed(service: SignInService) -> set[str]:
    """The actions of IAM that the calls since the log was cleared need, but for those that everybody may make."""
    actions = set()
    for name in service.services.calls.counts():
        called, _, operation = name.partition(".")
        match operation:
            case "TransactWriteItems":
                actions |= {"dynamodb:DeleteItem", "dynamodb:UpdateItem"}
            case "PostToConnection":
                actions.add("execute-api:ManageConnections")
            case "GetCallerIdentity":
                pass
            case _:
                actions.add(f"{called}:{operation}")
    return actions


def test_the_page_on_privacy_names_all_fields_and_settings() -> None:
    fields = {field.alias or name for name, field in Export.model_fields.items()}
    table = PRIVACY.partition("## Export")[2].partition("## Erasure")[0]
    named = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    assert {name for cell in named for name in re.findall(r"`(\w+)`", cell)} == fields
    settings = set(json.loads(CDK.read_text(encoding="utf-8"))["context"]["cicada"])
    for dotted in re.findall(r"`([a-z]+[A-Z]?\w*\.[a-z]\w+)`", PRIVACY):
        assert dotted.partition(".")[0] in settings, dotted


def test_an_erased_user_is_nowhere_and_the_record_proves_it(service: SignInService, run: Run, mara: Resident) -> None:
    email = email_of(service, mara)
    told = run("erase", email, "--yes")
    counts = "1 conversations, 1 requests, 2 cachedAnswers, 1 profiles, 1 profileRecords, 1 usage"
    assert sorted(told.splitlines()[0].partition(": ")[2].rstrip(".").split(", ")) == sorted(counts.split(", "))
    assert f"`cicada users remove {email}`" in told
    left = everything(service)
    assert mara.owner not in left
    assert email not in left
    assert WORD not in left
    record = next(list_records(S3Store(service.services.client("s3"), BUCKET)))
    assert (record.action, record.subject, record.outcome) == ("user_erased", f"asker/{asker_of(mara.owner)}", "done")
    assert record.details["erasureId"] in told
    assert record.details["deleted"]["requests"] == 1
    assert DynamoDbRevocations(mara.client, TABLE).not_before(mara.owner) is not None


def test_an_erasure_removes_the_user_from_the_pool_where_asked(
    service: SignInService, run: Run, mara: Resident
) -> None:
    service.services.calls.clear()
    told = run("erase", mara.owner, "--yes", "--json", "--remove-user")
    assert needed(service) <= set(re.findall(r"`([a-z0-9-]+:[A-Z]\w+)`", PRIVACY))
    assert (told["userRemoved"], told["runs"], told["asker"]) == (True, 1, asker_of(mara.owner))
    assert "the account" not in str(told["remains"])
    assert mara.owner not in [
        user["Username"] for user in service.cognito.list_users(UserPoolId=service.pool_id)["Users"]
    ]
    again = run("erase", mara.owner, "--yes", "--json")
    assert (again["deleted"], again["userRemoved"]) == ({}, False)


def test_backups_that_the_table_keeps_are_named(run: Run, mara: Resident) -> None:
    assert "backups" not in str(run("erase", mara.owner, "--yes", "--json")["remains"])
    mara.client.update_continuous_backups(
        TableName=TABLE, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    remains = run("erase", mara.owner, "--yes", "--json")["remains"]
    assert any("backups" in one["what"] and one["until"] for one in remains)


def test_nothing_is_erased_unasked(run: Run, mara: Resident, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Add --yes" in run("erase", mara.owner, status=2)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert "Nothing was erased" in run("erase", mara.owner, status=1)
    assert len(run("export", mara.owner)["requests"]) == 1
    monkeypatch.setattr("builtins.input", lambda: "y")
    assert "Erased" in run("erase", mara.owner)


def test_an_export_is_a_file_of_its_own_that_the_schema_describes(
    service: SignInService, run: Run, mara: Resident, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, email = run("export", mara.owner), email_of(service, mara)
    assert told["account"]["email"] == email
    assert [request["query"] for request in told["requests"]] == [f"Where is {WORD}?"]
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(told)
    path = tmp_path / "mara.json"
    assert main(["user", "export", email, "--to", str(path), "--user-pool", service.pool_id]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text(encoding="utf-8")) | {"exportedAt": ""} == told | {"exportedAt": ""}
    assert "exists" in run("export", email, "--to", str(path), status=2)
    record = next(list_records(S3Store(service.services.client("s3"), BUCKET)))
    assert (record.action, record.subject) == ("user_exported", f"asker/{asker_of(mara.owner)}")


def test_data_in_a_tenant_that_was_not_named_is_told(
    service: SignInService, run: Run, mara: Resident, capsys: pytest.CaptureFixture[str]
) -> None:
    Resident(mara.client, f"acme/{mara.owner}", WORD, tenant="acme", table=TABLE).use()
    assert main(["user", "export", mara.owner, "--user-pool", service.pool_id]) == 0
    assert "data in tenant acme" in capsys.readouterr().err
    assert run("erase", mara.owner, "--tenant", "acme", "--yes", "--json")["deleted"] == {"usage": 1}
    assert len(run("export", mara.owner)["requests"]) == 1


def test_a_user_of_no_name_or_an_unknown_one_is_refused(run: Run) -> None:
    assert "missing USER" in run("erase", " ", "--yes", status=2)
    assert "unknown user x@example.com" in run("export", "x@example.com", status=1)


def test_a_table_that_is_not_there_is_told(run: Run) -> None:
    assert "Run the same command to resume" in run("erase", "somebody", "--yes", "--table", "no-such-table", status=1)
