"""Follows a run's events: counts turns and calls, registers what tools found, and yields the answer's text."""

from __future__ import annotations

import codecs
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from cicada.agents.classic.events import (
    AgentEvent,
    FinalResponse,
    Intervened,
    Invoked,
    Observed,
    ResponseChunk,
    Returned,
    StepFailed,
    TurnBegan,
    TurnEnded,
)
from cicada.agents.classic.schema import read_parameters
from cicada.agents.classic.session import Load, unpack
from cicada.agents.ports import ToolCall, ToolReply, Tools
from cicada.agents.source_registry import source_key
from cicada.errors import AgentCapReached, AgentError, AnswerBlocked, CicadaError, StreamBroken, ToolInvalid
from cicada.models.converse import incomplete
from cicada.models.guardrail import INTERVENED, Guardrail, Intervention, log_intervention
from cicada.models.ports import ModelUse, Stopped, Usage
from cicada.retrieval.ports import SearchLimits
from cicada.text.tokens import estimated_tokens

logger = logging.getLogger(__name__)

PURPOSE = "agent"
_ABNORMAL = frozenset(
    {
        "content_filtered",
        "guardrail_intervened",
        "malformed_model_output",
        "malformed_tool_use",
        "max_tokens",
        "model_context_window_exceeded",
        "refusal",
    }
)
"""Stop reasons of a model that has not come to its end, in Converse's and in Anthropic's words."""


