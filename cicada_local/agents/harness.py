"""Amazon Bedrock AgentCore as far as Cicada calls it: InvokeHarness.

A stand-in that is kinder than AWS is a defect. What AWS does, and where each line is tested
(``tests/wire/test_agents_harness_standin.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
G01    An invocation is a stream of messageStart, content blocks as in ConverseStream, messageStop and metadata.
G02    Members that break the service's model are a ValidationException (400) with a reason: a session id of 33 to 100
       characters, an ARN of a harness, one member of each union.
G03    An unknown harness, or endpoint of one, is a ResourceNotFoundException (404); DEFAULT is there always.
G04    A request without a signature is refused (403). The signature itself is not checked.
G05    The use of an inline function ends the invocation with ``tool_use``: whoever invoked runs it.
G06    The use is not kept: the next invocation brings it again, with its result. A result alone is refused.
G07    A session keeps what was said to its end, for its actor and its harness alone.
G08    What an invocation does not override is what the endpoint's version of the harness says.
G09    Every session has a shell and file operations, unless allowedTools leaves them out.
G10    A model's answer that reaches the model's maxTokens stops with ``max_tokens``, one that reaches the invocation's
       with ``max_output_tokens_exceeded``; one that outlasts timeoutSeconds with ``timeout_exceeded``.
G11    What the model refuses is a validationException in the stream, under HTTP status 200.
G12    Throttled before the stream: ThrottlingException (429); any other early error likewise with its status.
G13    An exception in the stream is a frame with ``:exception-type`` in lower camel case.
G14    A stream can be cut without an exception: a lost connection, half a frame, a close-delimited end, a corrupt
       frame, silence.
G15    Any of the stop reasons can end a stream, ``partial_turn`` and ``max_iterations_exceeded`` among them.
G16    Two uses of tools can stand under one contentBlockIndex.
=====  ===========================================================================================================

Not served: memory, MCP servers, gateways, browsers, code interpreters, skills, hooks, OAuth, other models than those of
Bedrock; the session's own tools are offered and not run (a runtimeClientError in the stream). Chosen here: that an
invocation is one iteration, since all tools are inline; that a session lasts as long as the local cloud; what the model
does (:mod:`cicada_local.agents.brain`).

Fault switches (``cicada_local.faults``; ``harness`` limits each to one ARN):

``harness.throttle``   before the stream, 429; ``message``
``harness.error``      before the stream; ``exception`` (code), ``status``, ``message``
``harness.refuse``     the connection is closed without a response
``harness.slow``       ``first_ms`` before the response, ``first_piece_ms`` before the first delta, ``delay_ms`` between
``harness.cut``        see :class:`cicada_local.bedrock.switches.Cut`; ``turn`` limits it to turns that use tools
                       (``tool_use``) or do not (``text``)
``harness.stop``       ``stop_reason``
``harness.form``       what is wrong with a tool's use: ``mode``, as for ``bedrock.form``
``harness.one_index``  all uses of tools stand under one contentBlockIndex
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from cicada_local.agents.brain import next_step
from cicada_local.agents.harness_reading import Invocation, InvocationReader, asked_of_model
from cicada_local.agents.harness_store import HarnessStore
from cicada_local.agents.harness_stream import Ending, send_turn
from cicada_local.agents.turns import BrainTool, Decide, Step
from cicada_local.bedrock.errors import AwsError, Unsigned, with_aws_errors
from cicada_local.bedrock.event_stream import encode_exception
from cicada_local.bedrock.replies import Reply, compose, compose_tool_uses
from cicada_local.bedrock.requests import ConverseRequest
from cicada_local.bedrock.streams import StreamedResponse, pause
from cicada_local.bedrock.striking import Refused
from cicada_local.bedrock.switches import Cut, Pace
from cicada_local.faults import Faults

PATH = "/harnesses/invoke"
DEFAULT_PACE_S = 0.02
MAX_SESSIONS = 1_000


class HarnessRuntime:
    """The service."""

    def __init__(
        self, store: HarnessStore, faults: Faults, *, decide: Decide = next_step, pace_s: float = DEFAULT_PACE_S
    ) -> None:
        """Serve harnesses.

        Args:
            store: those that there are.
            faults: the switches.
            decide: says what the model does next; by rules unless given.
            pace_s: between two deltas of a stream.
        """
        self._faults = faults
        self._decide = decide
        self._pace_s = pace_s
        self._reader = InvocationReader(store)
        self._sessions: OrderedDict[tuple[str, str, str], list[Mapping[str, Any]]] = OrderedDict()

    def add_routes(self, app: web.Application) -> None:
        """Serve InvokeHarness's route."""
        app.router.add_post(PATH, with_aws_errors(self._invoke, internal="An internal error occurred."))

    async def _invoke(self, request: web.Request) -> web.StreamResponse:
        if "/bedrock-agentcore/aws4_request" not in request.headers["Authorization"]:
            raise Unsigned("Missing Authentication Token")
        invocation = await self._reader.read(request)
        slow = await self._fail_early(request, invocation)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            heard = self._sessions.get(invocation.session, [])
            asked, model = asked_of_model(invocation, heard)
            step = await self._step(asked)
            reply = self._reply(step, asked, invocation, reasons=model.reasons)
        except AwsError as error:
            return await _told_in_stream(request, "validationException", str(error))
        if {use.name for use in reply.tool_uses} & set(invocation.builtin):
            return await _told_in_stream(request, "runtimeClientError", "The session's own tools are not run here.")
        turn = "tool_use" if reply.tool_uses else "text"
        params = self._faults.take("harness.cut", harness=invocation.harness_arn, turn=turn)
        cut = None if params is None else Cut.of({"exception": "internalServerException", **params})
        response = StreamedResponse(str(uuid.uuid4()), close_delimited=cut is not None and cut.close_delimited)
        ending = Ending(
            pace=Pace(
                between_s=self._pace_s if "delay_ms" not in slow else float(slow["delay_ms"]) / 1000,
                first_piece_s=float(slow.get("first_piece_ms", 0)) / 1000,
            ),
            cut=cut,
            until=began + invocation.timeout_s,
            one_index=self._faults.take("harness.one_index", harness=invocation.harness_arn) is not None,
        )
        await send_turn(request, response, reply, ending, latency_ms=round((loop.time() - began) * 1000))
        if cut is None:
            self._keep(invocation, reply)
        return response

    async def _fail_early(self, request: web.Request, invocation: Invocation) -> Mapping[str, Any]:
        """Let the faults strike that come before a response; return what ``slow`` says."""
        arn = invocation.harness_arn
        slow = self._faults.take("harness.slow", harness=arn) or {}
        await pause(request, float(slow.get("first_ms", 0)) / 1000)
        if (throttle := self._faults.take("harness.throttle", harness=arn)) is not None:
            raise AwsError(throttle.get("message", "Too many requests."), code="ThrottlingException", status=429)
        if (error := self._faults.take("harness.error", harness=arn)) is not None:
            code = error.get("exception", "InternalServerException")
            raise AwsError(error.get("message", "Injected."), code=code, status=int(error.get("status", 500)))
        if self._faults.take("harness.refuse", harness=arn) is not None:
            if request.transport is not None:
                request.transport.abort()
            raise Refused("the connection is lost")
        return slow

    async def _step(self, asked: ConverseRequest) -> Step:
        offered = () if asked.offer is None else asked.offer.tools
        tools = [BrainTool(tool.name, tool.description, tool.schema) for tool in offered]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._decide, asked.system, tools, asked.turns)

    def _reply(self, step: Step, asked: ConverseRequest, invocation: Invocation, *, reasons: bool) -> Reply:
        stop = (self._faults.take("harness.stop", harness=invocation.harness_arn) or {}).get("stop_reason")
        if step.calls:
            fault = self._faults.take("harness.form", harness=invocation.harness_arn)
            mode = None if fault is None else fault.get("mode", "misfit")
            reply = compose_tool_uses(step, asked, fault=mode, reasons=reasons, stop_reason=stop)
        else:
            reply = compose(step.text, asked, stop_reason=stop, stop_after=None, reasons=reasons)
        own, models = invocation.max_tokens, invocation.model_max_tokens
        if reply.stop_reason == "max_tokens" and own is not None and (models is None or own < models):
            return replace(reply, stop_reason="max_output_tokens_exceeded")
        return reply

    def _keep(self, invocation: Invocation, reply: Reply) -> None:
        """Keep what was said; the use of an inline function is no part of it."""
        kept = [*self._sessions.pop(invocation.session, []), *invocation.messages]
        if not reply.tool_uses and reply.text:
            kept.append({"role": "assistant", "content": [{"text": reply.text}]})
        self._sessions[invocation.session] = kept
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)


async def _told_in_stream(request: web.Request, kind: str, message: str) -> web.StreamResponse:
    response = StreamedResponse(str(uuid.uuid4()), close_delimited=False)
    await response.prepare(request)
    await response.write(encode_exception(kind, {"message": message, "reason": "FieldValidationFailed"}))
    await response.write_eof()
    return response
