"""Earlier answers: looked up during a search, replayed, or used as passages for a new answer."""

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
from cicada.errors import CicadaError, raise_final
from cicada.models.ports import TextDelta
from cicada.protocol.events import Degraded, Reused, Source
from cicada.request_trace import log_fault
from cicada.retrieval.ports import Retriever
from cicada.semantic_cache.ports import EarlierAnswers, Looked


def reused(looked: Looked, use: Literal["answer", "contexts"]) -> Reused:
    """The earlier answer, for the client."""
    similarity = min(1.0, max(0.0, looked.similarity))
    return Reused(use=use, question=looked.question, answered_at_ms=looked.answered_at_ms, similarity=similarity)


def contexts(looked: Looked) -> tuple[Source, ...]:
    """The passages of an earlier answer, with scores for the new question.

    A stored score is the passage's relevance to the *earlier* question, so it is multiplied by the questions'
    similarity. A cached passage then never outranks an equally relevant one that was found for the new question. The
    reasons (``why``) belong to the earlier question and are dropped.
    """
    similarity = min(1.0, max(0.0, looked.similarity))
    return tuple(
        source.model_copy(update={"origin": "cache", "score": round(source.score * similarity, 4), "why": ()})
        for source in looked.sources
    )


def merged(found: Sequence[Source], cached: Sequence[Source], *, in_order: bool = False) -> tuple[Source, ...]:
    """Both, each passage once, by descending score, numbered from 1.

    A passage in both counts as found: that score is for this question. With ``in_order`` the found passages keep their
    order, and the cached ones follow.
    """
    kept: list[Source] = []
    seen: set[Hashable] = set()
    for source in (*found, *cached):
        identities = set(_identities(source))
        if not identities & seen:
            kept.append(source)
        seen |= identities
    if in_order:
        return renumbered(kept)
    return renumbered(sorted(kept, key=lambda source: -source.score))  # stable: of equal scores, found ones come first


def renumbered(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The same sources, numbered from 1."""
    return tuple(source.model_copy(update={"n": n}) for n, source in enumerate(sources, 1))


def _identities(source: Source) -> Iterator[Hashable]:
    """Keys of a passage: two sources that share one are the same passage."""
    yield source.collection, "id", source.passage_id
    whole = source.locator.whole()
    if whole is not None:
        yield source.collection, "whole", whole
    yield source.collection, source.locator, source.text


logger = logging.getLogger(__name__)

CACHE_BUDGET_S = 3.0
"""Seconds for the cache lookup: a little more than a slow search takes."""
PIECE_CHARS = 512
"""The length of the pieces of a replayed text."""
_UNAVAILABLE = Degraded(code="cache_unavailable", message="Earlier answers could not be looked up for this one.")

Found = TypeVar("Found")


@dataclass(frozen=True)
class SearchAndLookup(Generic[Found]):
    """The results of a search and of a cache lookup, with their durations."""

    found: Found
    retrieval_ms: int
    looked: Looked | None
    """None if the cache has nothing useful, or failed."""
    cache_ms: int
    degraded: tuple[Degraded, ...] = ()

    def to_replay(self, index_version: str) -> Looked | None:
        """The earlier answer to the same question, if it is of the searched index version."""
        looked = self.looked
        return looked if looked and looked.use == "answer" and looked.index_version == index_version else None


@dataclass(frozen=True)
class ParallelLookup:
    """Looks up earlier answers while a search runs. A failed lookup does not fail the answer."""

    retriever: Retriever
    cache: EarlierAnswers
    concurrency: Concurrency

    def search(
        self, search: Callable[[], Found], asked: AskedQuestion, attempt_budget: AttemptBudget
    ) -> SearchAndLookup[Found]:
        """Search and look up in parallel. Raises what the search raises."""
        found: list[Found] = []
        looked: list[tuple[Looked | None, tuple[Degraded, ...]]] = []

        def timed(do: Callable[[], None]) -> int:
            started = attempt_budget.monotonic()
            do()
            return round((attempt_budget.monotonic() - started) * 1000)

        retrieval_ms, cache_ms = self.concurrency.each(
            timed, [lambda: found.append(search()), lambda: looked.append(self._look_up(asked, attempt_budget))]
        )
        return SearchAndLookup(found[0], retrieval_ms, looked[0][0], cache_ms, looked[0][1])

    def _look_up(
        self, asked: AskedQuestion, attempt_budget: AttemptBudget
    ) -> tuple[Looked | None, tuple[Degraded, ...]]:
        try:
            version = self.retriever.version()
            budget_s = min(CACHE_BUDGET_S, attempt_budget.time_left_s())
            looked = self.cache.look_up(asked, version, AttemptLimits(attempt_budget), time_budget_s=budget_s)
        except CicadaError as error:
            raise_final(error)
            log_fault(logger, "answered without earlier answers", error, dependency=CACHE)
            return None, (_UNAVAILABLE,)
        return (None if looked.use == "miss" else looked), ()


def replayed(looked: Looked, *, engine: str, cache_ms: int, retrieval_ms: int | None = None) -> Iterator[Step]:
    """The steps of an earlier answer that is replayed word for word."""
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
