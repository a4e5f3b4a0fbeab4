"""One invocation of an agent: turns of the model and calls of functions, until the final response or a return."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

from aiohttp import web

from cicada_local.agents.classic_functions import FunctionFailed, event_of, parameters_of, read_answer, tool_of
from cicada_local.agents.classic_sessions import Awaited, Session
from cicada_local.agents.classic_store import Function, Version
from cicada_local.agents.classic_stream import AgentStream, Parameters
from cicada_local.agents.turns import Decide, Result, Step, Turn, Use
from cicada_local.bedrock.streams import pause
from cicada_local.bedrock.switches import Cut
from cicada_local.bedrock.tokens import count_tokens, split_pieces
from cicada_local.faults import Faults
from cicada_local.functions.config import InvokeResult
from cicada_local.functions.errors import LambdaApiError

logger = logging.getLogger(__name__)

MAX_TURNS = 20
MAX_RETURNED = 5

Reckon = Callable[[str, Step], tuple[int, int]]
"""The tokens that a turn read and wrote, by its prompt and what the model said."""


class Invoke(Protocol):
    """The Lambda service."""

    def __call__(self, name_or_arn: str, payload: bytes) -> Awaitable[InvokeResult]:
        """Invoke a function. Raises LambdaApiError."""
        ...


def reckoned(prompt: str, step: Step) -> tuple[int, int]:
    """About how many tokens a turn read and wrote."""
    written = step.text + "".join(json.dumps([call.name, dict(call.given)]) for call in step.calls)
    return count_tokens(prompt), max(1, count_tokens(written))


@dataclass(frozen=True)
class Mind:
    """What thinks, and how fast."""

    decide: Decide
    reckon: Reckon
    faults: Faults
    turn_s: float
    pace_s: float


@dataclass(frozen=True)
class _Call:
    use: Use
    group: str
    parameters: Parameters


class _Ended(Exception):
    """The stream has been ended already."""


class Running:
    """One invocation."""

    def __init__(
        self,
        mind: Mind,
        invoke: Invoke,
        request: web.Request,
        asked: Mapping[str, Any],
        version: Version,
        session: Session,
        stream: AgentStream,
    ) -> None:
        self._mind = mind
        self._invoke = invoke
        self._request = request
        self._asked = asked
        self._version = version
        self._session = session
        self._stream = stream

    async def run(self) -> None:
        """Go on to the end of the stream. Raises ConnectionResetError when the caller goes."""
        try:
            for _ in range(MAX_TURNS):
                step, cut = await self._turn()
                if not step.calls:
                    await self._say(step.text, cut)
                    return await self._stream.close()
                if cut is not None:
                    return await self._stream.break_off(cut)
                if await self._act(step):
                    return await self._stream.close()
            await self._fail("Too many turns", "dependencyFailedException", "The agent could not complete the request.")
        except _Ended:
            return None

    async def _turn(self) -> tuple[Step, Cut | None]:
        agent = self._asked["agentId"]
        prompt = _prompt(self._version.instruction, self._session.turns)
        await self._stream.turn_begins(self._version.model_id, prompt)
        slow = self._mind.faults.take("agents.slow", agent=agent) or {}
        await pause(self._request, float(slow["first_ms"]) / 1000 if "first_ms" in slow else self._mind.turn_s)
        started = time.monotonic()
        tools = [tool_of(function) for function in self._version.functions.values()]
        turns = tuple(self._session.turns)
        loop = asyncio.get_running_loop()
        step = await loop.run_in_executor(None, self._mind.decide, self._version.instruction, tools, turns)
        if self._mind.faults.take("agents.block", agent=agent) is not None:
            await self._stream.blocked()
            await self._say("The answer was withheld.", None)
            await self._stream.close()
            raise _Ended
        stop = self._mind.faults.take("agents.stop", agent=agent) or {}
        params = self._mind.faults.take("agents.cut", agent=agent)
        cut = None if params is None else _cut(params)
        usage, took_ms = self._mind.reckon(prompt, step), round((time.monotonic() - started) * 1000)
        reason = stop.get("stop_reason", "tool_use" if step.calls else "end_turn")
        if cut is None:
            await self._stream.turn_ended(usage, took_ms, reason)
        return step, cut

    async def _say(self, text: str, cut: Cut | None) -> None:
        """The final response; the session remembers it."""
        streams = self._asked.get("streamingConfigurations", {}).get("streamFinalResponse", False)
        if streams or cut is not None:
            for sent, piece in enumerate(split_pieces(text)):
                if cut is not None and sent == cut.after:
                    break
                await pause(self._request, self._mind.pace_s if sent else 0)
                await self._stream.says(piece)
            if cut is not None:
                await self._stream.break_off(cut)
                raise _Ended
            await self._stream.finishes(text)
        else:
            await self._stream.finishes(text)
            await self._stream.says(text)
        self._session.turns.append(Turn("assistant", texts=(text,)))

    async def _act(self, step: Step) -> bool:
        """Call the functions of a turn; true if some are for the caller."""
        functions = self._version.functions
        calls = []
        for made in step.calls:
            function = functions.get(made.name) or self._unknown(made.name)
            use = Use(f"use_{uuid.uuid4().hex[:12]}", made.name, made.given)
            calls.append(_Call(use, function.group, parameters_of(functions.get(made.name), made.given)))
        self._session.turns.append(Turn("assistant", uses=tuple(call.use for call in calls)))
        results, returned = [], []
        for call in calls:
            function = functions.get(call.use.name) or self._unknown(call.use.name)
            if function.lambda_arn is None:
                returned.append(call)
            else:
                results.append(await self._call(function, call))
        if not returned:
            self._session.turns.append(Turn("user", results=tuple(results)))
            return False
        if len(returned) > MAX_RETURNED:
            await self._fail("Too many calls", "dependencyFailedException", "Too many functions were called at once.")
        await self._return(returned, results)
        return True

    def _unknown(self, name: str) -> Function:
        """A function that the model made up is called all the same, where one can be: nothing is taken on trust."""
        first = next(iter(self._version.functions.values()))
        return replace(first, name=name, parameters={})

    async def _call(self, function: Function, call: _Call) -> Result:
        await self._stream.invokes(function.group, function.name, call.parameters, None)
        said = [text for turn in self._session.turns if turn.role == "user" for text in turn.texts]
        event = event_of(
            function,
            call.parameters,
            about=self._about,
            text=said[-1] if said else "",
            attributes=self._session.attributes,
            prompt_attributes=self._session.prompt_attributes,
        )
        try:
            invoked = await self._invoke(str(function.lambda_arn), json.dumps(event).encode())
            if invoked.function_error is not None:
                raise FunctionFailed("The Lambda function failed.")
            answer = read_answer(invoked.payload, function)
        except (FunctionFailed, LambdaApiError) as error:
            logger.info("agents stand-in: %s failed: %s", function.name, error)
            await self._fail(str(error), "dependencyFailedException", str(error))
        if answer.attributes is not None:
            self._session.attributes = answer.attributes
        if answer.prompt_attributes is not None:
            self._session.prompt_attributes = answer.prompt_attributes
        await self._stream.observes(answer.text, reprompts=answer.reprompts)
        return Result(call.use.id, answer.text, answer.reprompts)

    async def _return(self, calls: list[_Call], results: list[Result]) -> None:
        awaited = [Awaited(call.use.id, call.group, call.use.name) for call in calls]
        invocation_id = self._session.wait_for(awaited, results)
        for call in calls:
            await self._stream.invokes(call.group, call.use.name, call.parameters, invocation_id)
        await self._stream.returns(invocation_id, [(call.group, call.use.name, call.parameters) for call in calls])

    async def _fail(self, reason: str, exception: str, message: str) -> NoReturn:
        await self._stream.fails(reason, exception, message)
        await self._stream.close()
        raise _Ended

    @property
    def _about(self) -> dict[str, str]:
        return {
            "agentId": self._asked["agentId"],
            "agentAliasId": self._asked["agentAliasId"],
            "agentVersion": self._version.number,
            "sessionId": self._asked["sessionId"],
        }


def _cut(params: Mapping[str, Any]) -> Cut:
    return Cut.of({"exception": "internalServerException", **params})


def _prompt(instruction: str, turns: list[Turn]) -> str:
    """What the model reads, as the trace shows it."""
    messages = [
        {
            "role": turn.role,
            "content": [
                *turn.texts,
                *({"use": use.name, "input": dict(use.given)} for use in turn.uses),
                *({"result": result.text} for result in turn.results),
            ],
        }
        for turn in turns
    ]
    return json.dumps({"system": instruction, "messages": messages}, ensure_ascii=False)
