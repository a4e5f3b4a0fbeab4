"""OpenAI's chat completions over ``ask``, for programs that speak nothing else.

``POST /v1/chat/completions``    whole, or streamed as server-sent events
``GET /v1/models``               the one model, ``cicada``

The last message is the question. The conversation's first messages name its session, in which Cicada keeps the turns
before it. What the format has no field for is in ``cicada``. See docs/openai-api.md.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cicada.protocol.actions import SessionId
from cicada.protocol.events import Attempt, Chunk, Fallback
from cicada_client import Answer, AnswerStream, CicadaClient, ClientError
from cicada_client.frames import EventFrame
from cicada_http.app import Part
from cicada_http.clients import token_of
from cicada_http.refusals import HttpRefusal

MODEL = "cicada"
WITHDRAWN = "\n\n---\n\n*The text above is withdrawn. The answer starts again.*\n\n"
"""Stands between the texts of two attempts: what was streamed cannot be unsaid in this format."""
CANCEL_S = 5.0
"""How long the cancellation of an answer that nobody waits for may take."""

Clients = Callable[[str | None], AbstractAsyncContextManager[CicadaClient]]


class _Read(BaseModel):
    """A part of a request; fields that Cicada has no use for, such as ``temperature``, are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class ContentPart(_Read):
    """A part of a message that has several."""

    type: str
    text: str = ""


class Message(_Read):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """Its text. Raises HttpRefusal if it has a part that is none, such as an image."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        if other := next((part.type for part in self.content if part.type != "text"), None):
            raise _invalid("messages", f"a part of the type {other} is not supported; supported: text")
        return "\n".join(part.text for part in self.content)


class StreamOptions(_Read):
    """How a streamed answer is sent."""

    include_usage: bool = False


class ResponseFormat(_Read):
    """The form of the answer."""

    type: str = "text"


class Options(BaseModel):
    """The field ``cicada`` of a request: what ``ask`` takes, and this format does not."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    top_k: int | None = None
    session_id: SessionId | None = None
    hold: bool = Field(False, description="stream the text only when it is complete: none of it is ever withdrawn")


class CompletionRequest(_Read):
    """The body of ``POST /v1/chat/completions``."""

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    n: int | None = None
    response_format: ResponseFormat = ResponseFormat()
    cicada: Options = Options()

    @property
    def question(self) -> str:
        """The last message. Raises HttpRefusal if it is not the user's."""
        if self.messages[-1].role != "user":
            raise _invalid("messages", "the last message must have the role user")
        return self.messages[-1].text

    @property
    def session_id(self) -> str:
        """Named by the client, or by how the conversation begins: the same messages again are the same session."""
        if self.cicada.session_id is not None:
            return self.cicada.session_id
        first = next((place for place, message in enumerate(self.messages) if message.role == "user"), 0)
        opening = [[message.role, message.text] for message in self.messages[: first + 1]]
        return f"openai-{hashlib.sha256(json.dumps(opening).encode()).hexdigest()[:32]}"

    @classmethod
    def read(cls, body: bytes) -> CompletionRequest:
        """Read a body. Raises HttpRefusal."""
        try:
            request = cls.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise _invalid(".".join(map(str, first["loc"])) or "body", first["msg"]) from None
        if request.model != MODEL:
            raise HttpRefusal(404, "model_not_found", f"There is no such model. The only one is {MODEL}.")
        if request.n not in (None, 1):
            raise _invalid("n", "only one answer is given")
        if request.response_format.type != "text":
            raise _invalid("response_format", "answers are text")
        return request


def part(clients: Clients) -> Part:
    """The routes, over a factory of clients."""

    async def complete(request: Request) -> Response:
        asked = CompletionRequest.read(await request.body())
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(clients(token_of(request)))
            stream = client.ask(
                asked.question,
                collections=asked.cicada.collections,
                episodes=asked.cicada.episodes,
                documents=asked.cicada.documents,
                sections=asked.cicada.sections,
                top_k=asked.cicada.top_k,
                session_id=asked.session_id,
            )
            completion = Completion(asked, stream)
            stack.push_async_callback(completion.stop)
            await _while_waited_for(request, stream.frame, 0)  # refusals become statuses
            if asked.stream:
                return StreamingResponse(_events(completion, stack.pop_all()), media_type="text/event-stream")
            await _while_waited_for(request, completion.finish)
            return JSONResponse(completion.whole())

    async def models(_: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": [_MODEL]})

    async def model(request: Request) -> JSONResponse:
        if request.path_params["name"] != MODEL:
            raise HttpRefusal(404, "model_not_found", f"There is no such model. The only one is {MODEL}.")
        return JSONResponse(_MODEL)

    return Part(
        [
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name}", model),
        ]
    )


