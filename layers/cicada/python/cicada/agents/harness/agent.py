"""An agent in a harness of Amazon Bedrock AgentCore: the harness asks the model, and hands the uses of tools to us."""

from __future__ import annotations

import hashlib
import random
import threading
import time
import uuid
from collections.abc import Callable, Generator
from typing import Any

from cicada.agents.exchange import Exchange
from cicada.agents.harness.invocation import Harness, HarnessCall, Run, request_of
from cicada.agents.limits import SERVICE_SILENCE_S
from cicada.agents.looping import AgentLoop
from cicada.agents.ports import AgentStep, AgentTask, RunLimits, Tools
from cicada.models.converse import StreamedTurn
from cicada.models.model_ids import LEARNT, Sampling, wanted_sampling
from cicada.models.retries import INTERACTIVE, RetryPolicy, wait
from cicada.models.stopping import carry_lines
from cicada.models.streaming import Streaming

_ACTOR_CHARS = 40
"""Of a hash: enough to tell all conversations apart."""


class HarnessAgent:
    """An agent in a harness; the port's contract is :class:`cicada.agents.ports.Agent`.

    All tools are inline functions: where the model uses one, the invocation stops, our code runs it, and the next
    invocation brings its result. Each invocation brings all that was said in the run, too, in a session of its own: a
    harness without memory promises to keep nothing, a partial turn least of all, and one that keeps it all the same
    must not hear it twice. So an invocation is one turn of the model, as one call of ConverseStream is, and is bounded,
    repeated and ended like one (:class:`cicada.agents.looping.AgentLoop`).
    """

    def __init__(
        self,
        client: Any,
        harness: Harness,
        model_id: str,
        *,
        max_turn_tokens: int,
        temperature: float | None = None,
        top_p: float | None = None,
        silence_s: float = SERVICE_SILENCE_S,
        retry: RetryPolicy = INTERACTIVE,
        sampling: Sampling = LEARNT,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float, threading.Event], None] = wait,
        share: Callable[[], float] = random.random,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """Wire the agent.

        Args:
            client: boto3's ``bedrock-agentcore`` client, configured by
                :func:`cicada.models.bedrock.bedrock_client_config` with
                :data:`cicada.agents.limits.SERVICE_READ_TIMEOUT_S`; its connections are prepared for being closed.
            harness: the one that is deployed.
            model_id: a model id, an inference profile's id, or the ARN of either; named in every invocation.
            max_turn_tokens: the longest turn, in tokens.
            temperature: in [0, 1]; sent if the model is not known to refuse it.
            top_p: in (0, 1]; likewise.
            silence_s: a stream that sends no event for this long is broken. A session has to start before the first.
            retry: for invocations that fail before the first piece of their turn.
            sampling: knows what the model accepts.
            clock: monotonic seconds.
            pause: waits between retries for some seconds, less if the event is set meanwhile.
            share: uniform in [0, 1), for the retries' jitter.
            new_id: never the same twice; letters and digits, at most 50.
        """
        carry_lines(client)
        self._client = client
        self._harness = harness
        self._model_id = model_id
        self._max_turn_tokens = max_turn_tokens
        self._wanted = wanted_sampling(temperature, top_p)
        self._sampling = sampling
        self._new_id = new_id
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
            AgentError: the harness used a tool of its own, which it may not.
        """
        return self._loop.run(task, tools, limits)

    def call(self, task: AgentTask, exchange: Exchange, turn: StreamedTurn, *, left_s: float) -> HarnessCall:
        """See :class:`cicada.agents.looping.Turns`."""
        sampled = self._sampling.accepted(self._model_id, self._wanted)
        actor = hashlib.sha256(task.conversation.encode()).hexdigest()[:_ACTOR_CHARS]
        run = Run(
            actor_id=actor,
            session_id=f"{actor}-{self._new_id()}",
            max_turn_tokens=self._max_turn_tokens,
            left_s=left_s,
        )
        request = request_of(self._harness, self._model_id, exchange, run, sampled)
        return HarnessCall(self._client, request, sampled, self._sampling, turn)
