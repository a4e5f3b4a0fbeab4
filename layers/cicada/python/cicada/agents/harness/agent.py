"""An agent in a harness of Amazon Bedrock AgentCore: the harness asks the model, and hands the uses of tools to us."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from typing import Any, Unpack

from cicada.agents.exchange import AgentExchange
from cicada.agents.harness.invocation import Harness, HarnessCall, Run, request_of
from cicada.agents.limits import SERVICE_SILENCE_S
from cicada.agents.looping import LoopingAgent, TurnOptions
from cicada.agents.ports import AgentTask
from cicada.models.converse import StreamedTurn

_ACTOR_CHARS = 40
"""Of a hash: enough to tell all conversations apart."""


class HarnessAgent(LoopingAgent):
    """An agent in a harness; the port's contract is :class:`cicada.agents.ports.Agent`.

    All tools are inline functions: where the model uses one, the invocation stops, our code runs it, and the next
    invocation brings its result. Each invocation brings all that was said in the run, too, in a session of its own: a
    harness without memory promises to keep nothing, a partial turn least of all, and one that keeps it all the same
    must not hear it twice. So an invocation is one turn of the model, as one call of ConverseStream is, and is bounded,
    repeated and ended like one. A harness that uses a tool of its own, which it may not, is an AgentError.
    """

    def __init__(
        self,
        client: Any,
        harness: Harness,
        model_id: str,
        *,
        max_turn_tokens: int,
        silence_s: float = SERVICE_SILENCE_S,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        **options: Unpack[TurnOptions],
    ) -> None:
        """Wire the agent.

        Args:
            client: boto3's ``bedrock-agentcore`` client, configured by
                :func:`cicada.models.bedrock.bedrock_client_config` with
                :data:`cicada.agents.limits.SERVICE_READ_TIMEOUT_S`.
            harness: the one that is deployed.
            model_id: named in every invocation.
            max_turn_tokens: the longest turn, in tokens.
            silence_s: a stream that sends no event for this long is broken. A session has to start before the first.
            new_id: never the same twice; letters and digits, at most 50.
            options: see :class:`cicada.agents.looping.LoopingAgent`.
        """
        super().__init__(client, model_id, max_turn_tokens=max_turn_tokens, silence_s=silence_s, **options)
        self._harness = harness
        self._new_id = new_id

    def call(self, task: AgentTask, exchange: AgentExchange, turn: StreamedTurn, *, left_s: float) -> HarnessCall:
        """See :class:`cicada.agents.looping.Turns`."""
        sampled = self._sampling.accepted(self.model_id, self._wanted)
        actor = hashlib.sha256(task.conversation.encode()).hexdigest()[:_ACTOR_CHARS]
        run = Run(
            actor_id=actor, session_id=f"{actor}-{self._new_id()}", max_turn_tokens=self._max_turn_tokens, left_s=left_s
        )
        request = request_of(self._harness, self.model_id, exchange, run, sampled)
        return HarnessCall(self._client, request, sampled, self._sampling, turn)
