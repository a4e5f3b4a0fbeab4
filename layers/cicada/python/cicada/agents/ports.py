"""The ports of agents and tools, and the values that they exchange."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from cicada.delivery.record import Question, RequestKey
from cicada.models.ports import TextDelta, Usage
from cicada.profiles.record import Kind, Verdict
from cicada.protocol.events import ChangedField, ProfileChanged, Source, VerdictPassage
from cicada.retrieval.ports import SearchLimits
from cicada.rights import Readable

MAX_OUTPUT_CHARS = 16_000
"""Of a tool's result for the model: a quarter of the services' limits, in any language."""


@dataclass(frozen=True)
class Actor:
    """The connected user, for whom tools act; never taken from a model's words."""

    subject: str
    """The user's key: see :class:`cicada.delivery.record.RequestKey`."""
    request_id: str
    message: str
    """What the user said in this request: the proof of notes made from it."""
    said_at_ms: int
    tenant: str | None = None
    collections: tuple[str, ...] = ()
    """The user limits the question to these; all when empty."""
    episodes: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    readable: Readable = field(kw_only=True)
    """What the user may read. Tools search and show nothing else of the corpus."""
    understood: str = ""
    """The message as it was completed from the user's earlier messages, where it was."""

    @property
    def said(self) -> tuple[str, ...]:
        """The message as it was sent, and as it was understood."""
        return (self.message, self.understood) if self.understood else (self.message,)

    @classmethod
    def asking(
        cls, key: RequestKey, question: Question, at_ms: int, understood: str = "", *, readable: Readable
    ) -> Self:
        """The user of a request.

        ``understood`` is the question as completed from the user's own earlier messages. A completion from answers is
        not the user's word, as answers quote documents.
        """
        return cls(
            subject=key.subject,
            request_id=key.request_id,
            message=question.query,
            said_at_ms=at_ms,
            tenant=question.tenant,
            collections=question.collections,
            episodes=question.episodes,
            documents=question.documents,
            sections=question.sections,
            readable=readable,
            understood=understood,
        )


class SourceRegistry(Protocol):
    """The passages that the tools of one request have found, numbered as the answer cites them."""

    def put(self, source: Source, index_version: str = "") -> int:
        """Number a source, whatever its ``n``; a known one keeps its number, and gets the reasons too.

        ``index_version`` is empty for what no search has found.
        """

    def version_of(self, n: int) -> str:
        """The index version that a source was last found in; empty without a search."""

    @property
    def version(self) -> str:
        """The index version of all passages; empty before the first search."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """All, by number, from 1."""


class ToolInput(BaseModel):
    """A tool's input, strict. The model is told its docstring and its fields' descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


@dataclass(frozen=True)
class TheoryVerdict:
    """The verdict on a theory, as a tool call gave it: the user is shown this, whatever the agent writes."""

    verdict: Verdict
    for_: tuple[VerdictPassage, ...] = ()
    against: tuple[VerdictPassage, ...] = ()
    given: bool = True
    """False where the agent gave none: the verdict is open then, with all gathered passages."""


@dataclass(frozen=True)
class VerdictGiven:
    """The result of a tool that gives a verdict."""

    told: Mapping[str, Any]
    """To the model."""
    verdict: TheoryVerdict


@dataclass(frozen=True)
class ProfileWritten:
    """The result of a tool that has changed a profile."""

    told: Mapping[str, Any]
    """To the model."""
    change: ProfileChanged
    """The user's receipt, from the record of the change."""
    verdict: TheoryVerdict | None = None
    """The recorded verdict, if any."""
    take_back: Callable[[], object] = lambda: None
    """Undoes the change if its receipt cannot be delivered."""


@dataclass(frozen=True)
class ToConfirm:
    """The result of a tool that would delete something: nothing is deleted until the user confirms it."""

    told: Mapping[str, Any]
    """To the model."""
    confirmation_id: str
    operation: Literal["delete", "remove_fields"]
    profile_id: str
    kind: Kind
    name: str
    version: int
    fields: tuple[ChangedField, ...]
    """What would be deleted."""
    expires_at_ms: int


