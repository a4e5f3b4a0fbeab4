"""The stand-in of Amazon Bedrock Agents does what AWS does: its conformance list, line by line, by a boto3 client."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import pytest
from botocore.eventstream import ParserError
from botocore.exceptions import ClientError
from urllib3.exceptions import HTTPError

from cicada_local.agents.classic_store import AgentRefused, AgentStore
from cicada_local.agents.turns import BrainCall, BrainTool, Decide, Result, Step, Turn
from tests.wire.agent_contract import PATIENCE_S
from tests.wire.agents_service import (
    AGENT_ID,
    ALIAS_ID,
    INSTRUCTION,
    AgentsService,
    function,
    properties,
    serving_agents,
)

READS = function("look", query="string", many="integer")
WRITES = function("note", name="string!")


@pytest.fixture
def service() -> Iterator[AgentsService]:
    with serving_agents() as running:
        running.deploy(reading=[READS], writing=[WRITES])
        running.function = lambda event: answer(event, "found it")
        yield running


def hearing(hear: Callable[[str, Sequence[Turn]], object], steps: Iterable[Step]) -> Decide:
    """A model that takes these steps, and is heard: what it is told goes to ``hear``."""
    left = iter(steps)

    def decide(system: str, tools: Sequence[BrainTool], turns: Sequence[Turn]) -> Step:
        hear(system, turns)
        return next(left)

    return decide


def answer(event: Mapping[str, Any], text: str, *, state: str | None = None, **changed: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"responseBody": {"TEXT": {"body": text}}}
    if state is not None:
        body["responseState"] = state
    response = {"actionGroup": event["actionGroup"], "function": event["function"], "functionResponse": body}
    return {"messageVersion": "1.0", "response": response, **changed}


def says(*steps: Step) -> Any:
    """A model that says one thing after the other."""
    waiting = list(steps)
    return lambda *_: waiting.pop(0)


def calls(name: str, /, **given: Any) -> Step:
    return Step(calls=(BrainCall(name, given),))


def invoke(service: AgentsService, **changed: Any) -> list[dict[str, Any]]:
    asked = {"agentId": AGENT_ID, "agentAliasId": ALIAS_ID, "sessionId": "session-1", "enableTrace": True}
    if "sessionState" not in changed or "returnControlInvocationResults" not in changed["sessionState"]:
        asked["inputText"] = "Who is Mira?"
    return list(service.client().invoke_agent(**{**asked, **changed})["completion"])


def fails(service: AgentsService, **changed: Any) -> tuple[str, int | None]:
    """The error's code, and its status if it came before the stream."""
    with pytest.raises(ClientError) as raised:
        invoke(service, **changed)
    response = raised.value.response
    return response["Error"]["Code"], response.get("ResponseMetadata", {}).get("HTTPStatusCode")


def traces(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["trace"]["trace"]["orchestrationTrace"] for event in events if "trace" in event]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return ["trace:" + next(iter(t)) if k == "trace" else k for k, t in ((k, _inner(e)) for e in events for k in e)]


def _inner(event: dict[str, Any]) -> dict[str, Any]:
    return event["trace"]["trace"]["orchestrationTrace"] if "trace" in event else {"": None}


def streamed(**changed: Any) -> dict[str, Any]:
    return {"streamingConfigurations": {"streamFinalResponse": True}, **changed}


def test_a01_a02_the_answer_is_one_chunk_after_its_trace(service):
    service.decide = says(Step("Mira is a ferrywoman."))
    events = invoke(service)
    assert kinds(events) == ["trace:modelInvocationInput", "trace:modelInvocationOutput", "trace:observation", "chunk"]
    assert events[-1]["chunk"]["bytes"] == b"Mira is a ferrywoman."
    assert traces(events)[-1]["observation"]["type"] == "FINISH"


def test_a02_with_streaming_the_pieces_come_before_the_trace(service):
    service.decide = says(Step("Mira is a ferrywoman."))
    events = invoke(service, **streamed())
    chunks = [event["chunk"]["bytes"] for event in events if "chunk" in event]
    assert len(chunks) > 1
    assert b"".join(chunks) == b"Mira is a ferrywoman."
    assert traces(events)[-1]["observation"]["finalResponse"]["text"] == "Mira is a ferrywoman."
    assert "trace" in events[-1]


def test_a01_without_a_wish_for_it_there_is_no_trace(service):
    assert kinds(invoke(service, enableTrace=False)) == ["chunk"]


def test_a03_who_is_unknown_and_what_is_malformed(service):
    assert fails(service, agentId="NOSUCHAGNT") == ("ResourceNotFoundException", 404)
    assert fails(service, agentAliasId="NOSUCHALIA") == ("ResourceNotFoundException", 404)
    assert fails(service, sessionId="no spaces") == ("ValidationException", 400)
    assert fails(service, inputText=" ") == ("ValidationException", 400)


