"""A worker whose neighbours take a fixed time each: the code of an answer, and nothing else to wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from cicada.answering.attempt import AttemptRunner
from cicada.answering.cag import CagStrategy
from cicada.answering.direct import DirectStrategy
from cicada.answering.hybrid import HybridStrategy
from cicada.answering.prompt import number_sources
from cicada.answering.rag import RagStrategy
from cicada.answering.workflow import AttemptTask
from cicada.attempts.strategy import AnswerGiven, AskedQuestion, Strategy
from cicada.delivery.record import RequestKey
from cicada.models.ports import CallScope, Finished, Prompt, TextDelta, Usage
from cicada.protocol.events import Source, StrategyName
from cicada.retrieval.ports import SearchLimits, SearchQuery, SearchResult
from cicada.rights import EVERYTHING
from cicada.semantic_cache.cache import NoEarlierAnswers
from cicada.semantic_cache.ports import Looked
from tests.support.access import GivenRules
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.questions import ACCEPTED, FixedRetriever, looked, new_head, passage

READER = "reader"


@dataclass(frozen=True)
class Latencies:
    """How long each neighbour takes, in milliseconds."""

    first_piece: float = 300.0
    search: float = 20.0
    look_up: float = 30.0
    write: float = 6.0
    post: float = 4.0

    def before_first_chunk_ms(self, strategy: StrategyName) -> float:
        """What a perfect program would wait for until the first chunk is delivered, its posts not awaited."""
        begun_and_stored = 2 * self.write + self.post
        match strategy:
            case "direct":
                return begun_and_stored + self.first_piece
            case "rag":
                return begun_and_stored + self.search + self.first_piece
            case "hybrid":
                return begun_and_stored + max(self.search, self.look_up) + self.first_piece
            case _:  # an earlier answer is given again: its sources, stored with the text, are posted before it
                return begun_and_stored + self.look_up + self.post


class _Model:
    model_id = "local.extractive"
    max_tokens = 512

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies

    def stream(
        self,
        _prompt: Prompt,
        *,
        time_budget_s: float,  # noqa: ARG002 - it has time
        call_scope: CallScope,
    ) -> Generator[TextDelta | Finished, None, None]:
        call_scope.call()
        _wait(self._latencies.first_piece)
        yield TextDelta('Mara says: "I locked the boathouse at ten." [1]')
        yield Finished("end_turn", Usage(100, 10))


class _Retriever(FixedRetriever):
    def __init__(self, latencies: Latencies) -> None:
        super().__init__(*(passage(n, "I locked the boathouse at ten.") for n in range(1, 11)))
        self._latencies = latencies

    def search(self, query: SearchQuery) -> SearchResult:
        _wait(self._latencies.search)
        return super().search(query)


class _Cache:
    def __init__(self, latencies: Latencies, answer: Looked) -> None:
        self._latencies = latencies
        self._answer = answer

    def look_up(
        self,
        asked: AskedQuestion,  # noqa: ARG002
        index_version: str,  # noqa: ARG002
        limits: SearchLimits,  # noqa: ARG002
        *,
        time_budget_s: float,  # noqa: ARG002
    ) -> Looked:
        _wait(self._latencies.look_up)
        return self._answer

    def keep(self, given: AnswerGiven) -> None:
        """Keep nothing."""


class Worker:
    """The production code of an attempt, over neighbours of fixed latency."""

    def __init__(self, latencies: Latencies) -> None:
        retriever, model = _Retriever(latencies), _Model(latencies)
        given, lent = (_Cache(latencies, looked(use, *_sources())) for use in ("answer", "contexts"))
        self._log = InMemoryLog()
        self._log.before = lambda _operation: _wait(latencies.write)
        self._latencies = latencies
        self._arrived: Callable[[str], None] = lambda _frame: None
        strategies: dict[StrategyName, Strategy] = {
            "direct": DirectStrategy(model),
            "rag": RagStrategy(retriever, NoEarlierAnswers(), model, top_k=10, min_score=0.5, prompt_passages=10),
            "hybrid": HybridStrategy(retriever, lent, model, top_k=10, min_score=0.5, prompt_passages=10),
            "cag": CagStrategy(retriever, given, model, prompt_passages=10),
        }
        self._runner = AttemptRunner(self._log, _Reader(self), strategies, sinks=[given], access=GivenRules())

    def first_chunk_ms(self, strategy: StrategyName) -> float:
        """From an invocation's begin to the first chunk's arrival at a reader."""
        key = RequestKey("mara", str(uuid4()))
        head = new_head(READER, key=key, accepted_at_ms=int(time.time() * 1000), expires_at=int(time.time()) + 3600)
        with _at_once(self._log):
            self._log.create(head, ACCEPTED)
        first: list[float] = []
        seen = threading.Event()

        def arrived(frame: str) -> None:
            if '"type":"chunk"' in frame and not first:
                first.append(time.perf_counter())
                seen.set()

        self._arrived = arrived
        task = AttemptTask(
            subject=key.subject, request_id=key.request_id, execution="e", entry=strategy, strategy=strategy
        )
        started = time.perf_counter()
        self._runner.run(task, worker="w", remaining_s=60)
        seen.wait(5)
        return (first[0] - started) * 1000

    def post(self, frame: str) -> None:
        """A frame on its way to the reader."""
        _wait(self._latencies.post)
        self._arrived(frame)


class _Reader(InMemoryConnections):
    def __init__(self, worker: Worker) -> None:
        super().__init__(READER)
        self._worker = worker

    def post(self, _connection_id: str, frame: str) -> None:
        self._worker.post(frame)


def _sources() -> tuple[Source, ...]:
    return number_sources(_Retriever(Latencies(search=0)).search(SearchQuery("", top_k=10, readable=EVERYTHING)).hits)


@contextmanager
def _at_once(log: InMemoryLog) -> Generator[None, None, None]:
    before, log.before = log.before, lambda _operation: None
    try:
        yield
    finally:
        log.before = before


def _wait(ms: float) -> None:
    """Sleep until then, by the clock and not by the sleep's own idea of it."""
    until = time.perf_counter() + ms / 1000
    while (left_s := until - time.perf_counter()) > 0:
        time.sleep(left_s)
