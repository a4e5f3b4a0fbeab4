"""What a deployment can be restored from: deletion protection, the table's past, copies of the bucket elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.context import parse
from stacks.findings import flat
from stacks.settings import ContextInvalid
from tests.template.templates import Synthesis

COPIES = "arn:aws:s3:::copies-of-cicada"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/12345678-1234-1234-1234-123456789012"
PREFIXES = ("index/", "audit/", "incoming/")


def table(synthesis: Synthesis) -> dict[str, Any]:
    return synthesis.one("AWS::DynamoDB::Table").properties


def index_bucket(synthesis: Synthesis) -> tuple[str, dict[str, Any]]:
    found = synthesis.one("AWS::S3::Bucket", stack="Data")
    return found.id, found.properties


def test_a_table_that_outlives_its_stack_cannot_be_deleted(shipped: Synthesis, full: Synthesis) -> None:
    assert table(shipped)["DeletionProtectionEnabled"] is True
    assert table(full)["DeletionProtectionEnabled"] is False  # onDelete: destroy


def test_the_tables_past_is_kept_where_it_is_asked_for(shipped: Synthesis, full: Synthesis) -> None:
    recovery = "PointInTimeRecoverySpecification"
    assert table(shipped)[recovery] == {"PointInTimeRecoveryEnabled": False}
    assert table(full)[recovery] == {"PointInTimeRecoveryEnabled": True}


def test_the_index_is_versioned_and_replicated_only_where_it_is_asked_for(each: Synthesis) -> None:
    _, bucket = index_bucket(each)
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert ("ReplicationConfiguration" in bucket) == (each.prefix == "Other")


def test_index_uploads_and_records_are_replicated(full: Synthesis) -> None:
    _, bucket = index_bucket(full)
    rules = bucket["ReplicationConfiguration"]["Rules"]
    assert [rule["Filter"]["Prefix"] for rule in rules] == list(PREFIXES)
    assert len({rule["Priority"] for rule in rules}) == len(rules)
    assert [rule["DeleteMarkerReplication"]["Status"] for rule in rules] == ["Enabled", "Disabled", "Enabled"]
    for rule in rules:
        assert rule["Destination"]["Bucket"] == "arn:aws:s3:::copies-of-other"
        assert rule["Destination"]["EncryptionConfiguration"] == {"ReplicaKmsKeyID": KEY}
        assert rule["SourceSelectionCriteria"] == {"SseKmsEncryptedObjects": {"Status": "Enabled"}}


def test_s3_may_read_these_prefixes_write_their_copies_and_nothing_else(full: Synthesis) -> None:
    id, bucket = index_bucket(full)
    role = flat(bucket["ReplicationConfiguration"]["Role"]).removeprefix("<").removesuffix(".Arn>")
    allowed: dict[str, set[str]] = {}
    for policy in full.resources("AWS::IAM::Policy", stacks=["Data"]):
        if {flat(one) for one in policy.properties["Roles"]} == {f"<{role}>"}:
            for statement in policy.properties["PolicyDocument"]["Statement"]:
                actions, resources = statement["Action"], statement["Resource"]
                for resource in resources if isinstance(resources, list) else [resources]:
                    found = actions if isinstance(actions, list) else [actions]
                    allowed.setdefault(flat(resource), set()).update(found)
    read = {"s3:GetObjectVersionForReplication", "s3:GetObjectVersionAcl", "s3:GetObjectVersionTagging"}
    written = {"s3:ReplicateObject", "s3:ReplicateDelete", "s3:ReplicateTags"}
    (key,) = (resource for resource in allowed if resource.startswith("<Key"))
    assert allowed == {
        f"<{id}.Arn>": {"s3:GetReplicationConfiguration", "s3:ListBucket"},
        **{f"<{id}.Arn>/{prefix}*": read for prefix in PREFIXES},
        **{f"arn:aws:s3:::copies-of-other/{prefix}*": written for prefix in PREFIXES},
        key: {"kms:Decrypt"},
        KEY: {"kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey"},
    }
    (trust,) = next(r for r in full.resources("AWS::IAM::Role", stacks=["Data"]) if r.id == role).properties[
        "AssumeRolePolicyDocument"
    ]["Statement"]
    assert trust["Principal"] == {"Service": "s3.amazonaws.com"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"replication": {"keyArn": KEY}}, "names no bucket"),
        ({"replication": {"bucketArn": COPIES, "keyArn": KEY}}, "is for customerManagedKey only"),
        ({"replication": {"bucketArn": COPIES}, "customerManagedKey": True}, "name a key in the other Region"),
        ({"replication": {"bucketArn": "copies-of-cicada"}}, "bucketArn"),
    ],
)
def test_replication_that_s3_would_not_carry_out_is_refused(
    shipped_settings: dict[str, Any], settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ContextInvalid, match=told):
        parse(shipped_settings | settings, source="the test")
