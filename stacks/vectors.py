"""The vector bucket and index of Amazon S3 Vectors, for those who choose that engine."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3vectors as s3vectors
from constructs import Construct

NON_FILTERABLE_KEYS = ("_text", "_context", "_passage")
"""What a load puts beside each vector and no search filters by; fixed when the index is made. A test compares them with
the library's own."""
INDEX_NAME = "passages"


class VectorIndexResource(Construct):
    """An index of the deployment's embedding model. Full-text search over it is set up by the load."""

    def __init__(
        self, scope: Construct, id: str, *, dimensions: int, removal: RemovalPolicy, key: kms.IKey | None
    ) -> None:
        """Make the bucket and the index.

        Args:
            scope: the stack.
            id: the construct's id.
            dimensions: of the embedding model's vectors; another number makes another index.
            removal: what happens to both when the stack is deleted.
            key: encrypts both; Amazon's own when None.
        """
        super().__init__(scope, id)
        sse_type = "AES256" if key is None else "aws:kms"
        key_arn = None if key is None else key.key_arn
        bucket = s3vectors.CfnVectorBucket(
            self,
            "Bucket",
            encryption_configuration=s3vectors.CfnVectorBucket.EncryptionConfigurationProperty(
                sse_type=sse_type, kms_key_arn=key_arn
            ),
        )
        index = s3vectors.CfnIndex(
            self,
            "Index",
            vector_bucket_arn=bucket.attr_vector_bucket_arn,
            index_name=f"{INDEX_NAME}-{dimensions}",
            data_type="float32",
            dimension=dimensions,
            distance_metric="cosine",
            encryption_configuration=s3vectors.CfnIndex.EncryptionConfigurationProperty(
                sse_type=sse_type, kms_key_arn=key_arn
            ),
            metadata_configuration=s3vectors.CfnIndex.MetadataConfigurationProperty(
                non_filterable_metadata_keys=list(NON_FILTERABLE_KEYS)
            ),
        )
        for resource in (bucket, index):
            resource.apply_removal_policy(removal)
        self.index_arn: str = index.attr_index_arn
