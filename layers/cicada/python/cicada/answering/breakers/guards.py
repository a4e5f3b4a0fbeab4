"""The ports of what can be down, each behind its circuit breaker: an outcome a call is told, and open ones refuse."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from cicada.agents.ports import Agent, AgentFinished, AgentStep, AgentTask, RunLimits, Tools
from cicada.answering.breakers.board import Breakers
from cicada.answering.breakers.decide import Admission
from cicada.answering.breakers.names import CACHE, INDEX, embedder_breaker, model_breaker
from cicada.answering.reuse import EarlierAnswers
from cicada.answering.strategy import Asked
from cicada.errors import AgentCapReached, DependencyDown, ModelUnavailable, StreamBroken
from cicada.models.ports import (
    Embedder,
    Filled,
    Finished,
    Form,
    Leash,
    Prompt,
    Purse,
    Reranked,
    Reranker,
    StructuredModel,
    TextDelta,
    TextModel,
)
from cicada.retrieval.ports import Limits, Retriever, SearchQuery, SearchResult

if TYPE_CHECKING:
    from cicada.answering.semantic_cache.cache import Looked

FAIR_BUDGET_S = 5.0
"""A model that had less time than this, in seconds, and ran out of it, is not thereby failing."""
FAIR_EMBED_BUDGET_S = 2.0
"""Likewise of an embedding model, which takes a tenth of a second."""


@contextmanager
def _fair(call: Admission, time_budget_s: float, fair_s: float) -> Iterator[None]:
    """A call that ran out of less time than is fair says nothing of the model."""
    try:
        yield
    except (ModelUnavailable, StreamBroken):
        if time_budget_s < fair_s:
            call.released()
        raise


class GuardedModel:
    """A :class:`cicada.models.ports.TextModel` that raises DependencyDown, too, while its breaker is open."""

    def __init__(self, model: TextModel, breakers: Breakers, *, last_resort: bool = False) -> None:
        """Guard a model.

        Args:
            model: what is guarded.
            breakers: told of every call.
            last_resort: whether nothing else is left to try when it is called: it is called then even where its breaker
                is open, for a refusal would surely end the request, and a call only perhaps.
        """
        self._model = model
        self._breakers = breakers
        self._last_resort = last_resort

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._model.model_id

    @property
    def max_tokens(self) -> int:
        """See the port."""
        return self._model.max_tokens

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, leash: Leash
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port.

        Raises:
            DependencyDown: the model keeps failing, and is left alone for now.
        """
        name = model_breaker(self._model.model_id)
        with self._breakers.admit(name, last_resort=self._last_resort) as call:
            stream = self._model.stream(prompt, time_budget_s=time_budget_s, leash=leash)
            with _fair(call, time_budget_s, FAIR_BUDGET_S), closing(stream) as steps:
                for step in steps:
                    if isinstance(step, Finished):
                        call.succeeded()
                    yield step


class GuardedRetriever:
    """A :class:`cicada.retrieval.ports.Retriever` that raises DependencyDown, too, while the breaker is open."""

    def __init__(self, retriever: Retriever, breakers: Breakers) -> None:
        """Guard a retriever; ``breakers`` are told of every call."""
        self._retriever = retriever
        self._breakers = breakers
        self._last_version: str | None = None

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port.

        Raises:
            DependencyDown: the index keeps failing, and is left alone for now.
        """
        with self._breakers.admit(INDEX) as call:
            found = self._retriever.search(query)
            call.succeeded()
        self._last_version = found.index_version
        return found

    def version(self) -> str:
        """See the port. While the index is left alone it is the version that this worker saw last, if it saw any.

        It is known without a read, mostly: so it is no probe, and that it went well says nothing of the index.

        Raises:
            DependencyDown: the index is left alone, and this worker has not seen it.
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


