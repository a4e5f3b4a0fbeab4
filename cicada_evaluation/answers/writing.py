"""One question answered by the strategy's own code: its prompt, its budget, its check of citations."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cicada.answering.rag import RagStrategy
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.chain import MAX_MODEL_CALLS
from cicada.attempts.strategy import Answered, AskedQuestion, Retrieved
from cicada.delivery.record import Question, RequestKey, RequestSpend
from cicada.errors import CicadaError
from cicada.models.ports import TextModel
from cicada.protocol.events import Source
from cicada.rights import EVERYTHING
from cicada.semantic_cache.cache import NoEarlierAnswers
from cicada_evaluation.answers.cases import Case
from cicada_evaluation.answers.finding import FoundBefore, FoundPassages, Searching

ANSWER_BUDGET_S = 180.0
"""For one answer, retries included: nobody waits for it, so throttles are waited out."""
SUBJECT = "evaluation"


@dataclass(frozen=True)
class QuestionOutcome:
    """What became of one question."""

    sources: tuple[Source, ...] = ()  # the passages of the prompt
    text: str = ""  # what was written; of an answer that failed, up to there
    answered: Answered | None = None  # none of an answer that failed
    failure: str | None = None  # the code of what went wrong
    reason: str | None = None  # the same in words
    spent: RequestSpend = field(default_factory=RequestSpend)  # of all models, those of the retrieval among them
    first_piece_ms: int | None = None  # from the call to the first piece of text; None where no text came from a call
    answer_ms: int | None = None  # from the call to its end; None where none was made


def write_answer(
    case: Case,
    found: FoundPassages,
    model: TextModel,
    searching: Searching,
    *,
    collections: tuple[str, ...] = (),
    monotonic: Callable[[], float] = time.monotonic,
) -> QuestionOutcome:
    """Answer a question from what was found; whatever goes wrong is part of what is returned.

    Args:
        case: the question.
        found: what its search gave.
        model: writes.
        searching: how many passages the prompt takes, among others.
        collections: that the question is limited to.
        monotonic: seconds.
    """
    strategy = RagStrategy(
        FoundBefore(found),
        NoEarlierAnswers(),
        model,
        top_k=searching.top_k,
        min_score=searching.min_score,
        prompt_passages=searching.prompt_passages,
    )
    query = case.query
    question = Question(query.text, collections=collections, episodes=query.filters.episodes)
    attempt_budget = AttemptBudget(
        "rag", calls=MAX_MODEL_CALLS, deadline=monotonic() + ANSWER_BUDGET_S, monotonic=monotonic
    )
    sources: tuple[Source, ...] = ()
    answered: Answered | None = None
    failure: str | None = None
    reason: str | None = None
    pieces: list[str] = []
    try:
        for step in strategy.answer(
            AskedQuestion(RequestKey(SUBJECT, query.id), question, query.text, readable=lambda: EVERYTHING),
            attempt_budget,
        ):
            if isinstance(step, Retrieved):
                sources = step.sources
            elif isinstance(step, Answered):
                answered = step
            else:
                pieces.append(step.text)
    except CicadaError as error:
        failure, reason = error.code, str(error)
    except Exception as error:  # one question's bug must not cost the answers that are paid for
        failure, reason = CicadaError.code, f"{type(error).__name__}: {error}"
    call = next((call for call in attempt_budget.made if call.purpose == "answer" and call.calls), None)
    return QuestionOutcome(
        sources=sources,
        text="".join(pieces),
        answered=None if failure else answered,
        failure=failure,
        reason=reason,
        spent=attempt_budget.spent,
        first_piece_ms=call.first_piece_ms if call else None,
        answer_ms=call.took_ms if call and not failure else None,
    )
