"""Written answers on a laptop: Converse and ConverseStream, answered by an OpenAI-compatible server.

The deployed code calls Bedrock as ever; here its requests are handed on to a server such as Ollama's, llama.cpp's or LM
Studio's, and what it writes is handed back as Bedrock would. What precedes a response (validation, throttles and other
faults) and ``bedrock.cut`` are the stand-in's own. Embeddings, re-ranking and the agents' turns stay with the stand-in.

``CICADA_LOCAL_MODEL_URL``  the server's address up to ``/chat/completions``, such as ``http://localhost:11434/v1``
``CICADA_LOCAL_MODEL``      the model, as the server calls it
``CICADA_LOCAL_MODEL_KEY``  its key, if it asks for one
"""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from cicada.errors import AnswerIncomplete, ContextTooLarge, ModelError, ModelRefused, StreamBroken
from cicada.models.endpoint_keys import GivenKey, Keys
from cicada.models.endpoints import BaseUrl
from cicada.models.model_ids import Sampling
from cicada.models.openai_chat import ChatSettings, OpenAiChat
from cicada.models.openai_dialect import Dialects
from cicada.models.openai_http import ChatConnection
from cicada.models.openai_structured import json_in, without_filler
from cicada.models.ports import Finished, Stopped, TextDelta, Usage
from cicada.models.retries import RetryPolicy
from cicada.models.structured_output import OutputMisfit
from cicada_local.bedrock.errors import AwsError, ValidationFailed
from cicada_local.bedrock.event_stream import encode_event, encode_exception
from cicada_local.bedrock.forwarding_turns import answer_of, aws_error_of, counts_of, stop_of, turns_of
from cicada_local.bedrock.replies import Reply, ToolUse
from cicada_local.bedrock.requests import ConverseRequest
from cicada_local.bedrock.streams import StreamedResponse, break_off
from cicada_local.bedrock.switches import Cut
from cicada_local.bedrock.tokens import split_pieces
from cicada_local.bedrock.tools import Tool
from cicada_local.running import UpFailed

URL, MODEL, KEY = "CICADA_LOCAL_MODEL_URL", "CICADA_LOCAL_MODEL", "CICADA_LOCAL_MODEL_KEY"
ANSWER_BUDGET_S = 290.0
"""For one answer: who asks gives up sooner."""
SILENCE_S = 120.0
"""A small machine can take a minute to read a long prompt."""
EARLY_S = 3.0
"""How long a server may take to its first word, or its refusal, before the response begins without it."""
SIGN_OF_LIFE_S = 5.0
"""While the first word is not there: the model is read to be thinking."""
_LOOK_S = 0.05
"""How often a wait looks whether the caller is still there."""
_NO_RETRIES = RetryPolicy(max_attempts=1)
"""The callers of Bedrock try again themselves."""

_Item = TextDelta | Finished | ModelError | Stopped


def forwarding_from(environ: Mapping[str, str]) -> Forwarding | None:
    """What the variables ask for; None if they do not name a server.

    Raises:
        UpFailed: a variable is missing or wrong.
    """
    url, model, key = (environ.get(name, "").strip() for name in (URL, MODEL, KEY))
    if not url:
        return None
    if not model:
        raise UpFailed(f"{URL} is set: name the server's model in {MODEL}")
    try:
        address: str = TypeAdapter(BaseUrl).validate_python(url)
        keys = GivenKey(key) if key else None
    except ValidationError as error:
        raise UpFailed(f"{URL}: {error.errors(include_input=False)[0]['msg'].removeprefix('Value error, ')}") from None
    except ModelRefused:
        raise UpFailed(f"{KEY}: holds no key that could be sent") from None
    return Forwarding(ChatConnection(address, read_timeout_s=SILENCE_S + 10), model, keys)


