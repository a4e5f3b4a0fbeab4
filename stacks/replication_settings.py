"""Copies of the bucket in another Region: the deployer's settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from stacks.answer_settings import Group


class Replication(Group):
    """Where copies of the bucket's objects go."""

    bucket_arn: (
        Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")] | None
    ) = Field(
        None,
        description="ARN of a versioned bucket in another Region that receives copies of the index, uploads and "
        "audit records (billed by size and transfer); see `docs/recovery.md`",
    )
    key_arn: (
        Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-z0-9-]+$")] | None
    ) = Field(None, description="KMS key in that Region that encrypts the copies; required with `customerManagedKey`")

    @model_validator(mode="after")
    def _a_key_encrypts_copies(self) -> Replication:
        if self.key_arn is not None and self.bucket_arn is None:
            raise ValueError("replication.keyArn: encrypts copies, and replication.bucketArn names no bucket for them")
        return self

    def check_key(self, customer_managed_key: bool) -> None:
        """Raises ValueError if objects are encrypted with a key of the deployer's and no key is named for copies."""
        if self.bucket_arn is not None and (self.key_arn is not None) != customer_managed_key:
            needed = "name a key in the other Region" if customer_managed_key else "is for customerManagedKey only"
            raise ValueError(
                f"replication.keyArn: {needed}. S3 replicates what a KMS key encrypts with another key only"
            )