Told = Mapping[str, Any] | VerdictGiven | ProfileWritten | ToConfirm
Given = TypeVar("Given", bound=ToolInput, contravariant=True)


class Tool(Protocol, Generic[Given]):
    """One thing that an agent can do."""

    @property
    def name(self) -> str:
        """Letters, digits and underscores, at most 64."""

    @property
    def description(self) -> str:
        """When to use it, as the model is told."""

    @property
    def form(self) -> type[ToolInput]:
        """Its input."""

    @property
    def writes(self) -> bool:
        """Whether it changes anything, even after a confirmation: offered only where the user asks for a change."""

    @property
    def in_worker(self) -> bool:
        """Whether it must run in the answer worker: it writes, needs all sources, or calls a model."""

    def run(self, given: Given, actor: Actor, registry: SourceRegistry, limits: SearchLimits) -> Told:
        """Run the tool. The result names every shown passage by its number in the registry.

        A CicadaError's code and reason go to the model, which may try something else. Stopped ends the run.
        """


@dataclass(frozen=True)
class ToolCall:
    """A model's use of a tool."""

    call_id: str
    name: str
    given: Any
    """The model's JSON object, or its text where that is not JSON. Untrusted until validated."""


@dataclass(frozen=True)
class ToolReply:
    """The model's answer from a tool."""

    call_id: str
    name: str
    text: str
    """JSON, at most :data:`MAX_OUTPUT_CHARS`."""
    failed: bool = False


class Tools(Protocol):
    """The tools of one run, with the caps on them: see :class:`cicada.agents.tool_runner.ToolRunner`."""

    @property
    def tools(self) -> Sequence[Tool[Any]]:
        """The offered tools."""

    @property
    def actor(self) -> Actor:
        """The user they act for."""

    @property
    def registry(self) -> SourceRegistry:
        """The sources that they have found so far."""

    def call(self, call: ToolCall) -> ToolReply:
        """Validate, run, bound and record one call; the reply tells its errors.

        Raises:
            AgentCapReached: no more calls are allowed, or one was repeated too often.
            Stopped: the answer is not wanted any more, or another attempt gives it.
        """

    def ran(self, call: ToolCall, reply: ToolReply) -> None:
        """Count and record a call that the agent's service ran elsewhere. Raises AgentCapReached as :meth:`call`."""

    def turn(self) -> None:
        """Begin another turn of the model. Raises AgentCapReached, OutOfTime or Stopped if it may not."""


@dataclass(frozen=True)
class Done:
    """A call that our code makes before the model is asked."""

    call: ToolCall
    reply: ToolReply


@dataclass(frozen=True)
class AgentTask:
    """What an agent is to answer."""

    instructions: str
    question: str
    """Complete in itself."""
    done: tuple[Done, ...] = ()
    """Calls that were made already."""
    conversation: str = ""
    """The conversation's name for the service, different for each user."""


@dataclass(frozen=True)
class AgentFinished:
    """The normal end of a run; always the last step."""

    stop_reason: str
    usage: Usage = field(default_factory=Usage)
    """Of all calls together."""


AgentStep = TextDelta | AgentFinished


class RunLimits(SearchLimits, Protocol):
    """What one run may take: see :class:`cicada.agents.limits.CappedLimits`."""

    def check_time(self) -> None:
        """Raise AgentCapReached after the run's own time, OutOfTime after its attempt's."""


class Agent(Protocol):
    """A model with tools, wherever its loop runs."""

    @property
    def model_id(self) -> str:
        """The model, as answers name it."""

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """Answer step by step; closing the iterator early ends the run.

        The limits are asked before every call to a model or the agent's service, and note what each took.

        Raises:
            AgentCapReached: a cap was reached, the time included.
            AgentUnavailable, AgentError, ModelError: the service or the model failed, or a stream broke.
            BudgetSpent, OutOfTime: the attempt's budget or time is used up.
            Stopped: the limits' stop.
        """