class Forwarding:
    """Hands Converse's requests on to one model of one server."""

    def __init__(self, connection: ChatConnection, model: str, keys: Keys | None) -> None:
        """Take the server, and the model as it calls it."""
        self._connection = connection
        self._model = model
        self._keys = keys
        self._sampling = Sampling()
        self._dialects = Dialects()

    async def reply(self, request: web.Request, asked: ConverseRequest, form: Tool | None) -> Reply:
        """The model's whole turn, for Converse.

        Args:
            request: as it came.
            asked: what it says.
            form: the tool that is to be filled in, if one is.

        Raises:
            AwsError: what Bedrock would answer in place of the server's failure.
            ConnectionResetError: the caller closed its connection.
        """
        writing = await self._write(request, asked, form)
        texts: list[str] = []
        try:
            while isinstance(item := await writing.next(), TextDelta):
                texts.append(item.text)
        finally:
            writing.stop()
        reason, usage = _end(item)
        text = "".join(texts)
        if form is not None and reason == "end_turn":
            return _tool_reply(text, form, usage)
        return Reply(tuple(split_pieces(text)), reason, counts_of(usage))

    async def stream(self, request: web.Request, asked: ConverseRequest, cut: Cut | None) -> StreamedResponse:
        """Send the model's turn as ConverseStream's events, as it is written.

        Raises:
            AwsError: what Bedrock would answer in place of a failure that comes at once.
            ConnectionResetError: the caller closed its connection.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        writing = await self._write(request, asked, None)
        try:
            item = await writing.next(EARLY_S)
            if isinstance(item, ModelError) and not isinstance(item, StreamBroken):
                _end(item)  # raises what is no end of an answer
            response = StreamedResponse(str(uuid.uuid4()), close_delimited=cut is not None and cut.close_delimited)
            await response.prepare(request)
            await response.write(encode_event("messageStart", {"role": "assistant"}))
            sent, block = 0, 0
            while item is None or isinstance(item, TextDelta):
                if cut is not None and sent == cut.after:
                    await break_off(request, response, cut)
                    return response
                if item is None:  # a delta that says nothing tells that the model is at work
                    block = 1
                    await response.write(_delta(0, {"reasoningContent": {"text": ""}}))
                else:
                    sent += 1
                    await response.write(_delta(block, {"text": item.text}))
                item = await writing.next(SIGN_OF_LIFE_S)
        finally:
            writing.stop()
        await _send_end(response, item, block, round((loop.time() - began) * 1000))
        return response

    async def _write(self, request: web.Request, asked: ConverseRequest, form: Tool | None) -> _Writing:
        if asked.stop_sequences:
            raise ValidationFailed("stopSequences are not handed on to the model server.")
        body = json.loads(await request.read())
        config = body.get("inferenceConfig") or {}
        settings = ChatSettings(
            asked.max_tokens, config.get("temperature"), config.get("topP"), silence_s=SILENCE_S, retry=_NO_RETRIES
        )
        chat = OpenAiChat(
            f"forwarded/{self._model}",
            self._model,
            self._connection,
            self._keys,
            settings,
            sampling=self._sampling,
            dialects=self._dialects,
        )
        turns, answer = turns_of(body), None if form is None else answer_of(form)
        return _Writing(
            request, lambda caller: chat.stream(turns, answer=answer, time_budget_s=ANSWER_BUDGET_S, call_scope=caller)
        )


def _tool_reply(text: str, form: Tool, usage: Usage | None) -> Reply:
    try:
        value = without_filler(json_in(text), form.schema)
    except OutputMisfit:
        value = None
    if not isinstance(value, dict):
        return Reply((), "malformed_tool_use", counts_of(usage))
    use = ToolUse(f"tooluse_{uuid.uuid4().hex[:22]}", form.name, value)
    return Reply((), "tool_use", counts_of(usage), tool_uses=(use,))


def _end(item: _Item | None) -> tuple[str, Usage | None]:
    """The stop reason and usage of an answer's end.

    Raises:
        AwsError: it is none.
        ConnectionResetError: it was stopped.
    """
    match item:
        case Finished(reason, usage):
            return reason, usage
        case AnswerIncomplete() if not isinstance(item, ContextTooLarge):
            return stop_of(item), item.usage
        case ModelError():
            code, status = aws_error_of(item)
            raise AwsError(str(item) or code, code=code, status=status)
        case _:
            raise ConnectionResetError("the caller has closed its connection")


def _delta(block: int, delta: Mapping[str, Any]) -> bytes:
    return encode_event("contentBlockDelta", {"contentBlockIndex": block, "delta": delta})


async def _send_end(response: StreamedResponse, item: _Item, block: int, latency_ms: int) -> None:
    try:
        reason, usage = _end(item)
    except AwsError as error:
        assert isinstance(item, ModelError)
        code = "ModelStreamErrorException" if isinstance(item, StreamBroken) else aws_error_of(item)[0]
        await response.write(encode_exception(code[:1].lower() + code[1:], {"message": str(error)}))
    else:
        await response.write(
            encode_event("contentBlockStop", {"contentBlockIndex": block})
            + encode_event("messageStop", {"stopReason": reason})
            + encode_event("metadata", {"usage": counts_of(usage), "metrics": {"latencyMs": latency_ms}})
        )
    await response.write_eof()


class _Caller:
    """The call scope of a forwarded call; the stand-in's caller sets its own limits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._wakes: list[Callable[[], None]] = []

    def call(self) -> None:
        """See :class:`cicada.models.ports.CallScope`."""

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See :class:`cicada.models.ports.CallScope`."""
        with self._lock:
            self._wakes.append(wake)
            stopped = self._stopped
        if stopped:
            wake()
        return lambda: self._wakes.remove(wake)

    def stop(self) -> None:
        """The caller is gone, or has all it wants."""
        with self._lock:
            self._stopped = True
            wakes = list(self._wakes)
        for wake in wakes:
            wake()


class _Writing:
    """An answer that is written on a thread of its own, and read on the event loop."""

    def __init__(self, request: web.Request, write: Callable[[_Caller], Any]) -> None:
        self._request = request
        self._write = write
        self._caller = _Caller()
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[_Item | Exception] = asyncio.Queue()
        threading.Thread(target=self._run, name="forwarding", daemon=True).start()

    async def next(self, wait_s: float = ANSWER_BUDGET_S) -> _Item | None:
        """The next piece, or the end; None if nothing comes in time.

        Raises:
            ConnectionResetError: the caller has closed its connection.
        """
        until = self._loop.time() + wait_s
        while True:
            if self._request.transport is None or self._request.transport.is_closing():
                raise ConnectionResetError("the caller has closed its connection")
            try:
                item = await asyncio.wait_for(self._items.get(), _LOOK_S)
            except TimeoutError:
                if self._loop.time() >= until:
                    return None
                continue
            if isinstance(item, (ModelError, Stopped)) or not isinstance(item, Exception):
                return item
            raise item

    def stop(self) -> None:
        """Want nothing more of it."""
        self._caller.stop()

    def _run(self) -> None:
        try:
            for piece in self._write(self._caller):
                self._put(piece)
        except Exception as error:  # it is raised, or told, where the answer is read
            self._put(error)

    def _put(self, item: Any) -> None:
        self._loop.call_soon_threadsafe(self._items.put_nowait, item)