def test_a04_an_unsigned_request_is_refused(service):
    url = f"{service.url}/agents/{AGENT_ID}/agentAliases/{ALIAS_ID}/sessions/s-1/text"
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(urllib.request.Request(url, b'{"inputText": "x"}', method="POST"))
    assert raised.value.code == 403


def test_a05_how_a_function_is_called(service):
    service.decide = says(calls("look", query="letter", many=3), Step("Done."))
    state = {"sessionAttributes": {"a": "1"}, "promptSessionAttributes": {"b": "2"}}
    invoke(service, sessionState=state)
    (event,) = service.events
    assert event == {
        "messageVersion": "1.0",
        "agent": {"name": AGENT_ID, "id": AGENT_ID, "alias": ALIAS_ID, "version": "1"},
        "inputText": "Who is Mira?",
        "sessionId": "session-1",
        "actionGroup": "reading",
        "function": "look",
        "parameters": [
            {"name": "query", "type": "string", "value": "letter"},
            {"name": "many", "type": "integer", "value": "3"},
        ],
        "sessionAttributes": {"a": "1"},
        "promptSessionAttributes": {"b": "2"},
    }


@pytest.mark.parametrize(
    "broken",
    [
        lambda event: {"answer": "in no form"},
        lambda event: answer(event, "x", state="FAILURE"),
        lambda event: answer(event, "x", state="OTHER"),
        lambda event: answer(event, "x", sessionAttributes={"n": 1}),
        lambda event: answer({**event, "function": "other"}, "x"),
        lambda event: 1 / 0,
    ],
    ids=["no form", "failure", "unknown state", "attributes", "another function", "raises"],
)
def test_a06_a_function_that_fails_ends_the_stream(service, broken):
    service.function = broken
    service.decide = says(calls("look"), Step("Never."))
    assert fails(service)[0] == "dependencyFailedException"


def test_a06_reprompt_gives_its_words_to_the_model(service):
    heard: list[Turn] = []
    service.function = lambda event: answer(event, "there is no such thing", state="REPROMPT")
    steps = [calls("look"), Step("So be it.")]
    service.decide = hearing(lambda _, turns: heard.append(turns[-1]), steps)
    events = invoke(service)
    assert heard[-1].results[0].text == "there is no such thing"
    reprompt = next(one["observation"] for one in traces(events) if "observation" in one)
    assert reprompt["repromptResponse"] == {"source": "ACTION_GROUP", "text": "there is no such thing"}


def test_a07_a_functions_attributes_are_the_sessions_from_then_on(service):
    service.function = lambda event: answer(event, "x", sessionAttributes={"count": f"{len(service.events)}"})
    service.decide = says(calls("look"), calls("look", query="more"), Step("Done."))
    invoke(service, sessionState={"sessionAttributes": {"count": "0"}})
    assert [event["sessionAttributes"] for event in service.events] == [{"count": "0"}, {"count": "1"}]


def results(returned: dict[str, Any], text: str = "kept", **changed: Any) -> dict[str, Any]:
    called = returned["invocationInputs"][0]["functionInvocationInput"]
    result = {
        "actionGroup": called["actionGroup"],
        "function": called["function"],
        "responseBody": {"TEXT": {"body": text}},
    }
    return {
        "invocationId": returned["invocationId"],
        "returnControlInvocationResults": [{"functionResult": {**result, **changed}}],
    }


def test_a08_control_is_returned_and_goes_on_with_the_results_once(service):
    heard: list[Turn] = []
    steps = [calls("note", name="Mira"), Step("Noted.")]
    service.decide = hearing(lambda _, turns: heard.append(turns[-1]), steps)
    returned = invoke(service)[-1]["returnControl"]
    called = returned["invocationInputs"][0]["functionInvocationInput"]
    assert (called["actionGroup"], called["function"]) == ("writing", "note")
    assert called["parameters"] == [{"name": "name", "type": "string", "value": "Mira"}]
    assert service.events == []
    wrong = {**results(returned), "invocationId": "another"}
    assert fails(service, sessionState=wrong)[0] == "ValidationException"
    assert fails(service, sessionState=results(returned, function="other"))[0] == "ValidationException"
    events = invoke(service, sessionState=results(returned))
    assert events[-1]["chunk"]["bytes"] == b"Noted."
    assert [(one.text, one.failed) for one in heard[-1].results] == [("kept", False)]
    assert fails(service, sessionState=results(returned))[0] == "ValidationException"


def test_a08_calls_of_both_kinds_in_one_turn_are_answered_together(service):
    heard: list[tuple[Result, ...]] = []
    steps = [Step(calls=(BrainCall("look", {}), BrainCall("note", {"name": "M"}))), Step("Both.")]
    service.decide = hearing(lambda _, turns: heard.append(turns[-1].results), steps)
    returned = invoke(service)[-1]["returnControl"]
    invoke(service, sessionState=results(returned))
    assert [one.text for one in heard[-1]] == ["found it", "kept"]


