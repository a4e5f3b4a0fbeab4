"""``cicada restore table``: a deleted table returns under its name, and a damaged one gets its items back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cicada.audit.listing import list_records
from cicada.audit.records import record
from cicada.dynamodb import attributes
from cicada.identity import asker_of
from cicada.index.s3 import S3Store
from cicada.restoring import table as restoring
from cicada_cli.main import main
from cicada_local.table_backups import LAG_S, TableBackups

NAME, BUCKET = "Cicada-Data-Requests", "records"
PROPERTIES: dict[str, Any] = {
    "TableName": NAME,
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
        {"AttributeName": "open_in", "AttributeType": "N"},
        {"AttributeName": "accepted_at_ms", "AttributeType": "N"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "open",
            "KeySchema": [
                {"AttributeName": "open_in", "KeyType": "HASH"},
                {"AttributeName": "accepted_at_ms", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    "DeletionProtectionEnabled": True,
    "Tags": [{"Key": "team", "Value": "reading"}],
}
TEMPLATE = json.dumps({"Resources": {"Requests": {"Type": "AWS::DynamoDB::Table", "Properties": PROPERTIES}}})
DAMAGED_S = 2 * LAG_S
"""After which somebody notices the damage."""


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 25, 10, tzinfo=UTC).timestamp()

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass(frozen=True)
class House:
    client: Any
    clock: Clock
    store: S3Store

    def put(self, pk: str, sk: str, **values: Any) -> None:
        self.client.put_item(TableName=NAME, Item=attributes(pk=pk, sk=sk, **values))

    def delete(self, pk: str, sk: str) -> None:
        self.client.delete_item(TableName=NAME, Key=attributes(pk=pk, sk=sk))

    def found(self) -> set[tuple[str, str]]:
        return {(item["pk"]["S"], item["sk"]["S"]) for item in self.client.scan(TableName=NAME)["Items"]}

    def item(self, pk: str, sk: str) -> Any:
        return self.client.get_item(TableName=NAME, Key=attributes(pk=pk, sk=sk))["Item"]

    def at(self) -> str:
        return datetime.fromtimestamp(self.clock.now, UTC).isoformat(timespec="seconds")

    def delete_table(self) -> None:
        self.client.update_table(TableName=NAME, DeletionProtectionEnabled=False)
        self.client.delete_table(TableName=NAME)

    def described(self) -> Any:
        return self.client.describe_table(TableName=NAME)["Table"]


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[House]:
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    for variable, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "CICADA_INDEX_BUCKET": BUCKET,
        "CICADA_REQUESTS_TABLE": NAME,
    }.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    clock = Clock()
    monkeypatch.setattr(restoring.Table.__init__, "__kwdefaults__", {"sleep": clock.sleep, "now_s": clock.time})
    TableBackups(clock=clock.time).install()
    with mock_aws():
        client = boto3.client("dynamodb")
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        boto3.client("cloudformation").create_stack(StackName="Cicada-Data", TemplateBody=TEMPLATE)
        made = House(client, clock, S3Store(boto3.client("s3"), BUCKET))
        restoring.Table(client, NAME).settle(PROPERTIES)
        clock.sleep(DAMAGED_S)
        yield made


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    capsys.readouterr()
    assert main(["restore", "table", *arguments]) == status
    told = capsys.readouterr()
    return told.out + told.err


def test_a_protected_table_is_not_deleted(house: House) -> None:
    with pytest.raises(house.client.exceptions.ClientError, match="DeletionProtectionEnabled"):
        house.client.delete_table(TableName=NAME)


def test_a_deleted_table_returns_under_its_name_with_its_settings(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.put("profiles#ada", "profile#1", version=1)
    house.delete_table()
    assert "from the backup of its deletion" in run(capsys, "--dry-run")
    assert NAME not in house.client.list_tables()["TableNames"]
    assert f"Restored table {NAME}" in run(capsys, "--yes")
    assert house.found() == {("profiles#ada", "profile#1")}
    described = house.described()
    assert described["DeletionProtectionEnabled"]
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert [index["IndexName"] for index in described["GlobalSecondaryIndexes"]] == ["open"]
    assert house.client.describe_time_to_live(TableName=NAME)["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    restoring.Table(house.client, NAME).window()  # its past is kept again
    tags = house.client.list_tags_of_resource(ResourceArn=described["TableArn"])["Tags"]
    assert tags == PROPERTIES["Tags"]
    assert [one.action for one in list_records(house.store)] == ["table_restored"]


def test_who_was_erased_since_an_earlier_deletion_stays_erased(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.put("profiles#ada", "profile#1")
    house.put("profiles#bob", "profile#1")
    house.delete_table()
    run(capsys, "--yes")
    recovery = {"PointInTimeRecoveryEnabled": False}
    house.client.update_continuous_backups(TableName=NAME, PointInTimeRecoverySpecification=recovery)
    with record(house.store, "user_erased", actor="me", subject=f"asker/{asker_of('bob')}"):
        house.delete("profiles#bob", "profile#1")
    house.delete_table()  # without a backup: the earlier one is restored
    assert "erase again: data of 1 person erased since" in run(capsys, "--yes")
    assert house.found() == {("profiles#ada", "profile#1")}


def test_an_interrupted_restoration_is_completed(
    house: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    house.delete_table()
    with monkeypatch.context() as broken:
        broken.setattr(restoring.Table, "settle", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert main(["restore", "table", "--yes"]) == 130
    assert not house.described()["DeletionProtectionEnabled"]
    run(capsys, "--yes")
    assert house.described()["DeletionProtectionEnabled"]


def test_without_a_backup_an_empty_table_is_made(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    recovery = {"PointInTimeRecoveryEnabled": False}
    house.client.update_continuous_backups(TableName=NAME, PointInTimeRecoverySpecification=recovery)
    house.delete_table()
    assert "(no_backup)" in run(capsys, "--yes", status=1)
    run(capsys, "--empty", "--yes")
    assert house.found() == set()
    assert house.described()["DeletionProtectionEnabled"]


REQUEST = "00000000-0000-4000-8000-00000000000"


def test_items_of_the_past_are_put_back(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    later = int(house.clock.now) + 10 * 24 * 3600
    kept = [("profiles#ada", "profile#1"), (f"{REQUEST}1#ada", "head"), ("usage#user#ada", "2026-11")]
    for pk, sk in kept:
        house.put(pk, sk, expires_at=later, words="before")
    house.put(f"{REQUEST}2#ada", "head", open_in=1, accepted_at_ms=1, expires_at=later)  # was open
    house.put(f"{REQUEST}2#ada", "event#1", expires_at=later)
    house.put(f"{REQUEST}2#ada", "reservation", expires_at=later)
    house.put("session#1", "turns", expires_at=int(house.clock.now) + 60, owner="ada")  # expires meanwhile
    house.put("profiles#bob", "profile#1", words="erased since")
    house.clock.sleep(1)
    at = house.at()
    house.clock.sleep(1)
    with record(house.store, "user_erased", actor="me", subject=f"asker/{asker_of('bob')}"):
        house.delete("profiles#bob", "profile#1")
    for pk, sk in house.found():
        house.delete(pk, sk)
    house.put("profiles#ada", "profile#1", words="after")
    house.clock.sleep(DAMAGED_S)
    planned = run(capsys, "--at", at, "--dry-run")
    assert "skip: data of 1 person erased since" in planned
    assert house.found() == {("profiles#ada", "profile#1")}
    told = run(capsys, "--at", at, "--yes")
    assert "Put back: 1 requests, 1 usage. Replaced: none. Unchanged: 1." in told
    assert "Skipped: 1 erased, 1 expired, 3 open." in told
    assert house.found() == set(kept)
    assert house.item("profiles#ada", "profile#1")["words"] == {"S": "after"}
    assert house.client.list_tables()["TableNames"] == [NAME]  # the other table is deleted again
    assert "Put back: none. Replaced: 1 profiles." in run(capsys, "--at", at, "--replace", "--yes")
    assert house.item("profiles#ada", "profile#1")["words"] == {"S": "before"}


def test_use_limits_and_revocations_are_never_replaced(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    items = [("usage#user#ada", "2026-11"), ("limits", "user#ada"), ("revoked#1", "marker")]
    for pk, sk in items:
        house.put(pk, sk, value=1)
    at = house.at()
    house.clock.sleep(1)
    for pk, sk in items:
        house.put(pk, sk, value=2)
    house.clock.sleep(DAMAGED_S)
    assert "Unchanged: 3." in run(capsys, "--at", at, "--replace", "--yes")
    assert {house.item(pk, sk)["value"]["N"] for pk, sk in items} == {"2"}


def test_a_time_that_cannot_be_restored_is_told(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert "(outside_window)" in run(capsys, "--at", house.at(), "--yes", status=1)  # DynamoDB lags some minutes
    recovery = {"PointInTimeRecoveryEnabled": False}
    house.client.update_continuous_backups(TableName=NAME, PointInTimeRecoverySpecification=recovery)
    assert "(not_recoverable)" in run(capsys, "--at", house.at(), "--yes", status=1)


def test_another_tables_items_are_copied_and_it_stays(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    house.put("profiles#ada", "profile#1")
    backup = house.client.create_backup(TableName=NAME, BackupName="mine")["BackupDetails"]["BackupArn"]
    house.client.restore_table_from_backup(TargetTableName="other", BackupArn=backup)
    house.delete("profiles#ada", "profile#1")
    assert main(["restore", "table", "--from", "other", "--yes"]) == 2
    run(capsys, "--from", "other", "--at", house.at(), "--yes")
    assert house.found() == {("profiles#ada", "profile#1")}
    assert "other" in house.client.list_tables()["TableNames"]


def test_a_table_that_never_appears_is_told(house: House) -> None:
    with pytest.raises(restoring.RestoreFault, match="it does not exist"):
        restoring.Table(house.client, "missing").wait()


def test_a_record_that_cannot_be_read_may_be_an_erasure(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime.now(UTC) - timedelta(hours=1)
    with record(house.store, "user_erased", actor="me", now=lambda: datetime.now(UTC)):
        pass
    (key,) = (one.key for one in house.store.entries("audit/") if "outcome" not in one.key)
    house.store.write(key, b"{}", replaces=house.store.read(key).etag)
    assert "(audit_unreadable)" in run(capsys, "--at", at.isoformat(), "--yes", status=1)
