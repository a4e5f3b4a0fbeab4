"""A managed engine with the shards as fallback: the result says when the engine failed or was too slow."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Protocol

from cicada.defaults import DEFAULT_ENGINE_BUDGET_S
from cicada.errors import IndexFailure, IndexUnavailable, ModelError
from cicada.models.ports import Embedder
from cicada.retrieval.ports import Degradation, Retriever, SearchQuery, SearchResult
from cicada.retrieval.query_vectors import in_time

logger = logging.getLogger(__name__)

FAILURES_TO_REST = 3
"""Failures in a row after which the engine rests."""
REST_S = 30.0
ENGINE_SHARE = 0.5
"""The engine's share of a search's time left; the rest is the shards'."""
_SEARCHES_AT_ONCE = 8
_TEXTS_KEPT = 8


class ManagedEngine(Retriever, Protocol):
    """A retriever outside this process, which may hold a version of the index."""

    def held_version(self) -> str | None:
        """The version that it holds, if known without a call."""


class FallbackRetriever:
    """Searches with the engine, and with the shards where the engine cannot.

    A failure to embed the query is raised, as both need its vector. After some failures in a row the engine rests, so
    that an outage does not delay every search. Thread-safe.
    """

    def __init__(
        self,
        primary: ManagedEngine,
        shards: Retriever,
        budget_s: float = DEFAULT_ENGINE_BUDGET_S,
        *,
        name: str = "The search engine",
        prepare: Callable[[SearchQuery], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``prepare`` does what both need, such as the query's vector, before the engine's time begins."""
        self._primary = primary
        self._shards = shards
        self._budget_s = budget_s
        self._name = name
        self._prepare = prepare
        self._clock = clock
        self._pool = ThreadPoolExecutor(_SEARCHES_AT_ONCE, thread_name_prefix="engine")
        self._lock = threading.Lock()
        self._failures = 0
        self._rests_until_s = float("-inf")

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port. Raises IndexUnavailable if neither can answer."""
        self._prepare(query)
        if self._clock() < self._rests_until_s:
            why = f"{self._name} has failed {FAILURES_TO_REST} times in a row and is left alone for a while."
            return self._from_shards(query, why, IndexUnavailable(why))
        budget_s = min(self._budget_s, ENGINE_SHARE * query.limits.time_left_s())
        asked = self._pool.submit(self._primary.search, query)
        try:
            result = asked.result(budget_s)
        except TimeoutError:
            asked.cancel()  # if it still waits for a thread
            why = f"{self._name} did not answer within {budget_s:.2g} s."
            if budget_s < self._budget_s:  # too little time to count as the engine's failure
                return self._from_shards(query, why, IndexUnavailable(why))
            return self._after_failure(query, why, IndexUnavailable(why))
        except IndexFailure as error:  # its text may name resources, and is only logged
            return self._after_failure(query, f"{self._name} could not answer ({error.code}).", error)
        with self._lock:
            self._failures = 0
        return result

    def version(self) -> str:
        """The version of whichever a search would ask first: see :class:`cicada.retrieval.ports.Retriever`."""
        if self._clock() >= self._rests_until_s:
            try:
                return self._primary.version()
            except IndexFailure as error:
                logger.debug("the engine's version is unknown", extra={"engine": self._name, "why": str(error)})
        return self._shards.version()

    def _after_failure(self, query: SearchQuery, why: str, error: IndexFailure) -> SearchResult:
        logger.warning("engine failed", extra={"engine": self._name, "code": error.code, "why": str(error)})
        with self._lock:
            self._failures += isinstance(error, IndexUnavailable)  # a refused filter is not an outage
            if self._failures >= FAILURES_TO_REST:
                self._failures = 0
                self._rests_until_s = self._clock() + REST_S
        return self._from_shards(query, why, error)

    def _from_shards(self, query: SearchQuery, why: str, error: IndexFailure) -> SearchResult:
        try:
            result = self._shards.search(query)
        except IndexFailure as second:
            raise IndexUnavailable(f"{error}; the shards cannot answer either: {second}") from second
        told = Degradation("engine_fallback", f"{why} {self._versions(result.index_version)}")
        return replace(result, degraded=(told, *result.degraded))

    def _versions(self, searched: str) -> str:
        held = self._primary.held_version()
        told = f"The index's own shards were searched instead, in version {searched}"
        if held is None:
            return f"{told}; which version {self._name} holds is not known."
        return f"{told}, the same." if held == searched else f"{told}; {self._name} holds version {held}."


class PrefetchingEmbedder:
    """An embedder that keeps the last learnt texts, so that a query is embedded once for two engines."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model_id = embedder.model_id
        self.dimensions = embedder.dimensions
        self._lock = threading.Lock()
        self._known: OrderedDict[str, list[float] | ModelError] = OrderedDict()

    def prefetch(self, text: str, *, time_budget_s: float) -> None:
        """Embed a text, or fail as the model does; :meth:`embed` then returns or raises the same."""
        with self._lock:
            if isinstance(self._known.get(text), list):
                return
        outcome: list[float] | ModelError
        try:
            (outcome,) = in_time(partial(self._embedder.embed, [text], time_budget_s=time_budget_s), time_budget_s)
        except ModelError as error:
            outcome = error
        with self._lock:
            self._known[text] = outcome
            while len(self._known) > _TEXTS_KEPT:
                self._known.popitem(last=False)
        if isinstance(outcome, ModelError):
            raise outcome

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """Return one vector of unit length a text: see :class:`cicada.models.ports.Embedder`."""
        with self._lock:
            known = self._known.get(texts[0]) if len(texts) == 1 else None
        if isinstance(known, ModelError):
            raise known
        return self._embedder.embed(texts, time_budget_s=time_budget_s) if known is None else [known]
