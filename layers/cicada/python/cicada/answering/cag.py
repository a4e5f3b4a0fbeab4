"""The CAG strategy: answers from the semantic cache of earlier answers and their contexts.

Elsewhere the name can mean that documents are preloaded into a model; here nothing is.
"""

from __future__ import annotations

from collections.abc import Generator

from cicada.answering.grounding import AttemptLimits, answer_from, fitting_prompt
from cicada.answering.judge import CitationJudge
from cicada.answering.reuse import contexts, given_again, merged, reused
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Retrieved, Step
from cicada.breakers.dependencies import CACHE
from cicada.errors import CacheMiss
from cicada.models.ports import TextModel
from cicada.protocol.events import StrategyName
from cicada.retrieval.ports import Retriever
from cicada.semantic_cache.ports import EarlierAnswers, Looked

CACHE_BUDGET_S = 5.0
"""Seconds for the look-up: nothing else is done meanwhile."""
_ENGINE = "cache"


class CagStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over the semantic cache.

    A question that asks the same gets the earlier answer again, without any call to a text model; a near one a new
    answer from the earlier one's passages. Anything else is a :class:`cicada.errors.CacheMiss`: it is another
    strategy's turn.
    """

    name: StrategyName = "cag"

    def __init__(
        self,
        retriever: Retriever,
        cache: EarlierAnswers,
        model: TextModel,
        *,
        prompt_passages: int,
        judge: CitationJudge | None = None,
    ) -> None:
        """Wire the strategy.

        Args:
            retriever: tells the index version, of which alone earlier answers are given.
            model: writes where a question is near, but not the same.
            prompt_passages: of an earlier answer's passages, how many the prompt takes at most.
            judge: of the citations that code alone cannot check; without one they stay unchecked.
        """
        self._retriever = retriever
        self._cache = cache
        self._model = model
        self._judge = judge
        self._prompt_passages = prompt_passages

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port.

        The index tells no more than its version, which a worker mostly knows; the question's vector is mostly
        remembered; and a text model is called for a near question alone. Each has a breaker where it is called.
        """
        return (CACHE,)

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port.

        Raises:
            CacheMiss: no earlier answer is near enough, or a near one's passages cannot be written from.
            CicadaError: the look-up failed, see :class:`~cicada.semantic_cache.ports.EarlierAnswers`, or the version is
                not known, or the text model failed.
        """
        started = attempt_budget.monotonic()
        version = self._retriever.version()
        budget_s = min(CACHE_BUDGET_S, attempt_budget.time_left_s())
        looked = self._cache.look_up(asked, version, AttemptLimits(attempt_budget), time_budget_s=budget_s)
        cache_ms = round((attempt_budget.monotonic() - started) * 1000)
        if looked.use == "answer":
            yield from given_again(looked, engine=_ENGINE, cache_ms=cache_ms)
        elif looked.use == "contexts" and looked.sources and attempt_budget.calls_left > 0:
            yield from self._anew(asked, looked, cache_ms, attempt_budget)
        else:
            raise CacheMiss(_why(looked, attempt_budget))

    def _anew(
        self, asked: AskedQuestion, looked: Looked, cache_ms: int, attempt_budget: AttemptBudget
    ) -> Generator[Step, None, None]:
        """A new answer from the earlier one's passages."""
        ranked = merged((), contexts(looked))
        sources, prompt = fitting_prompt(asked.query, ranked[: self._prompt_passages], self._model, attempt_budget)
        retrieved = Retrieved(
            sources,
            found=len(ranked),
            index_version=looked.index_version,
            engine=_ENGINE,
            cache_ms=cache_ms,
            reused=reused(looked, "contexts"),
        )
        yield from answer_from(retrieved, prompt, self._model, attempt_budget, self._judge)


def _why(looked: Looked, attempt_budget: AttemptBudget) -> str:
    if looked.use == "miss" and not looked.compared:
        return "there is no earlier question to compare with"
    if looked.use == "miss":
        return f"the nearest of {looked.compared} earlier questions has a similarity of {looked.similarity:.2f}"
    return "a near question's passages were found, " + (
        "but no call is left to write from them" if attempt_budget.calls_left <= 0 else "but none was kept"
    )
