"""From a question to its context: select and extract side by side, resolve, plan, query, assemble."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cicada.concurrency import THREADS, Concurrency
from cicada.defaults import DEFAULT_KNOWLEDGE_BUDGET_S, DEFAULT_PASSAGES_PER_COLLECTION
from cicada.errors import OutOfTime
from cicada.models.ports import ModelUse, Stopped, Usage
from cicada.models.stopping import Stoppable
from cicada.request_trace import log_event
from cicada.retrieval.knowledge.assembling import Chosen, ContextAssembler
from cicada.retrieval.knowledge.contracts import (
    Catalogue,
    CollectionChoice,
    CollectionPlan,
    Extractor,
    NamedEntity,
    NamedSection,
    Resolver,
    Selector,
)
from cicada.retrieval.knowledge.querying import (
    CollectionQuery,
    SearchHits,
    collection_queries,
    plain_query,
    plan_queries,
    search_all,
)
from cicada.retrieval.ports import Degradation, Retriever, SearchLimits, SearchQuery
from cicada.rights import Readable

R = TypeVar("R")
S = TypeVar("S")


class StoppableLimits(Stoppable):
    """:class:`cicada.retrieval.ports.SearchLimits` within others, with less time and a stop of their own. Thread-safe.

    As a context they listen for the others' stop.
    """

    def __init__(self, limits: SearchLimits, time_s: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._limits = limits
        self._clock = clock
        self._ends_s = clock() + time_s
        self._unregister: Callable[[], None] = lambda: None

    def __enter__(self) -> StoppableLimits:
        self._unregister = self._limits.on_stop(self.stop)
        return self

    def __exit__(self, *raised: object) -> None:
        self._unregister()

    def time_left_s(self) -> float:
        """See the port."""
        return max(0.0, min(self._ends_s - self._clock(), self._limits.time_left_s()))

    def call(self) -> None:
        """See the port. Raises Stopped after :meth:`stop`."""
        if self.stopped:
            raise Stopped
        self._limits.call()

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        self._limits.allow(model_id, most)

    def note(self, use: ModelUse) -> None:
        """See the port."""
        self._limits.note(use)


def both(
    one: Callable[[SearchLimits], R],
    other: Callable[[SearchLimits], S],
    limits: StoppableLimits,
    concurrency: Concurrency,
) -> tuple[R, S]:
    """Run two functions in parallel, and return both results.

    The first failure stops the limits, and so the other's calls; it is raised once the other's use is noted.
    """
    failures: list[BaseException] = []
    ones: list[R] = []
    others: list[S] = []

    def run(do: Callable[[], None]) -> None:
        try:
            do()
        except BaseException as error:  # stop the other in any case
            failures.append(error)
            limits.stop()

    concurrency.each(run, [lambda: ones.append(one(limits)), lambda: others.append(other(limits))])
    if failures:
        raise failures[0]
    return ones[0], others[0]


logger = logging.getLogger(__name__)

PLAIN_SEARCH = "plain_search"
"""The code of a context found by similarity alone, despite a choice."""
_TRIES = 2
"""Attempts at a consistent index version before a plain search."""
_NOTHING_THERE = Degradation(
    PLAIN_SEARCH, "Nothing was found in the sections that were chosen for the question, so everything was searched."
)
_CHANGED = Degradation(
    PLAIN_SEARCH, "The index changed while its sections were being chosen, so everything was searched without a choice."
)


@dataclass(frozen=True)
class Gathered:
    """The context of a question, and how it was found."""

    chosen: tuple[Chosen, ...]
    """The weightiest first."""
    found: int
    """Distinct passages to choose from."""
    index_version: str
    searched: int
    """Ranked passages: the sum of each collection's largest search."""
    engine: str
    choices: tuple[CollectionChoice, ...]
    named: tuple[NamedEntity, ...]
    plans: tuple[CollectionPlan, ...]
    """Empty after a plain search."""
    degraded: tuple[Degradation, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    """By step: select_extract, resolve, query, assemble."""


class KnowledgeSearch:
    """Finds what answers a question in collections that declare what they serve. Safe for several threads."""

    def __init__(
        self,
        catalogue: Callable[[Readable], Catalogue],
        selector: Selector,
        extractor: Extractor,
        resolver: Resolver,
        retriever: Retriever,
        assembler: ContextAssembler,
        *,
        passages_per_collection: int = DEFAULT_PASSAGES_PER_COLLECTION,
        budget_s: float = DEFAULT_KNOWLEDGE_BUDGET_S,
        concurrency: Concurrency = THREADS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``catalogue`` gives the current version's declarations; ``retriever`` calls no model but the embedding's.

        A collection's intentions share its ``passages_per_collection``. ``budget_s`` bounds all steps.
        """
        self._catalogue = catalogue
        self._selector = selector
        self._extractor = extractor
        self._resolver = resolver
        self._retriever = retriever
        self._assembler = assembler
        self._passages_per_collection = passages_per_collection
        self._budget_s = budget_s
        self._concurrency = concurrency
        self._clock = clock

    def gather(self, asked: SearchQuery) -> Gathered | None:
        """The context of a question; None where no allowed collection has a declaration.

        The query's filters hold for every search, its ``top_k`` and ``min_score`` for a plain one. Raises IndexFailure,
        ModelError, BudgetSpent, DependencyDown or OutOfTime if a step fails, or Stopped.
        """
        catalogue = in_play(self._catalogue(asked.readable), asked.filters.collections)
        if not catalogue.collections:
            return None
        timings_ms: dict[str, float] = {}
        with StoppableLimits(asked.limits, self._budget_s, self._clock) as limits:
            gathered = self._gathered(replace(asked, limits=limits), catalogue, limits, timings_ms)
        if gathered is not None:
            _trace(gathered)
        return gathered

    def _gathered(
        self, asked: SearchQuery, catalogue: Catalogue, limits: StoppableLimits, timings_ms: dict[str, float]
    ) -> Gathered | None:
        """The context, all of one index version: another version than the declarations' starts it again.

        A reader's version only grows. So if all searches saw the declarations' version, the resolver did too.
        """
        choices, named = self._wanted(asked.text, catalogue, limits, timings_ms)
        for _ in range(_TRIES):
            with self._timed("resolve", timings_ms):
                places = self._places(choices, named, catalogue, limits)
            plans = plan_queries(choices, places, catalogue)
            with self._timed("query", timings_ms):
                found, lacks = self._found(asked, plans, catalogue)
            if {one.result.index_version for one in found} == {catalogue.index_version}:
                break
            before, catalogue = catalogue, in_play(self._catalogue(asked.readable), asked.filters.collections)
            if not catalogue.collections:
                return None
            if catalogue.collections != before.collections:
                choices, named = self._wanted(asked.text, catalogue, limits, timings_ms)
        else:
            plans, lacks = (), (_CHANGED,)
            with self._timed("query", timings_ms):
                found = self._search(plain_query(asked, ()))
        with self._timed("assemble", timings_ms):
            context = self._assembler.assemble(found, plans, catalogue)
        first = found[0].result
        degraded = dict.fromkeys([lack for one in found for lack in one.result.degraded])
        return Gathered(
            chosen=context.chosen,
            found=context.found,
            index_version=first.index_version,
            searched=_searched(found),
            engine=first.engine,
            choices=choices,
            named=named,
            plans=plans,
            degraded=(*degraded, *lacks, *context.degraded),
            timings_ms=timings_ms,
        )

    def _wanted(
        self, question: str, catalogue: Catalogue, limits: StoppableLimits, timings_ms: dict[str, float]
    ) -> tuple[tuple[CollectionChoice, ...], tuple[NamedEntity, ...]]:
        """What the question wants, and names: two calls, side by side."""
        with self._timed("select_extract", timings_ms):
            return both(
                lambda held: self._selector.select(question, catalogue, held),
                lambda held: self._extractor.extract(question, catalogue, held),
                limits,
                self._concurrency,
            )

    def _places(
        self,
        choices: tuple[CollectionChoice, ...],
        named: tuple[NamedEntity, ...],
        catalogue: Catalogue,
        limits: SearchLimits,
    ) -> tuple[NamedSection, ...]:
        """The places of the names in the chosen collections, or in all without a choice."""
        if limits.time_left_s() <= 0:
            raise OutOfTime("no time left to search")
        chosen = dict.fromkeys(one.collection for one in choices)
        collections = list(chosen) or [one.collection for one in catalogue.collections]
        return self._resolver.resolve(named, collections, limits, readable=catalogue.readable) if named else ()

    def _found(
        self, asked: SearchQuery, plans: tuple[CollectionPlan, ...], catalogue: Catalogue
    ) -> tuple[tuple[SearchHits, ...], tuple[Degradation, ...]]:
        """The hits of all searches, and a degradation if the chosen sections had none.

        Collections without a declaration cannot be chosen, and are always searched.
        """
        queries = collection_queries(plans, catalogue, asked, passages_per_collection=self._passages_per_collection)
        if not any(plan.choices for plan in plans):
            return self._search(plain_query(asked, ()), *queries), ()
        if catalogue.undeclared:
            most = min(asked.top_k, self._passages_per_collection * len(catalogue.undeclared))
            queries = (*queries, plain_query(replace(asked, top_k=most), catalogue.undeclared))
        found = self._search(*queries)
        if any(one.result.hits for one in found if one.asked.why != "similarity"):
            return found, ()
        return (*found, *self._search(plain_query(asked, ()))), (_NOTHING_THERE,)

    def _search(self, *queries: CollectionQuery) -> tuple[SearchHits, ...]:
        return search_all(queries, self._retriever, self._concurrency)

    @contextmanager
    def _timed(self, step: str, timings_ms: dict[str, float]) -> Iterator[None]:
        started_s = self._clock()
        yield
        timings_ms[step] = round(timings_ms.get(step, 0.0) + (self._clock() - started_s) * 1000, 3)


def in_play(catalogue: Catalogue, collections: Sequence[str]) -> Catalogue:
    """The collections that a question may search; all where it names none."""
    if not collections:
        return catalogue
    return replace(
        catalogue,
        collections=tuple(one for one in catalogue.collections if one.collection in collections),
        undeclared=tuple(one for one in catalogue.undeclared if one in collections),
    )


def _searched(found: Sequence[SearchHits]) -> int:
    most: dict[tuple[str, ...], int] = {}
    for one in found:
        collections = one.asked.query.filters.collections
        most[collections] = max(most.get(collections, 0), one.result.searched)
    return most[()] if () in most else sum(most.values())


def _trace(gathered: Gathered) -> None:
    """Log how the context was found to the request trace, without names or words of the question."""
    log_event(
        logger,
        "gathered",
        "context gathered",
        intentions=[f"{one.collection}.{one.intention}" for one in gathered.choices],
        named=len(gathered.named),
        places=sum(len(plan.places) for plan in gathered.plans),
        sections=[f"{plan.collection}.{section}" for plan in gathered.plans for section in plan.sections],
        chosen=len(gathered.chosen),
        **{f"{step}_ms": round(took_ms) for step, took_ms in gathered.timings_ms.items()},
    )
