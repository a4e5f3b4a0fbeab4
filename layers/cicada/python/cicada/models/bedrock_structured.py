"""Forms filled in by a model on Amazon Bedrock: Converse with one tool, whose input is the form.

Source: Amazon Bedrock User Guide, "Use a tool to complete an Amazon Bedrock model response".
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from cicada.errors import AnswerMalformed, BudgetSpent, ModelError
from cicada.models.bedrock import read_failure
from cicada.models.converse_forms import Exchange
from cicada.models.forms import FormMisfit
from cicada.models.lines import carry_lines
from cicada.models.ports import Filled, Form, Leash, Prompt, Usage
from cicada.models.retries import INTERACTIVE, RetryPolicy, wait
from cicada.models.sampling import LEARNT, Sampling
from cicada.models.whole_calls import WholeCalls

logger = logging.getLogger(__name__)

_TOOL_CHOICE = re.compile(r"tool[ _]?choice", re.IGNORECASE)


class BedrockStructuredModel:
    """A model on Bedrock that fills in forms; the port's contract is :class:`cicada.models.ports.StructuredModel`.

    The model is made to call one tool (``toolChoice``); where it refuses to be made to, it is offered the tool and
    asked to call it, and that is remembered for the model object's life. ``maxTokens`` is always sent: Bedrock
    reserves quota for it up front, and for the model's maximum without it.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        *,
        max_tokens: int = 1024,
        temperature: float | None = None,
        retry: RetryPolicy = INTERACTIVE,
        sampling: Sampling = LEARNT,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float, threading.Event], None] = wait,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Wire the model.

        Args:
            client: boto3's ``bedrock-runtime`` client, configured by ``bedrock_client_config``, whose read time-out is
                how long one call may take; its connections are prepared for being closed
                (:func:`cicada.models.lines.carry_lines`).
            model_id: a model id, an inference profile's id, or the ARN of either.
            max_tokens: the longest answer, in tokens.
            temperature: in [0, 1]; sent if the model is not known to refuse it.
            retry: for calls that fail.
            sampling: knows what the model accepts.
            clock: monotonic seconds.
            pause: waits between retries for some seconds, less if the event is set meanwhile.
            share: uniform in [0, 1), for the retries' jitter.
        """
        carry_lines(client)
        self._client = client
        self._model_id = model_id
        self._max_tokens = max_tokens
        self._wanted = {} if temperature is None else {"temperature": temperature}
        self._retry = retry
        self._sampling = sampling
        self._clock = clock
        self._pause = pause
        self._share = share
        self._forced = True

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        return self._model_id

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens."""
        return self._max_tokens

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, leash: Leash) -> Filled[Form]:
        """Have the model fill in a form; an answer that does not fit is asked for once more.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: as their names say.
            AnswerIncomplete: the model stopped for another reason than a normal finish; ``str(error)`` is the reason.
                AnswerMalformed if what it gave does not fit and may not be asked for once more, or not twice. The
                error's ``usage`` is that of all calls.
            BudgetSpent: the leash allows no first call.
            Stopped: the leash's stop, whatever was being waited for.
            ValueError: the form cannot be given to a model (:func:`cicada.models.forms.form_schema`).
        """
        exchange = Exchange(prompt, form)
        calls = WholeCalls(
            leash,
            self._clock() + time_budget_s,
            self._retry,
            read_failure=read_failure,
            clock=self._clock,
            pause=self._pause,
            share=self._share,
        )
        with calls:
            try:
                value = self._fill(calls, exchange)
            except ModelError as error:
                if calls.count:
                    error.usage = exchange.usage + Usage(reported=not calls.lost)
                raise
        return Filled(value, exchange.usage + Usage(reported=not calls.lost), calls.count)

    def _fill(self, calls: WholeCalls, exchange: Exchange[Form]) -> Form:
        response = self._converse(calls, exchange)
        try:
            return exchange.read(response)
        except FormMisfit as misfit:
            logger.info(
                "the model's answer does not fit its form",
                extra={"model": self._model_id, "form": exchange.tool, "problems": len(misfit.problems)},
            )
            exchange.correct(response, misfit)
            first = misfit
        try:
            return exchange.read(self._converse(calls, exchange))
        except BudgetSpent:
            raise AnswerMalformed(str(first)) from None
        except FormMisfit as misfit:
            raise AnswerMalformed(str(misfit)) from None

    def _converse(self, calls: WholeCalls, exchange: Exchange[Form]) -> Mapping[str, Any]:
        sent: dict[str, float] = {}
        forced = self._forced

        def call() -> Mapping[str, Any]:
            response: Mapping[str, Any] = self._client.converse(**self._request(exchange, sent, forced=forced))
            if "stopReason" not in response:  # botocore gives a body that broke off as an empty response
                raise HTTPException("the response broke off")
            return response

        def accept() -> None:
            nonlocal forced
            sent.clear()
            sent.update(self._sampling.accepted(self._model_id, self._wanted))
            forced = self._forced

        def learn(refusal: ModelError) -> bool:
            learnt = self._sampling.learn(self._model_id, sent, str(refusal))
            # By what this request sent: another thread may have learnt it meanwhile.
            if not learnt and forced and _TOOL_CHOICE.search(str(refusal)):
                self._forced, learnt = False, True
            if learnt:
                logger.warning("the model refuses a parameter", extra={"model": self._model_id})
            accept()
            return learnt

        accept()
        return calls.make(call, learn=learn)

    def _request(self, exchange: Exchange[Form], sampling: Mapping[str, float], *, forced: bool) -> dict[str, Any]:
        tools: dict[str, Any] = {"tools": [{"toolSpec": exchange.tool_spec}]}
        system = exchange.prompt.system
        if forced:
            tools["toolChoice"] = {"tool": {"name": exchange.tool}}
        else:
            system = f"{system}\n\nAnswer by calling the tool {exchange.tool} once, and by nothing else.".lstrip()
        request: dict[str, Any] = {
            "modelId": self._model_id,
            "messages": exchange.messages,
            "inferenceConfig": {"maxTokens": self._max_tokens, **sampling},
            "toolConfig": tools,
        }
        if system.strip():  # the service refuses a blank one
            request["system"] = [{"text": system}]
        return request
