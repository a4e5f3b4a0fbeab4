"""What a strategy is given, and what becomes of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cicada.attempts.budgets import AttemptBudget, RequestBudget
from cicada.attempts.strategy import Answered, AskedQuestion, Retrieved, Step
from cicada.delivery.record import Question
from cicada.models.ports import TextDelta
from cicada.protocol.events import Source, Sources, StrategyFailure
from cicada.rights import EVERYTHING
from tests.support.breakers import Clock
from tests.support.questions import KEY


def asked(
    query: str = "Who locked the boathouse?",
    *,
    question: Question | None = None,
    failed: tuple[StrategyFailure, ...] = (),
    found: tuple[Source, ...] = (),
    found_before: Callable[[], Sources | None] | None = None,
) -> AskedQuestion:
    """A question as an attempt hands it to its strategy."""
    before = Sources(attempt=1, index_version="v7", searched=9, sources=found) if found else None
    return AskedQuestion(
        KEY, question or Question(query), query, failed, found_before or (lambda: before), readable=lambda: EVERYTHING
    )


def new_budget(*, calls: int = 2, clock: Clock | None = None, left_s: float = 60.0, **budget: Any) -> AttemptBudget:
    """What an attempt may spend; ``budget`` as the request's."""
    monotonic = clock or Clock(0)
    return AttemptBudget(
        "rag", calls=calls, deadline=monotonic() + left_s, budget=RequestBudget(**budget), monotonic=monotonic
    )


def parts(steps: Iterable[Step]) -> tuple[Retrieved, str, Answered]:
    """What was retrieved, the whole text, and the end of an answer."""
    retrieved, *rest = steps
    assert isinstance(retrieved, Retrieved)
    return retrieved, *unsearched(rest)


def unsearched(steps: Iterable[Step]) -> tuple[str, Answered]:
    """The whole text and the end of an answer for which nothing was retrieved."""
    *texts, answered = steps
    assert isinstance(answered, Answered)
    text = ""
    for step in texts:
        assert isinstance(step, TextDelta)
        text += step.text
    return text, answered
