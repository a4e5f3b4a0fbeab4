"""Amazon Bedrock Runtime as far as Cicada calls it: Converse, ConverseStream, and InvokeModel for embeddings.

A stand-in that is kinder than AWS is a defect. What AWS does, and where each line is tested
(``tests/wire/test_bedrock_standin.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
B01    A stream is messageStart, contentBlockDelta…, contentBlockStop, messageStop, metadata, in event-stream frames.
B02    metadata carries inputTokens, outputTokens, totalTokens and latencyMs.
B03    Converse answers the same text, stop reason and usage in one body.
B04    A model is named by its id, an inference profile's id, or the ARN of either, percent-encoded in the path.
B05    An unknown model is a ResourceNotFoundException (404), a malformed id a ValidationException (400).
B06    A model that is called through an inference profile only refuses its base id (ValidationException).
B07    An error is JSON ``message`` with its code in ``x-amzn-ErrorType``, followed by a URI; every response has an
       ``x-amzn-RequestId``.
B08    A request without a signature is refused (403). The signature itself is not checked.
B09    No messages, blank text, a first turn that is not the user's, turns that do not alternate: ValidationException.
B10    maxTokens below 1 or above the model's limit: ValidationException.
B11    Newer models refuse temperature and topP, some older ones both together, by the words that AWS uses.
B12    An input over the context window: ValidationException.
B13    An answer that reaches maxTokens is cut and stops with ``max_tokens``; a stop sequence ends it with
       ``stop_sequence``.
B14    A reasoning model streams reasoningContent deltas, in a block of its own, before its text.
B15    InvokeModel with Titan Text v2's body answers ``embedding``, ``embeddingsByType`` and ``inputTextTokenCount``.
B16    Titan Text v2 has 256, 512 or 1,024 dimensions (1,024 unless asked); others are a ValidationException.
B17    Titan's body allows no further key, takes 1 to 50,000 characters and 8,192 tokens: else ValidationException.
B18    An operation that the model does not have is a ValidationException.
B19    Throttled before the stream: ThrottlingException (429); any other early error likewise with its status.
B20    An exception in the stream is a frame with ``:exception-type`` in lower camel case, under HTTP status 200.
B21    A stream can be cut without an exception: a lost connection, half a frame, a close-delimited end, a corrupt
       frame, silence.
B22    Any of the nine stop reasons can end a stream.
B23    A caller that closes its connection, at whatever moment, ends the call.
B24    A connection can be lost before there is a response.
=====  ===========================================================================================================

Not served: tools, images and documents in messages, guardrails, prompt caching (``cachePoint`` is accepted and does
nothing), service tiers, InvokeModel for text, CountTokens; a conversation's earlier turns are counted, not read.
Only one text comes back for one prompt, whatever ``temperature`` says.

Fault switches (``local.faults``; ``model`` limits each to one model id as called):

``bedrock.throttle``        before the stream, 429; ``message``
``bedrock.error``           before the stream; ``exception`` (code), ``status``, ``message``
``bedrock.refuse``          the connection is closed without a response
``bedrock.slow``            ``first_ms`` before the response, ``first_piece_ms`` from its headers to the first delta,
                            ``delay_ms`` between deltas
``bedrock.pace``            a model of fixed latency, in place of what ``bedrock.slow`` says of deltas: the first one
                            ``first_piece_ms`` after the request's arrival, the others ``delay_ms`` apart
``bedrock.cut``             see :class:`local.bedrock.switches.Cut`
``bedrock.stop``            ``stop_reason``, ``after`` so many deltas
``bedrock.embed_throttle``  as ``bedrock.throttle``, for InvokeModel
``bedrock.embed_error``     as ``bedrock.error``, for InvokeModel
``bedrock.embed_refuse``    as ``bedrock.refuse``, for InvokeModel
``bedrock.embed_slow``      ``first_ms``

``GET /_cicada/bedrock`` counts the calls of ConverseStream: see :class:`local.bedrock.streams.StreamCounts`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from aiohttp import web

from local.bedrock.catalogue import EmbeddingModel, TextModel, find_model
from local.bedrock.errors import AwsError, Unsigned, ValidationFailed, error_response
from local.bedrock.replies import Reply, compose, whole_response
from local.bedrock.requests import read_converse, read_embedding
from local.bedrock.streams import StreamCounts, StreamedResponse, pause, send_stream
from local.bedrock.switches import Cut, Pace
from local.faults import Faults

logger = logging.getLogger(__name__)

Answer = Callable[[str, str], str]
"""The system prompt and the user's turn in, the answer out. May block: it runs in a thread."""
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts in, one vector each out. May block: it runs in a thread."""

DEFAULT_PACE_S = 0.02
"""Between two deltas: 50 words a second, about as fast as a small model writes."""
_CLIENT_CLOSED = 499
"""nginx's status for it."""


