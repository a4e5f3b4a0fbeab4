"""Audit records: who may write, read, replace and delete them, and what makes CloudFormation record settings."""

from __future__ import annotations

from typing import Any

from cicada_local.permissions.conditions import like
from stacks.findings import flat
from stacks.settings import Settings
from stacks.settings_record import record
from tests.template.templates import FUNCTIONS, Synthesis, as_list

A_RECORD = "audit/2026/11/25/20261125T120000.000000Z-0123456789abcdef.json"
WRITERS = {"ingest_commit", "index_document", "record_settings"}
"""The functions that publish versions, and the one that records settings."""
ONLY_NEW = {"Null": {"s3:if-none-match": "false"}}


def covers(resource: str, key: str) -> bool:
    """Whether an ARN in a policy can be an object's of this key, whatever its bucket."""
    bucket, _, path = resource.partition("/")
    return resource == "*" or (like(key, path) if path else bucket.endswith("*"))


def permissions_but_replication(synthesis: Synthesis) -> list[tuple[str, str, dict[str, Any] | None]]:
    """What roles may do, without the one in which S3 copies the bucket's objects; see test_template_backups.py."""
    copying = list(synthesis.permissions("IndexReplicationRole"))
    return [one for one in synthesis.permissions("") if one not in copying]


def test_no_role_reads_or_deletes_records_and_only_writers_add_them(each: Synthesis) -> None:
    for id in (*FUNCTIONS.values(), ""):
        for action, resource, condition in each.permissions(id + "Role") if id else permissions_but_replication(each):
            if action.startswith("s3:") and covers(resource, A_RECORD):
                assert (action, condition) == ("s3:PutObject", ONLY_NEW)
    adding = {
        name
        for name, id in FUNCTIONS.items()
        if any(
            covers(resource, A_RECORD) for action, resource, _ in each.permissions(id + "Role") if action[:3] == "s3:"
        )
    }
    assert adding == WRITERS


def test_roles_list_the_folders_that_they_read_alone(each: Synthesis) -> None:
    conditions = [
        condition
        for action, resource, condition in permissions_but_replication(each)
        if action == "s3:ListBucket" and "Index" in resource
    ]
    assert len(conditions) >= 8
    for condition in conditions:
        assert condition is not None
        prefixes = as_list(condition["StringLikeIfExists"]["s3:prefix"])
        assert prefixes
        assert not any(like("audit/", prefix) for prefix in prefixes)


def test_nobody_replaces_records_and_nobody_deletes_those_that_are_kept(shipped: Synthesis, local: Synthesis) -> None:
    for synthesis, kept in ((shipped, True), (local, False)):
        statements = synthesis.one("AWS::S3::BucketPolicy", stack="Data").properties["PolicyDocument"]["Statement"]
        by_id = {statement["Sid"]: statement for statement in statements if "Sid" in statement}
        replaced = by_id["RecordsAreNotReplaced"]
        assert (replaced["Effect"], replaced["Principal"]) == ("Deny", {"AWS": "*"})
        assert replaced["Condition"] == {"Null": {"s3:if-none-match": "true"}}
        assert covers(flat(replaced["Resource"]), A_RECORD)
        assert ("RecordsAreNotDeleted" in by_id) == kept
        if kept:
            deleted = by_id["RecordsAreNotDeleted"]
            assert deleted["Effect"] == "Deny"
            assert as_list(deleted["Action"]) == ["s3:DeleteObject", "s3:DeleteObjectVersion"]
            assert covers(flat(deleted["Resource"]), A_RECORD)


def test_no_rule_lets_records_expire(each: Synthesis) -> None:
    rules = each.one("AWS::S3::Bucket", stack="Data").properties["LifecycleConfiguration"]["Rules"]
    assert all(rule.get("Prefix") for rule in rules if "ExpirationInDays" in rule)
    assert not [rule for rule in rules if "audit/".startswith(rule.get("Prefix", "none"))]


def test_readers_may_list_and_read_records_and_nothing_else(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, more in ((shipped, set()), (full, {"kms:Decrypt"})):
        policy = synthesis.one("AWS::IAM::ManagedPolicy", stack="Data").properties
        found = {action: one for one in policy["PolicyDocument"]["Statement"] for action in as_list(one["Action"])}
        assert found.keys() == {"s3:GetObject", "s3:ListBucket"} | more
        assert flat(found["s3:GetObject"]["Resource"]).endswith("/audit/*")
        assert found["s3:ListBucket"]["Condition"] == {"StringLike": {"s3:prefix": "audit/*"}}
        assert not {"Roles", "Users", "Groups"} & policy.keys()
        assert "AuditReadersPolicyArn" in synthesis.template("Data")["Outputs"]


def test_a_change_of_any_setting_invokes_the_function_that_records_it(shipped: Synthesis, local: Synthesis) -> None:
    before, after = (one.one("Custom::RecordedSettings").properties for one in (shipped, local))
    assert flat(before["ServiceToken"]) == f"<{shipped.function('record_settings').id}.Arn>"
    assert before["Settings"].keys() == record(Settings()).keys() == after["Settings"].keys()
    assert before["Settings"] != after["Settings"]
    assert all(len(digest) == 6 for digest in before["Settings"].values())
