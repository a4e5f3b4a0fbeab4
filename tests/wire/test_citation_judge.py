"""A judge over real HTTP: what the stand-in answers becomes verdicts; each fault of the service leaves them open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cicada.answering.judge import CitationJudge
from cicada.answering.prompt import number_sources
from cicada.attempts.budgets import AttemptBudget
from cicada.citations import check_citations
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.retries import RetryPolicy
from cicada.retrieval.ports import Hit
from tests.support.questions import passage
from tests.wire.bedrock_service import BedrockService, serving

SOURCES = number_sources(
    [Hit(passage(1, "I locked the boathouse at ten with the iron key.", speaker="Mara"), 0.9)],
)
SAID = "The boathouse was locked with the iron key"
ANSWER = f"{SAID} [1]. {SAID.replace('was', 'was not')} [1]. Gulls sang [1]."


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


def judged(service: BedrockService, time_s: float = 20.0) -> tuple[list[str], list[str | None]]:
    model = BedrockStructuredModel(
        service.client(read_timeout_s=60), "local.extractive", retry=RetryPolicy(max_attempts=1)
    )
    attempt_budget = AttemptBudget("rag", calls=2, deadline=float("inf"))
    found = check_citations(ANSWER, SOURCES, CitationJudge(model, time_s).within(attempt_budget))
    return [citation.verdict for citation in found], [call.fault for call in attempt_budget.made]


def test_each_sentence_gets_its_verdict(service: BedrockService) -> None:
    assert judged(service) == (["verified", "unverified", "unverified"], [None])


@pytest.mark.parametrize("fault", ["throttle", "error", "refuse"])
def test_a_service_that_fails_leaves_them_unchecked(service: BedrockService, fault: str) -> None:
    service.faults.arm(f"bedrock.{fault}")
    verdicts, faults = judged(service)
    assert verdicts == ["unchecked"] * 3
    assert faults[0] is not None


def test_a_late_judge_is_not_waited_for(service: BedrockService) -> None:
    service.faults.arm("bedrock.slow", first_ms=60_000)
    verdicts, faults = judged(service, time_s=0.2)
    assert (verdicts, faults) == (["unchecked"] * 3, ["model_unavailable"])


@pytest.mark.parametrize("told", [{}, {"sentences": []}, {"sentences": [{"n": 1, "verdict": "perhaps"}]}])
def test_an_answer_that_is_no_judgement_leaves_them_unchecked(service: BedrockService, told: dict[str, object]) -> None:
    service.fill = lambda system, user, tool: told
    verdicts, _ = judged(service)
    assert verdicts == ["unchecked"] * 3
