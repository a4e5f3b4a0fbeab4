"""Generation by any endpoint that speaks OpenAI's Chat Completions: OpenAI, Groq, vLLM, Ollama, llama.cpp…"""

from __future__ import annotations

from collections.abc import Generator

from cicada.models.openai_chat import OpenAiChat, Turn
from cicada.models.ports import Finished, Leash, Prompt, TextDelta


class OpenAiTextModel:
    """A text model of an endpoint; the port's contract is :class:`cicada.models.ports.TextModel`.

    An answer is whole only when its ``finish_reason`` arrived. What a model refuses to be sent (a sampling parameter,
    ``max_tokens``, ``stream_options``, a system turn) is left out, and that is remembered.

    Reasoning is not part of the answer and is skipped. An answer without any text is possible.
    """

    def __init__(self, chat: OpenAiChat) -> None:
        """Take the model."""
        self._chat = chat

    @property
    def model_id(self) -> str:
        """``<endpoint>/<model>``."""
        return self._chat.model_id

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens."""
        return self._chat.settings.max_tokens

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, leash: Leash
    ) -> Generator[TextDelta | Finished, None, None]:
        """Write an answer piece by piece. The time budget runs from this call, and holds in mid-stream too.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without its ``finish_reason``, in whatever form, or outlasted the budget.
            AnswerIncomplete: the model stopped for another reason than a normal finish; ``str(error)`` is the reason.
                ContextTooLarge and AnswerBlocked also before the first piece, where the endpoint refuses the prompt.
            BudgetSpent: the leash allows no first call. Where it allows no further one, the last failure is raised.
            Stopped: the leash's stop, whatever was being waited for.
        """
        turns = (Turn("system", prompt.system), Turn("user", prompt.user))
        return self._chat.stream(turns, time_budget_s=time_budget_s, leash=leash)
