"""The managed engines as parts of the local cloud: behind the front server, and made by stacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cicada_local.cloudformation import vectors
from cicada_local.cloudformation.base import Declaration
from cicada_local.faults import Faults
from cicada_local.kendra import Kendra
from cicada_local.kendra.server import LOCAL_INDEX_ID
from cicada_local.s3vectors import S3Vectors, VectorStore
from tests.wire.local_services import Services, deployed_stack, outputs_of, running_services

TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Bucket": {"Type": "AWS::S3Vectors::VectorBucket", "Properties": {}},
        "Index": {
            "Type": "AWS::S3Vectors::Index",
            "Properties": {
                "VectorBucketArn": {"Fn::GetAtt": ["Bucket", "VectorBucketArn"]},
                "IndexName": "passages-2",
                "DataType": "float32",
                "Dimension": 2,
                "DistanceMetric": "cosine",
                "MetadataConfiguration": {"NonFilterableMetadataKeys": ["_text"]},
            },
        },
    },
    "Outputs": {"Arn": {"Value": {"Fn::GetAtt": ["Index", "IndexArn"]}}},
}


@pytest.fixture(scope="module")
def store() -> VectorStore:
    return VectorStore()


@pytest.fixture(scope="module")
def services(store: VectorStore) -> Iterator[Services]:
    faults = Faults()
    with running_services(S3Vectors(store, faults), Kendra(faults)) as running:
        vectors.serve(store)
        yield running


def test_each_call_is_counted_under_its_own_name(services: Services) -> None:
    services.calls.clear()
    services.client("s3vectors").create_vector_bucket(vectorBucketName="counted")
    services.client("kendra").retrieve(IndexId=LOCAL_INDEX_ID, QueryText="bell")
    services.client("s3").list_buckets()
    assert services.calls.counts() == {"kendra.Retrieve": 1, "s3.ListBuckets": 1, "s3vectors.CreateVectorBucket": 1}
    assert [(call["service"], call["resource"]) for call in services.calls.last()][1] == ("kendra", LOCAL_INDEX_ID)


def test_a_stack_makes_an_index_that_takes_vectors(services: Services, store: VectorStore) -> None:
    before = store.bucket_names()
    with deployed_stack(services, "Engines", TEMPLATE) as stack:
        arn = outputs_of(stack)["Arn"]
        client = services.client("s3vectors")
        index = client.get_index(indexArn=arn)["index"]
        assert (index["dimension"], index["indexMode"], index["indexName"]) == (2, "ENHANCED", "passages-2")
        assert index["metadataConfiguration"]["nonFilterableMetadataKeys"] == ["_text"]
        client.put_vectors(indexArn=arn, vectors=[{"key": "a", "data": {"float32": [1.0, 0.0]}}])
        assert [one["key"] for one in client.list_vectors(indexArn=arn)["vectors"]] == ["a"]
    assert store.bucket_names() == before


def test_a_stack_that_is_deployed_anew_finds_its_vectors(services: Services, store: VectorStore) -> None:
    client = services.client("s3vectors")
    created = vectors._create_bucket(_declared("engines-bucket", {}))
    properties = {**TEMPLATE["Resources"]["Index"]["Properties"], "VectorBucketArn": created.physical_resource_id}
    arn = vectors._create_index(_declared("passages-2", properties)).physical_resource_id
    client.put_vectors(indexArn=arn, vectors=[{"key": "a", "data": {"float32": [1.0, 0.0]}}])
    vectors._create_bucket(_declared("engines-bucket", {}))
    assert vectors._create_index(_declared("passages-2", properties)).physical_resource_id == arn
    assert len(client.list_vectors(indexArn=arn)["vectors"]) == 1
    vectors._create_index(_declared("passages-2", properties | {"Dimension": 3}))
    assert client.get_index(indexArn=arn)["index"]["dimension"] == 3
    assert client.list_vectors(indexArn=arn)["vectors"] == []


def _declared(name: str, properties: dict[str, Any]) -> Declaration:
    return Declaration(name, properties, "123456789012", "us-east-1")
