"""The CAG strategy: answers from the semantic cache of earlier answers and their contexts.

Elsewhere the name can mean that documents are preloaded into a model; here nothing is.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from cicada.answering.grounding import AttemptLimits, answer_from, fitting_prompt
from cicada.answering.judge import CitationJudge
from cicada.answering.reuse import contexts, merged, replayed, reused
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Retrieved, Step
from cicada.breakers.dependencies import CACHE
from cicada.errors import CacheMiss
from cicada.models.ports import TextModel
from cicada.protocol.events import StrategyName
from cicada.retrieval.ports import Retriever
from cicada.semantic_cache.ports import EarlierAnswers, Looked

CACHE_BUDGET_S = 5.0
"""Seconds for the lookup; nothing else runs meanwhile."""
_ENGINE = "cache"


@dataclass(frozen=True)
class CagStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over the semantic cache.

    The same question gets the earlier answer again, without a text model; a near question gets a new answer from the
    earlier one's passages. Otherwise it raises :class:`cicada.errors.CacheMiss`, and the next strategy is tried.
    """

    name: ClassVar[StrategyName] = "cag"
    needs: ClassVar[tuple[str, ...]] = (CACHE,)
    """The index version and the question's vector are usually known without a call, and only a near question needs a
    text model. Each has a breaker where it is called."""

    retriever: Retriever
    """Tells the index version; earlier answers of other versions are not used."""
    cache: EarlierAnswers
    model: TextModel
    _: KW_ONLY
    prompt_passages: int
    """The most passages in the prompt."""
    judge: CitationJudge | None = None
    """Checks the citations that code cannot check; without it they stay unchecked."""

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port.

        Raises:
            CacheMiss: no earlier answer is near enough, or a near one's passages cannot be used.
            CicadaError: the lookup, the index version or the text model failed.
        """
        started = attempt_budget.monotonic()
        version = self.retriever.version()
        budget_s = min(CACHE_BUDGET_S, attempt_budget.time_left_s())
        looked = self.cache.look_up(asked, version, AttemptLimits(attempt_budget), time_budget_s=budget_s)
        cache_ms = round((attempt_budget.monotonic() - started) * 1000)
        if looked.use == "answer":
            yield from replayed(looked, engine=_ENGINE, cache_ms=cache_ms)
        elif looked.use == "contexts" and looked.sources and attempt_budget.calls_left > 0:
            yield from self._from_contexts(asked, looked, cache_ms, attempt_budget)
        else:
            raise CacheMiss(_why(looked, attempt_budget))

    def _from_contexts(
        self, asked: AskedQuestion, looked: Looked, cache_ms: int, attempt_budget: AttemptBudget
    ) -> Generator[Step, None, None]:
        """A new answer from an earlier one's passages."""
        ranked = merged((), contexts(looked))
        sources, prompt = fitting_prompt(asked.query, ranked[: self.prompt_passages], self.model, attempt_budget)
        retrieved = Retrieved(
            sources,
            found=len(ranked),
            index_version=looked.index_version,
            engine=_ENGINE,
            cache_ms=cache_ms,
            reused=reused(looked, "contexts"),
        )
        yield from answer_from(retrieved, prompt, self.model, attempt_budget, self.judge)


def _why(looked: Looked, attempt_budget: AttemptBudget) -> str:
    if looked.use == "miss" and not looked.compared:
        return "there is no earlier question to compare with"
    if looked.use == "miss":
        return f"the nearest of {looked.compared} earlier questions has a similarity of {looked.similarity:.2f}"
    lacking = "no call is left to write from them" if attempt_budget.calls_left <= 0 else "none was kept"
    return f"a near question's passages were found, but {lacking}"
