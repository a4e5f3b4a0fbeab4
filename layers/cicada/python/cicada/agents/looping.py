"""A bounded loop of a model's turns and our tools; text is held back until it is part of the answer.

Many models talk before they use a tool ("Let me look that up."), and none says beforehand whether a turn will use one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, Protocol, Unpack

from cicada.agents.exchange import AgentExchange
from cicada.agents.limits import timed
from cicada.agents.ports import AgentFinished, AgentStep, AgentTask, RunLimits, ToolCall, Tools
from cicada.errors import AnswerMalformed, CicadaError, ModelError, OutOfTime, StreamBroken
from cicada.models.bedrock import BedrockModel
from cicada.models.converse import StreamedTurn
from cicada.models.model_ids import LEARNT, Sampling, wanted_sampling
from cicada.models.openai_events import ThoughtFilter
from cicada.models.ports import STOPPED, CountedCallScope, Finished, ModelUse, Stopped, TextDelta, Usage
from cicada.models.retries import Pacing
from cicada.models.streaming import SILENCE_S, ServiceCall, Streaming
from cicada.retrieval.ports import SearchLimits

HOLD_CHARS = 240
"""A turn that has written more than this is taken for an answer: about three sentences."""


class HeldText:
    """The text of a run, turn by turn.

    The first :data:`HOLD_CHARS` of a turn wait for more, or for its end, and are dropped when it uses a tool. Text that
    is out already stays; where another turn writes on, a blank line stands between.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._size = 0
        self._passing = False
        self._dropping = False
        self._out = False

    def feed(self, piece: str) -> str:
        """Take the next piece of the turn; what can be passed on now, which may be empty."""
        if self._dropping or not piece:
            return ""
        if self._passing:
            return piece
        self._held.append(piece)
        self._size += len(piece)
        return self._release() if self._size > HOLD_CHARS else ""

    def tool_used(self) -> None:
        """The turn uses a tool: what it has not passed on is no part of the answer, nor is what follows."""
        self._held.clear()
        self._dropping = True

    def drop(self) -> None:
        """The turn has failed, and is asked for again: nothing of it was passed on, and nothing will be."""
        self._held.clear()
        self._size, self._passing, self._dropping = 0, False, False

    def turn_over(self) -> str:
        """The turn has ended; what is still held of an answer."""
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
"""As often in a run may a model write what its service cannot read: then the turn is asked for once more."""


class Turns(Protocol):
    """What makes a model's turns."""

    def call(self, task: AgentTask, exchange: AgentExchange, turn: StreamedTurn, *, left_s: float) -> ServiceCall:
        """One try at the next turn, anew for every try.

        Args:
            left_s: seconds that the turn may take, from its first try on.
        """


