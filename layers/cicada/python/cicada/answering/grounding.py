"""What the grounded strategies share: the limits of their calls, a prompt that fits, and a checked answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from typing import ClassVar

from cicada.answering.judge import CitationJudge
from cicada.answering.prompt import NOTHING_FOUND, rag_prompt
from cicada.attempts.budgets import AttemptBudget, ModelCall, Purpose, SubBudget
from cicada.attempts.strategy import Answered, Retrieved, Step
from cicada.attempts.writing import note_call, write
from cicada.citations import check_citations, not_attributed
from cicada.errors import BudgetSpent
from cicada.models.ports import ModelUse, Prompt, TextDelta, TextModel, Usage
from cicada.protocol.events import Degraded, Source
from cicada.request_trace import log_event
from cicada.retrieval.knowledge.search import Gathered
from cicada.retrieval.ports import SearchResult

logger = logging.getLogger(__name__)


class AttemptLimits:
    """:class:`~cicada.retrieval.ports.SearchLimits` of the calls that do not write the answer.

    They take from the attempt's retrieval budget and its time, unless others are given.
    """

    purpose: ClassVar[Purpose] = "retrieval"

    def __init__(
        self,
        attempt_budget: AttemptBudget,
        sub_budget: SubBudget | None = None,
        time_left_s: Callable[[], float] | None = None,
    ) -> None:
        self._attempt_budget = attempt_budget
        self._sub_budget = sub_budget or attempt_budget.retrieval
        self._time_left_s = time_left_s or attempt_budget.time_left_s

    def time_left_s(self) -> float:
        """See the port."""
        return max(0.0, self._time_left_s())

    def call(self) -> None:
        """See the port."""
        self._sub_budget.call()

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        self._sub_budget.allow(model_id, most)

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        return self._attempt_budget.on_stop(wake)

    def note(self, use: ModelUse) -> None:
        """See the port: the call also counts as one of the request's."""
        call = ModelCall(self.purpose, use.model_id, use.calls, use.usage, use.took_ms, None, use.fault)
        note_call(call, self._attempt_budget)


def degradations(found: SearchResult | Gathered) -> tuple[Degraded, ...]:
    """What a search had to do without, for the client."""
    return tuple(Degraded(code=one.code, message=one.message) for one in found.degraded)


def fitting_prompt(
    query: str, sources: Sequence[Source], model: TextModel, attempt_budget: AttemptBudget, *, in_parts: bool = False
) -> tuple[tuple[Source, ...], Prompt]:
    """The prompt over as many of the first sources as fit into a call's share, and those sources.

    The first source always stays: if even that is too much, the call itself is refused.
    """
    kept = tuple(sources)
    while True:
        prompt = rag_prompt(query, kept, in_parts=in_parts)
        if len(kept) <= 1:
            return kept, prompt
        try:
            attempt_budget.admit(model.model_id, prompt, model.max_tokens)
        except BudgetSpent:
            kept = kept[:-1]
        else:
            return kept, prompt


def log_retrieved(retrieved: Retrieved) -> None:
    """Log what was retrieved in the request trace."""
    log_event(
        logger,
        "retrieved",
        "passages retrieved",
        found=retrieved.found,
        used=len(retrieved.sources),
        used_from_cache=sum(source.origin == "cache" for source in retrieved.sources),
        searched=retrieved.searched,
        engine=retrieved.engine,
        index_version=retrieved.index_version,
        took_ms=retrieved.retrieval_ms,
        cache_ms=retrieved.cache_ms,
        degraded=[one.code for one in retrieved.degraded],
    )


def answer_from(
    retrieved: Retrieved,
    prompt: Prompt,
    model: TextModel,
    attempt_budget: AttemptBudget,
    judge: CitationJudge | None = None,
) -> Generator[Step, None, None]:
    """Show what was retrieved, write the answer from it, and check its citations, with the judge if there is one.

    If nothing was retrieved, code writes the answer: a model without passages might answer from its own knowledge.
    """
    log_retrieved(retrieved)
    yield retrieved
    if not retrieved.sources:
        yield TextDelta(NOTHING_FOUND)
        yield Answered("nothing_found", model.model_id, ())
        return
    written = yield from write(model, prompt, attempt_budget)
    citations = check_citations(written.text, retrieved.sources, judge.within(attempt_budget) if judge else None)
    unattributed = not_attributed(written.text, retrieved.sources)
    yield Answered(written.finished.stop_reason, model.model_id, citations, unattributed)
