"""Amazon Bedrock Runtime as far as Cicada calls it: Converse, ConverseStream, and InvokeModel for embeddings and
re-ranking.

A stand-in that is kinder than AWS is a defect. What AWS does, and where each line is tested
(``tests/wire/test_bedrock_standin.py``; from B25 on ``tests/wire/test_bedrock_structured.py``,
``test_bedrock_rerank.py``, ``test_bedrock_tools.py`` and ``test_bedrock_guardrails.py``; by a boto3 client):

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
B25    A tool's use is a content block with toolUseId, name and input, and stops with ``tool_use``; a reasoning model's
       reasoningContent stands before it.
B26    toolChoice makes the model call one tool. A reasoning model refuses to be made to: it takes ``auto`` only.
B27    No tools, a tool without a name or twice of one name, a schema that is no object's, one whose keywords are not
       those of JSON Schema, a toolChoice that is none of the tools: ValidationException.
B28    Nova takes ``type``, ``properties`` and ``required`` at a schema's top, and nothing else.
B29    A tool's use must be followed by its result in the user's next turn, every result needs its use, and both need a
       toolConfig: else ValidationException.
B30    A tool's input that outgrows maxTokens stops with ``max_tokens``, and is not whole.
B31    InvokeModel with Amazon Rerank's or Cohere Rerank's body answers ``results`` of ``index`` and
       ``relevance_score``, best first, ``top_n`` of them.
B32    A re-ranking takes 1 to 1,000 texts, none empty; ``top_n`` is at most their number; further keys, and for Cohere
       a missing ``api_version``, are a ValidationException.
B33    A whole response can break off before the length that its header tells.
B34    In a stream a tool's use is a block of its own: contentBlockStart with toolUseId and name, the input's JSON in
       deltas, the first of which is empty, contentBlockStop. An input without fields has no further delta.
B35    A turn can call several tools, and say something before; the results of all come back in one turn.
B36    Of many tools the model calls those that it needs, or answers; with ``any`` it has to call one.
B37    An earlier turn's tool use needs a tool's name, an input that is an object, and an id that no other has: else
       ValidationException. Its tool may have been taken from the offer since.
B38    A stream can be cut in a tool's input, and an input that outgrows maxTokens ends in the middle.
B39    A use of a tool that Nova writes wrongly is a ModelErrorException (424), in a stream after its text a
       modelStreamErrorException: "Model produced invalid sequence as part of ToolUse. …".
B40    Nova takes ``inferenceConfig.topK`` of 0 to 128 in additionalModelRequestFields; for a greater one, and for
       ``inferenceConfig`` with another model: ValidationException.
B41    Cohere Embed takes 1 to 96 texts and an ``input_type``; v3 texts of 2,048 characters. It answers ``embeddings``,
       by type where types were asked for (v4: always), and no token count. A text over the model's tokens (v3: 512) is
       a ValidationException, "Input is too long for requested model.", unless ``truncate`` says what is cut.
B42    Cohere Embed v3 has 1,024 dimensions, v4 256, 512, 1,024 or 1,536 (``output_dimension``; 1,536 unless asked).
B43    Nova's embeddings take a ``SINGLE_EMBEDDING`` of one text of 8,192 characters, with ``embeddingPurpose`` and
       ``truncationMode``, in 256, 384, 1,024 or 3,072 dimensions (3,072 unless asked), and answer ``embeddings``.
B44    InvokeModel counts the input's tokens in ``x-amzn-bedrock-input-token-count``.
B45    A guardrailConfig without identifier and version, or with those of no guardrail: ValidationException.
B46    A question that the guardrail blocks is answered with its message, ``guardrail_intervened`` and a trace of
       ``inputAssessment``; the model is not asked. The trace comes only if it is asked for.
B47    A marked block is looked at and the unmarked ones are not; without any mark, all of the user's text. Tools'
       definitions, uses and results are not looked at.
B48    An answer that is blocked ends with the message and ``outputAssessments``: synchronously in place of the chunk,
       asynchronously after it.
B49    Masked data has its type in braces; asynchronously nothing is masked.
B50    Passages as ``grounding_source`` and a ``query`` have answers scored; other policies do not look at passages.
B51    ApplyGuardrail answers action, outputs (one for each guarded text, or the message), assessments and usage.
B52    ApplyGuardrail without a source or content, for an unknown guardrail, or for too many text units: an error.
=====  ===========================================================================================================

Not served: system tools, strict tools, images and documents in messages, guarded system prompts, prompt caching
(``cachePoint`` is accepted and does nothing), service tiers, InvokeModel for text, CountTokens. Earlier turns are read
where tools are offered, and else only counted. Only one text comes back for one prompt, whatever ``temperature`` says.

A guardrail looks for what it is told by simple means (:mod:`cicada_local.bedrock.guardrails`). Chosen here: an answer
in which data was masked stops with ``guardrail_intervened``, and the words of the guardrail's errors.

A tool that must be called by its name is a form that is filled in, and so is a single one that Converse offers. All
else is an agent's turn, whose next step :mod:`cicada_local.agents.brain` decides, or whatever the stand-in is given.

Fault switches (``cicada_local.faults``; ``model`` limits each to one model id as called):

``bedrock.throttle``        before the stream, 429; ``message``
``bedrock.error``           before the stream; ``exception`` (code), ``status``, ``message``
``bedrock.refuse``          the connection is closed without a response
``bedrock.slow``            ``first_ms`` before the response, ``first_piece_ms`` from its headers to the first delta,
                            ``delay_ms`` between deltas
``bedrock.pace``            a model of fixed latency, in place of what ``bedrock.slow`` says of deltas: the first one
                            ``first_piece_ms`` after the request's arrival, the others ``delay_ms`` apart
``bedrock.cut``             see :class:`cicada_local.bedrock.switches.Cut`; ``turn`` limits it to turns that call tools
                            (``tool_use``) or do not (``text``)
``bedrock.stop``            ``stop_reason``, ``after`` so many deltas
``bedrock.form``            what is wrong with a tool's use: ``mode`` is ``misfit`` (the input lacks all), ``talk``
                            (words in its place), ``unreadable`` (the service cannot read it), ``sequence`` (Nova's
                            error in its place: B39), ``garbled`` (the streamed input is no JSON), ``unoffered``
                            (another tool) or ``again`` (the last call once more)
``bedrock.converse_cut``    half of Converse's response, then the connection is lost
``bedrock.rerank_…``        ``throttle``, ``error``, ``refuse``, ``slow`` as for embeddings, ``cut`` as Converse's, and
                            ``malformed``: a text is missing from the results
``bedrock.embed_throttle``  as ``bedrock.throttle``, for InvokeModel
``bedrock.embed_error``     as ``bedrock.error``, for InvokeModel
``bedrock.embed_refuse``    as ``bedrock.refuse``, for InvokeModel
``bedrock.embed_slow``      ``first_ms``

``guardrail.throttle``, ``guardrail.down``  a call with a guardrail, or ApplyGuardrail: 429, or 503
``guardrail.block``         the answer is blocked ``after`` so many deltas, whatever it says

``GET /_cicada/bedrock`` counts the calls of ConverseStream: see :class:`cicada_local.bedrock.streams.StreamCounts`.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from aiohttp import web

from cicada_local.agents.brain import next_step
from cicada_local.agents.turns import BrainCall, BrainTool, Decide, Step
from cicada_local.bedrock.catalogue import EmbeddingModel, RerankModel, TextModel, find_model
from cicada_local.bedrock.embeddings import read_embedding
from cicada_local.bedrock.errors import AwsError, Handler, ValidationFailed, with_aws_errors
from cicada_local.bedrock.extractive.filling import fill_from_words
from cicada_local.bedrock.extractive.relevance import relevance
from cicada_local.bedrock.forwarding import Forwarding
from cicada_local.bedrock.guarding import ApplyGuardrail, Guarding
from cicada_local.bedrock.guardrails import GuardrailStore
from cicada_local.bedrock.replies import INVALID_SEQUENCE, Reply, compose, compose_tool_uses, whole_response
from cicada_local.bedrock.requests import ConverseRequest, read_converse, read_rerank
from cicada_local.bedrock.streams import StreamCounts, StreamedResponse, send_stream
from cicada_local.bedrock.striking import Refused, fail_early, send_whole
from cicada_local.bedrock.switches import Cut, Pace
from cicada_local.bedrock.tools import Tool
from cicada_local.calls import QUOTA_TOKENS
from cicada_local.faults import Faults

Answer = Callable[[str, str], str]
"""The system prompt and the user's turn in, the answer out. May block: it runs in a thread."""
Fill = Callable[[str, str, Tool], Mapping[str, Any]]
"""The system prompt, the user's words and a tool in, the tool's input out. May block: it runs in a thread."""
Rank = Callable[[str, Sequence[str]], Sequence[float]]
"""A query and texts in, a relevance in [0, 1] each out. May block: it runs in a thread."""
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts in, one vector each out. May block: it runs in a thread."""

DEFAULT_PACE_S = 0.02
"""Between two deltas: 50 words a second, about as fast as a small model writes."""
_INTERNAL = "The system encountered an unexpected error during processing."


def add_routes(
    app: web.Application,
    *,
    answer: Answer,
    embed: Embed,
    faults: Faults,
    fill: Fill = fill_from_words,
    rank: Rank = relevance,
    decide: Decide = next_step,
    pace_s: float = DEFAULT_PACE_S,
    forwarding: Forwarding | None = None,
    guardrails: GuardrailStore | None = None,
) -> None:
    """Serve Bedrock Runtime's routes below ``/model/``, and what it counts.

    Args:
        app: gets the routes.
        answer: writes.
        embed: gives vectors.
        faults: the switches.
        fill: fills in the inputs of tools; by words alone unless given.
        rank: judges texts; by words alone unless given.
        decide: says what an agent's model does next; by rules, and words alone, unless given.
        pace_s: between two deltas of a stream.
        forwarding: writes and fills in, in place of ``answer`` and ``fill``, where there is a model server. What an
            agent does is decided as without one: a small model does not use tools reliably.
        guardrails: the account's.
    """
    store = guardrails or GuardrailStore()
    runtime = BedrockRuntime(answer, fill, embed, rank, decide, faults, pace_s, forwarding, store)
    for operation, handler in {
        "converse-stream": runtime.converse_stream,
        "converse": runtime.converse,
        "invoke": runtime.invoke,
    }.items():
        app.router.add_post(f"/model/{{model_id}}/{operation}", _named(with_aws_errors(handler, internal=_INTERNAL)))
    apply = _named(with_aws_errors(ApplyGuardrail(store, faults).apply, internal=_INTERNAL))
    app.router.add_post("/guardrail/{identifier}/version/{version}/apply", apply)
    app.router.add_get("/_cicada/bedrock", runtime.counts)


def _named(handler: Handler) -> Handler:
    """A handler whose responses carry the id of their request."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = await handler(request)
        if not response.prepared:
            response.headers.setdefault("x-amzn-RequestId", str(uuid.uuid4()))
        return response

    return handle


