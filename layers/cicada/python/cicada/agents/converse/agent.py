"""A bounded loop of a model's turns and our tools, on Amazon Bedrock's ConverseStream."""

from __future__ import annotations

from typing import Any

from cicada.agents.exchange import AgentExchange
from cicada.agents.looping import LoopingAgent
from cicada.agents.ports import AgentTask
from cicada.models.converse import ConverseCall, StreamedTurn


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
        """See :class:`cicada.agents.looping.Turns`."""
        sent = self._sampling.accepted(self._model_id, self._wanted)
        return ConverseCall(self._client, self._request(exchange, sent), sent, self._sampling, turn=turn)

    def _request(self, exchange: AgentExchange, sampling: dict[str, float]) -> dict[str, Any]:
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
