"""An embedder that embeds equal texts once: search, cache lookup and cache write share a query's vector."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from cicada.errors import ModelUnavailable
from cicada.models.ports import Embedder

_Vector = list[float]
MOST_KEPT_TOGETHER = 8
"""Larger calls are not cached: they embed sentences of passages, which would evict the queries."""


class CachingEmbedder:
    """Caches the vectors of the last texts. Thread-safe.

    A caller whose text another thread is embedding waits for that call within its own time budget, and shares its
    outcome. Waiting callers share a failure, so that a throttled model gets one call; later callers call again.
    """

    def __init__(self, embedder: Embedder, size: int = 64, *, clock: Callable[[], float] = time.monotonic) -> None:
        """``size`` is in texts, least recently used dropped first; 1,024 dimensions take about 32 KB."""
        self.model_id = embedder.model_id
        self.dimensions = embedder.dimensions
        self._embedder = embedder
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Vector] = OrderedDict()
        self._under_way: dict[str, Future[_Vector]] = {}

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See the port. ModelUnavailable, too, when another thread's call for a text outlasts the time budget."""
        deadline_s = self._clock() + time_budget_s
        vectors, mine, others = self._sort(texts)
        if mine:  # before waiting for others, who may be waiting for these
            vectors |= self._embed(mine, time_budget_s)
        for text, call in others.items():
            vectors[text] = self._outcome(call, deadline_s)
        return [list(vectors[text]) for text in texts]

    def _sort(
        self, texts: Sequence[str]
    ) -> tuple[dict[str, _Vector], dict[str, Future[_Vector]], dict[str, Future[_Vector]]]:
        """The cached texts, those that this caller embeds now, and those that other threads are embedding."""
        vectors: dict[str, _Vector] = {}
        mine: dict[str, Future[_Vector]] = {}
        others: dict[str, Future[_Vector]] = {}
        with self._lock:
            for text in dict.fromkeys(texts):
                if text in self._known:
                    self._known.move_to_end(text)
                    vectors[text] = self._known[text]
                elif text in self._under_way:
                    others[text] = self._under_way[text]
                else:
                    mine[text] = self._under_way[text] = Future()
        return vectors, mine, others

    def _embed(self, mine: dict[str, Future[_Vector]], time_budget_s: float) -> dict[str, _Vector]:
        try:
            vectors = dict(zip(mine, self._embedder.embed(list(mine), time_budget_s=time_budget_s), strict=True))
        except BaseException as error:  # no thread may be left waiting
            self._over(mine, {})
            shared = error if isinstance(error, Exception) else ModelUnavailable("the call was cancelled")
            for call in mine.values():
                call.set_exception(shared)
            raise
        self._over(mine, vectors)
        for text, call in mine.items():
            call.set_result(vectors[text])
        return vectors

    def _over(self, mine: dict[str, Future[_Vector]], vectors: dict[str, _Vector]) -> None:
        with self._lock:
            for text in mine:
                del self._under_way[text]
            if len(vectors) <= MOST_KEPT_TOGETHER:
                self._known.update(vectors)
            while len(self._known) > self._size:
                self._known.popitem(last=False)

    def _outcome(self, call: Future[_Vector], deadline_s: float) -> _Vector:
        try:
            return call.result(max(0.0, deadline_s - self._clock()))
        except TimeoutError as error:
            if call.done():  # the call's own time-out, or its end just now
                return call.result()
            raise ModelUnavailable("another call for the same text took longer than the time budget") from error
