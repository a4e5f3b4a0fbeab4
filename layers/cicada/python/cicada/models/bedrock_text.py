"""Generation by Amazon Bedrock's ConverseStream.

What botocore does with a broken stream differs with the fault: an EventStreamError, urllib3's ProtocolError, a
ChecksumMismatch, a time-out, or nothing at all: a cut, close-delimited stream just ends. The rule that covers all of
them is that an answer is whole only when its ``messageStop`` arrived (:mod:`cicada.models.streaming`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Unpack

from cicada.models.bedrock import BedrockModel
from cicada.models.converse import ConverseCall
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
        **pacing: Unpack[Pacing],
    ) -> None:
        """Wire the model.

        Args:
            client: boto3's ``bedrock-runtime`` client, configured by ``bedrock_client_config``.
            model_id: see :class:`cicada.models.bedrock.BedrockModel`.
            max_tokens: the longest answer, in tokens.
            temperature: in [0, 1].
            top_p: in (0, 1].
            silence_s: a stream that sends no event for this long is broken.
            sampling: knows what the model accepts.
            pacing: of calls that fail before their first piece.
        """
        super().__init__(client, model_id)
        self._max_tokens = max_tokens
        self._wanted = wanted_sampling(temperature, top_p)
        self._sampling = sampling
        self._streaming = Streaming(model_id, silence_s=silence_s, **pacing)

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens."""
        return self._max_tokens

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port. The time budget runs from this call; a stream that outlasts it is a StreamBroken."""

        def call() -> ConverseCall:
            sampling = self._sampling.accepted(self._model_id, self._wanted)
            return ConverseCall(self._client, self._request(prompt, sampling), sampling, self._sampling)

        return self._streaming.stream(call, time_budget_s=time_budget_s, call_scope=call_scope)

    def _request(self, prompt: Prompt, sampling: Mapping[str, float]) -> dict[str, Any]:
        request = {
            "modelId": self._model_id,
            "messages": [{"role": "user", "content": [{"text": prompt.user}]}],
            "inferenceConfig": {"maxTokens": self._max_tokens, **sampling},
        }
        if prompt.system.strip():  # the service refuses a blank one
            request["system"] = [{"text": prompt.system}]
        return request