class GuardedEmbedder:
    """A :class:`cicada.models.ports.Embedder` that is unavailable, too, while its breaker is open.

    It raises no DependencyDown: whoever can do without the vector of a question (a search by words) looks for the
    errors of the port.
    """

    def __init__(self, embedder: Embedder, breakers: Breakers) -> None:
        """Guard an embedder; ``breakers`` are told of every call."""
        self._embedder = embedder
        self._breakers = breakers

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        """See the port."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See the port.

        Raises:
            ModelUnavailable: the model keeps failing, and is left alone for now; or as the model does.
        """
        try:
            admission = self._breakers.admit(embedder_breaker(self._embedder.model_id))
        except DependencyDown as down:
            raise ModelUnavailable(str(down)) from down
        with admission as call:
            with _fair(call, time_budget_s, FAIR_EMBED_BUDGET_S):
                vectors = self._embedder.embed(texts, time_budget_s=time_budget_s)
            call.succeeded()
            return vectors


class GuardedForms:
    """A :class:`cicada.models.ports.StructuredModel` that raises DependencyDown, too, while its breaker is open."""

    def __init__(self, model: StructuredModel, breakers: Breakers) -> None:
        """Guard a model; ``breakers`` are told of every form."""
        self._model = model
        self._breakers = breakers

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._model.model_id

    @property
    def max_tokens(self) -> int:
        """See the port."""
        return self._model.max_tokens

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, leash: Leash) -> Filled[Form]:
        """See the port.

        Raises:
            DependencyDown: the model keeps failing, and is left alone for now.
        """
        with self._breakers.admit(model_breaker(self._model.model_id)) as call:
            with _fair(call, time_budget_s, FAIR_BUDGET_S):
                filled = self._model.fill(prompt, form, time_budget_s=time_budget_s, leash=leash)
            call.succeeded()
            return filled


class GuardedReranker:
    """A :class:`cicada.models.ports.Reranker` that raises DependencyDown, too, while its breaker is open."""

    def __init__(self, reranker: Reranker, breakers: Breakers) -> None:
        """Guard a re-ranker; ``breakers`` are told of every re-ranking."""
        self._reranker = reranker
        self._breakers = breakers

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._reranker.model_id

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, leash: Purse) -> Reranked:
        """See the port.

        Raises:
            DependencyDown: the model keeps failing, and is left alone for now.
        """
        with self._breakers.admit(model_breaker(self._reranker.model_id)) as call:
            with _fair(call, time_budget_s, FAIR_BUDGET_S):
                reranked = self._reranker.rerank(query, texts, time_budget_s=time_budget_s, leash=leash)
            call.succeeded()
            return reranked


class GuardedAgent:
    """A :class:`cicada.agents.ports.Agent` that raises DependencyDown, too, while the breaker of its service is open.

    A run is one call, however many turns it has. One that ends because its time is over says nothing of the service,
    good or bad: its last turn may have had a second, or none.
    """

    def __init__(self, agent: Agent, breakers: Breakers, name: str) -> None:
        """Guard an agent; ``name`` is the breaker's: of the service that runs it, or of its model."""
        self._agent = agent
        self._breakers = breakers
        self._name = name

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._agent.model_id

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See the port.

        Raises:
            DependencyDown: the service keeps failing, and is left alone for now.
        """
        with self._breakers.admit(self._name) as call, closing(self._agent.run(task, tools, limits)) as steps:
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
    """The semantic cache, whose look-up raises DependencyDown, too, while its breaker is open."""

    def __init__(self, cache: EarlierAnswers, breakers: Breakers) -> None:
        """Guard a cache; ``breakers`` are told of every look-up."""
        self._cache = cache
        self._breakers = breakers

    def look_up(self, asked: Asked, index_version: str, limits: Limits, *, time_budget_s: float) -> Looked:
        """See :class:`cicada.answering.reuse.EarlierAnswers`.

        Raises:
            DependencyDown: the cache keeps failing, and is left alone for now.
        """
        with self._breakers.admit(CACHE) as call:
            looked = self._cache.look_up(asked, index_version, limits, time_budget_s=time_budget_s)
            call.succeeded()
            return looked
