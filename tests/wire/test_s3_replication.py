"""The local cloud's replication: copies under the role's permissions, and configurations that S3 refuses."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cicada_local.calls import Call
from cicada_local.replication import DELAY_S, Replication, ReplicationRefused, check

BUCKET, COPIES = "index", "copies"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        for name in (BUCKET, COPIES):
            client.create_bucket(Bucket=name)
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        yield client


def configured(s3: Any, *, allowed: str = f"arn:aws:s3:::{COPIES}/index/*", deletions: str = "Enabled") -> None:
    iam = boto3.client("iam")
    role = iam.create_role(RoleName="replicates", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    statements = [
        {"Effect": "Allow", "Action": ["s3:ReplicateObject", "s3:ReplicateDelete"], "Resource": allowed},
        {
            "Effect": "Allow",
            "Action": "s3:GetObjectVersionForReplication",
            "Resource": f"arn:aws:s3:::{BUCKET}/index/*",
        },
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName="replicates", PolicyName="p", PolicyDocument=document)
    rule = {
        "Status": "Enabled",
        "Priority": 1,
        "Filter": {"Prefix": "index/"},
        "DeleteMarkerReplication": {"Status": deletions},
        "Destination": {"Bucket": f"arn:aws:s3:::{COPIES}"},
    }
    s3.put_bucket_replication(Bucket=BUCKET, ReplicationConfiguration={"Role": role, "Rules": [rule]})


def happened(operation: str, key: str) -> None:
    """Tell of a call that S3 has answered, and wait until it is replicated."""

    async def told() -> None:
        replication = Replication(threading.Lock(), second_s=0.001 / DELAY_S)
        call = Call("s3", operation, f"{BUCKET}/{key}", "test")
        replication.answered(call, b"", 200)
        await asyncio.gather(*replication._under_way)

    asyncio.run(told())


def copies(s3: Any) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=COPIES).get("Contents", ())]


def test_objects_of_a_rules_prefix_are_copied(s3: Any) -> None:
    configured(s3)
    for key in ("index/a", "prepared/b"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"text")
        happened("PutObject", key)
    assert copies(s3) == ["index/a"]
    assert s3.get_object(Bucket=COPIES, Key="index/a")["Body"].read() == b"text"


@pytest.mark.parametrize(("deletions", "left"), [("Enabled", []), ("Disabled", ["index/a"])])
def test_deletions_are_replicated_as_markers_where_the_rule_says_so(s3: Any, deletions: str, left: list[str]) -> None:
    configured(s3, deletions=deletions)
    s3.put_object(Bucket=BUCKET, Key="index/a", Body=b"text")
    happened("PutObject", "index/a")
    s3.delete_object(Bucket=BUCKET, Key="index/a")
    happened("DeleteObject", "index/a")
    assert copies(s3) == left
    assert len(s3.list_object_versions(Bucket=COPIES)["Versions"]) == 1  # the deleted one can be read by its version


def test_the_deletion_of_a_version_is_not_replicated(s3: Any) -> None:
    configured(s3)
    version = s3.put_object(Bucket=BUCKET, Key="index/a", Body=b"text")["VersionId"]
    happened("PutObject", "index/a")
    s3.delete_object(Bucket=BUCKET, Key="index/a", VersionId=version)
    happened("DeleteObject", "index/a")
    assert copies(s3) == ["index/a"]


def test_a_role_that_may_not_write_copies_replicates_nothing(s3: Any) -> None:
    configured(s3, allowed=f"arn:aws:s3:::{COPIES}/other/*")
    s3.put_object(Bucket=BUCKET, Key="index/a", Body=b"text")
    happened("PutObject", "index/a")
    assert copies(s3) == []


def test_a_configuration_that_s3_refuses_cannot_be_deployed(s3: Any) -> None:
    def rule(bucket: str, **more: Any) -> dict[str, Any]:
        return {"Rules": [{"Destination": {"Bucket": f"arn:aws:s3:::{bucket}"}, **more}]}

    check(rule(COPIES))
    s3.create_bucket(Bucket="plain")
    for refused in (rule("missing"), rule("plain"), rule(COPIES, Filter={"Prefix": "index/"})):
        with pytest.raises(ReplicationRefused):
            check(refused)
