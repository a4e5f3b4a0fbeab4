"""A bounded loop of a model's turns and our tools; text is held back until it is part of the answer.

Many models write before they use a tool ("Let me look that up."), and a turn's beginning does not say what follows.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, Unpack

from cicada.agents.exchange import AgentExchange
from cicada.agents.limits import timed
from cicada.agents.ports import AgentFinished, AgentStep, AgentTask, RunLimits, ToolCall, Tools
from cicada.errors import AnswerMalformed, CicadaError, ModelError, OutOfTime, StreamBroken
from cicada.models.bedrock import BedrockModel
from cicada.models.converse import StreamedTurn
from cicada.models.guardrail import Guardrail, GuardrailUse
from cicada.models.model_ids import LEARNT, Sampling, tool_sampling
from cicada.models.openai_events import ThoughtFilter
from cicada.models.ports import STOPPED, CountedCallScope, Finished, ModelUse, Stopped, TextDelta, Usage
from cicada.models.retries import Pacing
from cicada.models.streaming import SILENCE_S, ServiceCall, Streaming
from cicada.models.structured_output import MALFORMED_HINT
from cicada.retrieval.ports import SearchLimits

HOLD_CHARS = 240
"""A turn with more text counts as an answer: about three sentences."""


class HeldText:
    """The text of a run, turn by turn.

    The first :data:`HOLD_CHARS` of a turn wait for more, or for its end, and are dropped when it uses a tool. Text that
    was shown stays; a blank line separates it from the next turn's.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._size = 0
        self._passing = False
        self._dropping = False
        self._out = False

    def feed(self, piece: str) -> str:
        """Take the next piece of the turn; return the text to pass on now, perhaps empty."""
        if self._dropping or not piece:
            return ""
        if self._passing:
            return piece
        self._held.append(piece)
        self._size += len(piece)
        return self._release() if self._size > HOLD_CHARS else ""

    def tool_used(self) -> None:
        """The turn uses a tool: drop the rest of its text."""
        self._held.clear()
        self._dropping = True

    def drop(self) -> None:
        """The turn failed before any of its text was passed on: forget it."""
        self._held.clear()
        self._size, self._passing, self._dropping = 0, False, False

    def turn_over(self) -> str:
        """The turn has ended; return the answer's text that is still held."""
        text = "" if self._dropping or self._passing else self._release()
        self.drop()
        return text

    def _release(self) -> str:
        text = "".join(self._held)
        if not text.strip():
            return ""
        self._held.clear()
        self._passing = True
        if self._out:
            text = "\n\n" + text.lstrip()
        self._out = True
        return text


logger = logging.getLogger(__name__)

PURPOSE = "agent"
_MAX_MALFORMED = 1
"""Malformed turns of a run that are asked for again."""


class TurnOptions(Pacing, total=False):
    """Further arguments of a :class:`LoopingAgent`."""

    temperature: float | None
    top_p: float | None
    sampling: Sampling
    guardrail: Guardrail | None


