"""The settings that docs/deploy.md shows for the laptop."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cicada_local.bedrock.catalogue import TextModel, find_model
from cicada_local.up import with_model_server, with_sign_in
from stacks import context

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_for_the_laptop_is_valid_with_sign_in_and_keeps_its_groups() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    example = re.search(r"### Settings on the laptop.*?```json\n(.*?)```", page, re.DOTALL)
    assert example is not None
    local = json.loads((ROOT / "cdk.local.json").read_text(encoding="utf-8"))
    settings = context.parse(with_sign_in(local | json.loads(example[1])), source="docs/deploy.md")
    assert settings.auth.mode == "cognito"
    assert list(settings.access.collections["rulebook"]) == ["gms"]
    assert settings.usage_limits.user == {"requestsMinute": 3}


def test_answers_name_the_model_of_a_model_server() -> None:
    local = json.loads((ROOT / "cdk.local.json").read_text(encoding="utf-8"))
    server = {"CICADA_LOCAL_MODEL_URL": "http://localhost:11434/v1", "CICADA_LOCAL_MODEL": "hf.co/some one/qwen3:8b"}
    named = with_model_server(local, server)
    settings = context.parse(named, source="cdk.local.json")
    assert settings.models.generation_model_id == settings.models.direct_model_id == "local.hf.co-some-one-qwen3:8b"
    assert settings.models.embedding_model_id == local["models"]["embeddingModelId"]
    assert isinstance(find_model(settings.models.generation_model_id), TextModel)
    assert with_model_server(local, {}) == local
