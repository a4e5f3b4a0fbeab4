"""Buckets with versioning and events, tables with their options and later indexes, which moto leaves out."""

from __future__ import annotations

import json
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.s3.models import FakeBucket, s3_backends
from moto.utilities.utils import get_partition

from cicada_local.cloudformation.base import Declaration, Resource, define, forgetting
from cicada_local.permissions.policies import parse
from cicada_local.permissions.resources import bucket_policies
from cicada_local.replication import check

BUCKET, BUCKET_POLICY = "AWS::S3::Bucket", "AWS::S3::BucketPolicy"
TABLES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
"""The second is the CDK's ``TableV2``; its replica in the stack's own region is the table."""


def _create_bucket(declaration: Declaration) -> FakeBucket:
    bucket = FakeBucket.create_from_cloudformation_json(
        declaration.name, {"Properties": declaration.properties}, declaration.account_id, declaration.region_name
    )
    return _configured(bucket, declaration)


def _update_bucket(bucket: FakeBucket, declaration: Declaration) -> FakeBucket:
    json = {"Properties": declaration.properties}
    updated = FakeBucket.update_from_cloudformation_json(
        bucket, declaration.name, json, declaration.account_id, declaration.region_name
    )
    return _configured(updated, declaration)


def _configured(bucket: FakeBucket, declaration: Declaration) -> FakeBucket:
    """With its versioning and replication, and with events on the bus where they are wanted."""
    backend = s3_backends[declaration.account_id][get_partition(declaration.region_name)]
    status = declaration.properties.get("VersioningConfiguration", {}).get("Status")
    if status:
        backend.put_bucket_versioning(bucket.name, status)
    notified = declaration.properties.get("NotificationConfiguration", {}).get("EventBridgeConfiguration")
    if notified is not None and str(notified.get("EventBridgeEnabled", True)).lower() == "true":
        backend.put_bucket_notification_configuration(bucket.name, {"EventBridgeConfiguration": {}})
    replication = declaration.properties.get("ReplicationConfiguration")
    if replication is None:
        backend.delete_bucket_replication(bucket.name)
    else:
        check(replication)
        backend.put_bucket_replication(bucket.name, {"Role": replication["Role"], "Rule": replication["Rules"]})
    return bucket


def _delete_bucket(declaration: Declaration) -> None:
    FakeBucket.delete_from_cloudformation_json(
        declaration.name, {"Properties": declaration.properties}, declaration.account_id, declaration.region_name
    )


def _create_policy(declaration: Declaration) -> Resource:
    bucket = declaration.properties["Bucket"]

    def replace(properties: dict[str, Any]) -> None:
        document = json.dumps(properties["PolicyDocument"])
        parse(document)
        bucket_policies[bucket] = document

    replace(declaration.properties)
    return Resource(bucket, {}, replace=replace, remove=forgetting(bucket_policies, bucket))


def _update_policy(policy: Resource, declaration: Declaration) -> Resource:
    policy.replace(declaration.properties)
    return policy


def _create_table(declaration: Declaration) -> Table:
    properties = declaration.properties
    replicas = properties.get("Replicas", [])
    replica = next((one for one in replicas if one.get("Region") == declaration.region_name), properties)
    in_moto_terms = {
        **properties,
        "DeletionProtectionEnabled": replica.get("DeletionProtectionEnabled", False),
        "Tags": replica.get("Tags"),
        "SSESpecification": _encryption(properties.get("SSESpecification")),
    }
    table = Table.create_from_cloudformation_json(
        declaration.name, {"Properties": in_moto_terms}, declaration.account_id, declaration.region_name
    )
    return _with_options(table, declaration)


def _with_options(table: Table, declaration: Declaration) -> Table:
    """With its time to live, its protection against deletion, and point-in-time recovery."""
    backend = dynamodb_backends[declaration.account_id][declaration.region_name]
    specification = declaration.properties.get("TimeToLiveSpecification")
    if specification:
        backend.update_time_to_live(table.name, specification)
    recovery = declaration.properties.get("PointInTimeRecoverySpecification")
    if recovery:
        enabled = str(recovery["PointInTimeRecoveryEnabled"]).lower() == "true"
        backend.update_continuous_backups(table.name, {"PointInTimeRecoveryEnabled": enabled})
    protected = declaration.properties.get("DeletionProtectionEnabled")
    if protected is not None:
        table.deletion_protection_enabled = str(protected).lower() == "true"
    return table


def _update_table(table: Table, declaration: Declaration) -> Table:
    """Change what may change of a table: its time to live, and its indexes, of which it may get one at a time."""
    declared = {index["IndexName"]: index for index in declaration.properties.get("GlobalSecondaryIndexes", [])}
    there = {index.name for index in table.global_indexes}
    changes = [
        *({"Delete": {"IndexName": name}} for name in sorted(there - declared.keys())),
        *({"Create": declared[name]} for name in sorted(declared.keys() - there)),
    ]
    if changes:
        backend: Any = dynamodb_backends[declaration.account_id][declaration.region_name]
        backend.update_table(
            table.name,
            attr_definitions=declaration.properties["AttributeDefinitions"],
            global_index=changes,
            throughput=None,
            billing_mode=None,
            stream_spec=None,
            deletion_protection_enabled=None,
            warm_throughput=None,
        )
    return _with_options(table, declaration)


def _delete_table(declaration: Declaration) -> None:
    dynamodb_backends[declaration.account_id][declaration.region_name].delete_table(declaration.name)


def _encryption(specification: dict[str, Any] | None) -> dict[str, Any] | None:
    """The API's form: ``Enabled`` where the template says ``SSEEnabled``."""
    if specification is None:
        return None
    key = {name: specification[name] for name in ("KMSMasterKeyId",) if name in specification}
    return {"Enabled": specification.get("SSEEnabled", False), "SSEType": specification.get("SSEType", "KMS"), **key}


define(
    BUCKET,
    create=_create_bucket,
    update=_update_bucket,
    delete=_delete_bucket,
    attributes=("Arn", "DomainName", "DualStackDomainName", "RegionalDomainName", "WebsiteURL"),
    name_property="BucketName",
)
define(BUCKET_POLICY, create=_create_policy, update=_update_policy, attributes=())
for _type in TABLES:
    define(
        _type,
        create=_create_table,
        update=_update_table,
        delete=_delete_table,
        attributes=("Arn", "StreamArn"),
        name_property="TableName",
    )
