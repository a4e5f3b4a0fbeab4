"""Generation by Amazon Bedrock's ConverseStream.

What botocore does with a broken stream differs with the fault: an EventStreamError, urllib3's ProtocolError, a
ChecksumMismatch, a time-out, or nothing at all: a cut, close-delimited stream just ends. The rule that covers all of
them is that an answer is whole only when its ``messageStop`` arrived (:mod:`cicada.models.streaming`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Unpack

from cicada.models.bedrock import BedrockModel
from cicada.models.converse import ConverseCall, converse_request
from cicada.models.guardrail import Guardrail, GuardrailUse
from cicada.models.model_ids import LEARNT, Sampling, wanted_sampling
from cicada.models.ports import CallScope, Finished, Prompt, TextDelta
from cicada.models.retries import Pacing
from cicada.models.streaming import SILENCE_S, Streaming


class BedrockTextModel(BedrockModel):
    """A text model on Bedrock; the port's contract is :class:`cicada.models.ports.TextModel`.

    ``maxTokens`` is always sent: Bedrock reserves quota for it up front, and for the model's maximum without it.
    ``temperature`` and ``topP`` are sent when they are set and the model is not known to refuse them; a model that
    does refuse one is called again without, and that is remembered.

    Reasoning is not part of the answer and is skipped. An answer without any text is possible.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        *,
        max_tokens: int = 2048,
        temperature: float | None = None,
        top_p: float | None = None,
        silence_s: float = SILENCE_S,
        sampling: Sampling = LEARNT,
        guardrail: Guardrail | None = None,
        **pacing: Unpack[Pacing],
    ) -> None:
        """``client`` is configured by ``bedrock_client_config``; ``pacing`` is for calls that fail before any text."""
        super().__init__(client, model_id)
        self.max_tokens = max_tokens
        self._wanted = wanted_sampling(temperature, top_p)
        self._sampling = sampling
        self._guardrail = guardrail
        self._streaming = Streaming(model_id, silence_s=silence_s, **pacing)

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port. The time budget runs from this call; a stream that outlasts it raises StreamBroken."""
        guard = GuardrailUse(self._guardrail)

        def call() -> ConverseCall:
            sampling = self._sampling.accepted(self.model_id, self._wanted)
            messages = [{"role": "user", "content": guard.content(prompt)}]
            request = converse_request(self.model_id, prompt.system, messages, self.max_tokens, sampling)
            return ConverseCall(self._client, request, sampling, self._sampling, guard=guard)

        return self._streaming.stream(call, time_budget_s=time_budget_s, call_scope=call_scope)
