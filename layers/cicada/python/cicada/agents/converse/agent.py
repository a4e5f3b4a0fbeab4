"""A bounded loop of a model's turns and our tools, on Amazon Bedrock's ConverseStream."""

from __future__ import annotations

from cicada.agents.exchange import AgentExchange
from cicada.agents.looping import LoopingAgent
from cicada.agents.ports import AgentTask
from cicada.models.converse import ConverseCall, StreamedTurn, converse_request


class ConverseAgent(LoopingAgent):
    """An agent on Bedrock: a turn counts only when its ``messageStop`` arrived."""

    def call(
        self,
        task: AgentTask,  # noqa: ARG002 - the exchange has it all
        exchange: AgentExchange,
        turn: StreamedTurn,
        *,
        left_s: float,  # noqa: ARG002 - the loop ends the call
    ) -> ConverseCall:
        """See :class:`cicada.agents.looping.LoopingAgent`."""
        sent = self._sampling.accepted(self.model_id, self._wanted)
        request = converse_request(
            self.model_id, exchange.system, exchange.messages, self._max_turn_tokens, sent, exchange.tool_config
        )
        return ConverseCall(self._client, request, sent, self._sampling, turn=turn, guard=exchange.guard)
