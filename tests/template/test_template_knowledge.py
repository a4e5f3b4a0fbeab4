"""Questions answered by what collections declare: what the functions are told of it, and which models may be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cicada.settings import AnswerSettings, MessageProcessorSettings
from tests.template.templates import Synthesis
from tests.template.test_template_pipelines import AUTH, NOVA, invoked

TITAN, MICRO = "amazon.titan-embed-text-v2:0", "amazon.nova-micro-v1:0"


@pytest.fixture(scope="module")
def knowing(make: Callable[[dict[str, Any]], Synthesis]) -> Synthesis:
    knowledge = {
        "enabled": True,
        "extractorModelId": NOVA,
        "extractor": "model",
        "minIntentionConfidence": 0.75,
        "minEntityConfidence": 0.55,
        "contextTokens": 3000,
        "passagesPerCollection": 6,
        "budgetS": 7.5,
    }
    return make({"auth": AUTH, "knowledge": knowledge})


def test_as_shipped_every_search_is_plain(shipped: Synthesis) -> None:
    assert not AnswerSettings.read(shipped.environment("answer")).knowledge_enabled
    assert not MessageProcessorSettings.read(shipped.environment("message_processor")).knowledge_enabled


def test_the_models_that_choose_and_that_find_names_can_be_called_and_no_others(knowing: Synthesis) -> None:
    assert invoked(knowing) == {TITAN, MICRO, NOVA}


def test_what_the_functions_are_told_is_what_they_read(knowing: Synthesis) -> None:
    settings = AnswerSettings.read(knowing.environment("answer"))
    assert (settings.knowledge_enabled, settings.knowledge_extractor) == (True, "model")
    assert (settings.selector_model_id, settings.extractor_model_id) == ("", NOVA)
    assert (settings.min_intention_confidence, settings.min_entity_confidence) == (0.75, 0.55)
    assert (settings.context_tokens, settings.passages_per_collection) == (3000, 6)
    assert settings.knowledge_budget_s == 7.5
    assert MessageProcessorSettings.read(knowing.environment("message_processor")).knowledge_enabled


def test_a_gazetteer_needs_no_model_of_its_own(make: Callable[[dict[str, Any]], Synthesis]) -> None:
    knowledge = {"enabled": True, "extractor": "gazetteer", "extractorModelId": NOVA}
    made = make({"auth": AUTH, "knowledge": knowledge, "agents": {"adapter": "none"}})
    assert invoked(made) == {TITAN, MICRO}
