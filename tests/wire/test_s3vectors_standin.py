"""The S3 Vectors stand-in does what AWS does: each line of its conformance list, by a boto3 client over real HTTP."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from cicada_local.s3vectors import S3Vectors, VectorStore, server
from tests.wire.engine_services import ACCOUNT, REGION, EngineService, serving

_numbers = itertools.count()


class Clock:
    """Seconds since the epoch, late in 2026, that only a test moves."""

    def __init__(self) -> None:
        self.now_s = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def standin(clock: Clock) -> Iterator[tuple[EngineService, VectorStore]]:
    service, store = EngineService(), VectorStore(clock=clock)
    with serving(service, S3Vectors(store, service.faults, clock=clock, query_page=3)) as running:
        yield running, store


@pytest.fixture
def service(standin: tuple[EngineService, VectorStore], clock: Clock) -> Iterator[EngineService]:
    clock.now_s += 10  # whatever an earlier test wrote has no effect on the rates
    yield standin[0]
    standin[0].faults.disarm()


@pytest.fixture
def client(service: EngineService) -> Any:
    return service.client("s3vectors", parameter_validation=False)


@pytest.fixture
def arn(client: Any) -> str:
    """An empty index of two dimensions with the searchable key ``text`` and the unfilterable ``note``."""
    return make_index(client)


def make_index(client: Any, **over: Any) -> str:
    bucket = f"vectors-{next(_numbers)}"
    client.create_vector_bucket(vectorBucketName=bucket)
    request: dict[str, Any] = {
        "vectorBucketName": bucket,
        "indexName": "passages",
        "dataType": "float32",
        "dimension": 2,
        "distanceMetric": "cosine",
        "metadataConfiguration": {
            "nonFilterableMetadataKeys": ["text", "note"],
            "textSearchConfigurations": [{"metadataKey": "text", "language": "en"}],
        },
        **over,
    }
    return str(client.create_index(**request)["indexArn"])


def put(client: Any, arn: str, **vectors: tuple[list[float], dict[str, Any]]) -> None:
    listed = [{"key": key, "data": {"float32": data}, "metadata": meta} for key, (data, meta) in vectors.items()]
    client.put_vectors(indexArn=arn, vectors=listed)


def found(client: Any, arn: str, **query: Any) -> list[str]:
    answer = client.query_vectors(**{"indexArn": arn, "topK": 3, **query})
    return [vector["key"] for vector in answer["vectors"]]


def refusal(call: Any, **request: Any) -> tuple[str, str, int]:
    with pytest.raises(ClientError) as raised:
        call(**request)
    response = raised.value.response
    return response["Error"]["Code"], response["Error"]["Message"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_every_line_of_the_conformance_list_has_a_test() -> None:
    lines = re.findall(r"^(V\d\d) ", server.__doc__ or "", re.MULTILINE)
    tested = {name[5:8].upper() for name in globals() if re.match(r"test_v\d\d_", name)}
    assert set(lines) == tested
    assert len(lines) == len(tested)


def test_v01_errors_and_request_ids(client: Any) -> None:
    with pytest.raises(ClientError) as raised:
        client.get_vector_bucket(vectorBucketName="nowhere")
    metadata = raised.value.response["ResponseMetadata"]
    assert metadata["HTTPHeaders"]["x-amzn-errortype"] == "NotFoundException"
    assert re.fullmatch(r"[0-9a-f-]{36}", metadata["RequestId"])
    assert client.list_vector_buckets()["ResponseMetadata"]["HTTPHeaders"]["x-amzn-requestid"]


def test_v02_a_request_without_a_signature(service: EngineService) -> None:
    unsigned = service.client("s3vectors", config=Config(signature_version=UNSIGNED))
    assert refusal(unsigned.list_vector_buckets)[::2] == ("AccessDeniedException", 403)


def test_v03_members_that_break_the_model(client: Any, arn: str) -> None:
    with pytest.raises(ClientError) as raised:
        client.query_vectors(indexArn=arn, topK=0, queryTexts=[{"text": "", "metadataKey": "text"}], filter={})
    response = raised.value.response
    assert response["Error"]["Code"] == "ValidationException"
    assert {field["path"] for field in response["fieldList"]} == {"/topK", "/queryTexts/0/text"}
    code, message, status = refusal(client.put_vectors, indexArn=arn)
    assert (code, status) == ("ValidationException", 400)
    assert "'/vectors'" in message
    assert refusal(client.get_index, indexArn="arn:aws:s3:::bucket")[0] == "ValidationException"


def test_v04_an_index_is_named_in_one_way(client: Any, arn: str) -> None:
    bucket = client.get_index(indexArn=arn)["index"]["vectorBucketName"]
    assert client.get_index(vectorBucketName=bucket, indexName="passages")["index"]["indexArn"] == arn
    for named in ({"indexArn": arn, "indexName": "passages"}, {"indexName": "passages"}, {}):
        assert refusal(client.get_index, **named)[0] == "ValidationException"


def test_v05_what_is_not_there_and_what_is_taken(client: Any, arn: str) -> None:
    bucket = client.get_index(indexArn=arn)["index"]["vectorBucketName"]
    assert refusal(client.get_index, vectorBucketName=bucket, indexName="other")[::2] == ("NotFoundException", 404)
    gone = f"arn:aws:s3vectors:{REGION}:{ACCOUNT}:bucket/nowhere/index/passages"
    assert refusal(client.query_vectors, indexArn=gone, topK=1)[::2] == ("NotFoundException", 404)
    assert refusal(client.create_vector_bucket, vectorBucketName=bucket)[::2] == ("ConflictException", 409)
    assert refusal(client.delete_vector_bucket, vectorBucketName=bucket)[::2] == ("ConflictException", 409)
    client.delete_index(indexArn=arn)
    client.delete_vector_bucket(vectorBucketName=bucket)


@pytest.mark.parametrize("data", [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0], [1e39, 1.0]])
def test_v06_vectors_fit_their_index(client: Any, arn: str, data: list[float]) -> None:
    for call in (
        {"call": client.put_vectors, "vectors": [{"key": "a", "data": {"float32": data}}]},
        {"call": client.query_vectors, "topK": 1, "queryVector": {"float32": data}},
    ):
        assert refusal(indexArn=arn, **call)[0] == "ValidationException"


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({f"k{n}": 1 for n in range(51)}, "Metadata object must have at most 50 keys"),
        ({"label": "x" * 2048}, "Filterable metadata must have at most 2048 bytes"),
        ({"note": "x" * 40960}, "Metadata must have at most 40960 bytes"),
        ({"label": {"nested": 1}}, "must be a string, number, boolean, or a list of these"),
        ({"label": []}, "must be a string, number, boolean, or a list of these"),
    ],
)
def test_v07_metadata_has_limits(client: Any, arn: str, metadata: dict[str, Any], told: str) -> None:
    good = {"key": "good", "data": {"float32": [1.0, 0.0]}}
    bad = {"key": "bad", "data": {"float32": [1.0, 0.0]}, "metadata": metadata}
    code, message, _ = refusal(client.put_vectors, indexArn=arn, vectors=[good, bad])
    assert code == "ValidationException"
    assert message.startswith("Invalid record for key 'bad': ")
    assert told in message
    assert client.list_vectors(indexArn=arn)["vectors"] == []


def test_v08_counts_of_a_call(client: Any, arn: str, clock: Clock) -> None:
    def vectors(count: int) -> list[dict[str, Any]]:
        return [{"key": f"k{n}", "data": {"float32": [1.0, n]}} for n in range(count)]

    client.put_vectors(indexArn=arn, vectors=vectors(500))
    for count in (0, 501):
        assert refusal(client.put_vectors, indexArn=arn, vectors=vectors(count))[0] == "ValidationException"
        keys = [f"k{n}" for n in range(count)]
        assert refusal(client.delete_vectors, indexArn=arn, keys=keys)[0] == "ValidationException"
    assert refusal(client.get_vectors, indexArn=arn, keys=[f"k{n}" for n in range(101)])[0] == "ValidationException"
    put(client, arn, k1=([0.0, 1.0], {"label": "new"}))
    client.delete_vectors(indexArn=arn, keys=["k0", "never was"])
    answer = client.get_vectors(indexArn=arn, keys=["k0", "k1"], returnData=True, returnMetadata=True)
    assert answer["vectors"] == [{"key": "k1", "data": {"float32": [0.0, 1.0]}, "metadata": {"label": "new"}}]


def test_v09_a_request_has_a_limit(client: Any, arn: str) -> None:
    vectors = [{"key": f"k{n}", "data": {"float32": [1.0, 0.0]}, "metadata": {"note": "x" * 65536}} for n in range(330)]
    code, message, _ = refusal(client.put_vectors, indexArn=arn, vectors=vectors)
    assert (code, "payload" in message) == ("ValidationException", True)


def test_v10_listing_pages_and_segments(client: Any, arn: str) -> None:
    vectors = [
        {"key": f"k{n:03}", "data": {"float32": [1.0, n]}, "metadata": {"note": "x" * 20_000}} for n in range(120)
    ]
    client.put_vectors(indexArn=arn, vectors=vectors)
    whole = client.get_paginator("list_vectors")

    def listed(**request: Any) -> list[list[str]]:
        return [[one["key"] for one in page["vectors"]] for page in whole.paginate(indexArn=arn, **request)]

    pages = listed()
    assert [len(page) > 0 for page in pages] == [True] * 3  # 2.4 MB
    assert sorted(itertools.chain(*pages)) == [f"k{n:03}" for n in range(120)]
    assert max(map(len, listed(maxResults=7))) == 7
    segments = [set(itertools.chain(*listed(segmentCount=4, segmentIndex=n))) for n in range(4)]
    assert sum(map(len, segments)) == len(set.union(*segments)) == 120
    assert refusal(client.list_vectors, indexArn=arn, segmentCount=2)[0] == "ValidationException"
    assert refusal(client.list_vectors, indexArn=arn, segmentCount=2, segmentIndex=2)[0] == "ValidationException"


def test_v11_writes_have_a_rate(client: Any, arn: str, clock: Clock) -> None:
    vectors = [{"key": f"k{n}", "data": {"float32": [1.0, n]}} for n in range(500)]
    for _ in range(5):
        client.put_vectors(indexArn=arn, vectors=vectors)
    assert refusal(client.put_vectors, indexArn=arn, vectors=vectors)[::2] == ("TooManyRequestsException", 429)
    clock.now_s += 0.2
    client.put_vectors(indexArn=arn, vectors=vectors)


def test_v12_vectors_rank_by_distance(client: Any, arn: str) -> None:
    near: dict[str, tuple[list[float], dict[str, Any]]] = {
        "a": ([1.0, 0.0], {}),
        "b": ([3.0, 3.0], {}),
        "c": ([-1.0, 0.0], {}),
    }
    put(client, arn, **near)
    answer = client.query_vectors(indexArn=arn, topK=3, queryVector={"float32": [2.0, 0.0]}, returnDistance=True)
    assert [vector["key"] for vector in answer["vectors"]] == ["a", "b", "c"]
    assert [vector["distance"] for vector in answer["vectors"]] == pytest.approx([0.0, 1 - 0.5**0.5, 2.0])
    assert answer["distanceMetric"] == "cosine"
    other = make_index(client, distanceMetric="euclidean")
    put(client, other, **near)
    answer = client.query_vectors(indexArn=other, topK=3, queryVector={"float32": [2.0, 0.0]}, returnDistance=True)
    assert [vector["distance"] for vector in answer["vectors"]] == pytest.approx([1.0, 9.0, 10.0])


def test_v13_words_rank_by_bm25(client: Any, arn: str) -> None:
    put(
        client,
        arn,
        a=([1.0, 0.0], {"text": "The fog bell rings at night"}),
        b=([1.0, 0.0], {"text": "A bell"}),
        c=([1.0, 0.0], {"text": "The harbour is quiet"}),
    )
    texts = [{"text": "BELL in the fog", "metadataKey": "text"}]
    answer = client.query_vectors(indexArn=arn, topK=3, queryTexts=texts, returnScores=True, returnMetadata=True)
    assert [vector["key"] for vector in answer["vectors"]] == ["a", "b", "c"]
    scores = [vector["scores"]["bm25Scores"][0] for vector in answer["vectors"]]
    assert [score["metadataKey"] for score in scores] == ["text"] * 3
    assert scores[0]["score"] > scores[1]["score"] > scores[2]["score"] > 0
    assert "fused" not in answer["vectors"][0]["scores"]
    assert answer["vectors"][0]["metadata"] == {"text": "The fog bell rings at night"}
    plain = client.query_vectors(indexArn=arn, topK=3, queryTexts=texts)
    assert {"scores", "metadata", "distance"} & plain["vectors"][0].keys() == set()


def test_v14_both_are_fused(client: Any, arn: str) -> None:
    put(
        client,
        arn,
        near=([1.0, 0.0], {"text": "Nothing of that"}),
        both=([1.0, 0.1], {"text": "The fog bell"}),
        far=([-1.0, 0.0], {"text": "Silence"}),
    )
    answer = client.query_vectors(
        indexArn=arn,
        topK=3,
        queryVector={"float32": [1.0, 0.0]},
        queryTexts=[{"text": "bell", "metadataKey": "text"}],
        returnScores=True,
        returnDistance=True,
    )
    assert [vector["key"] for vector in answer["vectors"]] == ["both", "near", "far"]
    best, second, _ = (vector["scores"] for vector in answer["vectors"])
    assert best["fused"] > second["fused"] > 0
    assert best["vectorDistance"] == pytest.approx(answer["vectors"][0]["distance"])
    assert best["bm25Scores"][0]["score"] > 0
    assert "bm25Scores" not in second


def test_v15_results_come_in_pages(client: Any, arn: str) -> None:
    put(client, arn, **{f"k{n}": ([1.0, n / 10], {}) for n in range(8)})
    query = {"indexArn": arn, "topK": 7, "queryVector": {"float32": [1.0, 0.0]}}
    first = client.query_vectors(**query)
    assert len(first["vectors"]) == 3
    pages = list(client.get_paginator("query_vectors").paginate(**query))
    assert [one["key"] for page in pages for one in page["vectors"]] == [f"k{n}" for n in range(7)]
    other = {**query, "topK": 6, "nextToken": first["nextToken"]}
    assert refusal(client.query_vectors, **other)[0] == "ValidationException"
    assert refusal(client.query_vectors, **{**query, "topK": 101})[0] == "ValidationException"


FILTERED = {
    "a": ([1.0, 0.0], {"episode": "ep1", "year": 1990, "labels": ["x=1", "y=2"], "text": "bell"}),
    "b": ([1.0, 0.1], {"episode": "ep2", "year": 2000, "labels": ["x=2"], "text": "bell"}),
    "c": ([1.0, 0.2], {"year": 2010, "draft": True, "text": "bell"}),
}


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ({"episode": "ep1"}, "a"),
        ({"episode": {"$eq": "ep2"}}, "b"),
        ({"labels": {"$eq": "y=2"}}, "a"),
        ({"labels": {"$in": ["y=2"]}}, ""),
        ({"episode": {"$ne": "ep1"}}, "b"),
        ({"year": {"$gt": 1990, "$lte": 2010}}, "bc"),
        ({"year": {"$gte": 2000}}, "bc"),
        ({"year": {"$lt": 2000}}, "a"),
        ({"episode": {"$in": ["ep1", "ep3"]}}, "a"),
        ({"episode": {"$nin": ["ep1"]}}, "b"),
        ({"episode": {"$exists": False}}, "c"),
        ({"episode": {"$startsWith": "ep"}}, "ab"),
        ({"draft": True}, "c"),
        ({"draft": {"$eq": 1}}, ""),
        ({"$or": [{"episode": "ep1"}, {"draft": True}]}, "ac"),
        ({"$and": [{"episode": "ep1"}, {"year": {"$gt": 1990}}]}, ""),
        ({"episode": "ep1", "year": 1990}, "a"),
    ],
)
def test_v16_filters_apply_before_ranking(client: Any, arn: str, where: dict[str, Any], keys: str) -> None:
    put(client, arn, **FILTERED)
    wanted = list(keys)
    vector = {"float32": [1.0, 0.0]}
    assert found(client, arn, queryVector=vector, filter=where, topK=max(1, len(wanted))) == wanted
    texts = [{"text": "bell", "metadataKey": "text"}]
    assert sorted(found(client, arn, queryTexts=texts, filter=where)) == wanted
    assert sorted(found(client, arn, queryTexts=texts, queryVector=vector, filter=where)) == wanted


@pytest.mark.parametrize(
    "where",
    [
        {"text": "bell"},
        {"note": {"$exists": True}},
        {"episode": {"$like": "e"}},
        {"episode": {"$in": []}},
        {"episode": {}},
        {"year": {"$gt": "1990"}},
        {"$and": []},
        {"$not": [{"episode": "a"}]},
        {"$or": [{"year": n} for n in range(101)]},
        [],
    ],
)
def test_v17_malformed_filters(client: Any, arn: str, where: Any) -> None:
    code, _, status = refusal(
        client.query_vectors, indexArn=arn, topK=1, queryVector={"float32": [1.0, 0.0]}, filter=where
    )
    assert (code, status) == ("ValidationException", 400)


def test_v18_searchable_keys_can_be_added_later(client: Any, arn: str, clock: Clock) -> None:
    put(client, arn, a=([1.0, 0.0], {"note": "a lamp", "text": "a bell"}))
    added = {"textSearchConfigurations": [{"metadataKey": "note"}]}
    client.update_metadata_configuration(indexArn=arn, add=added)

    def status() -> dict[str, str]:
        configuration = client.get_index(indexArn=arn)["index"]["metadataConfiguration"]
        assert configuration["nonFilterableMetadataKeys"] == ["text", "note"]
        return {one["metadataKey"]: one["status"] for one in configuration["textSearchConfigurations"]}

    assert status() == {"text": "ACTIVE", "note": "BUILDING"}
    clock.now_s += 1
    assert status() == {"text": "ACTIVE", "note": "ACTIVE"}
    assert found(client, arn, queryTexts=[{"text": "lamp", "metadataKey": "note"}]) == ["a"]
    assert refusal(client.update_metadata_configuration, indexArn=arn, add=added)[0] == "ValidationException"
    gone = {"textSearchConfigurations": [{"metadataKey": "note"}]}
    both = {"indexArn": arn, "add": added, "delete": gone}
    assert refusal(client.update_metadata_configuration, **both)[0] == "ValidationException"
    client.update_metadata_configuration(indexArn=arn, delete=gone)
    assert status() == {"text": "ACTIVE"}


def test_v19_words_are_refused_where_they_cannot_be_searched(
    client: Any, arn: str, standin: tuple[EngineService, VectorStore]
) -> None:
    def query(key: str) -> str:
        return refusal(client.query_vectors, indexArn=arn, topK=1, queryTexts=[{"text": "bell", "metadataKey": key}])[1]

    assert "not full-text searchable" in query("other")
    client.update_metadata_configuration(indexArn=arn, add={"textSearchConfigurations": [{"metadataKey": "other"}]})
    assert "not active yet" in query("other")
    standin[1].index(arn).description["indexMode"] = "CLASSIC"
    assert "ENHANCED" in query("text")
    assert refusal(client.query_vectors, indexArn=arn, topK=1)[0] == "ValidationException"


def test_v20_modes(client: Any, arn: str, clock: Clock) -> None:
    assert client.get_index(indexArn=arn)["index"]["indexMode"] == "ENHANCED"
    assert refusal(client.update_index_mode, indexArn=arn, indexMode="CLASSIC")[0] == "ValidationException"
    late = clock.now_s
    try:
        clock.now_s = 1_780_000_000.0  # the middle of 2026
        old = make_index(client)
        bucket = client.get_index(indexArn=old)["index"]["vectorBucketName"]
        client.put_vector_bucket_default_index_mode(vectorBucketName=bucket, defaultIndexMode="CLASSIC")
    finally:
        clock.now_s = late
    assert client.get_vector_bucket(vectorBucketName=bucket)["vectorBucket"]["defaultIndexMode"] == "CLASSIC"
    made = client.create_index(
        vectorBucketName=bucket, indexName="other", dataType="float32", dimension=2, distanceMetric="cosine"
    )["indexArn"]
    assert client.get_index(indexArn=made)["index"]["indexMode"] == "CLASSIC"
    client.update_index_mode(indexArn=made, indexMode="ENHANCED")
    assert client.get_index(indexArn=made)["index"]["indexMode"] == "ENHANCED"


def test_v21_a_query_sees_what_was_written_before(client: Any, arn: str) -> None:
    vector = {"float32": [1.0, 0.0]}
    put(client, arn, a=([1.0, 0.0], {"text": "bell"}))
    assert found(client, arn, queryVector=vector) == ["a"]
    put(client, arn, a=([1.0, 0.0], {"text": "lamp"}))
    assert found(client, arn, queryTexts=[{"text": "bell", "metadataKey": "text"}]) == []
    client.delete_vectors(indexArn=arn, keys=["a"])
    assert found(client, arn, queryVector=vector) == []


def test_faults_strike_the_operation_that_they_name(service: EngineService, client: Any, arn: str) -> None:
    query = {"indexArn": arn, "topK": 1, "queryVector": {"float32": [1.0, 0.0]}}
    service.faults.arm("s3vectors.throttle", times=1, operation="QueryVectors")
    client.list_vectors(indexArn=arn)
    assert refusal(client.query_vectors, **query)[::2] == ("TooManyRequestsException", 429)
    service.faults.arm("s3vectors.error", times=1)
    assert refusal(client.query_vectors, **query)[::2] == ("ServiceUnavailableException", 503)
    client.query_vectors(**query)


def test_what_is_stored_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite3"
    store = VectorStore(path)
    service = EngineService()
    with serving(service, S3Vectors(store, service.faults)):
        arn = make_index(service.client("s3vectors"))
        put(service.client("s3vectors"), arn, a=([0.6, 0.8], {"text": "bell"}), b=([1.0, 0.0], {}))
        service.client("s3vectors").delete_vectors(indexArn=arn, keys=["b"])
    store.close()
    reopened = VectorStore(path)
    with serving(service, S3Vectors(reopened, service.faults)):
        client = service.client("s3vectors")
        answer = client.query_vectors(
            indexArn=arn, topK=3, queryTexts=[{"text": "bell", "metadataKey": "text"}], returnMetadata=True
        )
        assert [json.dumps(vector) for vector in answer["vectors"]] == ['{"key": "a", "metadata": {"text": "bell"}}']
    reopened.close()
