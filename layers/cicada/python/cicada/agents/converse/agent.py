"""A bounded loop of a model's turns and our tools, on Amazon Bedrock's ConverseStream."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from cicada.agents.exchange import Exchange
from cicada.agents.looping import AgentLoop
from cicada.agents.ports import AgentStep, AgentTask, RunLimits, Tools
from cicada.models.converse import ConverseCall, StreamedTurn
from cicada.models.model_ids import LEARNT, Sampling, wanted_sampling
from cicada.models.retries import INTERACTIVE, RetryPolicy, wait
from cicada.models.stopping import carry_lines
from cicada.models.streaming import SILENCE_S, Streaming


class ConverseAgent:
    """An agent on Bedrock; the port's contract is :class:`cicada.agents.ports.Agent`.

    A turn counts only when its ``messageStop`` arrived (:class:`cicada.agents.looping.AgentLoop`).
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
        retry: RetryPolicy = INTERACTIVE,
        sampling: Sampling = LEARNT,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float, threading.Event], None] = wait,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Wire the agent.

        Args:
            client: boto3's ``bedrock-runtime`` client, configured by
                :func:`cicada.models.bedrock.bedrock_client_config`; its connections are prepared for being closed.
            model_id: a model id, an inference profile's id, or the ARN of either; of a model that can use tools.
            max_turn_tokens: the longest turn, in tokens.
            temperature: in [0, 1]; sent if the model is not known to refuse it.
            top_p: in (0, 1]; likewise.
            silence_s: a stream that sends no event for this long is broken.
            retry: for calls that fail before the first piece of their turn.
            sampling: knows what the model accepts.
            clock: monotonic seconds.
            pause: waits between retries for some seconds, less if the event is set meanwhile.
            share: uniform in [0, 1), for the retries' jitter.
        """
        carry_lines(client)
        self._client = client
        self._model_id = model_id
        self._max_turn_tokens = max_turn_tokens
        self._wanted = wanted_sampling(temperature, top_p)
        self._sampling = sampling
        streaming = Streaming(model_id, silence_s=silence_s, retry=retry, clock=clock, pause=pause, share=share)
        self._loop = AgentLoop(model_id, self, streaming, max_turn_tokens=max_turn_tokens, clock=clock)

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._model_id

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See the port.

        Raises:
            AnswerIncomplete: a turn stopped for another reason than a normal finish; ``str(error)`` is the reason.
        """
        return self._loop.run(task, tools, limits)

    def call(
        self,
        task: AgentTask,  # noqa: ARG002 - the exchange has it all
        exchange: Exchange,
        turn: StreamedTurn,
        *,
        left_s: float,  # noqa: ARG002 - the loop ends the call
    ) -> ConverseCall:
        """See :class:`cicada.agents.looping.Turns`."""
        sent = self._sampling.accepted(self._model_id, self._wanted)
        return ConverseCall(self._client, self._request(exchange, sent), sent, self._sampling, turn=turn)

    def _request(self, exchange: Exchange, sampling: dict[str, float]) -> dict[str, Any]:
        request: dict[str, Any] = {
            "modelId": self._model_id,
            "messages": exchange.messages,
            "inferenceConfig": {"maxTokens": self._max_turn_tokens, **sampling},
        }
        if exchange.system.strip():  # the service refuses a blank one
            request["system"] = [{"text": exchange.system}]
        if exchange.tool_config is not None:
            request["toolConfig"] = exchange.tool_config
        return request
