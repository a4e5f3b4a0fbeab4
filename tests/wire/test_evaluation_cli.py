"""``cicada eval`` as it is typed: over an index of its own, a deployment's, and models as their stand-ins speak."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto.server import ThreadedMotoServer

from cicada.models.bedrock import bedrock_client_config
from cicada.retrieval.s3vectors.vector_records import NON_FILTERABLE_KEYS
from cicada_cli.main import main
from cicada_evaluation.report import Report, read_report
from cicada_evaluation.standin import DIMENSIONS, MODEL_ID, embedding_endpoint
from cicada_local.kendra import Kendra
from cicada_local.s3vectors import S3Vectors, VectorStore
from tests.support.embedding import WordEmbedder
from tests.support.judged_sets import DOCUMENTS, write_beir, write_lines
from tests.wire.bedrock_service import BedrockService, serving
from tests.wire.engine_services import EngineService
from tests.wire.engine_services import serving as serving_engines

pytest.importorskip("ir_measures")

TITAN, TITAN_DIMENSIONS = "amazon.titan-embed-text-v2:0", 256
KENDRA_INDEX = "11111111-2222-3333-4444-555555555555"
MODEL = ("--embedding-model", TITAN, "--dimensions", str(TITAN_DIMENSIONS))


@pytest.fixture(scope="module")
def bedrock() -> Iterator[BedrockService]:
    with serving() as service:
        service.embed = lambda texts: WordEmbedder(dimensions=384).embed(texts, time_budget_s=1)
        yield service


@pytest.fixture(autouse=True)
def aws(bedrock: BedrockService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that reaches the stand-in and nothing else, in a folder of the test's own."""
    bedrock.calls.clear()
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", bedrock.url)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fog(tmp_path: Path) -> str:
    return str(write_beir(tmp_path / "fog"))


def run(*arguments: str) -> int:
    return main(["eval", *arguments])


def report_of(*arguments: str) -> Report:
    """The report of a run that must succeed."""
    assert run(*arguments, "--json", "run.json") == 0
    return read_report(Path("run.json"))


