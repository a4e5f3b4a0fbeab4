"""``cicada eval --citations`` as it is typed: by code alone, with a judge on Bedrock, and with one at an endpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cicada_cli.main import main
from tests.wire.bedrock_service import BedrockService, serving
from tests.wire.openai_service import serving as serving_endpoint

NOVA = "amazon.nova-lite-v1:0"
LOCKED = "I locked the boathouse at ten with the iron key."
PAIRS = (
    {"sentence": "Mara locked the boathouse with the iron key.", "supported": True, "kind": "paraphrase"},
    {"sentence": "Mara left the boathouse open.", "supported": False, "kind": "denial"},
    {"sentence": "Mara locked it at 11.", "supported": False, "kind": "number"},
    {"sentence": f"Mara says: “{LOCKED}”", "supported": True, "kind": "quotation"},
)


@pytest.fixture
def bedrock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BedrockService]:
    for variable in list(os.environ):
        if variable.startswith(("CICADA_", "AWS_")):
            monkeypatch.delenv(variable)
    for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({**pair, "passage": LOCKED, "language": "en", "speaker": "Mara"}) for pair in PAIRS]
    Path("pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with serving() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", service.url)
        service.fill = judged
        yield service


def judged(system: str, user: str, _tool: object) -> Mapping[str, Any]:
    """A judge that takes what is open to be locked for contradicted, and all else for supported."""
    return {"sentences": [{"n": 1, "verdict": "contradicted" if "left the boathouse open" in user else "supported"}]}


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, list[str]]:
    assert main(["eval", "--citations", "pairs.jsonl", *arguments]) == 0
    title, _, every, *_ = capsys.readouterr().out.splitlines()
    return title, every.split()


def test_code_alone_tells_what_is_exact(bedrock: BedrockService, capsys: pytest.CaptureFixture[str]) -> None:
    title, told = figures(capsys)
    assert title == "pairs.jsonl: code alone"
    assert told == ["all", "4", "1/1", "1.00", "1/2", "0.50", "1/1", "1.00", "1/2", "0.50", "2/4", "0.50"]
    assert not bedrock.calls


def test_a_judge_tells_the_rest(bedrock: BedrockService, capsys: pytest.CaptureFixture[str]) -> None:
    title, told = figures(capsys, "--judge", NOVA)
    assert title == f"pairs.jsonl: {NOVA}"
    assert told == ["all", "4", "2/2", "1.00", "2/2", "1.00", "2/2", "1.00", "2/2", "1.00", "0/4", "0.00"]
    assert bedrock.calls.total() == 2  # it is asked only what code cannot tell


def test_a_judge_that_fails_leaves_the_rest_unchecked(
    bedrock: BedrockService, capsys: pytest.CaptureFixture[str]
) -> None:
    bedrock.fill = lambda system, user, tool: {"sentences": []}
    assert figures(capsys, "--judge", NOVA)[1][-2:] == ["2/4", "0.50"]


def test_an_endpoints_model_judges(
    bedrock: BedrockService, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_endpoint() as endpoint:
        endpoint.key = "sk-test"
        endpoint.answer = lambda body: json.dumps(judged("", body["messages"][-1]["content"], None))
        models = {"small": {"inputUsdPerMillion": 1, "outputUsdPerMillion": 2}}
        Path("endpoints.json").write_text(json.dumps({"lab": {"baseUrl": endpoint.url, "models": models}}))
        monkeypatch.setenv("CICADA_ENDPOINT_KEY_LAB", "sk-test")
        title, told = figures(capsys, "--judge", "lab/small", "--endpoints", "endpoints.json")
    assert title == "pairs.jsonl: lab/small"
    assert told[-2:] == ["0/4", "0.00"]


@pytest.mark.parametrize("text", ["", "no JSON", '{"sentence": "Mara slept."}', "[1]"])
def test_a_file_without_labelled_pairs_is_refused(
    bedrock: BedrockService, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    Path("pairs.jsonl").write_text(text, encoding="utf-8")
    status = main(["eval", "--citations", "pairs.jsonl"])
    assert (status != 0) == bool(text)
    assert "pairs.jsonl" in "".join(capsys.readouterr())


def test_a_file_that_is_not_there_is_refused(bedrock: BedrockService, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--citations", "nowhere.jsonl"]) != 0
    assert "nowhere.jsonl" in capsys.readouterr().err
