"""Chat Completions, streamed: text models and structured models behind any endpoint that speaks it."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cicada.errors import ModelError, ModelUnavailable
from cicada.models.endpoint_keys import Key, Keys
from cicada.models.failure import Failure
from cicada.models.model_ids import LEARNT, Sampling
from cicada.models.openai_dialect import LEARNT_DIALECTS, Dialect, Dialects
from cicada.models.openai_errors import EndpointFault, read_fault
from cicada.models.openai_events import ChunkReader
from cicada.models.openai_http import ChatConnection, read_transport
from cicada.models.ports import CallScope, Finished, Prompt, TextDelta
from cicada.models.retries import INTERACTIVE, RetryPolicy, wait
from cicada.models.stream_reader import EventStream
from cicada.models.streaming import SILENCE_S, Said, Streaming

logger = logging.getLogger(__name__)

_WIRE_NAMES = {"temperature": "temperature", "topP": "top_p"}
"""The sampling parameters, as :class:`cicada.models.model_ids.Sampling` and as Chat Completions call them."""


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True)
class JsonAnswer:
    """Asks for an answer that is a JSON object."""

    name: str
    """Of the schema: letters, digits, underscores, at most 64."""
    description: str
    schema: Mapping[str, Any]
    strict: bool
    """Whether the endpoint is to enforce the schema: it must keep the rules of strict schemas then."""


@dataclass(frozen=True)
class ChatSettings:
    """What holds for every call to a model."""

    max_tokens: int
    """The longest answer."""
    temperature: float | None = None
    """In [0, 1]; not sent when None."""
    top_p: float | None = None
    """In (0, 1]; not sent when None."""
    silence_s: float = SILENCE_S
    """A stream that sends nothing for this long is broken."""
    retry: RetryPolicy = INTERACTIVE
    """For calls that fail before their first piece."""


class OpenAiChat:
    """One model of one endpoint."""

    def __init__(
        self,
        model_id: str,
        own_name: str,
        connection: ChatConnection,
        keys: Keys | None,
        settings: ChatSettings,
        *,
        sampling: Sampling = LEARNT,
        dialects: Dialects = LEARNT_DIALECTS,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float, threading.Event], None] = wait,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Wire the model.

        Args:
            model_id: ``<endpoint>/<model>``.
            own_name: the model, as its endpoint calls it.
            connection: to the endpoint.
            keys: the endpoint's key; None for one that asks for none.
            sampling: knows which sampling parameters the model accepts.
            dialects: knows what else it accepts.
            clock, pause, share: see :class:`cicada.models.retries.Pace`.
        """
        self.model_id = model_id
        self.settings = settings
        self.dialects = dialects
        self.clock = clock
        self._own_name = own_name
        self._connection = connection
        self._keys = keys
        self._sampling = sampling
        wanted = {"temperature": settings.temperature, "topP": settings.top_p}
        self._wanted = {name: value for name, value in wanted.items() if value is not None}
        self._streaming = Streaming(
            model_id, silence_s=settings.silence_s, retry=settings.retry, clock=clock, pause=pause, share=share
        )

    def stream(
        self,
        turns: Sequence[ChatMessage],
        *,
        answer: JsonAnswer | None = None,
        time_budget_s: float,
        call_scope: CallScope,
    ) -> Generator[TextDelta | Finished, None, None]:
        """Have the model write its turn; everything else is as :class:`cicada.models.ports.TextModel` says.

        Args:
            turns: the conversation so far. A blank system turn is left out.
            answer: asks for JSON, in whatever way the endpoint takes.
        """
        deadline_s = self.clock() + time_budget_s

        def key() -> Key | None:
            return None if self._keys is None else self._keys.read(time_left_s=deadline_s - self.clock())

        return self._streaming.stream(
            lambda: self._call(turns, answer, key), time_budget_s=time_budget_s, call_scope=call_scope
        )

    def _call(self, turns: Sequence[ChatMessage], answer: JsonAnswer | None, key: Callable[[], Key | None]) -> _Call:
        dialect = self.dialects.of(self.model_id)
        sampling = self._sampling.accepted(self.model_id, self._wanted)
        body: dict[str, Any] = {
            "model": self._own_name,
            "messages": _messages(turns, answer, dialect),
            "stream": True,
            dialect.limit: self.settings.max_tokens,
            **{_WIRE_NAMES[name]: value for name, value in sampling.items()},
        }
        if dialect.usage:
            body["stream_options"] = {"include_usage": True}
        if answer is not None and dialect.format != "text":
            body["response_format"] = _response_format(answer, dialect)
        return _Call(
            self.model_id, body, sampling, dialect, self._connection, key, self._keys, self._sampling, self.dialects
        )


