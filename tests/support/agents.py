"""An agent that does what a test says, and tools that it can use."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cicada.agents.ports import (
    Actor,
    AgentFinished,
    AgentStep,
    AgentTask,
    ProfileWritten,
    SourceRegistry,
    Told,
    ToolCall,
    ToolInput,
    ToolReply,
    Tools,
)
from cicada.errors import CicadaError
from cicada.models.ports import Filled, ModelUse, TextDelta, Usage
from cicada.protocol.events import ProfileChanged, Source
from cicada.retrieval.ports import SearchLimits
from cicada_local.bedrock.extractive.prompt import parse_prompt
from cicada_local.bedrock.extractive.siding import side_of
from tests.support.questions import passage


class Words(ToolInput):
    """What is looked for, or noted."""

    words: str = ""
    times: int = 1


def written(given: Words, registry: SourceRegistry) -> ProfileWritten:
    """What a tool says that has made a character's profile."""
    change = ProfileChanged(
        operation="created", id="1" * 20, kind="character", name=given.words, version=1, undoable=True
    )
    return ProfileWritten({"created": {"name": given.words}}, change)


@dataclass
class FakeTool:
    """Does what it is given; remembers who had it done."""

    name: str
    result: Callable[[Words, SourceRegistry], Told] = lambda given, registry: {"said": given.model_dump().get("words")}
    writes: bool = False
    in_worker: bool = False
    form: type[ToolInput] = Words
    description: str = "For tests."
    runs: list[tuple[Actor, Words]] = field(default_factory=list)

    def run(self, given: Words, actor: Actor, registry: SourceRegistry, limits: SearchLimits) -> Told:
        self.runs.append((actor, given))
        limits.time_left_s()
        return self.result(given, registry)


@dataclass
class SidesModel:
    """A model that sorts passages as the local cloud's stand-in does, or as it is told; it may fail."""

    sides: Callable[[str, str, str], tuple[str, str]] = side_of
    error: CicadaError | None = None
    asked: list[str] = field(default_factory=list)
    model_id: str = "local.sides"
    max_tokens: int = 512

    def fill(self, prompt: Any, form: Any, *, time_budget_s: float, call_scope: Any) -> Filled[Any]:
        call_scope.call()
        self.asked.append(prompt.user)
        if self.error is not None:
            raise self.error
        read = parse_prompt(prompt.user)
        told = [(one.number, *self.sides(read.question, one.text, one.place)) for one in read.passages]
        passages = [{"n": n, "side": side, "strength": strength} for n, side, strength in told]
        return Filled(form.model_validate({"passages": passages}), Usage(100, 20), 1)


def found(n: int, text: str) -> Source:
    """A passage of the script, as a tool brings it."""
    said = passage(n, text)
    return Source(n=1, passage_id=said.id, collection=said.collection, locator=said.locator, score=0.9, text=said.text)


@dataclass
class ScriptedAgent:
    """:class:`cicada.agents.ports.Agent`: text is said, calls are made, errors are raised, in order.

    It takes a model's turn for every step, as the limits ask of one.
    """

    steps: Sequence[str | ToolCall | BaseException]
    model_id: str = "local.scripted"
    usage: Usage = field(default_factory=lambda: Usage(300, 40))
    tasks: list[AgentTask] = field(default_factory=list)
    replies: list[ToolReply] = field(default_factory=list)
    closed: bool = False

    def run(self, task: AgentTask, tools: Tools, limits: SearchLimits) -> Generator[AgentStep, None, None]:
        self.tasks.append(task)
        try:
            for step in self.steps:
                tools.turn()
                limits.allow(self.model_id, Usage(1_000, 500))
                limits.call()
                limits.note(ModelUse("agent", self.model_id, 1, self.usage, 5))
                match step:
                    case str():
                        yield TextDelta(step)
                    case ToolCall():
                        self.replies.append(tools.call(step))
                    case _:
                        raise step
            yield AgentFinished("end_turn", self.usage)
        finally:
            self.closed = True
