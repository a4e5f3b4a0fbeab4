"""Chat Completions, streamed: text models and structured models behind any endpoint that speaks it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

from cicada.errors import ModelError, ModelUnavailable
from cicada.models.endpoint_keys import Key, Keys
from cicada.models.failure import Failure
from cicada.models.model_ids import LEARNT, Sampling, wanted_sampling
from cicada.models.openai_dialect import LEARNT_DIALECTS, Dialect, Dialects
from cicada.models.openai_errors import EndpointFault, read_fault
from cicada.models.openai_events import ChunkReader
from cicada.models.openai_http import ChatConnection, read_transport
from cicada.models.ports import CallScope, Finished, Prompt, TextDelta
from cicada.models.retries import INTERACTIVE, Pacing, RetryPolicy
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
    """Whether the endpoint is to enforce the schema, which must be strict then."""


@dataclass(frozen=True)
class ChatSettings:
    """The settings of every call to a model."""

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
        **pacing: Unpack[Pacing],
    ) -> None:
        """The endpoint calls the model ``own_name``; ``keys`` is None for an endpoint without one."""
        self.model_id = model_id
        self.settings = settings
        self.dialects = dialects
        self._own_name = own_name
        self._connection = connection
        self._keys = keys
        self._sampling = sampling
        self._wanted = wanted_sampling(settings.temperature, settings.top_p)
        pacing.setdefault("retry", settings.retry)
        self._streaming = Streaming(model_id, silence_s=settings.silence_s, **pacing)
        self.clock = self._streaming.clock

    def stream(
        self,
        turns: Sequence[ChatMessage],
        *,
        answer: JsonAnswer | None = None,
        time_budget_s: float,
        call_scope: CallScope,
    ) -> Generator[TextDelta | Finished, None, None]:
        """See :meth:`cicada.models.ports.TextModel.stream`. ``answer`` asks for JSON in the way the endpoint accepts.

        A blank system turn is left out.
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
            "messages": _messages(turns, _system(turns, answer, dialect), dialect),
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


def _system(turns: Sequence[ChatMessage], answer: JsonAnswer | None, dialect: Dialect) -> str:
    system = "\n\n".join(turn.text for turn in turns if turn.role == "system" and turn.text.strip())
    if answer is None or dialect.format == "json_schema":
        return system
    schema = json.dumps(answer.schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{system}\n\n{answer.description}\nAnswer with one JSON object that fits this JSON schema, and with "
        f"nothing before or after it:\n{schema}"
    ).lstrip()


def _messages(turns: Sequence[ChatMessage], system: str, dialect: Dialect) -> list[dict[str, str]]:
    rest = [{"role": turn.role, "content": turn.text} for turn in turns if turn.role != "system"]
    if not system:
        return rest
    if dialect.system:
        return [{"role": "system", "content": system}, *rest]
    return [{**rest[0], "content": f"{system}\n\n{rest[0]['content']}"}, *rest[1:]]


def _response_format(answer: JsonAnswer, dialect: Dialect) -> dict[str, Any]:
    if dialect.format == "json_object":
        return {"type": "json_object"}
    schema = {"name": answer.name, "description": answer.description, "schema": answer.schema, "strict": answer.strict}
    return {"type": "json_schema", "json_schema": schema}


@dataclass
class _Call:
    """One request, as :class:`cicada.models.streaming.ServiceCall`."""

    _model_id: str
    _body: Mapping[str, Any]
    _sampling: dict[str, float]
    _dialect: Dialect
    _connection: ChatConnection
    _read_key: Callable[[], Key | None]
    _keys: Keys | None
    _known_sampling: Sampling
    _known_dialects: Dialects
    _chunks: ChunkReader = field(default_factory=ChunkReader)
    _key: Key | None = None
    _fault: EndpointFault | None = None

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
        if isinstance(error, ModelError):  # of the key, or of an endpoint that does not stream
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
            logger.warning("the model rejects a parameter", extra={"model": self._model_id})
        return learnt


class ChatModel:
    """A model of an endpoint, as the ports name and bound it."""

    def __init__(self, chat: OpenAiChat) -> None:
        self._chat = chat
        self.model_id = chat.model_id
        self.max_tokens = chat.settings.max_tokens


class OpenAiTextModel(ChatModel):
    """A text model of an endpoint; the port's contract is :class:`cicada.models.ports.TextModel`.

    What a model refuses (a sampling parameter, ``max_tokens``, ``stream_options``, a system turn) is left out from then
    on. Reasoning is skipped. An answer may have no text.
    """

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port. A complete answer ends with its ``finish_reason``; the time budget runs from this call.

        An endpoint that refuses the prompt raises ContextTooLarge or AnswerBlocked before the first piece.
        """
        turns = (ChatMessage("system", prompt.system), ChatMessage("user", prompt.user))
        return self._chat.stream(turns, time_budget_s=time_budget_s, call_scope=call_scope)
