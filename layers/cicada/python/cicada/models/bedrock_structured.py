"""Forms filled in by a model on Amazon Bedrock: Converse with a tool whose input is the form.

Source: Amazon Bedrock User Guide, "Use a tool to complete an Amazon Bedrock model response".
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Generic, Unpack

from cicada.errors import AnswerMalformed, ModelError
from cicada.models.bedrock import BedrockModel, read_failure
from cicada.models.converse import NORMAL_STOPS, converse_request, incomplete, read_usage
from cicada.models.failure import Failure
from cicada.models.guardrail import INTERVENED, Guardrail, GuardrailUse
from cicada.models.model_ids import LEARNT, Sampling, tool_sampling
from cicada.models.ports import CallScope, Filled, Form, Prompt, Usage
from cicada.models.retries import Pace, Pacing
from cicada.models.structured_output import (
    MALFORMED_HINT,
    OutputMisfit,
    ask_twice,
    correction,
    form_description,
    form_name,
    form_schema,
    read_form,
)
from cicada.models.unary_calls import UnaryCalls

_TOOL_STOPS = NORMAL_STOPS | {"tool_use"}
_MALFORMED_STOPS = frozenset({"malformed_model_output", "malformed_tool_use"})
"""Stop reasons of an answer that the service itself could not read: there is nothing in it to correct."""


class StructuredExchange(Generic[Form]):
    """A question, the answers to it so far, and what was said of them."""

    def __init__(self, prompt: Prompt, form: type[Form], guard: GuardrailUse | None = None) -> None:
        """Begin with a prompt. Raises ValueError for a form that cannot be given to a model."""
        self.guard = guard or GuardrailUse(None)
        self._form = form
        self.tool = form_name(form)
        self.tool_spec = {
            "name": self.tool,
            "description": form_description(form),
            "inputSchema": {"json": form_schema(form)},
        }
        self.system = prompt.system
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": self.guard.content(prompt)}]
        self.usage = Usage()
        """Of all answers; not reported if the service did not say for one of them."""

    def read(self, response: Mapping[str, Any]) -> Form:
        """Read an answer.

        Raises:
            FormMisfit: it holds no value that fits.
            AnswerIncomplete: it stopped for another reason than a normal finish.
        """
        self.usage = self.usage + read_usage(response)
        reason = str(response.get("stopReason", ""))
        if reason in _MALFORMED_STOPS:
            raise OutputMisfit((reason,))
        if reason == INTERVENED:
            self._check_blocked(response)
        elif reason not in _TOOL_STOPS:
            raise incomplete(reason)
        for use in _tool_uses(_content(response)):
            if use.get("name") == self.tool:
                return read_form(self._form, use.get("input"))
        raise OutputMisfit((f"{self.tool} was not called",))

    def _check_blocked(self, response: Mapping[str, Any]) -> None:
        self.guard.traced(response)
        for block in _content(response):
            self.guard.said(block.get("text", ""))
        blocked = self.guard.verdict(INTERVENED)
        if blocked is not None:
            raise blocked

    def correct(self, response: Mapping[str, Any], misfit: OutputMisfit) -> None:
        """Add a response that does not fit, and what is wrong with it; of an unreadable one, only that it was."""
        said = _repeatable(_content(response))
        if not said or response.get("stopReason") in _MALFORMED_STOPS:
            self.system = f"{self.system}\n\n{MALFORMED_HINT}".lstrip()
            return
        text = [{"text": correction(self.tool, misfit)}]
        results = [
            {"toolResult": {"toolUseId": use["toolUseId"], "content": text if n == 0 else [{"text": "Not used."}]}}
            for n, use in enumerate(_tool_uses(said))
        ]
        self.messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results or text}]


def _content(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = (response.get("output") or {}).get("message") or {}
    return list(message.get("content") or ())


def _tool_uses(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block["toolUse"] for block in content if "toolUse" in block]


def _repeatable(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the service takes back of its own answer: known kinds, no blank text, and no text beside a tool's use, which
    some models refuse."""
    text = not _tool_uses(content)
    return [
        block
        for block in content
        if "toolUse" in block or "reasoningContent" in block or (text and block.get("text", "").strip())
    ]