def add_routes(
    app: web.Application, *, answer: Answer, embed: Embed, faults: Faults, pace_s: float = DEFAULT_PACE_S
) -> None:
    """Serve Bedrock Runtime's routes below ``/model/``, and what it counts."""
    runtime = BedrockRuntime(answer, embed, faults, pace_s)
    for operation, handler in {
        "converse-stream": runtime.converse_stream,
        "converse": runtime.converse,
        "invoke": runtime.invoke,
    }.items():
        app.router.add_post(f"/model/{{model_id}}/{operation}", _with_aws_errors(handler))
    app.router.add_get("/_cicada/bedrock", runtime.counts)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _with_aws_errors(handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if "Authorization" not in request.headers:
                raise Unsigned("Missing Authentication Token")
            response = await handler(request)
        except AwsError as error:
            return error.response()
        except ConnectionResetError:
            return web.Response(status=_CLIENT_CLOSED)  # which nobody receives
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception:  # as AWS tells of a bug of its own
            logger.exception("bedrock stand-in: %s failed", request.path)
            return AwsError("The system encountered an unexpected error during processing.").response()
        if not response.prepared:
            response.headers.setdefault("x-amzn-RequestId", str(uuid.uuid4()))
        return response

    return handle


class BedrockRuntime:
    """The operations."""

    def __init__(self, answer: Answer, embed: Embed, faults: Faults, pace_s: float) -> None:
        self._answer = answer
        self._embed = embed
        self._faults = faults
        self._pace_s = pace_s
        self.streams = StreamCounts()

    async def converse_stream(self, request: web.Request) -> web.StreamResponse:
        """POST /model/{modelId}/converse-stream."""
        self.streams.open += 1
        try:
            reply, latency_ms, pace = await self._reply(request)
            params = self._faults.take("bedrock.cut", model=request.match_info["model_id"])
            cut = None if params is None else Cut.of(params)
            response = StreamedResponse(str(uuid.uuid4()), close_delimited=cut is not None and cut.close_delimited)
            await send_stream(request, response, reply, latency_ms=latency_ms, pace=pace, cut=cut)
        except (AwsError, _Refused):
            self.streams.refused += 1
            raise
        except ConnectionResetError:
            self.streams.closed_by_caller += 1
            raise
        finally:
            self.streams.open -= 1
        if cut is None:
            self.streams.finished += 1
        else:
            self.streams.broken += 1
        return response

    async def converse(self, request: web.Request) -> web.StreamResponse:
        """POST /model/{modelId}/converse."""
        reply, latency_ms, _ = await self._reply(request)
        return whole_response(reply, latency_ms)

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """POST /model/{modelId}/invoke: embeddings."""
        model = find_model(request.match_info["model_id"])
        if not isinstance(model, EmbeddingModel):
            raise ValidationFailed("This model is not served through InvokeModel here.")
        asked = read_embedding(await request.read(), model)
        await self._fail_early(request, "bedrock.embed_")
        vectors = await asyncio.get_running_loop().run_in_executor(None, self._embed, [asked.text])
        vector = _resize(vectors[0], asked.dimensions)
        return web.json_response(
            {
                "embedding": vector,
                "embeddingsByType": {"float": vector},
                "inputTextTokenCount": asked.input_tokens,
            }
        )

    async def counts(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """GET /_cicada/bedrock."""
        return web.json_response(asdict(self.streams))

    async def _reply(self, request: web.Request) -> tuple[Reply, int, Pace]:
        """The model's turn, the milliseconds it took, and when its deltas are to be sent."""
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        model_id = request.match_info["model_id"]
        model = find_model(model_id)
        if not isinstance(model, TextModel):
            raise ValidationFailed(
                "This action doesn't support the model that you provided. Try again with a supported text or chat model"
            )
        asked = read_converse(await request.read(), model)
        slow = await self._fail_early(request, "bedrock.")
        started = loop.time()
        text = await loop.run_in_executor(None, self._answer, asked.system, asked.user)
        stop = self._faults.take("bedrock.stop", model=model_id) or {}
        reply = compose(
            text,
            asked,
            stop_reason=stop.get("stop_reason"),
            stop_after=stop.get("after"),
            reasons=model.reasons,
        )
        fixed = self._faults.take("bedrock.pace", model=model_id)
        said = slow if fixed is None else fixed
        pace = Pace(
            between_s=self._pace_s if "delay_ms" not in said else float(said["delay_ms"]) / 1000,
            first_piece_s=float(said.get("first_piece_ms", 0)) / 1000,
            since=None if fixed is None else arrived,
        )
        return reply, round((loop.time() - started) * 1000), pace

    async def _fail_early(self, request: web.Request, prefix: str) -> dict[str, Any]:
        """Let the faults strike that come before a response; return what ``slow`` says."""
        model_id = request.match_info["model_id"]
        slow = self._faults.take(f"{prefix}slow", model=model_id) or {}
        await pause(request, float(slow.get("first_ms", 0)) / 1000)
        if (throttle := self._faults.take(f"{prefix}throttle", model=model_id)) is not None:
            message = throttle.get("message", "Too many requests, please wait before trying again.")
            raise _InjectedError("ThrottlingException", 429, message)
        if (error := self._faults.take(f"{prefix}error", model=model_id)) is not None:
            code = error.get("exception", "InternalServerException")
            raise _InjectedError(code, int(error.get("status", 500)), error.get("message", "Injected."))
        if self._faults.take(f"{prefix}refuse", model=model_id) is not None:
            if request.transport is not None:
                request.transport.abort()
            raise _Refused("the connection is lost")
        return slow


class _Refused(ConnectionResetError):
    """The connection was closed by a fault, not by the caller."""


class _InjectedError(AwsError):
    """An error that a fault switch asks for."""

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self._response = code, status, message

    def response(self) -> web.Response:
        return error_response(*self._response)


def _resize(vector: Sequence[float], dimensions: int) -> list[float]:
    """The vector in as many dimensions as asked: padded with zeros, which keeps every cosine, or truncated."""
    resized = [float(number) for number in vector[:dimensions]] + [0.0] * (dimensions - len(vector))
    length = math.hypot(*resized) or 1.0
    return [number / length for number in resized]
