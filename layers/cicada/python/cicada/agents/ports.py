"""What agents, their tools and whoever runs them hand to each other."""

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

MAX_OUTPUT_CHARS = 16_000
"""Of what a tool tells the model: a quarter of what Lambda and the services are known to take, in any language."""


@dataclass(frozen=True)
class Actor:
    """In whose name tools act: the connected user. Never taken from anything that a model wrote."""

    subject: str
    """The key of all that is the user's: see :class:`cicada.delivery.record.RequestKey`."""
    request_id: str
    message: str
    """What the user said in this request: it supports what is noted because of it."""
    said_at_ms: int
    """When, in epoch milliseconds."""
    tenant: str | None = None
    collections: tuple[str, ...] = ()
    """The user limits the question to these; all when empty."""
    episodes: tuple[str, ...] = ()
    understood: str = ""
    """The message as it was completed from the user's earlier messages, where it was."""

    @property
    def said(self) -> tuple[str, ...]:
        """The message as it was sent, and as it was understood."""
        return (self.message, self.understood) if self.understood else (self.message,)

    @classmethod
    def asking(cls, key: RequestKey, question: Question, at_ms: int, understood: str = "") -> Self:
        """In whose name the tools of a request act: the request's own user, whatever the question says.

        Args:
            understood: the question as it was completed from the user's own earlier messages, if it was. What was
                completed from answers is not the user's word: answers quote documents.
        """
        return cls(
            subject=key.subject,
            request_id=key.request_id,
            message=question.query,
            said_at_ms=at_ms,
            tenant=question.tenant,
            collections=question.collections,
            episodes=question.episodes,
            understood=understood,
        )


class SourceRegistry(Protocol):
    """The passages that the tools of one request have brought, numbered as the answer cites them."""

    def put(self, source: Source, index_version: str = "") -> int:
        """Number a source; one that lies there already keeps its number, and gets the reasons too.

        Args:
            source: the passage or the note; its ``n`` does not count.
            index_version: of the index that it was found in just now; empty for what no search has found.
        """

    def version_of(self, n: int) -> str:
        """The version of the index that a source was last found in; empty where no search has found it."""

    @property
    def version(self) -> str:
        """Of the index that all its passages were found in; empty where no search has found any."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """All, by number, from 1."""


class ToolInput(BaseModel):
    """What a model gives to a tool: strict, and nothing beside it. Its docstring and its fields' descriptions are what
    the model is told."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True)
class TheoryVerdict:
    """The verdict on a theory, as a tool call gave it: the user is shown this, whatever the agent writes."""

    verdict: Verdict
    for_: tuple[VerdictPassage, ...] = ()
    against: tuple[VerdictPassage, ...] = ()
    given: bool = True
    """Otherwise the agent has ended without one: the verdict is open, and the passages are all that were gathered."""


@dataclass(frozen=True)
class VerdictGiven:
    """What a tool says that has given a verdict."""

    told: Mapping[str, Any]
    """To the model."""
    verdict: TheoryVerdict


@dataclass(frozen=True)
class ProfileWritten:
    """What a tool says that has changed a profile."""

    told: Mapping[str, Any]
    """To the model."""
    change: ProfileChanged
    """From the record of what was done: the user's receipt."""
    verdict: TheoryVerdict | None = None
    """That was given and kept by it."""
    take_back: Callable[[], object] = lambda: None
    """Undoes the change: for one whose receipt can reach nobody."""


@dataclass(frozen=True)
class ToConfirm:
    """What a tool says that would delete something: nothing is deleted until the user confirms it."""

    told: Mapping[str, Any]
    """To the model."""
    confirmation_id: str
    operation: Literal["delete", "remove_fields"]
    profile_id: str
    kind: Kind
    name: str
    version: int
    fields: tuple[ChangedField, ...]
    """What would be gone."""
    expires_at_ms: int


Told = Mapping[str, Any] | VerdictGiven | ProfileWritten | ToConfirm
"""What a tool says."""
Given = TypeVar("Given", bound=ToolInput, contravariant=True)


