"""The stand-in of AgentCore's harness does what AWS does: each line of its list, by a boto3 client over real HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import ClientError, EventStreamError
from urllib3.exceptions import ProtocolError

from cicada.models.bedrock import bedrock_client_config
from cicada_local.agents import harness
from cicada_local.agents.turns import BrainCall, Step
from tests.wire.harness_service import ACCOUNT_ID, MODEL, REGION, VERSION, HarnessService, serving_harness

SESSION = "a-session-of-somebody-who-asks-something"
ASKED = {"role": "user", "content": [{"text": "Who hid the letter?"}]}
USED = {"toolUse": {"toolUseId": "u-1", "name": "search_script", "input": {"query": "letter"}}}
TOLD = {"toolResult": {"toolUseId": "u-1", "content": [{"text": "{}"}], "status": "success"}}
SEARCH = Step("", (BrainCall("search_script", {"query": "letter"}),))
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
MIRA = Step("Mira hid it [1].")


def inline(name: str) -> dict[str, Any]:
    config = {"inlineFunction": {"description": "Look.", "inputSchema": SCHEMA}}
    return {"type": "inline_function", "name": name, "config": config}


@pytest.fixture
def service() -> Iterator[HarnessService]:
    with serving_harness() as running:
        running.decide = lambda *_: MIRA
        yield running


def invoke(service: HarnessService, client: Any = None, **changed: Any) -> list[dict[str, Any]]:
    asked = {
        "harnessArn": service.harness.arn,
        "runtimeSessionId": SESSION,
        "messages": [ASKED],
        "tools": [inline("search_script")],
        "allowedTools": ["search_script"],
        **changed,
    }
    return list((client or service.client()).invoke_harness(**asked)["stream"])


def refusal(service: HarnessService, **changed: Any) -> tuple[str, int]:
    """Code and status of the error that an invocation gets; botocore's own checks are off."""
    with pytest.raises(ClientError) as raised:
        invoke(service, service.client(bedrock_client_config().merge(Config(parameter_validation=False))), **changed)
    return raised.value.response["Error"]["Code"], raised.value.response["ResponseMetadata"]["HTTPStatusCode"]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(
        event["contentBlockDelta"]["delta"].get("text", "") for event in events if "contentBlockDelta" in event
    )


def stop_of(events: list[dict[str, Any]]) -> str:
    return next(str(event["messageStop"]["stopReason"]) for event in events if "messageStop" in event)


def test_every_line_of_the_conformance_list_has_a_test():
    lines = re.findall(r"^(G\d\d) ", harness.__doc__ or "", re.MULTILINE)
    tested = {line.upper() for line in re.findall(r"^def test_(g\d\d)_", Path(__file__).read_text(), re.MULTILINE)}
    assert lines
    assert set(lines) == tested