def test_a09_a_session_remembers_and_takes_one_call_at_once(service):
    heard: list[int] = []
    service.decide = hearing(lambda _, turns: heard.append(len(turns)), repeat(Step("Yes.")))
    invoke(service)
    invoke(service)
    invoke(service, sessionId="another")
    assert heard == [1, 3, 1]
    refused = threading.Event()
    service.decide = lambda *_: (refused.wait(PATIENCE_S), Step("Late."))[1]
    asked = {"agentId": AGENT_ID, "agentAliasId": ALIAS_ID, "sessionId": "busy", "inputText": "x"}
    first = service.client().invoke_agent(**asked)
    assert fails(service, sessionId="busy")[0] == "ConflictException"
    refused.set()
    assert list(first["completion"])


def test_a10_the_trace_tells_calls_and_what_came_of_them(service):
    service.decide = says(calls("look", query="letter"), calls("note", name="M"))
    events = invoke(service)
    invocations = [
        one["invocationInput"]["actionGroupInvocationInput"] for one in traces(events) if "invocationInput" in one
    ]
    assert [(one["function"], one["executionType"]) for one in invocations] == [
        ("look", "LAMBDA"),
        ("note", "RETURN_CONTROL"),
    ]
    assert invocations[1]["invocationId"] == events[-1]["returnControl"]["invocationId"]
    (observed,) = (one["observation"] for one in traces(events) if "observation" in one)
    assert observed["actionGroupInvocationOutput"]["text"] == "found it"
    ended = next(one["modelInvocationOutput"] for one in traces(events) if "modelInvocationOutput" in one)
    assert ended["metadata"]["usage"] == {"inputTokens": 100, "outputTokens": 20}
    assert json.loads(ended["rawResponse"]["content"])["stop_reason"] == "tool_use"
    assert INSTRUCTION in next(iter(traces(events)))["modelInvocationInput"]["text"]


def test_a11_early_errors(service):
    service.faults.arm("agents.throttle", times=1)
    assert fails(service) == ("ThrottlingException", 429)
    service.faults.arm("agents.error", times=1, exception="AccessDeniedException", status=403)
    assert fails(service) == ("AccessDeniedException", 403)
    service.faults.arm("agents.error", times=1, agent="OTHERAGENT")
    assert invoke(service)


def test_a12_an_exception_in_the_stream(service):
    service.faults.arm("agents.cut", times=1, mode="exception", exception="throttlingException", after=0)
    assert fails(service)[0] == "throttlingException"


@pytest.mark.parametrize("mode", ["reset", "half_frame", "corrupt"])
def test_a13_a_cut_that_the_client_notices(service, mode):
    service.decide = says(Step("One two three four five six seven."))
    service.faults.arm("agents.cut", times=1, mode=mode, after=1)
    with pytest.raises((HTTPError, ParserError)):
        invoke(service, **streamed())


def test_a13_a_cut_that_looks_like_an_end(service):
    service.decide = says(Step("One two three four five six seven."))
    service.faults.arm("agents.cut", times=1, mode="silent", after=1)
    events = invoke(service, **streamed())
    assert "chunk" in events[-1]


def test_a14_an_alias_calls_the_version_that_it_was_made_or_updated_with(service):
    heard: list[str] = []
    service.decide = hearing(lambda system, _: heard.append(system), repeat(Step("Yes.")))
    changed = f"{INSTRUCTION} Be brief."
    service.store.put_agent(AGENT_ID, properties(reading=[READS], Instruction=changed))
    invoke(service)
    service.store.put_alias(AGENT_ID, ALIAS_ID, {"Description": "2"})
    invoke(service)
    assert heard == [INSTRUCTION, changed]


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"reading": [function("wide", **{f"p{n}": "string" for n in range(6)})]}, "parameters-per-function"),
        ({"reading": [function(f"f{n}") for n in range(12)]}, "apis-per-agent"),
        ({"Instruction": "too short"}, "40"),
        ({"Instruction": "x" * 4_001}, "4000"),
        ({"reading": [function("f", p="object")]}, "enum"),
        ({"AgentName": "two--dashes"}, "pattern"),
        ({"reading": [READS], "writing": [READS]}, "one name"),
    ],
)
def test_a15_what_the_control_plane_does_not_take(declared, why):
    with pytest.raises(AgentRefused, match=why):
        AgentStore().put_agent(AGENT_ID, properties(**declared))


def test_a15_an_alias_needs_a_prepared_agent():
    store = AgentStore()
    store.put_agent(AGENT_ID, properties(AutoPrepare=False))
    with pytest.raises(AgentRefused, match="NOT_PREPARED"):
        store.put_alias(AGENT_ID, ALIAS_ID, {})
