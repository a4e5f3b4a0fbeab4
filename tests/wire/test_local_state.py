"""What buckets and tables hold survives a restart: saved as it changes, put back into a new deployment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada_local.state import Keeper
from cicada_local.state_store import Place, StateStore, StoredObject
from tests.wire.local_services import Services, deployed_stack, outputs_of, running_services

TEMPLATE = {
    "Resources": {
        "Index": {"Type": "AWS::S3::Bucket", "Properties": {"VersioningConfiguration": {"Status": "Enabled"}}},
        "Plain": {"Type": "AWS::S3::Bucket", "Properties": {}},
        "Requests": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
                "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
            },
        },
    },
    "Outputs": {name: {"Value": {"Ref": name}} for name in ("Index", "Plain", "Requests")},
}


class Deployment:
    """One life of the local cloud: deployed, restored, followed."""

    def __init__(self, services: Services, names: dict[str, str], keeper: Keeper) -> None:
        self.names = names
        self.keeper = keeper
        self.s3 = services.client("s3")
        self.dynamodb = services.client("dynamodb")

    def put(self, pk: str, **attributes: Any) -> None:
        item = {"pk": {"S": pk}, "sk": {"S": "head"}, **attributes}
        self.dynamodb.put_item(TableName=self.names["Requests"], Item=item)

    def get(self, pk: str) -> dict[str, Any] | None:
        key = {"pk": {"S": pk}, "sk": {"S": "head"}}
        item: dict[str, Any] | None = self.dynamodb.get_item(TableName=self.names["Requests"], Key=key).get("Item")
        return item


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.sqlite3"


@contextmanager
def life(services: Services, path: Path, **options: Any) -> Iterator[Deployment]:
    store = StateStore(path)
    keeper = Keeper(store, services.moto, **options)
    with deployed_stack(services, "kept", TEMPLATE) as stack:
        services.answered = keeper.changed
        keeper.restore()
        deployment = Deployment(services, outputs_of(stack), keeper)
        try:
            yield deployment
        finally:
            services.answered = lambda *_: None
            store.close()
            for name in (deployment.names["Index"], deployment.names["Plain"]):
                listed = deployment.s3.list_object_versions(Bucket=name)
                for version in [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]:
                    deployment.s3.delete_object(Bucket=name, Key=version["Key"], VersionId=version["VersionId"])


@pytest.mark.parametrize("bucket", ["Index", "Plain"])
def test_an_object_comes_back_with_all_that_belongs_to_it(services: Services, path: Path, bucket: str) -> None:
    body = os.urandom(200_000)
    with life(services, path) as first:
        where = {"Bucket": first.names[bucket], "Key": "index/雨 +%.bin"}
        first.s3.put_object(
            **where,
            Body=body,
            ContentType="application/x-index",
            CacheControl="no-cache",
            Metadata={"index_version": "7"},
            ChecksumAlgorithm="SHA256",
            Tagging="kind=segment",
        )
        before = first.s3.get_object(**where, ChecksumMode="ENABLED")
        before["Body"].read()
        first.keeper.save()
    with life(services, path) as second:
        after = second.s3.get_object(**where, ChecksumMode="ENABLED")
        assert after["Body"].read() == body
        kept = ("ETag", "LastModified", "ContentType", "CacheControl", "Metadata", "TagCount", "ChecksumSHA256")
        assert {name: after.get(name) for name in kept} == {name: before.get(name) for name in kept}
        assert after.get("VersionId") == before.get("VersionId")
        assert after["Metadata"] == {"index_version": "7"}
        assert second.s3.get_object_tagging(**where)["TagSet"] == [{"Key": "kind", "Value": "segment"}]


def test_conditional_writes_go_on_where_they_were(services: Services, path: Path) -> None:
    with life(services, path) as first:
        where = {"Bucket": first.names["Index"], "Key": "index/current.json"}
        etag = first.s3.put_object(**where, Body=b"1")["ETag"]
        first.keeper.save()
    with life(services, path) as second:
        with pytest.raises(ClientError) as exists:
            second.s3.put_object(**where, Body=b"other", IfNoneMatch="*")
        assert exists.value.response["Error"]["Code"] == "PreconditionFailed"
        second.s3.put_object(**where, Body=b"2", IfMatch=etag)
        with pytest.raises(ClientError):
            second.s3.put_object(**where, Body=b"3", IfMatch=etag)


def test_an_upload_in_parts_keeps_its_entity_tag(services: Services, path: Path) -> None:
    with life(services, path) as first:
        where = {"Bucket": first.names["Plain"], "Key": "big"}
        upload = first.s3.create_multipart_upload(**where)["UploadId"]
        part = first.s3.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"x" * 100)
        parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
        etag = first.s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})["ETag"]
        first.keeper.save()
    assert etag.endswith('-1"')
    with life(services, path) as second:
        assert second.s3.head_object(**where)["ETag"] == etag


def test_replaced_and_deleted_objects_do_not_come_back(services: Services, path: Path) -> None:
    with life(services, path) as first:
        for bucket in (first.names["Index"], first.names["Plain"]):
            for key in ("kept", "replaced", "deleted", "deleted-too"):
                first.s3.put_object(Bucket=bucket, Key=key, Body=b"first")
        first.keeper.save()
        for bucket in (first.names["Index"], first.names["Plain"]):
            first.s3.put_object(Bucket=bucket, Key="replaced", Body=b"second")
            first.s3.delete_object(Bucket=bucket, Key="deleted")
            first.s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "deleted-too"}]})
        first.keeper.save()
    with life(services, path) as second:
        for bucket in (second.names["Index"], second.names["Plain"]):
            found = {one["Key"] for one in second.s3.list_objects_v2(Bucket=bucket)["Contents"]}
            assert found == {"kept", "replaced"}
            assert second.s3.get_object(Bucket=bucket, Key="replaced")["Body"].read() == b"second"


def test_items_come_back_with_every_type_of_attribute(services: Services, path: Path) -> None:
    attributes = {
        "text": {"S": "雨"},
        "number": {"N": "12345678901234567890.5"},
        "binary": {"B": bytes(range(256))},
        "flag": {"BOOL": False},
        "nothing": {"NULL": True},
        "list": {"L": [{"S": "a"}, {"M": {"b": {"B": b"\x00\xff"}}}]},
        "names": {"SS": ["a", "b"]},
        "numbers": {"NS": ["1", "2.5"]},
    }
    with life(services, path) as first:
        first.put("r1", **attributes)
        before = first.get("r1")
        first.keeper.save()
    with life(services, path) as second:
        assert second.get("r1") == before
        assert before is not None
        assert before["binary"] == {"B": bytes(range(256))}
        assert before["list"]["L"][1]["M"]["b"] == {"B": b"\x00\xff"}


def test_every_kind_of_write_is_followed(services: Services, path: Path) -> None:
    with life(services, path) as first:
        table = first.names["Requests"]

        def key(pk: str) -> dict[str, Any]:
            return {"pk": {"S": pk}, "sk": {"S": "head"}}

        for pk in ("updated", "deleted", "batch-deleted", "transaction-updated", "transaction-deleted"):
            first.put(pk)
        first.keeper.save()
        set_n = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
        first.dynamodb.update_item(TableName=table, Key=key("updated"), **set_n)
        first.dynamodb.update_item(TableName=table, Key=key("made-by-update"), **set_n)
        first.dynamodb.delete_item(TableName=table, Key=key("deleted"))
        first.dynamodb.batch_write_item(
            RequestItems={
                table: [{"PutRequest": {"Item": key("batch-put")}}, {"DeleteRequest": {"Key": key("batch-deleted")}}]
            }
        )
        first.dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": table, "Item": key("transaction-put")}},
                {"Update": {"TableName": table, "Key": key("transaction-updated"), **set_n}},
                {"Delete": {"TableName": table, "Key": key("transaction-deleted")}},
            ]
        )
        first.dynamodb.execute_statement(Statement=f"INSERT INTO \"{table}\" VALUE {{'pk': 'statement', 'sk': 'head'}}")
        first.keeper.save()
    with life(services, path) as second:
        items = second.dynamodb.scan(TableName=table)["Items"]
        assert {item["pk"]["S"]: "n" in item for item in items} == {
            "updated": True,
            "made-by-update": True,
            "batch-put": False,
            "transaction-put": False,
            "transaction-updated": True,
            "statement": False,
        }


def test_more_items_than_one_request_takes(services: Services, path: Path) -> None:
    with life(services, path) as first:
        for n in range(130):
            first.put(f"r{n}", text={"S": "x" * 1000})
        first.keeper.save()
    with life(services, path) as second:
        assert second.dynamodb.scan(TableName=second.names["Requests"], Select="COUNT")["Count"] == 130


def test_what_has_outlived_its_time_to_live_does_not_come_back(services: Services, path: Path) -> None:
    now = time.time()
    with life(services, path) as first:
        first.put("living", expires_at={"N": str(int(now + 3600))})
        first.put("outlived", expires_at={"N": str(int(now + 60))})
        first.put("mistaken", expires_at={"N": str(int(now - 6 * 365 * 24 * 3600))})  # DynamoDB leaves such items alone
        first.put("without")
        first.put("text", expires_at={"S": "soon"})
        first.keeper.save()
    with life(services, path, clock=lambda: now + 600) as second:
        found = {item["pk"]["S"] for item in second.dynamodb.scan(TableName=second.names["Requests"])["Items"]}
        assert found == {"living", "mistaken", "without", "text"}
    with life(services, path) as third:
        assert third.get("outlived") is None


def test_a_refused_write_changes_nothing(services: Services, path: Path) -> None:
    with life(services, path) as first:
        first.put("r1", n={"N": "1"})
        first.keeper.save()
        with pytest.raises(ClientError):
            first.dynamodb.put_item(
                TableName=first.names["Requests"],
                Item={"pk": {"S": "r1"}, "sk": {"S": "head"}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        first.keeper.save()
    with life(services, path) as second:
        assert second.get("r1") == {"pk": {"S": "r1"}, "sk": {"S": "head"}, "n": {"N": "1"}}


def test_nothing_is_saved_before_the_state_was_put_back(services: Services, path: Path) -> None:
    with life(services, path) as first:
        first.put("r1")
        first.keeper.save()
    store = StateStore(path)
    keeper = Keeper(store, services.moto)
    with deployed_stack(services, "kept", TEMPLATE):
        keeper.save()
    assert len(store.items(Place("kept", "Requests"))) == 1
    store.close()


def test_other_stacks_are_kept_apart(services: Services, path: Path) -> None:
    with life(services, path) as first, deployed_stack(services, "second-kept", TEMPLATE) as stack:
        other = outputs_of(stack)["Requests"]
        first.dynamodb.put_item(TableName=other, Item={"pk": {"S": "theirs"}, "sk": {"S": "head"}})
        first.put("ours")
        first.keeper.save()
    with life(services, path) as second:
        assert second.get("theirs") is None
        assert second.get("ours") is not None


def test_a_change_that_could_not_be_saved_is_saved_later(
    services: Services, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with life(services, path) as first:
        first.put("r1")
        where = {"Bucket": first.names["Plain"], "Key": "k"}
        first.s3.put_object(**where, Body=b"1")
        with monkeypatch.context() as patched:
            patched.setattr(StateStore, "write_items", _disk_full)
            with pytest.raises(OSError, match="disk full"):
                first.keeper.save()
        first.keeper.save()
    with life(services, path) as second:
        assert second.get("r1") is not None
        assert second.s3.get_object(**where)["Body"].read() == b"1"


def _disk_full(*_: Any) -> None:
    raise OSError("disk full")


# --- the store ---

PLACE = Place("stack", "Bucket")


def stored(key: str, body: bytes = b"") -> StoredObject:
    return StoredObject(key, "stamp", body, {"etag": "e"})


def test_what_was_written_is_there_without_a_close(path: Path) -> None:
    killed = StateStore(path)
    killed.write_objects(PLACE, [stored("a", b"\x00\xff")], [])
    killed.mark("loaded", "hash")
    reopened = StateStore(path)
    assert [(one.key, one.body) for one in reopened.objects(PLACE)] == [("a", b"\x00\xff")]
    assert reopened.marked("loaded") == "hash"
    assert reopened.marked("other") is None


def test_objects_are_written_together_or_not_at_all(path: Path) -> None:
    store = StateStore(path)
    store.write_objects(PLACE, [stored("segment")], [])

    def half_way() -> Iterator[StoredObject]:
        yield stored("manifest")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        store.write_objects(PLACE, half_way(), ["segment"])
    assert set(store.object_stamps(PLACE)) == {"segment"}


def test_a_database_of_another_version_is_put_aside(path: Path) -> None:
    import sqlite3

    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    store = StateStore(path)
    assert list(store.objects(PLACE)) == []
    assert path.with_suffix(".version-99").exists()
