"""Circuit breakers around the ports of dependencies.

Each guard reports the outcome of every call to its breaker. While the breaker is open it raises DependencyDown without
making a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Generic, Protocol, TypeVar

from cicada.agents.ports import Agent, AgentFinished, AgentStep, AgentTask, RunLimits, Tools
from cicada.attempts.strategy import AskedQuestion
from cicada.breakers.dependencies import CACHE, INDEX, embedder_breaker, model_breaker
from cicada.breakers.registry import BreakerRegistry, Permit
from cicada.errors import AgentCapReached, DependencyDown, ModelUnavailable, StreamBroken
from cicada.models.ports import (
    CallScope,
    Embedder,
    Filled,
    Finished,
    Form,
    Prompt,
    Reranked,
    Reranker,
    StructuredModel,
    TextDelta,
    TextModel,
    TokenBudget,
)
from cicada.retrieval.ports import Retriever, SearchLimits, SearchQuery, SearchResult
from cicada.semantic_cache.ports import EarlierAnswers, Looked

FAIR_BUDGET_S = 5.0
"""A call that timed out with a smaller budget does not count as a failure of a model."""
FAIR_EMBED_BUDGET_S = 2.0
"""The same for an embedding model, which usually takes 0.1 s."""

Answer = TypeVar("Answer")


@contextmanager
def _fair(call: Permit, time_budget_s: float, fair_s: float = FAIR_BUDGET_S) -> Iterator[None]:
    """Report no outcome for a call that fails with a budget below ``fair_s``."""
    try:
        yield
    except (ModelUnavailable, StreamBroken):
        if time_budget_s < fair_s:
            call.released()
        raise


def _answer(
    permit: Permit, make: Callable[[], Answer], *, time_budget_s: float = math.inf, fair_s: float = FAIR_BUDGET_S
) -> Answer:
    """Make an admitted call that returns its whole answer."""
    with permit as call:
        with _fair(call, time_budget_s, fair_s):
            answer = make()
        call.succeeded()
        return answer


class _Model(Protocol):
    @property
    def model_id(self) -> str: ...


Guarded = TypeVar("Guarded", bound=_Model)


class _GuardedModel(Generic[Guarded]):
    def __init__(self, guarded: Guarded, breakers: BreakerRegistry) -> None:
        self._guarded = guarded
        self._breakers = breakers

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._guarded.model_id

    def _admit(self, *, last_resort: bool = False) -> Permit:
        return self._breakers.admit(model_breaker(self.model_id), last_resort=last_resort)


class GuardedModel(_GuardedModel[TextModel]):
    """A guarded :class:`cicada.models.ports.TextModel`."""

    def __init__(self, model: TextModel, breakers: BreakerRegistry, *, last_resort: bool = False) -> None:
        """Guard a model.

        A ``last_resort`` is called even while its breaker is open: nothing else is left to try, so a refusal would
        certainly end the request.
        """
        super().__init__(model, breakers)
        self._last_resort = last_resort

    @property
    def max_tokens(self) -> int:
        """See the port."""
        return self._guarded.max_tokens

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port."""
        with self._admit(last_resort=self._last_resort) as call:
            stream = self._guarded.stream(prompt, time_budget_s=time_budget_s, call_scope=call_scope)
            with _fair(call, time_budget_s), closing(stream) as steps:
                for step in steps:
                    if isinstance(step, Finished):
                        call.succeeded()
                    yield step


class GuardedRetriever:
    """A guarded :class:`cicada.retrieval.ports.Retriever`."""

    def __init__(self, retriever: Retriever, breakers: BreakerRegistry) -> None:
        self._retriever = retriever
        self._breakers = breakers
        self._last_version: str | None = None

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port."""
        found = _answer(self._breakers.admit(INDEX), lambda: self._retriever.search(query))
        self._last_version = found.index_version
        return found

    def version(self) -> str:
        """See the port. While the breaker is open, this is the version that the worker saw last, if any.

        The version is usually known without a read, so a success says nothing about the index and is not reported.
        """
        if self._last_version is not None and not self._breakers.allows(INDEX):
            return self._last_version
        self._breakers.check((INDEX,))
        try:
            version = self._retriever.version()
        except Exception as error:
            self._breakers.failed(INDEX, error)
            raise
        self._last_version = version
        return version


class GuardedEmbedder(_GuardedModel[Embedder]):
    """A guarded :class:`cicada.models.ports.Embedder`.

    It raises ModelUnavailable instead of DependencyDown: callers that can do without the vector (a lexical search)
    handle the errors of the port.
    """

    @property
    def dimensions(self) -> int:
        """See the port."""
        return self._guarded.dimensions

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See the port."""
        try:
            permit = self._breakers.admit(embedder_breaker(self.model_id))
        except DependencyDown as down:
            raise ModelUnavailable(str(down)) from down
        return _answer(
            permit,
            lambda: self._guarded.embed(texts, time_budget_s=time_budget_s),
            time_budget_s=time_budget_s,
            fair_s=FAIR_EMBED_BUDGET_S,
        )


class GuardedForms(_GuardedModel[StructuredModel]):
    """A guarded :class:`cicada.models.ports.StructuredModel`."""

    @property
    def max_tokens(self) -> int:
        """See the port."""
        return self._guarded.max_tokens

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """See the port."""
        return _answer(
            self._admit(),
            lambda: self._guarded.fill(prompt, form, time_budget_s=time_budget_s, call_scope=call_scope),
            time_budget_s=time_budget_s,
        )


class GuardedReranker(_GuardedModel[Reranker]):
    """A guarded :class:`cicada.models.ports.Reranker`."""

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, call_scope: TokenBudget) -> Reranked:
        """See the port."""
        return _answer(
            self._admit(),
            lambda: self._guarded.rerank(query, texts, time_budget_s=time_budget_s, call_scope=call_scope),
            time_budget_s=time_budget_s,
        )


class GuardedAgent(_GuardedModel[Agent]):
    """A guarded :class:`cicada.agents.ports.Agent`.

    A run counts as one call, however many turns it has. A run that ran out of time is not reported: its last turn may
    have had no time at all.
    """

    def __init__(self, agent: Agent, breakers: BreakerRegistry, name: str) -> None:
        """``name``: the breaker of the service that runs the agent, or of its model."""
        super().__init__(agent, breakers)
        self._name = name

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See the port."""
        with self._breakers.admit(self._name) as call, closing(self._guarded.run(task, tools, limits)) as steps:
            try:
                for step in steps:
                    if isinstance(step, AgentFinished):
                        call.succeeded()
                    yield step
            except AgentCapReached:
                if limits.time_left_s() <= 0:
                    call.released()
                raise


class GuardedCache:
    """A guarded :class:`cicada.semantic_cache.ports.EarlierAnswers`."""

    def __init__(self, cache: EarlierAnswers, breakers: BreakerRegistry) -> None:
        self._cache = cache
        self._breakers = breakers

    def look_up(
        self, asked: AskedQuestion, index_version: str, limits: SearchLimits, *, time_budget_s: float
    ) -> Looked:
        """See the port."""
        return _answer(
            self._breakers.admit(CACHE),
            lambda: self._cache.look_up(asked, index_version, limits, time_budget_s=time_budget_s),
        )
