"""``cicada eval --answers`` as it is typed: over an index of its own, with models as their stand-ins speak."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from cicada_cli.main import main
from cicada_evaluation.report import AnswersResult, read_report
from tests.support.embedding import WordEmbedder
from tests.support.judged_sets import write_beir, write_lines
from tests.wire.bedrock_service import BedrockService, serving
from tests.wire.openai_service import OpenAiService
from tests.wire.openai_service import serving as serving_endpoint

TITAN, TITAN_DIMENSIONS = "amazon.titan-embed-text-v2:0", 256
MODEL = ("--embedding-model", TITAN, "--dimensions", str(TITAN_DIMENSIONS))
NOVA = "amazon.nova-lite-v1:0"
BELL = "the fog bell rings at night"


@pytest.fixture(scope="module")
def bedrock() -> Iterator[BedrockService]:
    with serving() as service:
        service.embed = lambda texts: WordEmbedder(dimensions=384).embed(texts, time_budget_s=1)
        yield service


@pytest.fixture(autouse=True)
def aws(bedrock: BedrockService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that reaches the stand-in and nothing else, in a folder of the test's own."""
    bedrock.calls.clear()
    bedrock.raw_bodies.clear()
    bedrock.answer = quotes
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


def quotes(system: str, user: str) -> str:
    """An honest model: it quotes the bell's passage where that is the first, and else says that nothing is there."""
    return f"“{BELL}” [1]." if 'n="1"' in user and BELL in user.split('n="2"')[0] else "The passages do not say."


def run(*arguments: str) -> int:
    return main(["eval", "--answers", "--min-score", "0", *arguments])


def answers_of(*arguments: str) -> tuple[AnswersResult, ...]:
    assert run(*arguments, "--json", "run.json") == 0
    return read_report(Path("run.json")).sets[0].answers


