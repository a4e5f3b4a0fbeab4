"""Earlier answers: looked up beside a search, given again, or lending their passages to a new question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from cicada.answering.grounding import AttemptLimits, log_retrieved
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import Answered, AskedQuestion, Retrieved, Step
from cicada.breakers.dependencies import CACHE
from cicada.concurrency import Concurrency
from cicada.errors import CicadaError
from cicada.models.ports import TextDelta
from cicada.protocol.events import Degraded, Reused, Source
from cicada.request_trace import log_fault
from cicada.retrieval.ports import Retriever
from cicada.semantic_cache.ports import EarlierAnswers, Looked


def reused(looked: Looked, use: Literal["answer", "contexts"]) -> Reused:
    """The earlier answer as the client is told of it."""
    similarity = min(1.0, max(0.0, looked.similarity))
    return Reused(use=use, question=looked.question, answered_at_ms=looked.answered_at_ms, similarity=similarity)


def contexts(looked: Looked) -> tuple[Source, ...]:
    """The passages of an earlier answer, with scores for the new question.

    A kept score says how relevant the passage was to the *old* question; nobody has compared it with the new one. It
    counts for the new question as far as the two are alike: score times similarity. So a passage that the cache brings
    never outranks an equally relevant one that was found for this very question, and the scores of both are one scale.
    Why it was there then, by the intentions and names of the old question, is not told of the new one.
    """
    similarity = min(1.0, max(0.0, looked.similarity))
    return tuple(
        source.model_copy(update={"origin": "cache", "score": round(source.score * similarity, 4), "why": ()})
        for source in looked.sources
    )


def merged(found: Sequence[Source], cached: Sequence[Source], *, in_order: bool = False) -> tuple[Source, ...]:
    """Both, each passage once, by descending score, numbered from 1.

    What both brought counts as found: its score was measured against this question.

    Args:
        in_order: whether what was found stays in its order, and what only the earlier answer brings comes after it.
    """
    kept: list[Source] = []
    seen: set[Hashable] = set()
    for source in (*found, *cached):
        identities = set(_identities(source))
        if not identities & seen:
            kept.append(source)
        seen |= identities
    if in_order:
        return numbered(kept)
    return numbered(sorted(kept, key=lambda source: -source.score))  # stable: what was found first, where scores tie


def numbered(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The same sources, numbered from 1."""
    return tuple(source.model_copy(update={"n": n}) for n, source in enumerate(sources, 1))


def _identities(source: Source) -> Iterator[Hashable]:
    """What tells that two sources are the same passage: its id, its message, or its place and words."""
    yield source.collection, "id", source.passage_id
    whole = source.locator.whole()
    if whole is not None:
        yield source.collection, "whole", whole
    yield source.collection, source.locator, source.text


logger = logging.getLogger(__name__)

CACHE_BUDGET_S = 3.0
"""Seconds for the look-up of earlier answers: not much more than a slow search takes."""
PIECE_CHARS = 512
"""Of a kept text, how much is given at once."""
_UNAVAILABLE = Degraded(code="cache_unavailable", message="Earlier answers could not be looked up for this one.")

Found = TypeVar("Found")


@dataclass(frozen=True)
class Beside(Generic[Found]):
    """What a search found and what the look-up beside it brought, with the milliseconds of each."""

    found: Found
    retrieval_ms: int
    looked: Looked | None
    """None where the cache has nothing of use, or failed."""
    cache_ms: int
    degraded: tuple[Degraded, ...] = ()

    def to_give_again(self, index_version: str) -> Looked | None:
        """The earlier answer to the same question, if it is of the version that the search found."""
        looked = self.looked
        return looked if looked and looked.use == "answer" and looked.index_version == index_version else None


class EarlierBeside:
    """Looks earlier answers up while a search runs, so that both cost what the slower costs.

    The cache can only add: its failure or miss is no failure of the answer.
    """

    def __init__(self, retriever: Retriever, cache: EarlierAnswers, concurrency: Concurrency) -> None:
        self._retriever = retriever
        self._cache = cache
        self._concurrency = concurrency

    def search(self, search: Callable[[], Found], asked: AskedQuestion, attempt_budget: AttemptBudget) -> Beside[Found]:
        """Search, and look up beside it. Raises what the search raises."""
        found: list[Found] = []
        looked: list[tuple[Looked | None, tuple[Degraded, ...]]] = []

        def timed(do: Callable[[], None]) -> int:
            started = attempt_budget.monotonic()
            do()
            return round((attempt_budget.monotonic() - started) * 1000)

        retrieval_ms, cache_ms = self._concurrency.each(
            timed, [lambda: found.append(search()), lambda: looked.append(self._look_up(asked, attempt_budget))]
        )
        return Beside(found[0], retrieval_ms, looked[0][0], cache_ms, looked[0][1])

    def _look_up(
        self, asked: AskedQuestion, attempt_budget: AttemptBudget
    ) -> tuple[Looked | None, tuple[Degraded, ...]]:
        try:
            version = self._retriever.version()
            budget_s = min(CACHE_BUDGET_S, attempt_budget.time_left_s())
            looked = self._cache.look_up(asked, version, AttemptLimits(attempt_budget), time_budget_s=budget_s)
        except CicadaError as error:
            log_fault(logger, "answered without earlier answers", error, dependency=CACHE)
            return None, (_UNAVAILABLE,)
        return (None if looked.use == "miss" else looked), ()


def given_again(looked: Looked, *, engine: str, cache_ms: int, retrieval_ms: int | None = None) -> Iterator[Step]:
    """The steps of an earlier answer that is given again, word for word.

    Args:
        engine: what searched beside it; ``cache`` where nothing did.
    """
    retrieved = Retrieved(
        tuple(source.model_copy(update={"origin": "cache"}) for source in looked.sources),
        found=looked.found,
        index_version=looked.index_version,
        engine=engine,
        retrieval_ms=retrieval_ms,
        cache_ms=cache_ms,
        reused=reused(looked, "answer"),
    )
    log_retrieved(retrieved)
    yield retrieved
    for start in range(0, len(looked.text), PIECE_CHARS):
        yield TextDelta(looked.text[start : start + PIECE_CHARS])
    yield Answered(looked.stop_reason, looked.model_id, looked.citations)
