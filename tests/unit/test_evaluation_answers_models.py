"""What writes and judges in ``cicada eval --answers``: where a model is had, with which endpoints and which key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cicada.errors import SettingsInvalid
from cicada.models.openai_chat import OpenAiTextModel
from cicada_cli.answers_options import AskedAnswers
from cicada_cli.aws import Aws
from cicada_cli.endpoints import key_variable, read_endpoints
from cicada_cli.evaluate_answers import plan_of, unanswerable_of
from cicada_cli.exits import UsageError
from cicada_evaluation.sets import read_set
from tests.support.judged_sets import write_beir

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
LAPTOP = Aws(region="us-east-1", endpoint_url="http://127.0.0.1:9", local=True)
CLOUD = Aws(region="eu-west-1")
ENDPOINTS = {
    "groq": {
        "base_url": "https://api.groq.com/openai/v1",
        "models": {"openai/gpt-oss-20b": {"input_usd_per_million": 0.1, "output_usd_per_million": 0.5}},
    }
}


def asked(*generators: str, **changes: Any) -> AskedAnswers:
    given: dict[str, Any] = {
        "judge": None,
        "unanswerable": (),
        "endpoints": None,
        "at_once": 1,
        "min_score": 0.5,
        "prompt_passages": None,
    }
    return AskedAnswers(generators, **(given | changes))


def plan(told: AskedAnswers, *, runtime: Aws = LAPTOP, environ: dict[str, str] | None = None) -> Any:
    made = plan_of(told, modes=("hybrid",), limit=None, seed=0, runtime=runtime, aws=CLOUD, environ=environ or {})
    return made(read_set(SAMPLES))


def test_on_a_laptop_the_local_clouds_model_writes_unless_another_is_named() -> None:
    assert [model.model_id for model in plan(asked()).generators] == ["local.extractive"]
    named = plan(asked("amazon.nova-lite-v1:0", "local.extractive"))
    assert [model.model_id for model in named.generators] == ["amazon.nova-lite-v1:0", "local.extractive"]


def test_over_bedrock_a_generator_must_be_named() -> None:
    with pytest.raises(UsageError, match="needs --generator"):
        plan(asked(), runtime=CLOUD)
    with pytest.raises(UsageError, match="is a model of the local cloud"):
        plan(asked("local.extractive"), runtime=CLOUD)


def test_what_only_quotes_cannot_judge() -> None:
    with pytest.raises(UsageError, match="cannot judge"):
        plan(asked(judge="local.extractive"))


def test_an_endpoints_model_writes() -> None:
    environ = {"CICADA_MODEL_ENDPOINTS": json.dumps(ENDPOINTS), "CICADA_ENDPOINT_KEY_GROQ": "k"}
    (model,) = plan(asked("groq/openai/gpt-oss-20b"), environ=environ).generators
    assert isinstance(model, OpenAiTextModel)
    with pytest.raises(SettingsInvalid, match="known models of endpoints: groq/openai/gpt-oss-20b"):
        plan(asked("groq/other"), environ=environ)


def test_a_files_endpoints_stand_before_the_environments_and_may_be_spelt_as_in_cdk_json(tmp_path: Path) -> None:
    model = {"inputUsdPerMillion": 1, "outputUsdPerMillion": 2, "cachedInputUsdPerMillion": 0.5}
    told = {"my-host": {"baseUrl": "http://localhost:8000/v1", "secretArn": None, "models": {"baseUrl": model}}}
    file = tmp_path / "endpoints.json"
    file.write_text(json.dumps(told))
    found = read_endpoints(file, {"CICADA_MODEL_ENDPOINTS": json.dumps(ENDPOINTS)})
    assert found.model_ids() == ["my-host/baseUrl"]  # names are nobody's fields
    assert found.prices()["my-host/baseUrl"].cached_input_usd == 0.5
    assert read_endpoints(None, {}).model_ids() == []
    assert key_variable("my-host") == "CICADA_ENDPOINT_KEY_MY_HOST"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "invalid JSON"),
        ("[]", "Input should be"),
        ('{"groq": 1}', "groq: "),
        ('{"groq": {"base_url": "http://far.example/v1", "models": {"a": 1}}}', "groq.base_url"),
    ],
)
def test_endpoints_that_cannot_be_read_are_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=f"CICADA_MODEL_ENDPOINTS: .*{told}"):
        read_endpoints(None, {"CICADA_MODEL_ENDPOINTS": text})
    with pytest.raises(UsageError, match="cannot read"):
        read_endpoints(Path("nowhere.json"), {})


def test_a_scripts_questions_without_an_answer_are_asked_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    script, beir = read_set(SAMPLES), read_set(write_beir(tmp_path / "fog"))
    assert unanswerable_of((), script) == ("left-out",)
    assert unanswerable_of((), beir) == ()  # what was not judged may well be there
    assert unanswerable_of(("none",), script) == ()
    assert unanswerable_of(("removed", "left-out", "asked.jsonl", "removed"), beir) == (
        "removed",
        "left-out",
        Path("asked.jsonl"),
    )


def test_prompts_take_what_a_deployment_takes_unless_it_is_said_otherwise() -> None:
    assert plan(asked()).searching.prompt_passages == 10
    assert plan(asked(prompt_passages=3, min_score=0.2)).searching == type(plan(asked()).searching)(20, 0.2, 3)
