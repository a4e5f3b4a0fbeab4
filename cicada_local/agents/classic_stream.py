"""The frames of InvokeAgent's stream, and the ways in which it breaks."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from cicada_local.bedrock.event_stream import encode_event, encode_exception, encode_message
from cicada_local.bedrock.streams import StreamedResponse, pause
from cicada_local.bedrock.switches import Cut

Parameters = Sequence[Mapping[str, str]]


class AgentStream:
    """Writes one invocation's frames."""

    def __init__(
        self, request: web.Request, response: StreamedResponse, about: Mapping[str, str], *, traced: bool
    ) -> None:
        """``about`` are the members that every trace carries beside its own."""
        self._request = request
        self._response = response
        self._about = about
        self._traced = traced
        self._trace_id = ""

    async def open(self) -> None:
        """Send the response's headers."""
        await self._response.prepare(self._request)

    async def close(self) -> None:
        """End the stream as it should end."""
        await self._response.write_eof()

    async def turn_begins(self, model_id: str, prompt: str) -> None:
        """The model is asked."""
        self._trace_id = uuid.uuid4().hex[:14] + "-0"
        asked = {"type": "ORCHESTRATION", "traceId": self._trace_id, "text": prompt, "foundationModel": model_id}
        await self._orchestration({"modelInvocationInput": asked})

    async def turn_ended(self, usage: tuple[int, int], took_ms: int, stop_reason: str) -> None:
        """The model has answered."""
        raw = {"type": "message", "role": "assistant", "stop_reason": stop_reason}
        metadata = {"usage": {"inputTokens": usage[0], "outputTokens": usage[1]}, "totalTimeMs": took_ms}
        answered = {"traceId": self._trace_id, "metadata": metadata, "rawResponse": {"content": json.dumps(raw)}}
        await self._orchestration({"modelInvocationOutput": answered})

    async def invokes(self, group: str, function: str, parameters: Parameters, invocation_id: str | None) -> None:
        """A function is called: by the service, or, with an id, by the caller."""
        made: dict[str, Any] = {
            "actionGroupName": group,
            "function": function,
            "parameters": list(parameters),
            "executionType": "LAMBDA" if invocation_id is None else "RETURN_CONTROL",
        }
        if invocation_id is not None:
            made["invocationId"] = invocation_id
        invocation = {"invocationType": "ACTION_GROUP", "traceId": self._trace_id, "actionGroupInvocationInput": made}
        await self._orchestration({"invocationInput": invocation})

    async def observes(self, text: str, *, reprompts: bool) -> None:
        """A function has returned."""
        seen: dict[str, Any] = (
            {"type": "REPROMPT", "repromptResponse": {"source": "ACTION_GROUP", "text": text}}
            if reprompts
            else {"type": "ACTION_GROUP", "actionGroupInvocationOutput": {"text": text}}
        )
        await self._orchestration({"observation": {"traceId": self._trace_id, **seen}})

    async def finishes(self, text: str) -> None:
        """The final response is known."""
        seen = {"type": "FINISH", "traceId": self._trace_id, "finalResponse": {"text": text}}
        await self._orchestration({"observation": seen})

    async def blocked(self) -> None:
        """A guardrail steps in."""
        await self._trace({"guardrailTrace": {"action": "INTERVENED", "traceId": self._trace_id}})

    async def fails(self, reason: str, exception: str, message: str) -> None:
        """A step fails, and the stream ends with an exception."""
        await self._trace({"failureTrace": {"traceId": self._trace_id, "failureReason": reason}})
        await self._response.write(encode_exception(exception, {"message": message}))

    async def says(self, text: str) -> None:
        """A piece of the final response, or all of it."""
        await self._response.write(_chunk(text))

    async def returns(self, invocation_id: str, calls: Sequence[tuple[str, str, Parameters]]) -> None:
        """Control goes back to the caller."""
        inputs = [
            {
                "functionInvocationInput": {
                    "actionGroup": group,
                    "function": function,
                    "parameters": list(parameters),
                    "actionInvocationType": "RESULT",
                    "agentId": self._about["agentId"],
                }
            }
            for group, function, parameters in calls
        ]
        event = encode_event("returnControl", {"invocationId": invocation_id, "invocationInputs": inputs})
        await self._response.write(event)

    async def break_off(self, cut: Cut) -> None:
        """End the stream as a cut says."""
        match cut.mode:
            case "exception":
                await self._response.write(encode_exception(cut.exception, {"message": cut.message}))
            case "half_frame":
                await self._response.write(_chunk("never whole")[:-20])
            case "corrupt":
                frame = _chunk("never whole")
                await self._response.write(frame[:-1] + bytes([frame[-1] ^ 0xFF]))
            case "garbled":
                await self._response.write(
                    encode_message({":event-type": "chunk", ":message-type": "event"}, b"no JSON")
                )
            case "stall":
                await pause(self._request, math.inf)
        if cut.mode in ("reset", "half_frame") and not cut.close_delimited:
            if self._request.transport is not None:  # without the end that chunked encoding marks
                self._request.transport.abort()
            return
        await self._response.write_eof()

    async def _orchestration(self, trace: Mapping[str, Any]) -> None:
        await self._trace({"orchestrationTrace": trace})

    async def _trace(self, trace: Mapping[str, Any]) -> None:
        if self._traced:
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            await self._response.write(encode_event("trace", {**self._about, "eventTime": now, "trace": trace}))


def _chunk(text: str) -> bytes:
    return encode_event("chunk", {"bytes": base64.b64encode(text.encode()).decode()})