class BedrockRuntime:
    """The operations."""

    def __init__(
        self,
        answer: Answer,
        fill: Fill,
        embed: Embed,
        rank: Rank,
        decide: Decide,
        faults: Faults,
        pace_s: float,
        forwarding: Forwarding | None,
        guardrails: GuardrailStore,
    ) -> None:
        self._guardrails = guardrails
        self._answer = answer
        self._fill = fill
        self._embed = embed
        self._rank = rank
        self._decide = decide
        self._faults = faults
        self._pace_s = pace_s
        self._forwarding = forwarding
        self.streams = StreamCounts()

    async def converse_stream(self, request: web.Request) -> web.StreamResponse:
        """POST /model/{modelId}/converse-stream."""
        await request.read()  # a call that breaks off before its body is there was none
        self.streams.open += 1
        try:
            asked, slow = await self._asked(request)
            if self._forwarding is None or asked.offer is not None or asked.guard is not None:
                reply, latency_ms, pace = await self._reply(request, asked, slow)
                cut = self._cut(request, reply)
                response = StreamedResponse(str(uuid.uuid4()), close_delimited=cut is not None and cut.close_delimited)
                response[QUOTA_TOKENS] = reply.usage["totalTokens"]
                await send_stream(request, response, reply, latency_ms=latency_ms, pace=pace, cut=cut)
            else:
                cut = self._cut(request, None)
                response = await self._forwarding.stream(request, asked, cut)
        except (AwsError, Refused):
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
        asked, slow = await self._asked(request)
        reply, latency_ms, _ = await self._reply(request, asked, slow, form=_single(asked))
        if reply.invalid_sequence:
            raise AwsError(INVALID_SEQUENCE, code="ModelErrorException", status=424)
        whole = whole_response(reply, latency_ms)
        response = await send_whole(self._faults, request, whole, "bedrock.converse_cut")
        response[QUOTA_TOKENS] = reply.usage["totalTokens"]
        return response

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """POST /model/{modelId}/invoke: embeddings and re-ranking."""
        model = find_model(request.match_info["model_id"])
        if isinstance(model, RerankModel):
            return await self._invoke_rerank(request, model)
        if not isinstance(model, EmbeddingModel):
            raise ValidationFailed("This model is not served through InvokeModel here.")
        asked = read_embedding(await request.read(), model)
        await fail_early(self._faults, request, "bedrock.embed_")
        vectors = await asyncio.get_running_loop().run_in_executor(None, self._embed, list(asked.texts))
        answer = asked.answer([_resize(vector, asked.dimensions) for vector in vectors])
        counted = {"x-amzn-bedrock-input-token-count": str(asked.input_tokens)} if asked.counts_tokens else None
        return web.json_response(answer, headers=counted)

    async def _invoke_rerank(self, request: web.Request, model: RerankModel) -> web.StreamResponse:
        asked = read_rerank(await request.read(), model)
        await fail_early(self._faults, request, "bedrock.rerank_")
        scores = await asyncio.get_running_loop().run_in_executor(None, self._rank, asked.query, asked.texts)
        ranked = sorted(enumerate(scores), key=lambda scored: -scored[1])[: asked.top_n]
        results = [{"index": place, "relevance_score": score} for place, score in ranked]
        if self._faults.take("bedrock.rerank_malformed", model=request.match_info["model_id"]) is not None:
            results = results[1:]
        return await send_whole(self._faults, request, {"results": results}, "bedrock.rerank_cut")

    async def counts(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """GET /_cicada/bedrock."""
        return web.json_response(asdict(self.streams))

    async def _reply(
        self, request: web.Request, asked: ConverseRequest, slow: Mapping[str, Any], *, form: Tool | None = None
    ) -> tuple[Reply, int, Pace]:
        """The model's turn, the milliseconds it took, and when its deltas are to be sent.

        Args:
            request: as it came.
            asked: what it says.
            slow: what the fault says.
            form: the tool that is filled in, unless another must be called.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        model_id = request.match_info["model_id"]
        form = asked.offer.chosen or form if asked.offer else None
        guarding = Guarding.of(asked.guard, self._guardrails, self._faults)
        blocked = None if guarding is None else guarding.blocked_input()
        if guarding is not None:
            asked = replace(asked, user=guarding.masked(asked.user))
        if blocked is not None:
            reply = blocked
        elif self._forwarding is None or (asked.offer is not None and form is None):
            reply = await self._said(asked, form, _text_model(model_id), model_id)
        else:
            reply = await self._forwarding.reply(request, asked, form)
        if guarding is not None and blocked is None:
            reply = guarding.guarded(reply, self._faults.take("guardrail.block", model=model_id))
        fixed = self._faults.take("bedrock.pace", model=model_id)
        said = slow if fixed is None else fixed
        pace = Pace(
            between_s=self._pace_s if "delay_ms" not in said else float(said["delay_ms"]) / 1000,
            first_piece_s=float(said.get("first_piece_ms", 0)) / 1000,
            since=None if fixed is None else float(slow["arrived"]),
        )
        return reply, round((loop.time() - started) * 1000), pace

    async def _asked(self, request: web.Request) -> tuple[ConverseRequest, dict[str, Any]]:
        """What a valid request asks, and what ``slow`` says, once the faults that come early have struck; with
        ``arrived``, on the loop's clock."""
        arrived = asyncio.get_running_loop().time()
        asked = read_converse(await request.read(), _text_model(request.match_info["model_id"]))
        return asked, {**await fail_early(self._faults, request, "bedrock."), "arrived": arrived}

    def _cut(self, request: web.Request, reply: Reply | None) -> Cut | None:
        if reply is not None and reply.invalid_sequence:
            said = len(reply.pieces)
            return Cut("exception", after=said, exception="modelStreamErrorException", message=INVALID_SEQUENCE)
        turn = "tool_use" if reply is not None and reply.tool_uses else "text"
        params = self._faults.take("bedrock.cut", model=request.match_info["model_id"], turn=turn)
        return None if params is None else Cut.of(params)

    async def _said(self, asked: ConverseRequest, form: Tool | None, model: TextModel, model_id: str) -> Reply:
        stop = self._faults.take("bedrock.stop", model=model_id) or {}
        step = await self._step(asked, form)
        if step.calls:
            fault = self._faults.take("bedrock.form", model=model_id)
            mode = None if fault is None else fault.get("mode", "misfit")
            return compose_tool_uses(
                step, asked, fault=mode, reasons=model.reasons, stop_reason=stop.get("stop_reason")
            )
        return compose(
            step.text, asked, stop_reason=stop.get("stop_reason"), stop_after=stop.get("after"), reasons=model.reasons
        )

    async def _step(self, asked: ConverseRequest, form: Tool | None) -> Step:
        """What the model does: it fills in a form, takes an agent's next step, or answers."""
        loop = asyncio.get_running_loop()
        if asked.offer is None:
            return Step(await loop.run_in_executor(None, self._answer, asked.system, asked.user))
        if form is None:
            tools = [BrainTool(tool.name, tool.description, tool.schema) for tool in asked.offer.tools]
            step = await loop.run_in_executor(None, self._decide, asked.system, tools, asked.turns)
            if step.calls or not asked.offer.must:
                return step
            form = asked.offer.tools[0]
        value = await loop.run_in_executor(None, self._fill, asked.system, asked.user, form)
        return Step(calls=(BrainCall(form.name, value),))


def _single(asked: ConverseRequest) -> Tool | None:
    """The one tool that is offered, if it is one."""
    return asked.offer.tools[0] if asked.offer is not None and len(asked.offer.tools) == 1 else None


def _text_model(model_id: str) -> TextModel:
    model = find_model(model_id)
    if not isinstance(model, TextModel):
        raise ValidationFailed(
            "This action doesn't support the model that you provided. Try again with a supported text or chat model"
        )
    return model


def _resize(vector: Sequence[float], dimensions: int) -> list[float]:
    """The vector in as many dimensions as asked: padded with zeros, which keeps every cosine, or truncated."""
    resized = [float(number) for number in vector[:dimensions]] + [0.0] * (dimensions - len(vector))
    length = math.hypot(*resized) or 1.0
    return [number / length for number in resized]
