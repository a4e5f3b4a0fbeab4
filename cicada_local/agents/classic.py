"""Amazon Bedrock Agents' runtime as far as Cicada calls it: InvokeAgent.

A stand-in that is kinder than AWS is a defect. What AWS does, and where each line is tested
(``tests/wire/test_agents_classic_standin.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
A01    The answer is a stream of events: ``chunk`` with bytes, ``trace`` where it is asked for, ``returnControl``.
A02    The final response is one chunk, and pieces with ``streamFinalResponse``; nothing else ends the stream. Its
       trace (``FINISH``) stands before the one chunk, and after the pieces.
A03    An unknown agent or alias is a ResourceNotFoundException (404); members that break the service's model, and a
       request with neither text nor results, are a ValidationException.
A04    A request without a signature is refused (403). The signature itself is not checked.
A05    A group's function is called with messageVersion 1.0, agent, session, group, function, the parameters as strings
       with their types, the user's text and both kinds of attributes.
A06    A function that fails, or answers in another form, ends the stream with a dependencyFailedException; so does one
       that says FAILURE. REPROMPT gives its words to the model.
A07    The attributes that a function returns are those of the session from then on.
A08    A function whose group returns control is not called: the stream ends with ``returnControl``, at most five calls
       and an id; the results go on with it, and only with that id, once.
A09    A session keeps what was said and its attributes, for its agent's idle time; two calls of one at once conflict.
A10    The trace tells each turn's prompt, usage and raw response, each call and what came of it.
A11    Throttled before the stream: ThrottlingException (429); any other early error likewise with its status.
A12    An exception in the stream is a frame with ``:exception-type`` in lower camel case, under HTTP status 200.
A13    A stream can be cut without an exception: a lost connection, half a frame, a close-delimited end, a corrupt
       frame, silence.
A14    An alias calls the version of its agent that it was created or updated with.
A15    At creation: 5 parameters a function, 11 functions an agent, an instruction of 40 to 4,000 characters; an alias
       needs a prepared agent.
=====  ===========================================================================================================

Not served: knowledge bases, API schemas, guardrails, user confirmation, code interpreter, collaborators, memory,
endSession, prompt overrides. Decided here: prompts and behaviour of the model (:mod:`cicada_local.agents.brain`);
that a session's attributes are replaced by those of a request; that a function which the agent does not have is called
all the same; that a run of more than 20 turns ends with a failure.

Fault switches (``cicada_local.faults``; ``agent`` limits each to one agent's id):

``agents.throttle``    before the stream, 429; ``message``
``agents.error``       before the stream; ``exception`` (code), ``status``, ``message``
``agents.slow``        ``first_ms`` before each turn of the model, ``delay_ms`` between pieces of text
``agents.cut``         strikes in a turn of the model, after its pieces: see :class:`cicada_local.bedrock.switches.Cut`
``agents.stop``        the model stops a turn for ``stop_reason``
``agents.block``       a guardrail steps in
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from cicada_local import service_model
from cicada_local.agents.classic_functions import FunctionFailed
from cicada_local.agents.classic_running import Invoke, Mind, Reckon, Running, reckoned
from cicada_local.agents.classic_sessions import Session, Sessions
from cicada_local.agents.classic_store import AgentStore, agent_arn
from cicada_local.agents.classic_stream import AgentStream
from cicada_local.agents.turns import Decide, Turn
from cicada_local.bedrock.errors import AwsError, ModelNotFound, ValidationFailed, with_aws_errors
from cicada_local.bedrock.streams import StreamedResponse
from cicada_local.faults import Faults
from cicada_local.functions import InvokeResult, Permits, permit_all

PATH = "/agents/{agent_id}/agentAliases/{alias_id}/sessions/{session_id}/text"
_INTERNAL = "An internal server error occurred. Retry your request."


class ClassicAgents:
    """The service."""

    def __init__(
        self,
        store: AgentStore,
        decide: Decide,
        invoke: Invoke,
        faults: Faults,
        *,
        permits: Permits = permit_all,
        reckon: Reckon = reckoned,
        turn_s: float = 0.02,
        pace_s: float = 0.02,
    ) -> None:
        """Serve agents.

        Args:
            store: which there are.
            decide: what the model does next; runs in a thread.
            invoke: calls the action groups' functions.
            faults: the switches.
            permits: whether a function's policy lets an agent invoke it.
            reckon: counts tokens.
            turn_s: a turn of the model takes this long at least.
            pace_s: between two pieces of text.
        """
        self._store = store
        self._mind = Mind(decide, reckon, faults, turn_s, pace_s)
        self._invoke = invoke
        self._permits = permits
        self._faults = faults
        self._sessions = Sessions()
        self._model = service_model.load("bedrock-agent-runtime")

    def add_routes(self, app: web.Application) -> None:
        """Serve InvokeAgent."""
        app.router.add_post(PATH, with_aws_errors(self._invoke_agent, internal=_INTERNAL))

    async def _invoke_agent(self, request: web.Request) -> web.StreamResponse:
        asked = self._read(request.match_info, await request.read())
        agent_id, alias_id, session_id = asked["agentId"], asked["agentAliasId"], asked["sessionId"]
        await self._fail_early(agent_id)
        version = self._store.version(agent_id, alias_id)
        if version is None:
            raise ModelNotFound(f"The agent {agent_id} or its alias {alias_id} could not be found.")
        session = self._sessions.at(agent_id, alias_id, session_id, version.ttl_s)
        if session.busy:
            raise AwsError("The session is in use by another request.", code="ConflictException", status=409)
        turn = _turn(asked, session)
        state = asked.get("sessionState", {})
        session.attributes = dict(state.get("sessionAttributes", session.attributes))
        session.prompt_attributes = dict(state.get("promptSessionAttributes", {}))
        session.turns.append(turn)
        response = StreamedResponse(str(uuid.uuid4()), close_delimited=False)
        response.headers["x-amzn-bedrock-agent-content-type"] = "application/json"
        response.headers["x-amz-bedrock-agent-session-id"] = session_id
        about = {"agentId": agent_id, "agentAliasId": alias_id, "agentVersion": version.number, "sessionId": session_id}
        stream = AgentStream(request, response, about, traced=asked.get("enableTrace", False))
        await stream.open()
        session.busy = True
        invoke = self._invoking(agent_arn(agent_id))
        try:
            await Running(self._mind, invoke, request, asked, version, session, stream).run()
        finally:
            session.busy = False
        return response

    def _invoking(self, arn: str) -> Invoke:
        """Invokes the functions that may be invoked by an agent."""

        async def invoke(name_or_arn: str, payload: bytes) -> InvokeResult:
            if not self._permits(name_or_arn, arn):
                raise FunctionFailed(f"{arn} may not invoke {name_or_arn}")
            return await self._invoke(name_or_arn, payload)

        return invoke

    def _read(self, path: Mapping[str, str], body: bytes) -> dict[str, Any]:
        try:
            given = json.loads(body or b"{}")
        except ValueError as error:
            raise ValidationFailed("Request body is not valid JSON") from error
        if not isinstance(given, dict):
            raise ValidationFailed("Request body is no JSON object")
        whole = {
            **given,
            "agentId": path["agent_id"],
            "agentAliasId": path["alias_id"],
            "sessionId": path["session_id"],
        }
        try:
            shape = self._model.operation_model("InvokeAgent").input_shape
            return service_model.read_input(shape, json.dumps(whole).encode())
        except service_model.Refused as refused:
            raise ValidationFailed(str(refused)) from refused

    async def _fail_early(self, agent_id: str) -> None:
        if (throttle := self._faults.take("agents.throttle", agent=agent_id)) is not None:
            message = throttle.get("message", "Your request rate is too high. Reduce the frequency of requests.")
            raise AwsError(message, code="ThrottlingException", status=429)
        if (error := self._faults.take("agents.error", agent=agent_id)) is not None:
            code = error.get("exception", "InternalServerException")
            raise AwsError(error.get("message", "Injected."), code=code, status=int(error.get("status", 500)))


def _turn(asked: Mapping[str, Any], session: Session) -> Turn:
    """What the caller says: words, or the results that are waited for."""
    state = asked.get("sessionState", {})
    if asked.get("endSession"):
        raise ValidationFailed("endSession is not served here.")
    if "returnControlInvocationResults" in state:
        return session.results(state)
    text = asked.get("inputText", "")
    if not text.strip():
        raise ValidationFailed("inputText is required and cannot be empty.")
    return Turn("user", texts=(text,))
