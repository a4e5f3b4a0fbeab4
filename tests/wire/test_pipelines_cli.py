"""``cicada retrieve`` and ``cicada eval --pipeline``: pipelines over S3 and Bedrock as their stand-ins speak them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.index.writer import IndexWriter
from cicada_cli.main import main
from cicada_local.bedrock.tools import Tool
from tests.support.embedding import WordEmbedder
from tests.support.judged_sets import write_beir
from tests.wire import openai_service
from tests.wire.bedrock_service import BedrockService, serving
from tests.wire.deployment_environment import empty_deployment

MODEL, DIMENSIONS = "local.all-minilm-l6-v2", 384
NOVA = "us.amazon.nova-micro-v1:0"
RERANKER = "amazon.rerank-v1:0"
SHELF = {
    "bell": ("w1", "The fog bell rings at night. Nobody rings it."),
    "ferry": ("w1", "The ferry leaves the jetty at noon when no bell is heard."),
    "ledger": ("w2", "A green ledger lies on the desk beside the bell."),
}


def fill(system: str, user: str, tool: Tool) -> Mapping[str, Any]:
    """What a model writes into each form of the pipelines."""
    if tool.name == "wordings":
        return {"queries": ["foghorn at night"]}
    if tool.name == "hypothetical_passage":
        return {"passage": "The fog bell is rung at night by the keeper."}
    passages = user.split('<passage n="')[1:]
    relevant = {text.partition('"')[0]: 9 if "ferry" in text else 2 for text in passages}
    names = ("direct_relevance", "completeness", "specificity")
    return {"marks": [{"n": int(n), **dict.fromkeys(names, mark)} for n, mark in relevant.items()]}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def service() -> Iterator[BedrockService]:
    with serving() as running:
        running.embed = lambda texts: WordEmbedder(dimensions=DIMENSIONS).embed(texts, time_budget_s=1)
        running.fill = fill
        yield running


@pytest.fixture(autouse=True)
def bedrock(s3: str, service: BedrockService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BedrockService:
    """An environment that names a deployment, whose index holds the shelf; what its models are called with."""
    service.calls.clear()
    service.faults.disarm()
    name = empty_deployment(monkeypatch, tmp_path, s3=s3, bedrock=service.url, model=MODEL, dimensions=DIMENSIONS)
    client = boto3.client("s3", config=CLIENT_CONFIG)
    passages = [
        Passage(
            id=key,
            collection="shelf",
            text=text,
            context=text,
            locator=DocumentLocator(source=f"{key}.md", title=key.title()),
            metadata={"workflow_id": workflow, "doc_type": "markdown"},
            codes=(f"C-{key[0].upper()}", "C-0"),
        )
        for key, (workflow, text) in SHELF.items()
    ]
    items = [Indexable(passage, (WeightedText(passage.text, 1.0),)) for passage in passages]
    IndexWriter(S3Store(client, name), WordEmbedder(MODEL, DIMENSIONS)).replace("shelf", items)
    return service


def retrieved(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["retrieve", *arguments, "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [one["id"] for one in found["documents"]]


def test_standard_brings_documents_with_captions(capsys: pytest.CaptureFixture[str]) -> None:
    found = retrieved(capsys, "fog bell at night", "--pipeline", "standard", "--top-k", "2")
    assert (found["success"], found["count"], ids(found)[0], found["degraded"]) == (True, 2, "bell", [])
    (caption, *_) = found["documents"][0]["metadata"]["captions"]
    assert caption["text"] == "The fog bell rings at night."
    assert found["documents"][0]["doc_type"] == "markdown"


def test_a_workflow_sees_its_own_passages_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = retrieved(capsys, "bell", "--pipeline", "standard", "--workflow-id", "w2")
    assert (ids(found), found["total"]) == (["ledger"], 1)


def test_a_re_ranking_model_orders_what_was_found(bedrock: BedrockService, capsys: pytest.CaptureFixture[str]) -> None:
    bedrock.rank = lambda query, texts: [0.9 if "ledger" in text else 0.2 for text in texts]
    found = retrieved(capsys, "bell", "--pipeline", "rerank", "--reranker", RERANKER)
    assert (found["reranked"], ids(found)[0], found["documents"][0]["rerank_score"]) == (True, "ledger", 0.9)
    use = found["model_uses"][0]
    assert (use["stage"], use["model_id"], use["cost_usd"]) == ("rerank", RERANKER, 0.001)


def test_advanced_writes_searches_fuses_and_marks(bedrock: BedrockService, capsys: pytest.CaptureFixture[str]) -> None:
    found = retrieved(capsys, "bell at night", "--reranker", NOVA, "--expansion-model", NOVA)
    assert found["queries_used"] == ["bell at night", "foghorn at night"]
    assert (found["hyde_used"], found["reranked"], found["degraded"]) == (True, True, [])
    assert (ids(found)[0], found["documents"][0]["rerank_score"]) == ("ferry", 0.9)
    calls = {use["stage"]: use["calls"] for use in found["model_uses"]}
    assert calls == {"query_expansion": 1, "hyde": 1, "rerank": 1, "captions": 4}
    assert all(use["cost_usd"] > 0 for use in found["model_uses"][:3])
    assert list(found["timings_ms"])[:4] == ["query_expansion", "hyde", "search", "fusion"]
    assert bedrock.calls["converse"] == 3


def test_models_of_endpoints_of_ones_own_are_called_with_their_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with openai_service.serving() as endpoint:
        endpoint.key = "sk-1"
        endpoint.answer = lambda body: json.dumps({"queries": ["foghorn at night"]})
        price = {"inputUsdPerMillion": 1, "outputUsdPerMillion": 1}
        told = {"my-host": {"baseUrl": endpoint.url, "models": {"model": price}}}
        monkeypatch.setenv("CICADA_MODEL_ENDPOINTS", json.dumps(told))
        monkeypatch.setenv("CICADA_ENDPOINT_KEY_MY_HOST", "sk-1")
        found = retrieved(capsys, "bell at night", "--no-hyde", "--no-rerank", "--expansion-model", "my-host/model")
    assert found["queries_used"] == ["bell at night", "foghorn at night"]
    (use,) = (use for use in found["model_uses"] if use["stage"] == "query_expansion")
    assert (use["model_id"], use["cost_usd"] > 0) == ("my-host/model", True)


def test_without_models_advanced_is_the_search_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["retrieve", "bell"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 3
    assert "skipped rerank (not_configured)" in told.err


def test_facets_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["retrieve", "--pipeline", "facets", "--facet", "entity_codes", "--facet", "workflow_id"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "entity_codes\t3\tC-0",
        "entity_codes\t1\tC-B",
        "entity_codes\t1\tC-F",
        "entity_codes\t1\tC-L",
        "workflow_id\t2\tw1",
        "workflow_id\t1\tw2",
    ]


def test_a_failure_is_a_response_and_an_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boto3.client("s3").create_bucket(Bucket="nothing-here")
    monkeypatch.setenv("CICADA_INDEX_BUCKET", "nothing-here")
    found = retrieved(capsys, "bell", "--pipeline", "standard", status=1)
    assert (found["success"], found["error"]["code"]) == (False, "index_missing")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (("bell", "--top-k", "0"), "top_k"),
        ((" ",), "query"),
        (("bell", "--min-score", "2"), "min_score"),
        (("bell", "--time-budget", "0"), "time_budget_s"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_by_name(
    wrong: tuple[str, ...], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retrieve", *wrong]) == 2
    assert field in capsys.readouterr().err


def test_pipelines_are_measured_beside_modes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ir_measures")
    fog = str(write_beir(tmp_path / "fog"))
    model = ("--embedding-model", MODEL, "--dimensions", str(DIMENSIONS))
    models = ("--reranker", RERANKER, "--expansion-model", NOVA)
    arguments = ["eval", "--dataset", fog, *model, "--pipeline", "standard,advanced", *models]
    assert main([*arguments, "--mode", "hybrid", "--json", "run.json"]) == 0
    _, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert [row[1] for row in rows] == ["hybrid", "standard", "advanced"]
    hybrid, standard, advanced = json.loads(Path("run.json").read_text())["sets"][0]["modes"]
    assert standard["estimates"] == hybrid["estimates"]
    assert (standard["cost"]["modelsUsd"], advanced["cost"]["modelsUsd"] > 0) == (0.0, True)
    assert advanced["degraded"] == {}
    assert main([*arguments, "--gate", "advanced:recall@100>=1,standard:search_p95_ms<=60000"]) == 0


def test_a_pipeline_without_its_models_is_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fog = str(write_beir(tmp_path / "fog"))
    model = ("--embedding-model", MODEL, "--dimensions", str(DIMENSIONS))
    assert main(["eval", "--dataset", fog, *model, "--pipeline", "advanced", "--reranker", RERANKER]) == 2
    assert "--expansion-model ID" in capsys.readouterr().err