_MODEL = {"id": MODEL, "object": "model", "created": 0, "owned_by": "cicada"}


class Completion:
    """An answer in OpenAI's format."""

    def __init__(self, asked: CompletionRequest, stream: AnswerStream) -> None:
        self._asked = asked
        self._stream = stream
        self._created = int(time.time())
        self._sent = False
        self._withdrawn: list[dict[str, Any]] = []

    async def finish(self) -> None:
        """Wait for the end. Raises ClientError, an AnswerFailed included."""
        async for _ in self._stream.frames():
            pass
        if self._stream.failure is not None:
            raise self._stream.failure

    async def stop(self) -> None:
        """Cancel the request, if it has not ended: nobody waits for it."""
        with anyio.move_on_after(CANCEL_S, shield=True):
            with suppress(ClientError):
                await self._stream.cancel()

    def whole(self) -> dict[str, Any]:
        """The body of a whole answer."""
        answer = self._stream.answer
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._head("chat.completion") | {
            "choices": [choice],
            "usage": _usage(answer),
            "cicada": self._extension(answer),
        }

    async def chunks(self) -> AsyncIterator[dict[str, Any]]:
        """The objects of a streamed answer, to its end or its error."""
        yield self._chunk({"role": "assistant", "content": ""})
        try:
            async for frame in self._stream.frames():
                if text := self._text_of(frame):
                    yield self._chunk({"content": text})
            if self._stream.failure is not None:
                raise self._stream.failure
        except ClientError as error:
            yield HttpRefusal.of(error).document()
            return
        answer = self._stream.answer
        if self._asked.cicada.hold:
            yield self._chunk({"content": answer.text})
        yield self._chunk({}, "stop") | {"cicada": self._extension(answer)}
        if self._asked.stream_options.include_usage:
            yield self._head("chat.completion.chunk") | {"choices": [], "usage": _usage(answer)}

    def _text_of(self, frame: EventFrame) -> str:
        """What an event adds to the streamed text."""
        if self._asked.cicada.hold:
            return ""
        match frame.event:
            case Chunk(content=content):
                self._sent = True
                return content
            case Fallback() as fallback:
                return self._withdraw({"from": fallback.from_, "to": fallback.to, "code": fallback.code})
            case Attempt(attempt=number) if number > 1:
                return self._withdraw({})  # a worker was lost, and its attempt began anew
        return ""

    def _withdraw(self, why: dict[str, Any]) -> str:
        sent, self._sent = self._sent, False
        if sent:
            self._withdrawn.append(why)
        return WITHDRAWN if sent else ""

    def _head(self, kind: str) -> dict[str, Any]:
        head = {"id": f"chatcmpl-{uuid.UUID(self._stream.request_id).hex}", "object": kind, "created": self._created}
        return head | {"model": MODEL}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._asked.stream_options.include_usage else {}
        return self._head("chat.completion.chunk") | {"choices": [choice]} | usage

    def _extension(self, answer: Answer) -> dict[str, Any]:
        """What the format has no field for, as the protocol names it."""
        told = {
            "requestId": answer.request_id,
            "sessionId": self._asked.session_id,
            "strategy": answer.strategy,
            "model": answer.model,
            "grounded": answer.grounded,
            "sources": _dumped(answer.sources),
            "citations": _dumped(answer.citations),
            "notAttributed": list(answer.not_attributed),
            "degraded": _dumped(answer.degraded),
            "failed": _dumped(answer.failed),
            "metrics": _dumped([answer.metrics])[0] if answer.metrics else None,
        }
        return told | ({"withdrawn": self._withdrawn, "text": answer.text} if self._withdrawn else {})


async def _events(completion: Completion, opened: AsyncExitStack) -> AsyncIterator[str]:
    """Server-sent events; the answer is cancelled, and its client closed, when they end or are not wanted any more."""
    async with opened:
        async for chunk in completion.chunks():
            yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
        yield "data: [DONE]\n\n"


async def _while_waited_for(request: Request, work: Callable[..., Any], *arguments: object) -> None:
    """Do some work, as long as the client is there. Raises what it raises, and HttpRefusal if the client has gone."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    failure: ClientError | None = None
    done = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            await work(*arguments)
            done = True
        except ClientError as error:  # not out of the group, which would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise HttpRefusal(499, "client_gone", "The client has closed the connection.")


def _usage(answer: Answer) -> dict[str, int]:
    read, written = (answer.metrics.input_tokens, answer.metrics.output_tokens) if answer.metrics else (0, 0)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _dumped(models: Any) -> list[Any]:
    return [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models]


def _invalid(field: str, what: str) -> HttpRefusal:
    return HttpRefusal(400, "invalid_request", f"{field}: {what}")