def lines(told: str) -> list[dict[str, str]]:
    heading, *rows = (line.split("\t") for line in told.splitlines())
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_a_set_is_measured_in_every_mode(fog: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of("--dataset", fog, *MODEL, "--plot", "chart.svg")
    rows = lines(capsys.readouterr().out)
    assert [(row["set"], row["mode"]) for row in rows] == [("fog", "hybrid"), ("fog", "dense"), ("fog", "keyword")]
    (found,) = report.sets
    for row, mode in zip(rows, found.modes, strict=True):
        assert float(row["ndcg@10"]) == pytest.approx(mode.estimates["ndcg@10"].mean, abs=1e-4)
    hybrid, dense, keyword = (mode.estimates["recall@100"].mean for mode in found.modes)
    assert (hybrid, dense) == (1, 1)  # of four documents none can be missed
    assert keyword < 1  # but by its words: the clock is judged for the bell, and has none of them
    assert (report.embedding_model_id, report.dimensions) == (TITAN, TITAN_DIMENSIONS)
    assert found.indexing is not None
    assert (found.indexing.passages, found.indexing.embedded) == (4, 4)
    assert found.indexing.usd == pytest.approx(found.indexing.tokens * 0.02 / 1e6)
    assert found.indexing.tokens > 0
    assert Path("chart.svg").read_text().startswith("<svg")


def test_a_model_that_tells_passages_from_questions_is_told_which_is_which(fog: str, bedrock: BedrockService) -> None:
    bedrock.raw_bodies.clear()
    report = report_of("--dataset", fog, "--embedding-model", "us.cohere.embed-v4:0", "--dimensions", "256")
    sent = [(body["input_type"], len(body["texts"])) for body in bedrock.bodies]
    assert sent == [("search_document", 4), *[("search_query", 1)] * 3]
    (found,) = report.sets
    assert found.indexing is not None
    assert (found.indexing.usd, found.modes[0].cost.embedding_usd) == (None, None), "it does not count its tokens"


def test_a_model_that_is_not_supported_is_refused(fog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--dataset", fog, "--embedding-model", "amazon.titan-embed-text-v1", "--dimensions", "1536") == 2
    assert "unsupported embedding model amazon.titan-embed-text-v1; supported: " in capsys.readouterr().err


def test_an_index_that_is_kept_is_not_embedded_again(fog: str, bedrock: BedrockService) -> None:
    arguments = ("--dataset", fog, *MODEL, "--mode", "dense", "--work", "kept")
    first = report_of(*arguments)
    bedrock.calls.clear()
    second = report_of(*arguments)
    assert bedrock.calls["invoke"] == 3  # the queries
    assert second.sets[0].indexing is not None
    assert second.sets[0].indexing.embedded == 0
    assert second.sets[0].modes[0].estimates == first.sets[0].modes[0].estimates


def test_an_index_that_is_kept_follows_the_set(fog: str) -> None:
    arguments = ("--dataset", fog, *MODEL, "--mode", "keyword", "--work", "kept")
    report_of(*arguments)
    write_beir(Path(fog), {"d1": ("", "rain"), "d3": ("", "sun"), "d4": ("", "snow")})
    changed = report_of(*arguments)
    assert changed.sets[0].indexing is not None
    assert changed.sets[0].indexing.passages == 3


def test_a_damaged_index_is_made_again(fog: str) -> None:
    arguments = ("--dataset", fog, *MODEL, "--mode", "dense", "--work", "kept")
    before = report_of(*arguments)
    for file in Path("kept").rglob("*.json"):
        file.write_text("{}")
    after = report_of(*arguments)
    assert after.sets[0].modes[0].estimates == before.sets[0].modes[0].estimates


def test_a_gate_that_is_missed_fails_and_says_what(fog: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--dataset", fog, *MODEL, "--mode", "dense,keyword")
    assert run(*arguments, "--gate", "dense:recall@100>=1") == 0
    capsys.readouterr()
    assert run(*arguments, "--gate", "dense:recall@100>=1,dense:mrr@10<=0") == 1
    told = capsys.readouterr().err
    assert "gate missed: fog/dense: mrr@10 is " in told
    assert told.count("gate missed") == 1


def test_a_run_is_held_against_an_earlier_one(fog: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--dataset", fog, *MODEL, "--mode", "dense")
    assert run(*arguments, "--json", "base.json") == 0
    assert run(*arguments, "--gate-against", "base.json", "--compare", "base.json") == 0
    base = json.loads(Path("base.json").read_text())
    base["sets"][0]["modes"][0]["estimates"]["mrr@10"]["mean"] = 1.5
    Path("better.json").write_text(json.dumps(base))
    capsys.readouterr()
    assert run(*arguments, "--gate-against", "better.json") == 1
    assert "more than 0.01 below the earlier 1.5000" in capsys.readouterr().err
    assert run(*arguments, "--gate-against", "better.json", "--tolerance", "2") == 0


def test_two_reports_are_compared_without_a_search(
    fog: str, bedrock: BedrockService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--dataset", fog, *MODEL, "--mode", "keyword", "--json", "one.json") == 0
    assert run("--dataset", fog, *MODEL, "--mode", "dense", "--json", "two.json") == 0
    assert run("--dataset", fog, *MODEL, "--mode", "dense,keyword", "--json", "both.json") == 0
    bedrock.calls.clear()
    capsys.readouterr()
    assert run("--compare", "one.json", "two.json") == 0
    assert {row["mode"] for row in lines(capsys.readouterr().out)} == {"keyword → dense"}
    assert run("--compare", "both.json") == 0
    rows = lines(capsys.readouterr().out)
    assert [row["measure"] for row in rows] == ["ndcg@10", "recall@10", "recall@100", "mrr@10"]
    assert {row["mode"] for row in rows} == {"dense → keyword"}
    assert bedrock.calls.total() == 0


def test_a_set_that_cannot_be_read_is_told_with_its_line(fog: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(Path(fog) / "queries.jsonl", ["{}"])
    assert run("--dataset", fog, *MODEL) == 1
    assert "queries.jsonl:1: _id must be a string" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "missing --dataset to measure, or --compare with reports"),
        (("--dataset", "fog", "--mode", "kendra"), "--kendra-index"),
        (("--dataset", "fog", "--mode", "s3vectors"), "--vector-index"),
        (("--dataset", "fog", "--embedding-model", "x"), "must be given together"),
        (("--dataset", "fog", "--gate", "fast"), "is no condition"),
        (("--dataset", "fog", "--gate", ""), "the gate holds no condition"),
        (("--compare", "a", "--gate", ""), "a gate needs a --dataset"),
        (("--dataset", "fog", "--dataset", "other/fog", *MODEL), "must have different names"),
        (("--compare", "a", "b", "c"), "takes one or two reports"),
        (("--compare", "a", "--gate", "ndcg@10>=1"), "a gate needs a --dataset"),
        (("--dataset", "fog", "--gate-against", "nowhere.json"), "nowhere.json: cannot be read"),
        (("--dataset", "fog", "--json", "no/folder.json"), "folder no does not exist"),
        (("--dataset", "fog", "--compare", "a", "b"), "one earlier report"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: tuple[str, ...], told: str, fog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_beir(Path("other") / "fog")
    assert run(*arguments) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [("--mode", "magic"), ("--recall", "0"), ("--recall", "500"), ("--limit", "0"), ("--plot", "a.png")]
)
def test_an_option_out_of_range_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--dataset", "fog", *arguments)


def test_a_deployments_index_is_searched_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("CICADA_INDEX_BUCKET", "index")
        monkeypatch.setenv("CICADA_EMBEDDING_MODEL_ID", TITAN)
        monkeypatch.setenv("CICADA_EMBEDDING_DIMENSIONS", str(TITAN_DIMENSIONS))
        boto3.client("s3").create_bucket(Bucket="index")
        said = {"m1": "The fog bell rings at night.", "m2": "A green ledger.", "m3": "The fog bell is green."}
        write_lines(tmp_path / "script.jsonl", (json.dumps(message(name, text)) for name, text in said.items()))
        assert main(["load", "script.jsonl", "--collection", "ferry"]) == 0
        assert main(["load", "script.jsonl", "--collection", "copy"]) == 0
        questions = [{"id": "a", "question": "the green ledger", "answers": ["m2"], "episodes": ["ep1"]}]
        write_lines(tmp_path / "asked.jsonl", map(json.dumps, questions))
        report = report_of("--dataset", "asked.jsonl", "--collection", "ferry", "--mode", "dense")
    finally:
        server.stop()
    (mode,) = report.sets[0].modes
    assert mode.queries[0].top[0] == "m2"
    assert sorted(mode.queries[0].top) == ["m1", "m2", "m3"]
    assert report.sets[0].indexing is None


def message(name: str, text: str) -> dict[str, Any]:
    place = {"episodeId": "ep1", "episodeName": "One", "chapterId": "c1", "messageId": name, "speaker": "Ada"}
    return {**place, "textENG": text}


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineService]:
    """Both managed engines."""
    service = EngineService()
    vectors = S3Vectors(VectorStore(), service.faults, backfill_s=0.0)
    with serving_engines(service, vectors, Kendra(service.faults, [KENDRA_INDEX])) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", running.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_KENDRA", running.url)
        yield running


def test_a_set_is_loaded_into_s3_vectors_and_searched_there(fog: str, engines: EngineService) -> None:
    client = engines.client("s3vectors")
    client.create_vector_bucket(vectorBucketName="eval")
    index = client.create_index(
        vectorBucketName="eval",
        indexName="fog",
        dataType="float32",
        dimension=TITAN_DIMENSIONS,
        distanceMetric="cosine",
        metadataConfiguration={"nonFilterableMetadataKeys": list(NON_FILTERABLE_KEYS)},
    )
    arguments = ("--dataset", fog, *MODEL, "--mode", "dense,s3vectors", "--vector-index", index["indexArn"])
    dense, managed = report_of(*arguments).sets[0].modes
    assert (managed.engine, managed.degraded) == ("s3vectors", {})
    assert managed.estimates["recall@10"].mean == 1
    assert managed.index_version == dense.index_version
    assert managed.cost.engine_usd is not None
    assert managed.cost.engine_usd > 0


def test_kendras_documents_are_judged_and_nothing_is_indexed(
    fog: str, engines: EngineService, bedrock: BedrockService
) -> None:
    documents = [
        {"Id": name, "Title": title, "Blob": text.encode(), "Attributes": []}
        for name, (title, text) in DOCUMENTS.items()
    ]
    engines.client("kendra").batch_put_document(IndexId=KENDRA_INDEX, Documents=documents)
    (found,) = report_of("--dataset", fog, *MODEL, "--mode", "kendra", "--kendra-index", KENDRA_INDEX).sets
    assert found.modes[0].queries[0].top[0] == "d1"
    assert (found.modes[0].engine, found.indexing, found.embedding) == ("kendra", None, None)
    assert bedrock.calls.total() == 0


def test_an_engine_that_is_down_ends_the_run(
    fog: str, engines: EngineService, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = KENDRA_INDEX.replace("1", "9")
    assert run("--dataset", fog, *MODEL, "--mode", "kendra", "--kendra-index", unknown) == 1
    assert "index_missing" in capsys.readouterr().err


def test_questions_alone_need_an_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = [{"id": "a", "question": "the green ledger", "answers": ["m2"], "episodes": []}]
    write_lines(tmp_path / "asked.jsonl", map(json.dumps, questions))
    assert run("--dataset", "asked.jsonl", *MODEL) == 2
    assert "name the --collection" in capsys.readouterr().err


def test_a_laptop_needs_no_model_of_aws(fog: str, bedrock: BedrockService) -> None:
    report = report_of("--dataset", fog, "--mode", "dense")
    assert (report.embedding_model_id, report.dimensions) == (MODEL_ID, DIMENSIONS)
    assert report.sets[0].modes[0].estimates["ndcg@10"].mean > 0.9  # MiniLM knows a clock from a bell
    assert report.sets[0].modes[0].cost.usd_per_1000_queries == 0
    assert bedrock.calls.total() == 0


def test_the_laptops_model_ends_with_the_command() -> None:
    with embedding_endpoint() as url:
        client = boto3.client("bedrock-runtime", endpoint_url=url, config=bedrock_client_config())
        body = json.dumps({"inputText": "fog", "dimensions": DIMENSIONS, "normalize": True})
        response = client.invoke_model(modelId=MODEL_ID, body=body)
        assert len(json.loads(response["body"].read())["embedding"]) == DIMENSIONS
    with pytest.raises(EndpointConnectionError):
        client.invoke_model(modelId=MODEL_ID, body=body)