class Described(Protocol):
    """What a model is told of a tool."""

    @property
    def name(self) -> str:
        """Letters, digits and underscores, at most 64."""

    @property
    def description(self) -> str:
        """When to use it, as the model is told."""

    @property
    def form(self) -> type[ToolInput]:
        """Its input."""


class Tool(Described, Protocol, Generic[Given]):
    """One thing that an agent can do."""

    @property
    def writes(self) -> bool:
        """Whether it changes anything, be it after a confirmation: offered only where the user asks for a change."""

    @property
    def in_worker(self) -> bool:
        """Whether it runs in the answer worker whatever service runs the agent: it writes, it needs all sources of the
        run, or it calls a model that the run pays for."""

    def run(self, given: Given, actor: Actor, registry: SourceRegistry, limits: SearchLimits) -> Told:
        """Do it.

        Args:
            registry: gets every passage that the result shows; the result names each by its number.

        Returns:
            What the model is told, as JSON can hold it; of a tool that writes, what the user is told beside it.

        Raises:
            CicadaError: it could not be done. The model is told the code and why, and may try something else.
            Stopped: nobody wants the answer any more.
        """


@dataclass(frozen=True)
class ToolCall:
    """A model's use of a tool."""

    call_id: str
    name: str
    given: Any
    """As the model wrote it, normally an object of JSON; the text itself where that cannot be read. Hostile until it is
    validated."""


@dataclass(frozen=True)
class ToolReply:
    """What the model is told of its call."""

    call_id: str
    name: str
    text: str
    """JSON, at most :data:`MAX_OUTPUT_CHARS`."""
    failed: bool = False


class Tools(Protocol):
    """The tools of one run, with the caps on them: see :class:`cicada.agents.tool_runner.ToolRunner`."""

    @property
    def tools(self) -> Sequence[Tool[Any]]:
        """Those that are offered."""

    @property
    def actor(self) -> Actor:
        """In whose name they act."""

    @property
    def registry(self) -> SourceRegistry:
        """What they have brought so far."""

    def call(self, call: ToolCall) -> ToolReply:
        """Validate, run, bound and record one call. What is wrong with it is told in the reply.

        Raises:
            AgentCapReached: no more calls are allowed, or the same one is made again and again.
            Stopped: nobody wants the answer any more, or another attempt gives it.
        """

    def ran(self, call: ToolCall, reply: ToolReply) -> None:
        """Count and record a call that the agent's service has had run elsewhere, and its reply.

        Raises:
            AgentCapReached: no more calls are allowed, or the same one is made again and again.
        """

    def turn(self) -> None:
        """One more turn of the model begins. Raises AgentCapReached, OutOfTime or Stopped if it may not."""


@dataclass(frozen=True)
class Done:
    """A call that our code makes before the model is asked: what must happen is not left to a model."""

    call: ToolCall
    reply: ToolReply


@dataclass(frozen=True)
class AgentTask:
    """What an agent is to answer."""

    instructions: str
    question: str
    """Complete in itself."""
    done: tuple[Done, ...] = ()
    """Calls that were made already, as if the model had made them first."""
    conversation: str = ""
    """Names the conversation where the service keeps one; differs from user to user."""


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
        """Raise AgentCapReached where the run has had the time of its own, OutOfTime where its attempt has."""


class Agent(Protocol):
    """A model with tools, wherever its loop runs."""

    @property
    def model_id(self) -> str:
        """The model, as answers name it."""

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """Answer step by step; closing the iterator early ends the run.

        Args:
            limits: asked before every call to a model or the agent's service, for what it can take, and for time; told
                what each took.

        Raises:
            AgentCapReached: a cap was reached, that on time among them, whatever it cut short.
            AgentUnavailable, AgentError, ModelError: the service, or the model, failed; a stream without its end too.
            BudgetSpent, OutOfTime: nothing of the attempt's is left to go on with.
            Stopped: nobody wants the answer any more.
        """
