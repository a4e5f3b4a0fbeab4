"""Vector buckets and indexes of stacks, in the local cloud's S3 Vectors. What a restart brings back is taken over."""

from __future__ import annotations

from typing import Any

from cicada_local.cloudformation.base import Declaration, Resource, define
from cicada_local.s3vectors.store import Index, VectorStore, bucket_arn, index_arn

BUCKET, INDEX = "AWS::S3Vectors::VectorBucket", "AWS::S3Vectors::Index"

_stores: list[VectorStore] = []


def serve(store: VectorStore) -> None:
    """Make stacks' vector buckets and indexes be those of a store."""
    _stores[:] = [store]


def _store() -> VectorStore:
    if not _stores:
        raise ValueError("no S3 Vectors runs here")
    return _stores[0]


def _create_bucket(declaration: Declaration) -> Resource:
    store, name = _store(), declaration.name.lower()
    with store.lock:
        if name not in store.bucket_names():
            store.create_bucket(name)
    arn = bucket_arn(name)

    def remove() -> None:
        with store.lock:
            store.delete_bucket(name)

    return Resource(arn, {"VectorBucketArn": arn}, remove=remove)


def _create_index(declaration: Declaration) -> Resource:
    store, wanted = _store(), _description(declaration.properties)
    bucket = str(declaration.properties["VectorBucketArn"]).split(":bucket/", 1)[1]
    name = declaration.name.lower()
    arn = index_arn(bucket, name)
    with store.lock:
        if name in store.index_names(bucket) and not _fits(store.index(arn), wanted):
            store.delete_index(arn)
        if name not in store.index_names(bucket):
            store.create_index(bucket, name, wanted)

    def remove() -> None:
        with store.lock:
            store.delete_index(arn)

    return Resource(arn, {"IndexArn": arn}, remove=remove)


def _description(properties: dict[str, Any]) -> dict[str, Any]:
    keys = properties.get("MetadataConfiguration", {}).get("NonFilterableMetadataKeys", [])
    return {
        "dataType": properties["DataType"],
        "dimension": int(properties["Dimension"]),
        "distanceMetric": properties["DistanceMetric"],
        "metadataConfiguration": {"nonFilterableMetadataKeys": list(keys), "textSearchConfigurations": []},
    }


def _fits(index: Index, wanted: dict[str, Any]) -> bool:
    """Whether an index has the settings that cannot be changed."""
    return (index.dimension, index.metric) == (
        wanted["dimension"],
        wanted["distanceMetric"],
    ) and index.non_filterable == frozenset(wanted["metadataConfiguration"]["nonFilterableMetadataKeys"])


define(
    BUCKET,
    create=_create_bucket,
    update=lambda resource, _: resource,
    attributes=("VectorBucketArn", "CreationTime"),
    name_property="VectorBucketName",
)
define(
    INDEX,
    create=_create_index,
    update=lambda _, declaration: _create_index(declaration),
    attributes=("IndexArn", "CreationTime"),
    name_property="IndexName",
)
