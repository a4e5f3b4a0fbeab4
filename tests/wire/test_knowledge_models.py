"""The selector and the extractor over real HTTP: the stand-in's answers, and what becomes of its failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cicada.errors import AnswerMalformed, AnswerTruncated, CicadaError, ModelBusy, ModelRefused, ModelUnavailable
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.ports import ModelUse, Stopped
from cicada.models.retries import RetryPolicy
from cicada.retrieval.knowledge.extracting import ModelExtractor
from cicada.retrieval.knowledge.selecting import ModelSelector
from cicada.retrieval.knowledge.structured_calls import FILLING_MAX_TOKENS
from cicada.retrieval.ports import UNLIMITED, Unlimited
from tests.support.catalogues import CATALOGUE
from tests.wire.bedrock_service import BedrockService, serving

MODEL = "local.extractive"
NOVA = "amazon.nova-lite-v1:0"
REASONING = "us.anthropic.claude-haiku-5-5"
QUESTION = "Who was that woman at the gate, and what is in my pack?"


class Noting(Unlimited):
    """Limits that remember what they are told."""

    def __init__(self) -> None:
        self.noted: list[ModelUse] = []

    def note(self, use: ModelUse) -> None:
        self.noted.append(use)


class Unwanted(Noting):
    """Limits of a question whose answer nobody wants any more."""

    def on_stop(self, wake: Any) -> Any:
        wake()
        return lambda: None


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


def model(service: BedrockService, model_id: str = MODEL, *, max_tokens: int = FILLING_MAX_TOKENS) -> Any:
    retry = RetryPolicy(max_attempts=2, base_s=0.01, cap_s=0.02)
    return BedrockStructuredModel(service.client(), model_id, max_tokens=max_tokens, retry=retry)


@pytest.mark.parametrize(("model_id", "calls"), [(MODEL, 1), (NOVA, 1), (REASONING, 2)])  # it cannot be made to
def test_collections_and_intentions_are_chosen(service: BedrockService, model_id: str, calls: int):
    limits = Noting()
    chosen = ModelSelector(model(service, model_id)).select(QUESTION, CATALOGUE, limits)
    assert {(one.collection, one.intention) for one in chosen} == {("diary", "people"), ("sheet", "belongings")}
    assert service.calls["converse"] == calls
    (use,) = limits.noted
    assert (use.purpose, use.calls, use.fault) == ("select_intentions", calls, None)
    assert use.usage.input_tokens > 100


@pytest.mark.parametrize(("model_id", "calls"), [(MODEL, 1), (NOVA, 1), (REASONING, 2)])  # it cannot be made to
def test_names_are_extracted(service: BedrockService, model_id: str, calls: int):
    found = ModelExtractor(model(service, model_id)).extract("What did Ottoline Prawle say?", CATALOGUE, UNLIMITED)
    assert [(one.name, one.matched, one.by) for one in found] == [("Ottoline Prawle", "Ottoline Prawle", "model")]
    assert service.calls["converse"] == calls


@pytest.mark.parametrize(
    ("fault", "params", "error"),
    [
        ("bedrock.throttle", {}, ModelBusy),
        ("bedrock.error", {"exception": "AccessDeniedException", "status": 403}, ModelRefused),
        ("bedrock.error", {"exception": "ServiceUnavailableException", "status": 503}, ModelUnavailable),
        ("bedrock.refuse", {}, ModelUnavailable),
        ("bedrock.converse_cut", {}, ModelUnavailable),
        ("bedrock.form", {"mode": "misfit"}, AnswerMalformed),
        ("bedrock.form", {"mode": "talk"}, AnswerMalformed),
        ("bedrock.form", {"mode": "unreadable"}, AnswerMalformed),
    ],
)
@pytest.mark.parametrize("asked", ["select", "extract"])
def test_a_failed_call_fails_with_the_models_error_and_is_accounted_for(
    service: BedrockService, asked: str, fault: str, params: dict[str, Any], error: type[CicadaError]
):
    service.faults.arm(fault, times=9, **params)
    limits = Noting()
    one: Any = ModelSelector(model(service)) if asked == "select" else ModelExtractor(model(service))
    with pytest.raises(error):
        getattr(one, asked)(QUESTION, CATALOGUE, limits)
    (use,) = limits.noted
    assert use.calls >= 1
    assert use.fault is not None


def test_a_choice_that_does_not_fit_is_asked_for_once_more(service: BedrockService):
    service.faults.arm("bedrock.form", times=1, mode="misfit")
    limits = Noting()
    assert len(ModelSelector(model(service)).select(QUESTION, CATALOGUE, limits)) == 2
    assert limits.noted[0].calls == service.calls["converse"] == 2


def test_a_choice_of_another_collections_intention_is_refused(service: BedrockService):
    service.fill = lambda system, user, tool: {"needs": [{"need": "sheet/people", "confidence": 1}]}
    with pytest.raises(AnswerMalformed):
        ModelSelector(model(service)).select(QUESTION, CATALOGUE, UNLIMITED)


def test_names_that_the_question_has_not_are_not_believed(service: BedrockService):
    service.fill = lambda system, user, tool: {"names": [{"name": "Old Nettle", "confidence": 1}]}
    assert ModelExtractor(model(service)).extract(QUESTION, CATALOGUE, UNLIMITED) == ()


def test_an_answer_that_is_cut_is_no_choice(service: BedrockService):
    with pytest.raises(AnswerTruncated):
        ModelSelector(model(service, max_tokens=5)).select(QUESTION, CATALOGUE, UNLIMITED)


def test_a_stop_ends_the_call(service: BedrockService):
    limits = Unwanted()
    with pytest.raises(Stopped):
        ModelSelector(model(service)).select(QUESTION, CATALOGUE, limits)
    assert service.calls["converse"] == 0
