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
"""Of a digest of the conversation."""


class HarnessAgent(LoopingAgent):
    """An agent in a harness; the port's contract is :class:`cicada.agents.ports.Agent`.

    All tools are inline functions: the use of one ends the invocation, our code runs it, and the next invocation has
    its result. Each invocation has a session of its own and carries the whole run, as a harness without memory may keep
    nothing. So an invocation is one turn of the model, bounded and retried like a call of ConverseStream. A tool that
    the harness runs itself is an AgentError.
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
        """``client`` is configured with :data:`cicada.agents.limits.SERVICE_READ_TIMEOUT_S`.

        ``new_id`` returns unique ids of at most 50 letters and digits.
        """
        super().__init__(client, model_id, max_turn_tokens=max_turn_tokens, silence_s=silence_s, **options)
        self._harness = harness
        self._new_id = new_id

    def call(self, task: AgentTask, exchange: AgentExchange, turn: StreamedTurn, *, left_s: float) -> HarnessCall:
        """See :class:`cicada.agents.looping.LoopingAgent`."""
        sampled = self._sampling.accepted(self.model_id, self._wanted)
        actor = hashlib.sha256(task.conversation.encode()).hexdigest()[:_ACTOR_CHARS]
        run = Run(actor, f"{actor}-{self._new_id()}", self._max_turn_tokens, left_s)
        request = request_of(self._harness, self.model_id, exchange, run, sampled)
        return HarnessCall(self._client, request, sampled, self._sampling, turn)