class RunTracker:
    """The state of one run, over all its invocations."""

    def __init__(
        self,
        model_id: str,
        tools: Tools,
        limits: SearchLimits,
        *,
        max_turn_tokens: int,
        guardrail: Guardrail | None = None,
    ) -> None:
        """``guardrail`` is the agent's. With one, the answer is what is streamed: the trace may lack its masks."""
        self._guardrail = guardrail
        self._model_id = model_id
        self._tools = tools
        self._limits = limits
        self._max_turn_tokens = max_turn_tokens
        self._calls = 0
        self._waiting: deque[Invoked] = deque()
        """Unanswered calls of the action-group function."""
        self._masked = False
        """A guardrail masked the response, so the streamed text is the answer."""
        self._turn_open = False
        self._tries = 0
        """Requests for the open turn."""
        self._last_tokens = 0
        """Of the last turn of known usage; the next one reads them again."""
        self._expected_tokens = 0
        """The estimated input of the open or last turn."""
        self._ahead = False
        """The next turn in the trace is allowed already."""
        self.usage = Usage()
        """Of all turns together."""
        self.returned: Returned | None = None
        """The calls that the last invocation returned, if it did not end with the answer."""
        self.whole = False
        """All that matters of the invocation was read."""

    def begin(self, added_tokens: int) -> None:
        """Begin another invocation with more input than the last turn. Raises what the caps raise."""
        self.returned, self.whole = None, False
        self._allow(self._last_tokens + added_tokens)
        self._ahead = True

    def follow(self, events: Iterable[AgentEvent]) -> Iterator[str]:
        """Read one invocation, and yield the answer's text piece by piece.

        Raises:
            StreamBroken: the stream ended with neither the final response nor returned calls.
            AgentError: a step failed, or the service reports what cannot be.
            AgentCapReached, BudgetSpent, OutOfTime, Stopped: see the agent's port.
        """
        try:
            yield from filter(None, self._follow(events))
        except (CicadaError, Stopped) as error:
            self._lost(error)
            raise

    def _follow(self, events: Iterable[AgentEvent]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        said = ""
        final: str | None = None
        failed = False
        for event in events:
            match event:
                case ResponseChunk(content):
                    piece = _decoded(decoder, content)
                    said += piece
                    yield piece
                case FinalResponse(text):
                    final = text
                    rest = remainder(text, said)
                    if rest is not None and self._guardrail is None:  # no later chunk can add to it
                        self.whole = True
                        yield rest
                        break
                case Returned():
                    self.returned = event
                    self.whole = True
                    break
                case StepFailed():
                    failed = True
                case _:
                    self._note(event)
        if not self.whole:
            self._check_end(said, final, failed=failed)
        self._lost(None)

    def _check_end(self, said: str, final: str | None, *, failed: bool) -> None:
        """The stream has ended: the streamed text must be the final response, apart from white space."""
        if final is None and failed:
            raise AgentError("a step of the agent failed")
        if final is None:
            raise StreamBroken("the stream ended before the agent's final response")
        if said.split() != final.split() and not self._masked:
            raise StreamBroken("the streamed text differs from the agent's final response")

    def _note(self, event: AgentEvent) -> None:
        match event:
            case TurnBegan(prompt):
                if not self._ahead:
                    self._allow(max(estimated_tokens(prompt), self._last_tokens))
                self._ahead = False
            case TurnEnded(usage, took_ms, stop_reason):
                self._used(usage, took_ms)
                if stop_reason in _ABNORMAL:
                    raise incomplete(stop_reason, usage)
            case Intervened(on_input, on_output):
                self._intervened(on_input.with_(on_output))
            case Invoked():
                self._waiting.append(event)
            case Observed(text, failed):
                if self._waiting:  # the trace repeats the worker's own calls
                    self._observe(self._waiting.popleft(), text, failed)
        logger.debug("agent event", extra={"kind": type(event).__name__})

    def _intervened(self, found: Intervention) -> None:
        log_intervention(found)
        if not found.masked or found.blocked:
            raise AnswerBlocked(
                INTERVENED, told=self._guardrail.message if self._guardrail else None, by_guardrail=True
            )
        self._masked = True

    def try_again(self) -> None:
        """Retry a refused invocation. Raises what the limits raise."""
        self._limits.call()
        self._tries += 1

    def _allow(self, input_tokens: int) -> None:
        """Begin another turn with about so much input."""
        self._tools.turn()
        self._limits.call()
        self._tries = 1
        self._turn_open = True
        self._expected_tokens = input_tokens
        self._limits.allow(self._model_id, Usage(input_tokens, self._max_turn_tokens))

    def _used(self, usage: Usage, took_ms: int, fault: str | None = None) -> None:
        self._turn_open = False
        self._last_tokens = usage.input_tokens + usage.output_tokens if usage.reported else self._expected_tokens
        self.usage += usage
        self._limits.note(ModelUse(PURPOSE, self._model_id, self._tries, usage, took_ms, fault))
        self._tries = 0

    def _lost(self, error: CicadaError | Stopped | None) -> None:
        """Note an open turn that will not end, and its error."""
        fault = error.code if isinstance(error, CicadaError) and not isinstance(error, AgentCapReached) else None
        if self._turn_open:
            self._used(Usage(reported=False), 0, fault)
        elif fault is not None:
            self._used(Usage(), 0, fault)

    def _observe(self, invoked: Invoked, text: str, failed: bool) -> None:
        """Take what the action-group function returned."""
        result, load = (text, Load()) if failed else unpack(text)
        self._register(load)
        self._calls += 1
        call = ToolCall(f"function_{self._calls}", invoked.name, given_of(invoked, self._tools))
        self._tools.ran(call, ToolReply(call.call_id, invoked.name, result, failed))

    def _register(self, load: Load) -> None:
        """Register the function's sources under its numbers."""
        registry = self._tools.registry
        for again in load.again:
            held = next((source for source in registry.sources if source.n == again.n), None)
            if held is None or source_key(held) != again.key:
                raise _misplaced(again.n)
            registry.put(held.model_copy(update={"why": again.why}), load.versions.get(again.n, ""))
        for source in load.found:
            if registry.put(source, load.versions.get(source.n, "")) != source.n:
                raise _misplaced(source.n)


def remainder(final: str, said: str) -> str | None:
    """The rest of the final response after the streamed text; None if the two do not begin alike."""
    if final.strip() == said.strip():
        return ""
    whole, begun = (final, said) if final.startswith(said) else (final.lstrip(), said.lstrip())
    return whole[len(begun) :] if whole.startswith(begun) else None


def _misplaced(n: int) -> AgentError:
    return AgentError(f"the action group's passage {n} is not the one of this number")


def given_of(invoked: Invoked, tools: Tools) -> Any:
    """The input in a call's parameters; their names, which no tool accepts, if they cannot be read."""
    tool = next((tool for tool in tools.tools if tool.name == invoked.name), None)
    try:
        return {} if tool is None else read_parameters(tool.form, invoked.parameters)
    except ToolInvalid:
        return [parameter.name for parameter in invoked.parameters]


def _decoded(decoder: codecs.IncrementalDecoder, content: bytes) -> str:
    try:
        return decoder.decode(content)
    except UnicodeDecodeError:
        raise StreamBroken("a chunk of the answer is not valid UTF-8") from None
