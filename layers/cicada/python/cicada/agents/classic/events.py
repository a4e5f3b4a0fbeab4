"""The events of InvokeAgent's stream that a run needs.

The stream has no final event. Its end is the trace's observation of the final response with the whole text, before the
text's chunk or after the last one. A stream without it, and without returned control, was cut; so was one whose chunks
differ from that text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cicada.agents.classic.schema import ParameterGiven
from cicada.models.guardrail import Intervention, found_by
from cicada.models.ports import Usage


@dataclass(frozen=True)
class ResponseChunk:
    """The next bytes of the final response."""

    content: bytes


@dataclass(frozen=True)
class TurnBegan:
    """The service calls the model."""

    prompt: str


@dataclass(frozen=True)
class TurnEnded:
    """The model has answered."""

    usage: Usage
    took_ms: int
    stop_reason: str | None = None
    """As the model's raw response calls it, where it says so."""


@dataclass(frozen=True)
class Invoked:
    """A function's call, as the model made it."""

    group: str
    name: str
    parameters: tuple[ParameterGiven, ...]


@dataclass(frozen=True)
class Observed:
    """What the action-group function returned."""

    text: str
    failed: bool


@dataclass(frozen=True)
class Returned:
    """The service waits for what the caller is to do."""

    invocation_id: str
    calls: tuple[Invoked, ...]


@dataclass(frozen=True)
class FinalResponse:
    """The whole answer."""

    text: str


@dataclass(frozen=True)
class Intervened:
    """A guardrail stepped in."""

    on_input: Intervention
    on_output: Intervention


@dataclass(frozen=True)
class StepFailed:
    """A step of the run failed; an exception of the stream follows as a rule."""


AgentEvent = (
    ResponseChunk | TurnBegan | TurnEnded | Invoked | Observed | Returned | FinalResponse | Intervened | StepFailed
)


def read_event(event: Mapping[str, Any]) -> Iterable[AgentEvent]:
    """What one event says; nothing for other kinds. Raises KeyError, TypeError or ValueError for a malformed event."""
    match event:
        case {"chunk": {"bytes": content}}:
            return (ResponseChunk(content),)
        case {"returnControl": payload}:
            inputs = (one["functionInvocationInput"] for one in payload["invocationInputs"])
            calls = tuple(Invoked(made["actionGroup"], made["function"], _parameters(made)) for made in inputs)
            return (Returned(payload["invocationId"], calls),)
        case {"trace": {"trace": {"orchestrationTrace": trace}}}:
            return tuple(_read_trace(trace))
        case {"trace": {"trace": {"guardrailTrace": {"action": "INTERVENED"} as trace}}}:
            return (
                Intervened(found_by(trace.get("inputAssessments", ())), found_by(trace.get("outputAssessments", ()))),
            )
        case {"trace": {"trace": {"failureTrace": _}}}:
            return (StepFailed(),)
        case _:
            return ()


def _read_trace(trace: Mapping[str, Any]) -> Iterator[AgentEvent]:
    match trace:
        case {"modelInvocationInput": asked}:
            yield TurnBegan(asked.get("text", ""))
        case {"modelInvocationOutput": answered}:
            metadata = answered.get("metadata", {})
            usage = metadata.get("usage")
            yield TurnEnded(
                Usage(reported=False) if usage is None else Usage(usage["inputTokens"], usage["outputTokens"]),
                int(metadata.get("totalTimeMs", 0)),
                _stop_reason(answered.get("rawResponse", {}).get("content", "")),
            )
        case {"invocationInput": {"actionGroupInvocationInput": made}}:
            if made.get("executionType", "LAMBDA") == "LAMBDA":
                yield Invoked(made["actionGroupName"], made["function"], _parameters(made))
        case {"observation": {"actionGroupInvocationOutput": {"text": text}}}:
            yield Observed(text, failed=False)
        case {"observation": {"repromptResponse": {"source": "ACTION_GROUP", "text": text}}}:
            yield Observed(text, failed=True)
        case {"observation": {"finalResponse": {"text": text}}}:
            yield FinalResponse(text)


def _parameters(made: Mapping[str, Any]) -> tuple[ParameterGiven, ...]:
    return tuple(ParameterGiven(one["name"], one["value"], one.get("type")) for one in made.get("parameters", ()))


def _stop_reason(content: str) -> str | None:
    """The stop reason in the model's raw response, whose form differs from model to model."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        return None
    reason = raw.get("stop_reason", raw.get("stopReason")) if isinstance(raw, dict) else None
    return reason if isinstance(reason, str) else None
