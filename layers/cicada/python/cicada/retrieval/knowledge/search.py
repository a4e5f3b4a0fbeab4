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

R = TypeVar("R")
S = TypeVar("S")


class StoppableLimits(Stoppable):
    """:class:`cicada.retrieval.ports.SearchLimits` within others', with less time, that can be stopped by themselves.

    As a context they hear the others' stop. Thread-safe.
    """

    def __init__(self, limits: SearchLimits, time_s: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._limits = limits
        self._clock = clock
        self._ends_s = clock() + time_s
        self._unhear: Callable[[], None] = lambda: None

    def __enter__(self) -> StoppableLimits:
        self._unhear = self._limits.on_stop(self.stop)
        return self

    def __exit__(self, *raised: object) -> None:
        self._unhear()

    def time_left_s(self) -> float:
        """See the port."""
        return max(0.0, min(self._ends_s - self._clock(), self._limits.time_left_s()))

    def call(self) -> None:
        """See the port. Raises Stopped after :meth:`stop`."""
        if self.stopped:
            raise Stopped("nobody wants the result any more")
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
    """Do two things at the same time, and return what both give.

    The first failure stops the limits, and with them whatever the other has under way; the other's use is accounted for
    before the failure is raised.
    """
    failures: list[BaseException] = []
    ones: list[R] = []
    others: list[S] = []

    def run(do: Callable[[], None]) -> None:
        try:
            do()
        except BaseException as error:  # the other must not go on, whatever it is
            failures.append(error)
            limits.stop()

    concurrency.each(run, [lambda: ones.append(one(limits)), lambda: others.append(other(limits))])
    if failures:
        raise failures[0]
    return ones[0], others[0]


logger = logging.getLogger(__name__)

PLAIN_SEARCH = "plain_search"
"""The code of a context that was found by likeness alone, though something had been chosen."""
_TRIES = 2
"""Rounds in which another version of the index is published, before one plain search has to do."""
_NOTHING_THERE = Degradation(
    PLAIN_SEARCH, "Nothing was found in the sections that were chosen for the question, so everything was searched."
)
_CHANGED = Degradation(
    PLAIN_SEARCH, "The index changed while its sections were being chosen, so everything was searched without a choice."
)


@dataclass(frozen=True)
class Gathered:
    """The context of a question, and how it came about."""

    chosen: tuple[Chosen, ...]
    """In the order of their weight."""
    found: int
    """Distinct passages that there were to choose from."""
    index_version: str
    searched: int
    """Passages that were ranked: of each collection as many as the largest of its searches ranked."""
    engine: str
    choices: tuple[CollectionChoice, ...]
    named: tuple[NamedEntity, ...]
    plans: tuple[CollectionPlan, ...]
    """What was asked of each collection; empty after a plain search."""
    degraded: tuple[Degradation, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    """By step: select_extract, resolve, query, assemble."""


class KnowledgeSearch:
    """Finds what answers a question in collections that declare what they serve. Safe for several threads."""

    def __init__(
        self,
        catalogue: Callable[[], Catalogue],
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
        """Wire the steps.

        Args:
            catalogue: the declarations of the version that a search would use now.
            retriever: searches the index of the declarations, without models of its own beside the embedding's.
            passages_per_collection: searched for of each collection, shared out among its intentions.
            budget_s: seconds for all steps, less where the question's limits leave less.
            clock: monotonic seconds.
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
        """The context of a question; None where no collection that it may search declares anything.

        Its filters hold for every search, its ``top_k`` and ``min_score`` for a plain one.

        Raises:
            IndexFailure, ModelError, BudgetSpent, DependencyDown, OutOfTime: one of the steps failed, and so the whole.
            Stopped: the limits' stop.
        """
        catalogue = in_play(self._catalogue(), asked.filters.collections)
        if not catalogue.collections:
            return None
        timings_ms: dict[str, float] = {}
        with StoppableLimits(asked.limits, self._budget_s, self._clock) as limits:
            gathered = self._gathered(replace(asked, limits=limits), catalogue, limits, timings_ms)
        if gathered is not None:
            _tell(gathered)
        return gathered

    def _gathered(
        self, asked: SearchQuery, catalogue: Catalogue, limits: StoppableLimits, timings_ms: dict[str, float]
    ) -> Gathered | None:
        """The context, all of one version: what was chosen by its declarations is found in it, or it begins anew.

        A reader's version only ever grows. So where all searches saw that of the declarations, what was read between
        was of it too.
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
            before, catalogue = catalogue, in_play(self._catalogue(), asked.filters.collections)
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
        """Where what is named stands, in the collections that were chosen; where none was, in all."""
        if limits.time_left_s() <= 0:
            raise OutOfTime("no time was left to search")
        chosen = dict.fromkeys(one.collection for one in choices)
        collections = list(chosen) or [one.collection for one in catalogue.collections]
        return self._resolver.resolve(named, collections, limits) if named else ()

    def _found(
        self, asked: SearchQuery, plans: tuple[CollectionPlan, ...], catalogue: Catalogue
    ) -> tuple[tuple[SearchHits, ...], tuple[Degradation, ...]]:
        """What the searches brought, and whether what was chosen had to be done without.

        Collections that declare nothing cannot be chosen, and are always searched too.
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


def _tell(gathered: Gathered) -> None:
    """Tell how the context came about in the request's story: names and words of the question are not told."""
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