def test_a_model_on_bedrock_answers_a_sets_questions(
    fog: str, bedrock: BedrockService, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = answers_of("--dataset", fog, *MODEL, "--generator", NOVA, "--unanswerable", "removed", "--plot", "a.svg")
    assert (one.mode, one.generator, one.engine, one.failures) == ("hybrid", NOVA, "shards", {})
    assert one.estimates["citation_precision"].mean == 1
    assert one.estimates["citation_precision"].answers >= 1
    assert one.estimates["refusal"].mean == 1
    assert one.cost.usd is not None
    assert one.cost.usd > 0
    assert one.queries[0].answer == f"“{BELL}” [1]."
    assert one.queries[0].sources[0] == "d1"
    assert one.answer is not None
    heading, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    told = dict(zip(heading, row, strict=True))
    assert (told["set"], told["mode"], told["generator"]) == ("fog", "hybrid", NOVA)
    assert Path("a.svg").read_text().startswith("<svg")


def test_a_throttled_question_does_not_end_the_run(fog: str, bedrock: BedrockService) -> None:
    def answer(system: str, user: str) -> str:
        return "" if "\nfog bell\n" in user else "The passages do not say."

    bedrock.answer = answer
    (one,) = answers_of("--dataset", fog, *MODEL, "--generator", NOVA)
    assert one.failures == {"answer_incomplete": 1}
    assert one.estimates["completed"].mean == pytest.approx(2 / 3)


def test_an_endpoints_model_is_compared_with_bedrocks_over_the_same_passages(
    fog: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_endpoint() as endpoint:
        endpoint.key = "sk-test"
        endpoint.answer = guesses
        Path("endpoints.json").write_text(json.dumps({"lab": lab(endpoint)}))
        monkeypatch.setenv("CICADA_ENDPOINT_KEY_LAB", "sk-test")
        told = ("--endpoints", "endpoints.json", "--generator", f"{NOVA},lab/small")
        ours, theirs = answers_of("--dataset", fog, *MODEL, *told)
    assert [query.sources for query in ours.queries] == [query.sources for query in theirs.queries]
    assert theirs.estimates["groundedness"].mean == 0
    assert theirs.not_attributed == 3
    assert theirs.cost.usd is not None
    assert theirs.cost.usd > 0
    capsys.readouterr()
    assert main(["eval", "--compare", "run.json"]) == 0
    compared = capsys.readouterr().out
    assert f"hybrid+{NOVA} → hybrid+lab/small" in compared


def guesses(body: Mapping[str, Any]) -> str:
    return "It was cast in Antwerp in 1912 by a founder of cannons."


def lab(endpoint: OpenAiService) -> dict[str, Any]:
    return {"baseUrl": endpoint.url, "models": {"small": {"inputUsdPerMillion": 1, "outputUsdPerMillion": 2}}}


def test_a_judge_fills_in_its_form(fog: str, bedrock: BedrockService) -> None:
    verdict = {"reason": "It quotes.", "faithfulness": 9, "relevance": 8, "completeness": 7}
    bedrock.fill = lambda system, user, tool: verdict
    (one,) = answers_of("--dataset", fog, *MODEL, "--generator", NOVA, "--judge", "amazon.nova-pro-v1:0")
    assert one.judge is not None
    assert (one.judge.calls, one.judge.failures) == (3, {})
    assert one.estimates["judge_faithfulness"].mean == 0.9
    assert one.queries[0].judged is not None
    assert one.queries[0].judged.reason == "It quotes."


def test_a_gate_on_answers_that_is_missed_fails(fog: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--dataset", fog, *MODEL, "--generator", NOVA, "--unanswerable", "removed")
    assert run(*arguments, "--gate", "citation_precision>=0.95,refusal>=0.9", "--json", "base.json") == 0
    assert run(*arguments, "--gate-against", "base.json", "--compare", "base.json") == 0
    capsys.readouterr()
    assert run(*arguments, "--gate", f"hybrid+{NOVA}:answered>=0.99,citation_recall>=0.5") == 1
    told = capsys.readouterr().err
    assert told.count("gate missed") == 1
    assert f"gate missed: fog/hybrid+{NOVA}: answered is " in told


def test_where_not_one_question_is_answered_the_run_has_failed(
    fog: str, bedrock: BedrockService, capsys: pytest.CaptureFixture[str]
) -> None:
    bedrock.answer = lambda system, user: ""
    assert run("--dataset", fog, *MODEL, "--generator", NOVA) == 1
    assert f"fog/hybrid+{NOVA}: no question was answered" in capsys.readouterr().err


def test_a_laptop_answers_without_aws(fog: str, bedrock: BedrockService) -> None:
    (one,) = answers_of("--dataset", fog, "--pipeline", "rerank")
    assert (one.mode, one.generator, one.failures) == ("rerank", "local.extractive", {})
    assert one.cost.usd is not None
    assert one.estimates["citation_precision"].mean == 1  # it only quotes
    assert bedrock.calls.total() == 0


def test_a_deployments_collection_is_answered_from_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        monkeypatch.setenv("CICADA_INDEX_BUCKET", "index")
        monkeypatch.setenv("CICADA_EMBEDDING_MODEL_ID", TITAN)
        monkeypatch.setenv("CICADA_EMBEDDING_DIMENSIONS", str(TITAN_DIMENSIONS))
        boto3.client("s3").create_bucket(Bucket="index")
        said = {"m1": BELL, "m2": "A green ledger."}
        write_lines(tmp_path / "script.jsonl", (json.dumps(message(name, text)) for name, text in said.items()))
        assert main(["load", "script.jsonl", "--collection", "ferry"]) == 0
        questions = [
            {"id": "a", "question": "fog bell rings", "answers": ["m1"], "episodes": ["ep1"], "answer": "at night"},
            {"id": "b", "question": "Who is the keeper?", "answers": [], "episodes": [], "answer": "Not told"},
        ]
        write_lines(tmp_path / "asked.jsonl", map(json.dumps, questions))
        (one,) = answers_of("--dataset", "asked.jsonl", "--collection", "ferry", "--generator", NOVA)
    finally:
        server.stop()
    assert [(query.id, query.kind) for query in one.queries] == [("a", "answerable"), ("b", "left_out")]
    assert one.estimates["answer_contained"].mean == 1
    assert "refusal" in one.estimates


def message(name: str, text: str) -> dict[str, Any]:
    place = {"episodeId": "ep1", "episodeName": "One", "chapterId": "c1", "messageId": name, "speaker": "Ada"}
    return {**place, "textENG": text}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--answers", *MODEL), "needs --generator"),
        (("--answers", "--pipeline", "semantic"), "--answers cannot use the pipeline semantic"),
        (("--answers", *MODEL, "--generator", "lab/small"), "no endpoint serves lab/small"),
        (("--answers", *MODEL, "--generator", NOVA, "--endpoints", "no.json"), "cannot read no.json"),
        (("--generator", NOVA), "--generator needs --answers"),
        (("--unanswerable", "removed"), "--unanswerable needs --answers"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: tuple[str, ...], told: str, fog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "--dataset", fog, *arguments]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [("--at-once", "0"), ("--at-once", "65"), ("--min-score", "2"), ("--min-score", "x"), ("--generator", ",")],
)
def test_an_option_out_of_range_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--dataset", "fog", *arguments)
