"""Replication of the index, audit records and uploads to a bucket in another Region: its rules and role.

Sources: Amazon S3 User Guide, "Setting up permissions for live replication" and "Replicating encrypted objects".
"""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cicada.audit.records import AUDIT_PREFIX
from cicada.index.manifest import PREFIX as INDEX_PREFIX
from cicada.ingest.incoming.places import INCOMING
from stacks.findings import accept, as_reported
from stacks.replication_settings import Replication

REPLICATED = {INDEX_PREFIX: True, AUDIT_PREFIX: False, INCOMING: True}
"""Prefixes that are replicated, and whether deletions are too. All others hold what can be made again."""


def replicate(bucket: s3.Bucket, key: kms.Key | None, replication: Replication) -> None:
    """Replicate a versioned bucket, in a role that may read these prefixes and write their copies."""
    if replication.bucket_arn is None:
        return
    role = _Role(bucket, key, replication.bucket_arn, replication.key_arn).role
    made = bucket.node.default_child
    assert isinstance(made, s3.CfnBucket)
    made.replication_configuration = s3.CfnBucket.ReplicationConfigurationProperty(
        role=role.role_arn,
        rules=[
            _rule(replication, prefix, priority, deletions)
            for priority, (prefix, deletions) in enumerate(REPLICATED.items(), start=1)
        ],
    )


def _rule(
    replication: Replication, prefix: str, priority: int, deletions: bool
) -> s3.CfnBucket.ReplicationRuleProperty:
    assert replication.bucket_arn is not None
    encrypted = replication.key_arn is not None
    return s3.CfnBucket.ReplicationRuleProperty(
        id=prefix.strip("/"),
        status="Enabled",
        priority=priority,
        filter=s3.CfnBucket.ReplicationRuleFilterProperty(prefix=prefix),
        delete_marker_replication=s3.CfnBucket.DeleteMarkerReplicationProperty(
            status="Enabled" if deletions else "Disabled"
        ),
        source_selection_criteria=s3.CfnBucket.SourceSelectionCriteriaProperty(
            sse_kms_encrypted_objects=s3.CfnBucket.SseKmsEncryptedObjectsProperty(status="Enabled")
        )
        if encrypted
        else None,
        destination=s3.CfnBucket.ReplicationDestinationProperty(
            bucket=replication.bucket_arn,
            encryption_configuration=s3.CfnBucket.EncryptionConfigurationProperty(
                replica_kms_key_id=replication.key_arn
            )
            if replication.key_arn is not None
            else None,
        ),
    )


class _Role:
    """What S3 may do to replicate. Its policy is a resource of its own, made after the bucket that names the role."""

    def __init__(self, bucket: s3.Bucket, key: kms.Key | None, copies: str, copies_key: str | None) -> None:
        scope = Construct(bucket, "Replication")
        self.role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("s3.amazonaws.com"))
        read = [bucket.arn_for_objects(f"{prefix}*") for prefix in REPLICATED]
        written = [f"{copies}/{prefix}*" for prefix in REPLICATED]
        self._allow([bucket.bucket_arn], "s3:GetReplicationConfiguration", "s3:ListBucket")
        self._allow(
            read,
            "s3:GetObjectVersionForReplication",
            "s3:GetObjectVersionAcl",
            "s3:GetObjectVersionTagging",
        )
        self._allow(written, "s3:ReplicateObject", "s3:ReplicateDelete", "s3:ReplicateTags")
        if key is not None and copies_key is not None:
            stack = Stack.of(bucket)
            self._allow([key.key_arn], "kms:Decrypt", via=f"s3.{stack.region}.{stack.url_suffix}")
            via = f"s3.{copies_key.split(':')[3]}.{stack.url_suffix}"
            self._allow([copies_key], "kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", via=via)
        policy = self.role.node.find_child("DefaultPolicy")
        reason = "Objects of the index, uploads and audit records have names that are not known beforehand."
        accept(
            policy, {f"AwsSolutions-IAM5[Resource::{as_reported(policy, one)}]": reason for one in (*read, *written)}
        )

    def _allow(self, resources: list[str], *actions: str, via: str | None = None) -> None:
        conditions = None if via is None else {"StringEquals": {"kms:ViaService": via}}
        self.role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=resources, conditions=conditions))