logger = logging.getLogger(__name__)

_TOOL_CHOICE = re.compile(r"tool[ _]?choice", re.IGNORECASE)


class BedrockStructuredModel(BedrockModel):
    """A model on Bedrock that fills in forms; the port's contract is :class:`cicada.models.ports.StructuredModel`.

    The request forces one tool (``toolChoice``). A model that refuses to be forced is asked to call the tool, and the
    object remembers that. ``maxTokens`` is always sent: Bedrock reserves quota for it up front, and for the model's
    maximum without it.
    """

    def __init__(
        self,
        client: Any,
        model_id: str,
        *,
        max_tokens: int = 1024,
        temperature: float | None = None,
        sampling: Sampling = LEARNT,
        guardrail: Guardrail | None = None,
        **pacing: Unpack[Pacing],
    ) -> None:
        """``client`` is configured by ``bedrock_client_config``; its read time-out bounds each call."""
        super().__init__(client, model_id)
        self.max_tokens = max_tokens
        self._wanted = tool_sampling(model_id, temperature, None)
        self._sampling = sampling
        self._guardrail = guardrail
        self._pace = Pace(**pacing)
        self._forced = True

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """See the port. An error's ``usage`` is that of all calls.

        Raises:
            ValueError: the form cannot be given to a model (:func:`cicada.models.structured_output.form_schema`).
        """
        guard = GuardrailUse(self._guardrail)
        exchange = StructuredExchange(prompt, form, guard)
        calls = UnaryCalls(
            call_scope,
            self._pace.clock() + time_budget_s,
            self._pace,
            read_failure=lambda error: guard.read(read_failure(error)),
        )
        last: Mapping[str, Any] = {}

        def ask() -> Form:
            nonlocal last
            try:
                last = self._converse(calls, exchange)
            except AnswerMalformed as error:  # told as an error, not as a stop reason
                raise OutputMisfit((str(error),)) from error
            return exchange.read(last)

        with calls:
            try:
                value = ask_twice(ask, lambda misfit: exchange.correct(last, misfit), self.model_id, exchange.tool)
            except ModelError as error:
                if calls.count:
                    error.usage = exchange.usage + Usage(reported=not calls.lost)
                raise
        return Filled(value, exchange.usage + Usage(reported=not calls.lost), calls.count)

    def _converse(self, calls: UnaryCalls, exchange: StructuredExchange[Form]) -> Mapping[str, Any]:
        sent: dict[str, float] = {}
        forced = self._forced

        def call() -> Mapping[str, Any]:
            response: Mapping[str, Any] = self._client.converse(**self._request(exchange, sent, forced=forced))
            if "stopReason" not in response:  # botocore gives a body that broke off as an empty response
                raise HTTPException("the response was cut off")
            return response

        def accept() -> None:
            nonlocal forced
            sent.clear()
            sent.update(self._sampling.accepted(self.model_id, self._wanted))
            forced = self._forced

        def learn(failure: Failure) -> bool:
            if exchange.guard.gives_way(failure):
                return True
            if not failure.invalid:
                return False
            refusal = str(failure.error)
            learnt = self._sampling.learn(self.model_id, sent, refusal)
            # By what this request sent: another thread may have learnt it meanwhile.
            if not learnt and forced and _TOOL_CHOICE.search(refusal):
                self._forced, learnt = False, True
            if learnt:
                logger.warning("the model rejects a parameter", extra={"model": self.model_id})
            accept()
            return learnt

        accept()
        return calls.make(call, learn=learn)

    def _request(
        self, exchange: StructuredExchange[Form], sampling: Mapping[str, float], *, forced: bool
    ) -> dict[str, Any]:
        tools: dict[str, Any] = {"tools": [{"toolSpec": exchange.tool_spec}]}
        system = exchange.system
        if forced:
            tools["toolChoice"] = {"tool": {"name": exchange.tool}}
        else:
            system = f"{system}\n\nAnswer by calling the tool {exchange.tool} once, and by nothing else.".lstrip()
        request = converse_request(self.model_id, system, exchange.messages, self.max_tokens, sampling, tools)
        return exchange.guard.apply(request, streamed=False)
