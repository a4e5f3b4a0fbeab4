"""The action-group function: a call of a tool that reads, as the agents' service makes it, and the answer.

The event's parameters are a model's words. In whose name the tool acts stands in the session attributes, which the
worker sets; it is believed only as far as the requests' table bears it out: the request is that user's, and open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from cicada.agents.classic.schema import ParameterGiven, read_parameters
from cicada.agents.classic.session import CarriedSources, RunAttributes, pack
from cicada.agents.ports import Actor, Tool, ToolCall
from cicada.agents.tool_runner import ToolRunner, bounded
from cicada.delivery.record import RequestHead, RequestKey
from cicada.errors import CicadaError, RequestUnknown, ToolInvalid
from cicada.protocol.events import Source
from cicada.retrieval.ports import TimeLimit

logger = logging.getLogger(__name__)

MAX_PARAMETERS = 20
"""More than the service gives to any function."""
MAX_VALUE_CHARS = 20_000
MAX_CALL_S = 20.0
"""Seconds that one call of a tool may take: the function is given some more, for its start and for its answer."""

_Name = Annotated[str, StringConstraints(pattern=r"^[0-9a-zA-Z][0-9a-zA-Z_-]{0,199}$")]
_Attributes = dict[
    Annotated[str, StringConstraints(max_length=256)], Annotated[str, StringConstraints(max_length=8192)]
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, alias_generator=to_camel)


class Given(_Part):
    """A parameter of the call."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    value: Annotated[str, StringConstraints(max_length=MAX_VALUE_CHARS)]
    type: Annotated[str, StringConstraints(max_length=64)] | None = None


class FunctionEvent(_Part):
    """What the service sends, as far as it is read. The user's words are in it too, and are not read."""

    message_version: Literal["1.0"]
    action_group: _Name
    function: _Name
    parameters: tuple[Given, ...] = Field((), max_length=MAX_PARAMETERS)
    session_attributes: _Attributes = Field(default_factory=dict)
    prompt_session_attributes: _Attributes = Field(default_factory=dict)


class Requests(Protocol):
    """Where requests are kept: :class:`cicada.delivery.dynamodb.DynamoDbLog`."""

    def head(self, key: RequestKey) -> RequestHead:
        """A request's head. Raises RequestUnknown, RequestExpired, DeliveryUnavailable."""


class ActionFunction:
    """Answers the service's calls."""

    def __init__(
        self,
        requests: Requests,
        tools: Sequence[Tool[Any]],
        *,
        now_s: Callable[[], float],
        most_s: float = MAX_CALL_S,
        on_admitted: Callable[[RequestKey], None] = lambda _: None,
    ) -> None:
        """Wire the function.

        Args:
            tools: of all agents, some of them perhaps twice; those of the worker are never run here.
            on_admitted: told whose request a call is made for, once that is sure.
        """
        self._requests = requests
        self._tools = list({tool.name: tool for tool in tools if not tool.in_worker}.values())
        self._now_s = now_s
        self._most_s = most_s
        self._on_admitted = on_admitted

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Run the tool that is called for, and answer in the service's form.

        What is wrong with the model's call is told to the model (``REPROMPT``). A run that may not be served ends with
        a dependency's failure (``FAILURE``).

        Raises:
            ToolInvalid: the event is none of the service's.
        """
        try:
            called = FunctionEvent.model_validate(event)
        except ValidationError as error:
            raise ToolInvalid(f"the event is none of an action group's: {error.error_count()} problems") from None
        try:
            attributes = RunAttributes.read(called.session_attributes)
            head = self._admitted(attributes)
        except CicadaError as error:
            logger.warning("a run is refused", extra={"code": error.code, "why": str(error)})
            return _response(called, error.told, state="FAILURE")
        self._on_admitted(head.key)
        registry = CarriedSources(attributes.registry, attributes.index_version)
        body, carried = self._call(called, head, registry, attributes.until_ms / 1000)
        if carried is None:
            return _response(called, body, state="REPROMPT")
        return _response(
            called, body, attributes=attributes.with_registry(registry.keys_with(carried), registry.version)
        )

    def _admitted(self, attributes: RunAttributes) -> RequestHead:
        """The request in whose name a run goes on. Raises CicadaError if it does not, or no more."""
        if self._now_s() * 1000 >= attributes.until_ms:
            raise ToolInvalid("the run's time is over")
        head = self._requests.head(RequestKey(attributes.subject, attributes.request_id))
        if head.state != "open" or head.expired(self._now_s()):
            raise RequestUnknown("the request is not open")
        return head

    def _call(
        self, called: FunctionEvent, head: RequestHead, registry: CarriedSources, until_s: float
    ) -> tuple[str, tuple[Source, ...] | None]:
        """The answer's text, and the new sources that it carries; None for these where the call failed."""
        ends_s = min(until_s, self._now_s() + self._most_s)
        limits = TimeLimit(lambda: max(0.0, ends_s - self._now_s()))
        actor = Actor.asking(head.key, head.question, head.accepted_at_ms)
        box = ToolRunner(self._tools, actor=actor, registry=registry, limits=limits)
        try:
            reply = box.call(ToolCall("1", called.function, self._given(called)))
            return (reply.text, None) if reply.failed else pack(reply.text, registry.load)
        except CicadaError as error:  # more than an answer can hold, or out of time
            why = str(error) if isinstance(error, ToolInvalid) else error.told
            return bounded({"error": error.code, "why": why}), None

    def _given(self, called: FunctionEvent) -> Any:
        tool = next((tool for tool in self._tools if tool.name == called.function), None)
        given = [ParameterGiven(one.name, one.value, one.type) for one in called.parameters]
        return {} if tool is None else read_parameters(tool.form, given)


def _response(
    called: FunctionEvent, text: str, *, state: str | None = None, attributes: RunAttributes | None = None
) -> dict[str, Any]:
    function: dict[str, Any] = {"responseBody": {"TEXT": {"body": text}}}
    if state is not None:
        function["responseState"] = state
    return {
        "messageVersion": "1.0",
        "response": {"actionGroup": called.action_group, "function": called.function, "functionResponse": function},
        "sessionAttributes": called.session_attributes if attributes is None else attributes.write(),
        "promptSessionAttributes": called.prompt_session_attributes,
    }