def test_g01_a_stream_has_its_events_in_order(service):
    events = invoke(service)
    kinds = list(dict.fromkeys(next(iter(event)) for event in events))
    assert kinds == ["messageStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]
    assert text_of(events) == MIRA.text
    assert events[-1]["metadata"]["usage"]["outputTokens"] > 0


@pytest.mark.parametrize(
    "changed",
    [
        {"runtimeSessionId": "short"},
        {"harnessArn": "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/agents-Ab3dEf6h1j"},
        {"messages": [{"role": "system", "content": [{"text": "x"}]}]},
        {"messages": [{"role": "user", "content": [{"text": ""}]}]},
        {"tools": [{"type": "inline_function", "name": "a tool"}]},
        {"allowedTools": ["a/b/c"]},
        {"maxIterations": 0},
        {"model": {"bedrockModelConfig": {"modelId": MODEL, "temperature": 3.0}}},
    ],
)
def test_g02_members_have_to_fit_the_services_model(service, changed):
    assert refusal(service, **changed) == ("ValidationException", 400)


def test_g03_an_unknown_harness_or_endpoint_is_not_found(service):
    other = service.harness.arn.replace("agents-", "others-")
    assert refusal(service, harnessArn=other) == ("ResourceNotFoundException", 404)
    assert refusal(service, qualifier="live") == ("ResourceNotFoundException", 404)
    assert text_of(invoke(service, qualifier="DEFAULT")) == MIRA.text


def test_g04_an_unsigned_request_is_refused(service):
    with pytest.raises(ClientError) as raised:
        invoke(service, service.client(Config(signature_version=UNSIGNED)))
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_g05_the_use_of_an_inline_function_ends_the_invocation(service):
    service.decide = lambda *_: replace(SEARCH, text="Let me look.")
    events = invoke(service)
    start = next(event["contentBlockStart"]["start"]["toolUse"] for event in events if "contentBlockStart" in event)
    assert start["name"] == "search_script"
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    written = "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta)
    assert json.loads(written) == {"query": "letter"}
    assert stop_of(events) == "tool_use"


def test_g06_a_use_is_to_be_brought_again_with_its_result(service):
    steps = [SEARCH, MIRA]
    service.decide = lambda *_: steps.pop(0)
    invoke(service)
    with pytest.raises(EventStreamError, match="validationException"):
        invoke(service, messages=[{"role": "user", "content": [TOLD]}])
    answered = invoke(service, messages=[{"role": "assistant", "content": [USED]}, {"role": "user", "content": [TOLD]}])
    assert text_of(answered) == MIRA.text
    assert [turn.role for turn in service.shown[-1][2]] == ["user", "assistant", "user"]


def test_g07_a_session_keeps_what_was_said_for_its_actor_alone(service):
    invoke(service, actorId="a")
    invoke(service, actorId="a")
    assert [turn.role for turn in service.shown[1][2]] == ["user", "assistant", "user"]
    invoke(service, actorId="b")
    invoke(service, actorId="a", runtimeSessionId=f"{SESSION}-2")
    assert [len(turns) for _, _, turns in service.shown[2:]] == [1, 1]


def test_g08_what_is_not_overridden_is_the_versions(service):
    told = replace(VERSION, system_prompt=({"text": "You weigh."},), tools=(inline("weigh"),), allowed_tools=("weigh",))
    service.store.put("agents", told, region=REGION, account_id=ACCOUNT_ID)
    service.store.put_endpoint(service.harness.id, "first", 1)
    bare = {"harnessArn": service.harness.arn, "runtimeSessionId": SESSION, "messages": [ASKED]}
    for qualifier in ("DEFAULT", "first"):
        list(service.client().invoke_harness(**bare, qualifier=qualifier, actorId=qualifier)["stream"])
    (system, tools, _), (earlier, _, _) = service.shown
    assert (system, [tool.name for tool in tools], earlier) == ("You weigh.", ["weigh"], "You keep profiles.")


def test_g09_every_session_has_a_shell_unless_it_is_left_out(service):
    bare = {"harnessArn": service.harness.arn, "runtimeSessionId": SESSION, "messages": [ASKED]}
    list(service.client().invoke_harness(**bare)["stream"])
    invoke(service, actorId="other")
    invoke(service, actorId="third", allowedTools=["@builtin/shell"])
    assert [[tool.name for tool in tools] for _, tools, _ in service.shown] == [
        ["shell", "file_operations"],
        ["search_script"],
        ["shell"],
    ]
    service.decide = lambda *_: Step(calls=(BrainCall("shell", {"command": "env"}),))
    with pytest.raises(EventStreamError, match="runtimeClientError"):
        invoke(service, actorId="fourth", allowedTools=["*"])


def test_g10_caps_end_a_turn(service):
    service.decide = lambda *_: Step("Mira hid the letter in the boathouse. " * 20)
    assert stop_of(invoke(service, maxTokens=5)) == "max_output_tokens_exceeded"
    model = {"bedrockModelConfig": {"modelId": MODEL, "maxTokens": 5}}
    assert stop_of(invoke(service, actorId="b", model=model)) == "max_tokens"
    service.faults.arm("harness.slow", delay_ms=400)
    events = invoke(service, actorId="c", timeoutSeconds=1)
    assert stop_of(events) == "timeout_exceeded"
    assert text_of(events)


def test_g11_what_the_model_refuses_comes_in_the_stream(service):
    for changed in (
        {"messages": [{"role": "assistant", "content": [{"text": "Hello."}]}]},
        {"model": {"bedrockModelConfig": {"modelId": "amazon.nova-2-lite-v1:0"}}},
    ):
        with pytest.raises(EventStreamError, match="validationException"):
            invoke(service, **changed)


def test_g12_an_invocation_can_fail_before_its_stream(service):
    service.faults.arm("harness.throttle", times=1)
    assert refusal(service) == ("ThrottlingException", 429)
    service.faults.arm("harness.error", times=1, exception="RuntimeClientError", status=424)
    assert refusal(service) == ("RuntimeClientError", 424)
    service.faults.arm("harness.refuse", times=1, harness="another")
    assert text_of(invoke(service)) == MIRA.text, "the fault is limited to another harness"


@pytest.mark.parametrize("exception", ["internalServerException", "runtimeClientError", "validationException"])
def test_g13_an_exception_can_come_in_the_stream(service, exception):
    service.faults.arm("harness.cut", mode="exception", after=1, exception=exception)
    with pytest.raises(EventStreamError, match=exception):
        invoke(service)


@pytest.mark.parametrize(
    ("mode", "raised"),
    [("reset", ProtocolError), ("half_frame", ProtocolError), ("corrupt", ChecksumMismatch), ("silent", None)],
)
def test_g14_a_stream_can_be_cut_without_an_exception_of_aws(service, mode, raised):
    service.faults.arm("harness.cut", mode=mode, after=1)
    if raised is None:
        assert not any("messageStop" in event for event in invoke(service))
    else:
        with pytest.raises(raised):
            invoke(service)


@pytest.mark.parametrize("reason", ["partial_turn", "max_iterations_exceeded", "interrupted", "hook_stopped"])
def test_g15_a_stream_can_stop_for_any_reason(service, reason):
    service.faults.arm("harness.stop", stop_reason=reason)
    assert stop_of(invoke(service)) == reason


def test_g16_two_uses_can_stand_under_one_index(service):
    service.decide = lambda *_: replace(SEARCH, calls=SEARCH.calls * 2)
    service.faults.arm("harness.one_index")
    starts = [event["contentBlockStart"] for event in invoke(service) if "contentBlockStart" in event]
    assert [start["contentBlockIndex"] for start in starts] == [0, 0]
    assert len({start["start"]["toolUse"]["toolUseId"] for start in starts}) == 2


def test_a_caller_that_goes_ends_the_invocation(service):
    service.faults.arm("harness.cut", mode="stall", after=1)
    asked = {"harnessArn": service.harness.arn, "runtimeSessionId": SESSION, "messages": [ASKED]}
    stream = service.client().invoke_harness(**asked)["stream"]
    next(iter(stream))
    stream.close()
    assert service.finished.wait(5)
