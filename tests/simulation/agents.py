"""The agents' twin: a loop of turns of the text model's twin, with one tool that searches and one that notes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from cicada.agents.ports import (
    Actor,
    AgentFinished,
    AgentStep,
    AgentTask,
    Done,
    SourceRegistry,
    ToolCall,
    ToolInput,
    Tools,
)
from cicada.agents.tool_runner import ToolRunner
from cicada.answering.prompt import number_sources
from cicada.attempts.strategy import AskedQuestion
from cicada.errors import CicadaError
from cicada.models.ports import STOPPED, ModelUse, Prompt, TextDelta, Usage
from cicada.retrieval.ports import Filters, Retriever, SearchLimits, SearchQuery
from tests.simulation.faults import Faults
from tests.simulation.models import Model

MOST_TURN = Usage(2_000, 512)


class Sought(ToolInput):
    """What is searched for."""

    query: str


class SearchTool:
    """Puts what the retriever finds on the registry."""

    name, description, form = "search_script", "Search.", Sought
    writes = in_worker = False

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    def run(self, given: Sought, actor: Actor, registry: SourceRegistry, limits: SearchLimits) -> Mapping[str, Any]:
        """See the port."""
        filters = Filters(collections=actor.collections, episodes=actor.episodes)
        found = self._retriever.search(
            SearchQuery(given.query, filters, top_k=4, limits=limits, readable=actor.readable)
        )
        return {"passages": [registry.put(source) for source in number_sources(found.hits)]}


def searched_first(box: ToolRunner, asked: AskedQuestion) -> tuple[Done, ...]:
    """The call that comes before the model."""
    return (box.open("search_script", {"query": asked.query}),)


class Agent:
    """:class:`cicada.agents.ports.Agent`."""

    def __init__(self, model: Model, faults: Faults) -> None:
        self.model_id = model.model_id
        self._model = model
        self._faults = faults

    def run(self, task: AgentTask, tools: Tools, limits: SearchLimits) -> Generator[AgentStep, None, None]:
        """See the port."""
        turn = 0
        while self._faults.hit("agent_looks_again"):
            turn += 1
            tools.turn()
            limits.allow(self.model_id, MOST_TURN)
            tools.call(ToolCall(f"c{turn}", "search_script", {"query": f"{task.question} {turn % 3}"}))
        tools.turn()
        limits.allow(self.model_id, MOST_TURN)
        yield from self._answer(task, tools, limits)

    def _answer(self, task: AgentTask, tools: Tools, limits: SearchLimits) -> Generator[AgentStep, None, None]:
        shown = "\n".join(f'<passage n="{source.n}">\n{source.text}' for source in tools.registry.sources)
        counted = _Counted(limits)
        usage, fault = Usage(reported=False), STOPPED
        try:
            prompt = Prompt(task.instructions, f"{shown}\n{task.question}")
            for piece in self._model.stream(prompt, time_budget_s=limits.time_left_s(), call_scope=counted):
                if isinstance(piece, TextDelta):
                    yield piece
                    continue
                usage, fault = piece.usage, ""
                yield AgentFinished(piece.stop_reason, usage)
        except CicadaError as error:
            fault = error.code
            raise
        finally:
            limits.note(ModelUse("agent", self.model_id, counted.calls, usage, 1, fault or None))


class _Counted:
    """A call scope that counts."""

    def __init__(self, limits: SearchLimits) -> None:
        self.calls = 0
        self._limits = limits

    def call(self) -> None:
        """See :class:`cicada.models.ports.CallScope`."""
        self._limits.call()
        self.calls += 1

    def on_stop(self, wake: Any) -> Any:
        """See :class:`cicada.models.ports.CallScope`."""
        return self._limits.on_stop(wake)
