"""The retrieval engine that a deployer chooses: what is made for it, and who may call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cicada.retrieval.s3vectors.vector_records import NON_FILTERABLE_KEYS
from stacks.builds import unzipped_bytes
from stacks.findings import flat
from tests.template.templates import FUNCTIONS, ROOT, Synthesis

KENDRA = "12345678-1234-1234-1234-123456789012"
VECTORS = ("AWS::S3Vectors::Index", "AWS::S3Vectors::VectorBucket")


@pytest.fixture(scope="module")
def kendra(make: Callable[[dict[str, Any]], Synthesis], shipped_settings: dict[str, Any]) -> Synthesis:
    retrieval = shipped_settings["retrieval"] | {"engine": "kendra", "kendraIndexId": KENDRA}
    return make(shipped_settings | {"retrieval": retrieval})


def engine_permissions(synthesis: Synthesis) -> set[tuple[str, str, str]]:
    return {
        (function, action, resource)
        for function, id in FUNCTIONS.items()
        for action, resource, _ in synthesis.permissions(id + "Role")
        if action.split(":")[0] in ("s3vectors", "kendra")
    }


def test_by_default_the_function_searches_itself(shipped: Synthesis) -> None:
    environment = shipped.environment("answer")
    assert environment["RETRIEVAL_ENGINE"] == "shards"
    assert not {"S3_VECTORS_INDEX_ARN", "KENDRA_INDEX_ID"} & environment.keys()
    assert list(shipped.resources(*VECTORS)) == []
    assert engine_permissions(shipped) == set()


def test_s3_vectors_gets_an_index_of_the_models_dimensions(full: Synthesis) -> None:
    index, bucket = full.one(VECTORS[0]), full.one(VECTORS[1])
    assert index.properties["Dimension"] == 1536
    assert (index.properties["DataType"], index.properties["DistanceMetric"]) == ("float32", "cosine")
    assert tuple(index.properties["MetadataConfiguration"]["NonFilterableMetadataKeys"]) == NON_FILTERABLE_KEYS
    assert flat(index.properties["VectorBucketArn"]) == f"<{bucket.id}.VectorBucketArn>"
    for resource in (index, bucket):
        encryption = resource.properties["EncryptionConfiguration"]
        assert encryption["SseType"] == "aws:kms"
        assert flat(encryption["KmsKeyArn"]).startswith("<Key")
        assert resource.rest["DeletionPolicy"] == "Delete"


SEARCHERS = ("answer", "corpus", "enrich_schema", "retrieve")
"""The functions that search with the deployment's engine."""


def test_those_who_search_alone_may_query_that_index_and_no_other(full: Synthesis) -> None:
    arn = f"<{full.prefix}-Data.VectorIndexArn>"
    for folder in SEARCHERS:
        assert full.environment(folder)["S3_VECTORS_INDEX_ARN"] == arn
        assert full.environment(folder)["ENGINE_BUDGET_S"] == "1.5"
    assert engine_permissions(full) == {
        (folder, action, arn) for folder in SEARCHERS for action in ("s3vectors:GetVectors", "s3vectors:QueryVectors")
    }
    assert flat(full.template("Gateway")["Outputs"]["VectorIndexArn"]["Value"]) == arn


def test_s3_vectors_is_called_with_an_sdk_that_knows_its_full_text_search(shipped: Synthesis, full: Synthesis) -> None:
    def carriers(synthesis: Synthesis) -> set[str]:
        return {
            folder
            for folder in FUNCTIONS
            if any((layer / "python" / "boto3").exists() for layer in synthesis.layers(folder))
        }

    assert carriers(full) == set(SEARCHERS)
    assert carriers(shipped) == set()
    assert len(full.layers("answer")) <= 5
    carried = sum(unzipped_bytes(layer) for layer in full.layers("answer"))
    assert carried + unzipped_bytes(ROOT / "lambdas" / "answer") <= 250 * 1024**2


def test_kendra_is_called_and_never_created(kendra: Synthesis) -> None:
    assert kendra.environment("answer")["KENDRA_INDEX_ID"] == KENDRA
    assert {r.type for r in kendra.resources() if "Kendra" in r.type} == set()
    arn = f"arn:<AWS::Partition>:kendra:<AWS::Region>:<AWS::AccountId>:index/{KENDRA}"
    assert engine_permissions(kendra) == {(folder, "kendra:Retrieve", arn) for folder in SEARCHERS}
    assert list(kendra.resources(*VECTORS)) == []


def test_vectors_are_kept_when_the_stack_is_deleted_unless_the_deployer_says_otherwise(
    make: Callable[[dict[str, Any]], Synthesis], shipped_settings: dict[str, Any]
) -> None:
    retrieval = shipped_settings["retrieval"] | {"engine": "s3vectors"}
    synthesis = make(shipped_settings | {"retrieval": retrieval})
    for resource in synthesis.resources(*VECTORS):
        assert resource.rest["DeletionPolicy"] == "Retain"
        assert resource.properties["EncryptionConfiguration"] == {"SseType": "AES256"}
