"""Policies of buckets, keys and functions; and the keys that encrypt buckets and tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cicada_local.permissions.policies import Statement, parse, text_of
from cicada_local.places import ACCOUNT_ID, REGION

_PARTITION = "aws"
_AWS_OWNED = ("alias/aws/", "AWS_OWNED")

bucket_policies: dict[str, str] = {}
"""The deployed bucket policies by bucket. moto is not told of them: it would deny without looking at conditions."""

queue_policies: dict[str, str] = {}
"""The deployed policies of queues, by the queue's name."""
topic_policies: dict[str, str] = {}
"""The deployed policies of topics, by the topic's ARN."""


def policy_of(arn: str) -> Sequence[Statement]:
    """The statements of a resource's own policy; none if it has none."""
    service, _, named = arn.split(":", 2)[2].partition(":") if arn.startswith("arn:") else ("", "", "")
    match service:
        case "s3":
            return _parsed(bucket_policies.get(named.split(":", 2)[-1].partition("/")[0]))
        case "sqs":
            return _parsed(queue_policies.get(named.rpartition(":")[2]))
        case "sns":
            return _parsed(topic_policies.get(arn))
        case "kms":
            key = _key(arn)
            return () if key is None else parse(text_of(key.policy))
        case "lambda":
            return function_policy(arn)
    return ()


def _parsed(document: str | None) -> Sequence[Statement]:
    return () if document is None else parse(document)


def function_policy(arn: str) -> Sequence[Statement]:
    """The statements that were added to a function by permissions."""
    from moto.awslambda.exceptions import LambdaClientError
    from moto.awslambda.models import lambda_backends

    name = arn.split(":")[6]
    try:
        policy: Any = lambda_backends[ACCOUNT_ID][REGION].get_function(name).policy
    except LambdaClientError:
        return ()
    statements = [] if policy is None else list(policy.statements)
    return parse(json.dumps({"Statement": statements})) if statements else ()


def key_of_bucket(name: str) -> str | None:
    """The ARN of the customer's key that a bucket encrypts with by default; None if it is Amazon's."""
    from moto.s3.models import s3_backends

    bucket: Any = s3_backends[ACCOUNT_ID][_PARTITION].buckets.get(name)
    encryption = None if bucket is None else bucket.encryption
    rules = [] if encryption is None else encryption["Rule"]
    for rule in rules if isinstance(rules, list) else [rules]:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        if default.get("SSEAlgorithm") == "aws:kms":
            return _key_arn(default.get("KMSMasterKeyID"))
    return None


def key_of_table(name: str) -> str | None:
    """The ARN of the customer's key that encrypts a table; None if it is Amazon's."""
    from moto.dynamodb.models import dynamodb_backends

    table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables.get(name)
    specification = None if table is None else table.sse_specification
    return _key_arn(specification.get("KMSMasterKeyId")) if specification else None


def _key_arn(named: str | None) -> str | None:
    if not named or any(part in named for part in _AWS_OWNED):
        return None
    return named if named.startswith("arn:") else f"arn:aws:kms:{REGION}:{ACCOUNT_ID}:key/{named}"


def _key(arn: str) -> Any:
    from moto.kms.models import kms_backends

    return kms_backends[ACCOUNT_ID][REGION].keys.get(arn.rpartition("/")[2])
