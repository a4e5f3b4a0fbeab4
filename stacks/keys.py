"""What functions may do with a customer's key: what S3 and DynamoDB do with it on their behalf.

Sources: Amazon S3 User Guide, "Protecting data using server-side encryption with AWS KMS keys"; Amazon DynamoDB
Developer Guide, "Encryption at rest: how it works".
"""

from __future__ import annotations

from collections.abc import Collection

OBJECT_READER = ("kms:Decrypt",)
OBJECT_WRITER = ("kms:Decrypt", "kms:GenerateDataKey")
"""The first is for uploads in parts."""
TABLE_READER = ("kms:Decrypt", "kms:DescribeKey")
TABLE_WRITER = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


def object_key_actions(actions: Collection[str]) -> tuple[str, ...]:
    """What goes with these actions of S3."""
    return OBJECT_WRITER if "s3:PutObject" in actions else OBJECT_READER