class AgentLoop:
    """Asks for a turn, runs the tools that it uses, and asks again, until a turn uses none.

    A turn counts only when its end arrived: no tool runs for a turn that broke off. Reasoning is given back to the
    model as it came, and is no part of the answer; nor is text that stands before the use of a tool, if it is short
    enough to be held back (:class:`cicada.agents.looping.HeldText`). Of a turn whose text is out, the model is given
    back the text, too: it goes on from there.
    """

    def __init__(self, model_id: str, turns: Turns, streaming: Streaming, *, max_turn_tokens: int) -> None:
        self._model_id = model_id
        self._turns = turns
        self._streaming = streaming
        self._max_turn_tokens = max_turn_tokens
        self._clock = streaming.clock

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See :meth:`cicada.agents.ports.Agent.run`.

        Raises:
            AnswerIncomplete: a turn stopped for another reason than a normal finish; ``str(error)`` is the reason.
        """
        with timed(limits):
            yield from self._run(task, tools, limits)

    def _run(self, task: AgentTask, tools: Tools, limits: SearchLimits) -> Generator[AgentStep, None, None]:
        exchange = AgentExchange(task, tools.tools)
        text = HeldText()
        usage = Usage()
        malformed = 0
        while True:
            tools.turn()
            use = _TurnUse(self._model_id, limits, self._clock)
            try:
                turn, finished = yield from self._turn(task, exchange, text, limits, use)
            except AnswerMalformed:
                malformed += 1
                if malformed > _MAX_MALFORMED or use.shown:
                    raise
                text.drop()
                usage += use.usage
                logger.info("the model's turn could not be read, and is asked for again", extra=self._about)
                continue
            usage += finished.usage
            uses = turn.uses
            logger.debug(
                "a turn of the agent",
                extra={**self._about, "tools": len(uses), "stop": finished.stop_reason, "took_ms": use.took_ms},
            )
            if not uses:
                yield AgentFinished(finished.stop_reason, usage)
                return
            replies = [tools.call(ToolCall(one.id, one.name, one.given)) for one in uses]
            exchange.replied(turn, finished.usage, replies)

    @property
    def _about(self) -> dict[str, str]:
        return {"model": self._model_id}

    def _turn(
        self, task: AgentTask, exchange: AgentExchange, text: HeldText, limits: SearchLimits, use: _TurnUse
    ) -> Generator[TextDelta, None, tuple[StreamedTurn, Finished]]:
        """One turn: its text as far as it is of the answer, and what it was as a whole."""
        limits.allow(self._model_id, Usage(exchange.input_tokens, self._max_turn_tokens))
        left_s = limits.time_left_s()
        if left_s <= 0:
            raise OutOfTime("no time is left for another turn of the agent")
        turn = StreamedTurn()

        def call() -> ServiceCall:
            nonlocal turn
            turn = StreamedTurn()
            return self._turns.call(task, exchange, turn, left_s=left_s)

        thoughts = ThoughtFilter("thinking")
        with use, closing(self._streaming.stream(call, time_budget_s=left_s, call_scope=use)) as pieces:
            for piece in pieces:
                if isinstance(piece, Finished):
                    use.usage = piece.usage
                    if turn.uses_tools:
                        text.tool_used()
                    out = text.feed(thoughts.end()) + text.turn_over()
                    if out:
                        use.shown = turn.shown = True
                        yield TextDelta(out)
                    return turn, piece
                if turn.uses_tools:
                    text.tool_used()
                out = text.feed(thoughts.feed(piece.text))
                if out:
                    use.shown = turn.shown = True
                    yield TextDelta(out)
            raise StreamBroken("the model's stream ended without a finish")


class _TurnUse(CountedCallScope):
    """Counts and times one turn, retries included; the call scope that its calls are held by."""

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
        fault: str | None = None
        match error:
            case None:
                pass
            case CicadaError():
                fault = error.code
                if isinstance(error, ModelError) and error.usage is not None:
                    self.usage = error.usage
            case Stopped() | GeneratorExit():
                fault = STOPPED
            case _:  # a bug
                fault = CicadaError.code
        self.took_ms = round((self._clock() - self._started) * 1000)
        self._limits.note(ModelUse(PURPOSE, self._model_id, self.calls, self.usage, self.took_ms, fault))


class TurnOptions(Pacing, total=False):
    """What the constructor of a :class:`LoopingAgent` can be given besides."""

    temperature: float | None
    top_p: float | None
    sampling: Sampling


class LoopingAgent(BedrockModel, Turns):
    """An agent whose turns are calls of a service; the port's contract is :class:`cicada.agents.ports.Agent`."""

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
        **pacing: Unpack[Pacing],
    ) -> None:
        """Wire the agent.

        Args:
            client: the service's, configured by :func:`cicada.models.bedrock.bedrock_client_config`.
            model_id: see :class:`cicada.models.bedrock.BedrockModel`; of a model that can use tools.
            max_turn_tokens: the longest turn, in tokens.
            temperature: in [0, 1]; sent if the model is not known to refuse it.
            top_p: in (0, 1]; likewise.
            silence_s: a stream that sends no event for this long is broken.
            sampling: knows what the model accepts.
            pacing: of calls that fail before the first piece of their turn.
        """
        super().__init__(client, model_id)
        self._max_turn_tokens = max_turn_tokens
        self._wanted = wanted_sampling(temperature, top_p)
        self._sampling = sampling
        streaming = Streaming(model_id, silence_s=silence_s, **pacing)
        self._loop = AgentLoop(model_id, self, streaming, max_turn_tokens=max_turn_tokens)

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See the port.

        Raises:
            AnswerIncomplete: a turn stopped for another reason than a normal finish; ``str(error)`` is the reason.
        """
        return self._loop.run(task, tools, limits)
