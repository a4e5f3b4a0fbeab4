"""Follows a run through its events: turns and calls are counted, what tools found is taken, the answer is let out."""

from __future__ import annotations

import codecs
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from cicada.agents.classic.carrying import unpack
from cicada.agents.classic.events import (
    AgentEvent,
    Blocked,
    Chunk,
    FinalResponse,
    Invoked,
    Observed,
    Returned,
    StepFailed,
    TurnBegan,
    TurnEnded,
)
from cicada.agents.classic.parameters import read_parameters
from cicada.agents.classic.session import source_key
from cicada.agents.ports import ToolCall, ToolReply, Tools
from cicada.errors import AgentCapReached, AgentError, AnswerBlocked, CicadaError, StreamBroken, ToolInvalid
from cicada.models.converse_events import incomplete
from cicada.models.ports import ModelUse, Stopped, Usage
from cicada.protocol.events import Source
from cicada.retrieval.ports import Limits
from cicada.tokens import estimated_tokens

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


class Turning:
    """The state of one run, over all its invocations."""

    def __init__(self, model_id: str, tools: Tools, limits: Limits, *, max_turn_tokens: int) -> None:
        """``max_turn_tokens``: what a turn is taken to write at most."""
        self._model_id = model_id
        self._tools = tools
        self._limits = limits
        self._max_turn_tokens = max_turn_tokens
        self._calls = 0
        self._waiting: deque[Invoked] = deque()
        """Calls of the action-group function that were not answered yet."""
        self._turn_open = False
        self._tries = 0
        """Requests that went out for the turn that is open."""
        self._last_tokens = 0
        """Of the turn before, which the next one reads again."""
        self._ahead = False
        """The turn that the next event of the trace tells of is allowed already."""
        self.usage = Usage()
        """Of all turns together."""
        self.returned: Returned | None = None
        """What the last invocation gave back, where it did not end with the answer."""

    def begin(self, text: str) -> None:
        """Another invocation is about to go out. Raises what the tools' and the limits' caps raise."""
        self.returned = None
        self._allow(text)
        self._ahead = True

    def follow(self, events: Iterable[AgentEvent]) -> Iterator[str]:
        """Read one invocation, and let out the answer's text piece by piece.

        Raises:
            StreamBroken: the stream ended with neither the final response nor a call that was given back.
            AgentError: the service tells of a failed step, or of what cannot be.
            AgentCapReached, BudgetSpent, OutOfTime, Stopped: see the agent's port.
        """
        try:
            yield from self._follow(events)
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
                case Chunk(content):
                    piece = _decoded(decoder, content)
                    said += piece
                    if piece and final is None:
                        yield piece
                case FinalResponse(text):
                    final = text
                    rest = remainder(text, said)
                    if rest is not None:  # nothing of what may follow is missing in it
                        if rest:
                            yield rest
                        break
                case Returned():
                    self.returned = event
                    break
                case StepFailed():
                    failed = True
                case _:
                    self._note(event)
        if final is None and self.returned is None:
            raise (
                AgentError("a step of the agent failed")
                if failed
                else StreamBroken("the stream ended before the agent's final response")
            )
        self._lost(None)

    def _note(self, event: AgentEvent) -> None:
        match event:
            case TurnBegan(prompt):
                if not self._ahead:
                    self._allow(prompt)
                self._ahead = False
            case TurnEnded(usage, took_ms, stop_reason):
                self._used(usage, took_ms)
                if stop_reason in _ABNORMAL:
                    raise incomplete(stop_reason, usage)
            case Blocked():
                raise AnswerBlocked("a guardrail stepped in")
            case Invoked():
                self._waiting.append(event)
            case Observed(text, failed):
                if self._waiting:  # what the worker did itself is told again, and known
                    self._observe(self._waiting.popleft(), text, failed)
        logger.debug("agent event", extra={"kind": type(event).__name__})

    def try_again(self) -> None:
        """The invocation that was turned away goes out once more. Raises what the limits raise."""
        self._limits.call()
        self._tries += 1

    def _allow(self, text: str) -> None:
        """Let one more turn of the model begin."""
        self._tools.turn()
        self._limits.call()
        self._tries = 1
        self._turn_open = True
        expected = max(estimated_tokens(text), self._last_tokens)
        self._limits.allow(self._model_id, Usage(expected, self._max_turn_tokens))

    def _used(self, usage: Usage, took_ms: int, fault: str | None = None) -> None:
        self._turn_open = False
        self._last_tokens = usage.input_tokens + usage.output_tokens
        self.usage += usage
        self._limits.note(ModelUse(PURPOSE, self._model_id, self._tries, usage, took_ms, fault))
        self._tries = 0

    def _lost(self, error: CicadaError | Stopped | None) -> None:
        """Note a turn of which nothing more will be heard, and what ended it."""
        fault = error.code if isinstance(error, CicadaError) and not isinstance(error, AgentCapReached) else None
        if self._turn_open:
            self._used(Usage(reported=False), 0, fault)
        elif fault is not None:
            self._used(Usage(), 0, fault)

    def _observe(self, invoked: Invoked, text: str, failed: bool) -> None:
        """Take what the action-group function returned."""
        result, sources = (text, ()) if failed else unpack(text)
        for source in sources:
            self._put(source)
        self._calls += 1
        call = ToolCall(f"function_{self._calls}", invoked.name, given_of(invoked, self._tools))
        self._tools.ran(call, ToolReply(call.call_id, invoked.name, result, failed))

    def _put(self, source: Source) -> None:
        """Put a source where the function has numbered it; of one that lies there, the reasons are added."""
        shelf = self._tools.shelf
        held = shelf.sources
        known = held[source.n - 1] if source.n <= len(held) else None
        fits = known is None or source_key(known) == source_key(source)
        if known is not None:
            source = source.model_copy(update={"text": known.text})
        if not fits or shelf.put(source) != source.n:
            raise AgentError(f"the action group's passage {source.n} is not the one of this number")


def remainder(final: str, said: str) -> str | None:
    """What is left of the final response after what was said of it; None where the two do not begin alike."""
    if final.strip() == said.strip():
        return ""
    whole, begun = (final, said) if final.startswith(said) else (final.lstrip(), said.lstrip())
    return whole[len(begun) :] if whole.startswith(begun) else None


def given_of(invoked: Invoked, tools: Tools) -> Any:
    """The input that a call's parameters stand for; where they cannot be read, their names, which no tool takes."""
    tool = next((tool for tool in tools.tools if tool.name == invoked.name), None)
    try:
        return {} if tool is None else read_parameters(tool.form, invoked.parameters)
    except ToolInvalid:
        return [parameter.name for parameter in invoked.parameters]


def _decoded(decoder: codecs.IncrementalDecoder, content: bytes) -> str:
    try:
        return decoder.decode(content)
    except UnicodeDecodeError:
        raise StreamBroken("a chunk of the answer is no UTF-8") from None
