"""The CAG strategy: answers from the semantic cache of earlier answers and their contexts.

Elsewhere the name can mean that documents are preloaded into a model; here nothing is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from cicada.answering.breakers.names import CACHE
from cicada.answering.citations import check_citations
from cicada.answering.fit import MAX_SENTENCE_CHARS
from cicada.answering.grounding import answer_from, fitting_prompt, tell_retrieved
from cicada.answering.reuse import EarlierAnswers, contexts, merged, reused
from cicada.answering.spending import Spending
from cicada.answering.strategy import Answered, Asked, Retrieved, Step
from cicada.errors import CacheMiss
from cicada.models.ports import TextDelta, TextModel
from cicada.protocol.events import StrategyName
from cicada.retrieval.ports import Retriever

if TYPE_CHECKING:
    from cicada.answering.semantic_cache.cache import Looked

CACHE_BUDGET_S = 5.0
"""Seconds for the look-up: nothing else is done meanwhile."""
PIECE_CHARS = 512
"""Of a kept text, how much is given at once."""
_ENGINE = "cache"


class CagStrategy:
    """:class:`cicada.answering.strategy.Strategy` over the semantic cache.

    A very near question gets the earlier answer again, without any call to a model; a near one a new answer from the
    earlier one's passages. Anything else is a :class:`cicada.errors.CacheMiss`: another strategy's turn.
    """

    name: StrategyName = "cag"

    def __init__(self, retriever: Retriever, cache: EarlierAnswers, model: TextModel, *, prompt_passages: int) -> None:
        """Wire the strategy.

        Args:
            retriever: tells the index version, of which alone earlier answers are given.
            cache: knows earlier answers.
            model: writes where a question is near, but not the same.
            prompt_passages: of an earlier answer's passages, how many the prompt takes at most.
        """
        self._retriever = retriever
        self._cache = cache
        self._model = model
        self._prompt_passages = prompt_passages

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port. An answer that is given again needs neither the index nor a model."""
        return (CACHE,)

    def answer(self, asked: Asked, spending: Spending) -> Generator[Step, None, None]:
        """See the port.

        Raises:
            CacheMiss: no earlier answer is near enough, or a near one's passages cannot be written from.
        """
        started = spending.monotonic()
        version = self._retriever.version()
        budget_s = min(CACHE_BUDGET_S, spending.time_left_s())
        looked = self._cache.look_up(asked, version, time_budget_s=budget_s)
        cache_ms = round((spending.monotonic() - started) * 1000)
        if looked.use == "answer" and _still_holds(looked):
            yield from self._again(looked, cache_ms)
        elif looked.use == "contexts" and looked.sources and spending.calls_left > 0:
            yield from self._anew(asked, looked, cache_ms, spending)
        else:
            raise CacheMiss(_why(looked, spending))

    def _again(self, looked: Looked, cache_ms: int) -> Iterator[Step]:
        """The earlier answer, word for word."""
        retrieved = Retrieved(
            tuple(source.model_copy(update={"origin": "cache"}) for source in looked.sources),
            found=looked.found,
            index_version=looked.index_version,
            engine=_ENGINE,
            cache_ms=cache_ms,
            reused=reused(looked, "answer"),
        )
        tell_retrieved(retrieved)
        yield retrieved
        for start in range(0, len(looked.text), PIECE_CHARS):
            yield TextDelta(looked.text[start : start + PIECE_CHARS])
        yield Answered(looked.stop_reason, looked.model_id, looked.citations)

    def _anew(self, asked: Asked, looked: Looked, cache_ms: int, spending: Spending) -> Generator[Step, None, None]:
        """A new answer from the earlier one's passages."""
        ranked = merged((), contexts(looked))
        sources, prompt = fitting_prompt(asked.query, ranked[: self._prompt_passages], self._model, spending)
        retrieved = Retrieved(
            sources,
            found=len(ranked),
            index_version=looked.index_version,
            engine=_ENGINE,
            cache_ms=cache_ms,
            reused=reused(looked, "contexts"),
        )
        yield from answer_from(retrieved, prompt, self._model, spending)


def _still_holds(looked: Looked) -> bool:
    """Whether every citation that was verified then is so by today's check, over the passages as they were kept."""
    checked = check_citations(looked.text, looked.sources)
    again = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in checked if one.verdict == "verified"}
    then = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in looked.citations if one.verdict == "verified"}
    return bool(then) and then <= again


def _why(looked: Looked, spending: Spending) -> str:
    if looked.use == "miss" and not looked.compared:
        return "there is no earlier question to compare with"
    if looked.use == "miss":
        nearest = f"the nearest of {looked.compared} earlier questions has a similarity of {looked.similarity:.2f}"
        return nearest if looked.refused_by is None else f"{nearest}, but {looked.refused_by} tells them apart"
    if looked.use == "answer":
        return "a citation of the earlier answer does not hold any more"
    return "a near question's passages were found, " + (
        "but no call is left to write from them" if spending.calls_left <= 0 else "but none was kept"
    )
