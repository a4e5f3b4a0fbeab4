"""Log groups: kept for as long as the deployer says, and deleted with their stack."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.settings import LOG_RETENTION, Settings


def log_group(
    scope: Construct, id: str, *, settings: Settings, key: kms.IKey | None, name: str | None = None
) -> logs.LogGroup:
    """A log group.

    Args:
        scope: whose logs these are.
        id: the construct's id.
        settings: the deployer's.
        key: encrypts them; CloudWatch's own key does when None.
        name: chosen by CloudFormation when None.
    """
    return logs.LogGroup(
        scope,
        id,
        log_group_name=name,
        retention=logs.RetentionDays[LOG_RETENTION[settings.log_retention_days]],
        removal_policy=RemovalPolicy.DESTROY,
        encryption_key=key,
    )