class LoopingAgent(BedrockModel, ABC):
    """An agent that asks for a turn, runs its tools, and asks again, until a turn uses none.

    The port's contract is :class:`cicada.agents.ports.Agent`. A turn counts only when its end arrived: no tool runs for
    a turn that broke off. Reasoning goes back to the model unchanged, and is not part of the answer; nor is text before
    the use of a tool, while it is held back (:class:`HeldText`). Text that was shown goes back to the model too.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        *,
        max_turn_tokens: int,
        temperature: float | None = None,
        top_p: float | None = None,
        silence_s: float = SILENCE_S,
        sampling: Sampling = LEARNT,
        guardrail: Guardrail | None = None,
        **pacing: Unpack[Pacing],
    ) -> None:
        """``client`` is configured by :func:`cicada.models.bedrock.bedrock_client_config`; the model can use tools.

        ``guardrail`` checks the question and the turns' texts, where the service knows guardrails.
        """
        super().__init__(client, model_id)
        self._max_turn_tokens = max_turn_tokens
        self._wanted = tool_sampling(model_id, temperature, top_p)
        self._sampling = sampling
        self._guardrail = guardrail
        self._streaming = Streaming(model_id, silence_s=silence_s, **pacing)
        self._clock = self._streaming.clock

    @abstractmethod
    def call(self, task: AgentTask, exchange: AgentExchange, turn: StreamedTurn, *, left_s: float) -> ServiceCall:
        """A new try at the next turn, which may take ``left_s`` seconds from its first try on."""

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See the port. Raises AnswerIncomplete for a turn without a normal finish."""
        with timed(limits):
            yield from self._run(task, tools, limits)

    def _run(self, task: AgentTask, tools: Tools, limits: SearchLimits) -> Generator[AgentStep, None, None]:
        exchange = AgentExchange(task, tools.tools, GuardrailUse(self._guardrail))
        text = HeldText()
        usage = Usage()
        malformed = 0
        while True:
            tools.turn()
            use = _TurnUse(self.model_id, limits, self._clock)
            try:
                turn, finished = yield from self._turn(task, exchange, text, limits, use)
            except AnswerMalformed:
                malformed += 1
                if malformed > _MAX_MALFORMED or use.shown:
                    raise
                text.drop()
                usage += use.usage
                exchange.system = f"{exchange.system}\n\n{MALFORMED_HINT}".lstrip()
                logger.info("retrying a malformed turn", extra={"model": self.model_id})
                continue
            usage += finished.usage
            uses = turn.uses
            about = {"model": self.model_id, "tools": len(uses), "stop": finished.stop_reason, "took_ms": use.took_ms}
            logger.debug("agent turn", extra=about)
            if not uses:
                yield AgentFinished(finished.stop_reason, usage)
                return
            replies = [tools.call(ToolCall(one.id, one.name, one.given)) for one in uses]
            exchange.replied(turn, finished.usage, replies)

    def _turn(
        self, task: AgentTask, exchange: AgentExchange, text: HeldText, limits: SearchLimits, use: _TurnUse
    ) -> Generator[TextDelta, None, tuple[StreamedTurn, Finished]]:
        """One turn: yields the answer's text, and returns the whole turn."""
        limits.allow(self.model_id, Usage(exchange.input_tokens, self._max_turn_tokens))
        left_s = limits.time_left_s()
        if left_s <= 0:
            raise OutOfTime("no time left for another agent turn")
        turn = StreamedTurn()

        def call() -> ServiceCall:
            nonlocal turn
            turn = StreamedTurn()
            return self.call(task, exchange, turn, left_s=left_s)

        thoughts = ThoughtFilter("thinking")
        with use, closing(self._streaming.stream(call, time_budget_s=left_s, call_scope=use)) as pieces:
            for piece in pieces:
                if turn.uses_tools:
                    text.tool_used()
                if isinstance(piece, Finished):
                    use.usage = piece.usage
                    out = text.feed(thoughts.end()) + text.turn_over()
                else:
                    out = text.feed(thoughts.feed(piece.text))
                if out:
                    use.shown = turn.shown = True
                    yield TextDelta(out)
                if isinstance(piece, Finished):
                    return turn, piece
            raise StreamBroken("the model's stream ended without a finish")


class _TurnUse(CountedCallScope):
    """Counts and times one turn, retries included; the call scope of its calls."""

    def __init__(self, model_id: str, limits: SearchLimits, clock: Callable[[], float]) -> None:
        super().__init__(limits)
        self.usage = Usage(reported=False)
        self.shown = False
        self.took_ms = 0
        self._model_id = model_id
        self._limits = limits
        self._clock = clock

    def __enter__(self) -> None:
        self._started = self._clock()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        """Note what the turn took, however it ended."""
        fault = None if error is None else CicadaError.code  # that of a bug
        if isinstance(error, CicadaError):
            fault = error.code
        elif isinstance(error, Stopped | GeneratorExit):
            fault = STOPPED
        if isinstance(error, ModelError) and error.usage is not None:
            self.usage = error.usage
        self.took_ms = round((self._clock() - self._started) * 1000)
        self._limits.note(ModelUse(PURPOSE, self._model_id, self.calls, self.usage, self.took_ms, fault))
