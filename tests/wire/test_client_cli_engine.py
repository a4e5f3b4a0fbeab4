"""``cicada engine load`` from the index in S3 into S3 Vectors, as their stand-ins speak them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.ingest.scripts import load_script
from cicada.retrieval.managed import query_config
from cicada.retrieval.ports import SearchQuery
from cicada.retrieval.s3vectors import S3VectorsRetriever
from cicada.retrieval.s3vectors.load import CurrentVersion
from cicada.retrieval.s3vectors.vector_records import NON_FILTERABLE_KEYS
from cicada.rights import EVERYTHING
from cicada_cli.main import main
from cicada_local.s3vectors import S3Vectors, VectorStore
from tests.support.embedding import WordEmbedder
from tests.wire.engine_services import EngineService, serving

EMBEDDER = WordEmbedder()
LINES = [
    ("ep1", "The Boathouse", "ep1-001", "Narrator", "The launch Heron carried her across the lake."),
    ("ep1", "The Boathouse", "ep1-002", "Ada", "Who rang the bell in the night?"),
    ("ep2", "The Gauge Tower", "ep2-001", "Narrator", "She came on foot over the causeway."),
]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of an S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def vectors() -> Iterator[EngineService]:
    service = EngineService()
    with serving(service, S3Vectors(VectorStore(), service.faults, backfill_s=0.0)):
        yield service


@pytest.fixture
def arn(s3: str, vectors: EngineService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """An empty vector index, and an empty bucket, of a deployment that the environment names."""
    name = f"cli-{next(_numbers)}"
    client = vectors.client("s3vectors")
    client.create_vector_bucket(vectorBucketName=name)
    made: str = client.create_index(
        vectorBucketName=name,
        indexName="passages",
        dataType="float32",
        dimension=EMBEDDER.dimensions,
        distanceMetric="cosine",
        metadataConfiguration={"nonFilterableMetadataKeys": list(NON_FILTERABLE_KEYS)},
    )["indexArn"]
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    for variable, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
        "AWS_ENDPOINT_URL_S3VECTORS": vectors.url,
        "CICADA_INDEX_BUCKET": name,
        "CICADA_VECTOR_INDEX_ARN": made,
    }.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    boto3.client("s3").create_bucket(Bucket=name)
    yield made
    vectors.faults.disarm()


def published(*lines: tuple[str, str, str, str, str]) -> CurrentVersion:
    """Load a script into the bucket."""
    names = ("episodeId", "episodeName", "messageId", "speaker", "textENG")
    messages = [{**dict(zip(names, line, strict=True)), "chapterId": f"{line[0]}-c1"} for line in lines]
    path = Path("script.jsonl")
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    load_script([path], "script", bucket(), EMBEDDER)
    return CurrentVersion(bucket())


def bucket() -> S3Store:
    return S3Store(boto3.client("s3", config=CLIENT_CONFIG), os.environ["CICADA_INDEX_BUCKET"])


def test_the_current_version_is_copied_and_found(
    arn: str, vectors: EngineService, capsys: pytest.CaptureFixture[str]
) -> None:
    version = published(*LINES)
    assert main(["engine", "load", "s3vectors"]) == 0
    told = capsys.readouterr()
    count = version.count
    assert told.out.startswith(f"S3 Vectors has version {version.version}: {count} passages ({count} copied, 0 kept")
    assert f"copying: {count} of {count} passages" in told.err
    client = vectors.client("s3vectors", config=query_config(5.0))
    result = S3VectorsRetriever(client, arn, EMBEDDER, bucket()).search(
        SearchQuery("who rang the bell", min_score=0.0, readable=EVERYTHING)
    )
    assert result.index_version == version.version
    assert result.hits[0].passage.text == "Who rang the bell in the night?"
    assert {hit.passage.id for hit in result.hits} <= {passage.id for passage, _ in version.passages()}


def test_a_later_load_copies_and_removes_what_has_changed(
    arn: str, vectors: EngineService, capsys: pytest.CaptureFixture[str]
) -> None:
    published(*LINES)
    assert main(["engine", "load", "s3vectors", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    version = published(*LINES[:2])
    assert main(["engine", "load", "s3vectors", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["version"] == version.version != first["version"]
    assert second["passages"] == version.count == second["kept"] + second["put"]
    assert second["deleted"] == first["passages"] - second["kept"]
    keys = {one["key"].split("/")[1] for one in vectors.client("s3vectors").list_vectors(indexArn=arn)["vectors"]}
    assert keys == {passage.id for passage, _ in version.passages()}


@pytest.mark.usefixtures("arn")
def test_before_anything_is_published_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engine", "load", "s3vectors"]) == 1
    assert "index_missing" in capsys.readouterr().err


@pytest.mark.usefixtures("arn")
def test_a_refusal_of_the_service_is_told(vectors: EngineService, capsys: pytest.CaptureFixture[str]) -> None:
    published(*LINES)
    vectors.faults.arm("s3vectors.error", exception="AccessDeniedException", status=403, operation="PutVectors")
    assert main(["engine", "load", "s3vectors"]) == 1
    assert "index_unavailable" in capsys.readouterr().err


@pytest.mark.usefixtures("arn")
def test_a_deployment_without_that_engine_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CICADA_VECTOR_INDEX_ARN")
    assert main(["engine", "load", "s3vectors"]) == 2
    assert "--vector-index" in capsys.readouterr().err
