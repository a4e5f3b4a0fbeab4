"""The action-group function: answers the agent service's calls of tools that read.

The event's parameters are a model's words. The worker sets the session attributes, which name the user; they hold only
if the requests' table confirms that the request is that user's, and open.
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
from cicada.index.access_rules import AccessRulesStore
from cicada.protocol.events import Source
from cicada.retrieval.ports import TimeLimit

logger = logging.getLogger(__name__)

MAX_PARAMETERS = 20
"""More than the service sends."""
MAX_VALUE_CHARS = 20_000
MAX_CALL_S = 20.0
"""Seconds for one tool call; the function's own time-out is longer."""

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
    """The parts of the service's event that are used. The user's words are ignored."""

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
        access: AccessRulesStore,
        now_s: Callable[[], float],
        most_s: float = MAX_CALL_S,
        on_admitted: Callable[[RequestKey], None] = lambda _: None,
    ) -> None:
        """``tools`` are all agents'; those of the worker never run here. ``access`` says what the asker may read.

        ``on_admitted`` gets confirmed requests.
        """
        self._requests = requests
        self._access = access
        self._tools = list({tool.name: tool for tool in tools if not tool.in_worker}.values())
        self._now_s = now_s
        self._most_s = most_s
        self._on_admitted = on_admitted

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Run the called tool, and answer in the service's form.

        Errors of the model's call go to the model (``REPROMPT``); a refused run fails (``FAILURE``). Raises ToolInvalid
        for an event that is not the service's.
        """
        try:
            called = FunctionEvent.model_validate(event)
        except ValidationError as error:
            raise ToolInvalid(f"invalid action group event: {error.error_count()} problems") from None
        try:
            attributes = RunAttributes.read(called.session_attributes)
            head = self._admitted(attributes)
        except CicadaError as error:
            logger.warning("agent run rejected", extra={"code": error.code, "why": str(error)})
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
        """The run's open request. Raises CicadaError without one."""
        if self._now_s() * 1000 >= attributes.until_ms:
            raise ToolInvalid("the run has timed out")
        head = self._requests.head(RequestKey(attributes.subject, attributes.request_id))
        if head.state != "open" or head.expired(self._now_s()):
            raise RequestUnknown("the request has ended")
        return head

    def _call(
        self, called: FunctionEvent, head: RequestHead, registry: CarriedSources, until_s: float
    ) -> tuple[str, tuple[Source, ...] | None]:
        """The answer's text, and the new sources that it carries, None if the call failed."""
        ends_s = min(until_s, self._now_s() + self._most_s)
        limits = TimeLimit(lambda: max(0.0, ends_s - self._now_s()))
        try:
            readable = self._access.rules().readable(head.question.groups)
            actor = Actor.asking(head.key, head.question, head.accepted_at_ms, readable=readable)
            runner = ToolRunner(self._tools, actor=actor, registry=registry, limits=limits)
            tool = next((tool for tool in self._tools if tool.name == called.function), None)
            given = [ParameterGiven(one.name, one.value, one.type) for one in called.parameters]
            read = {} if tool is None else read_parameters(tool.form, given)
            reply = runner.call(ToolCall("1", called.function, read))
            return (reply.text, None) if reply.failed else pack(reply.text, registry.load)
        except CicadaError as error:  # more than an answer can hold, or out of time
            why = str(error) if isinstance(error, ToolInvalid) else error.told
            return bounded({"error": error.code, "why": why}), None


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