def _messages(turns: Sequence[ChatMessage], answer: JsonAnswer | None, dialect: Dialect) -> list[dict[str, str]]:
    system = "\n\n".join(turn.text for turn in turns if turn.role == "system" and turn.text.strip())
    if answer is not None and dialect.format != "json_schema":
        schema = json.dumps(answer.schema, ensure_ascii=False, separators=(",", ":"))
        system = (
            f"{system}\n\n{answer.description}\nAnswer with one JSON object that fits this JSON schema, and with "
            f"nothing before or after it:\n{schema}"
        ).lstrip()
    rest = [{"role": turn.role, "content": turn.text} for turn in turns if turn.role != "system"]
    if system and dialect.system:
        return [{"role": "system", "content": system}, *rest]
    if system:
        return [{**rest[0], "content": f"{system}\n\n{rest[0]['content']}"}, *rest[1:]]
    return rest


def _response_format(answer: JsonAnswer, dialect: Dialect) -> dict[str, Any]:
    if dialect.format == "json_object":
        return {"type": "json_object"}
    schema = {"name": answer.name, "description": answer.description, "schema": answer.schema, "strict": answer.strict}
    return {"type": "json_schema", "json_schema": schema}


class _Call:
    """One request, as :class:`cicada.models.streaming.ServiceCall`."""

    def __init__(
        self,
        model_id: str,
        body: Mapping[str, Any],
        sampling: dict[str, float],
        dialect: Dialect,
        connection: ChatConnection,
        read_key: Callable[[], Key | None],
        keys: Keys | None,
        known_sampling: Sampling,
        known_dialects: Dialects,
    ) -> None:
        self._model_id = model_id
        self._body = body
        self._sampling = sampling
        self._dialect = dialect
        self._connection = connection
        self._read_key = read_key
        self._keys = keys
        self._known_sampling = known_sampling
        self._known_dialects = known_dialects
        self._chunks = ChunkReader()
        self._key: Key | None = None
        self._fault: EndpointFault | None = None

    def open(self) -> EventStream:
        self._key = self._read_key()
        return self._connection.open(self._body, None if self._key is None else self._key.value)

    def read(self, event: Mapping[str, Any] | str) -> Iterable[Said]:
        return self._chunks.read(event)

    def failure(self, error: Exception, *, opened: bool) -> Failure | None:
        if isinstance(error, EndpointFault):
            self._fault = error
            return read_fault(error)
        if opened:
            return None
        if isinstance(error, ModelError):  # of whoever gives the key, or of an endpoint that sends no stream
            keyless = self._keys is not None and self._key is None
            return Failure(error, retry=isinstance(error, ModelUnavailable), free=keyless)
        return read_transport(error)

    def learn(self, failure: Failure) -> bool:
        fault = self._fault
        if fault is None:
            return False
        if fault.status == 401 and self._keys is not None and self._key is not None:
            return self._keys.refused(self._key)
        if not failure.invalid:
            return False
        learnt = self._known_sampling.learn(self._model_id, self._sampling, fault.complaint.all_words)
        if not learnt:
            learnt = self._known_dialects.learn(self._model_id, self._dialect, fault.complaint, self._body)
        if learnt:
            logger.warning("the model refuses a parameter", extra={"model": self._model_id})
        return learnt


class ChatModel:
    """A model of an endpoint, as the ports name and bound it."""

    def __init__(self, chat: OpenAiChat) -> None:
        self._chat = chat

    @property
    def model_id(self) -> str:
        """``<endpoint>/<model>``."""
        return self._chat.model_id

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens."""
        return self._chat.settings.max_tokens


class OpenAiTextModel(ChatModel):
    """A text model of an endpoint; the port's contract is :class:`cicada.models.ports.TextModel`.

    An answer is whole only when its ``finish_reason`` arrived. What a model refuses to be sent (a sampling parameter,
    ``max_tokens``, ``stream_options``, a system turn) is left out, and that is remembered.

    Reasoning is not part of the answer and is skipped. An answer without any text is possible.
    """

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port. The whole answer ends with its ``finish_reason``, and the time budget runs from this call.

        ContextTooLarge and AnswerBlocked are raised before the first piece, too, where the endpoint refuses the prompt.
        """
        turns = (ChatMessage("system", prompt.system), ChatMessage("user", prompt.user))
        return self._chat.stream(turns, time_budget_s=time_budget_s, call_scope=call_scope)
