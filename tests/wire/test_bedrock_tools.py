"""Tools in Converse's streams over real HTTP: the stand-in does what AWS does, by a boto3 client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from cicada_local.agents.turns import BrainCall, BrainTool, Step, Turn
from tests.wire.bedrock_service import BedrockService, serving

MODEL = "local.extractive"
REASONING = "us.anthropic.claude-haiku-5-5"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
ASKED = {"role": "user", "content": [{"text": "Who hid the letter?"}]}
USE = {"toolUseId": "t-1", "name": "search_script", "input": {"query": "letter"}}
RESULT = {"toolUseId": "t-1", "content": [{"text": '{"passages":[]}'}], "status": "success"}
SEARCH = BrainCall("search_script", {"query": "Wer versteckte den Brief? “Mira”, vielleicht."})


def used(**changed: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"toolUse": {**USE, **changed}}]}


def told(**changed: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"toolResult": {**RESULT, **changed}}]}


def offer(*names: str, choice: dict[str, Any] | None = None) -> dict[str, Any]:
    tools = [
        {"toolSpec": {"name": name, "description": f"To {name}.", "inputSchema": {"json": SCHEMA}}} for name in names
    ]
    return {"tools": tools, **({} if choice is None else {"toolChoice": choice})}


class Scripted:
    """A model that does what it is told, and remembers what it was shown."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.shown: list[tuple[str, Sequence[BrainTool], Sequence[Turn]]] = []

    def __call__(self, system: str, tools: Sequence[BrainTool], turns: Sequence[Turn]) -> Step:
        self.shown.append((system, tools, turns))
        return self.steps.pop(0)


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


def stream(service: BedrockService, model_id: str = MODEL, **request: Any) -> list[dict[str, Any]]:
    tools = offer("search_script", "show_profile")
    asked = {"messages": [ASKED], "toolConfig": tools, **request}
    return list(service.client().converse_stream(modelId=model_id, **asked)["stream"])


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [next(iter(event)) for event in events]


def inputs(events: list[dict[str, Any]], block: int = 0) -> list[str]:
    deltas = [event["contentBlockDelta"] for event in events if "contentBlockDelta" in event]
    used_in = [delta for delta in deltas if delta["contentBlockIndex"] == block and "toolUse" in delta["delta"]]
    return [delta["delta"]["toolUse"]["input"] for delta in used_in]


def stop_of(events: list[dict[str, Any]]) -> str:
    return next(str(event["messageStop"]["stopReason"]) for event in events if "messageStop" in event)


def test_b34_a_tools_use_is_a_block_whose_input_comes_in_pieces(service):
    service.decide = Scripted(Step(calls=(SEARCH,)), Step(calls=(BrainCall("show_profile", {}),)))
    events = stream(service)
    assert list(dict.fromkeys(kinds(events))) == [
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ]
    start = events[1]["contentBlockStart"]
    assert (start["contentBlockIndex"], start["start"]["toolUse"]["name"]) == (0, "search_script")
    assert start["start"]["toolUse"]["toolUseId"].startswith("tooluse_")
    first, *rest = inputs(events)
    assert first == ""
    assert len(rest) > 2
    assert json.loads("".join(rest)) == SEARCH.given
    assert stop_of(events) == "tool_use"
    assert events[-1]["metadata"]["usage"]["outputTokens"] > 5
    assert inputs(stream(service)) == [""], "an input without fields"


def test_b34_a_reasoning_models_thoughts_stand_before_the_use(service):
    service.decide = Scripted(Step(calls=(SEARCH,)))
    events = stream(service, REASONING)
    assert json.loads("".join(inputs(events, block=1))) == SEARCH.given
    stops = [event["contentBlockStop"]["contentBlockIndex"] for event in events if "contentBlockStop" in event]
    assert stops == [0, 1]


def test_b35_a_turn_says_something_and_calls_several_tools(service):
    both = Step("Let me look.", (SEARCH, BrainCall("show_profile", {"query": "Mira"})))
    service.decide = Scripted(both, both, Step("Mira did [1]."))
    events = stream(service)
    starts = [event["contentBlockStart"] for event in events if "contentBlockStart" in event]
    assert [start["contentBlockIndex"] for start in starts] == [1, 2], "a text's block has no start"
    assert json.loads("".join(inputs(events, block=2))) == {"query": "Mira"}
    whole = service.client().converse(
        modelId=MODEL, messages=[ASKED], toolConfig=offer("search_script", "show_profile")
    )
    content = whole["output"]["message"]["content"]
    assert [next(iter(block)) for block in content] == ["text", "toolUse", "toolUse"]
    ids = [block["toolUse"]["toolUseId"] for block in content[1:]]
    results = {"role": "user", "content": [{"toolResult": {**RESULT, "toolUseId": one}} for one in ids]}
    said = {"role": "assistant", "content": content}
    with pytest.raises(ClientError, match="Expected toolResult blocks"):
        stream(service, messages=[ASKED, said, {"role": "user", "content": results["content"][:1]}])
    assert stop_of(stream(service, messages=[ASKED, said, results])) == "end_turn"


def test_b36_the_model_chooses_among_many_tools_or_answers(service):
    service.decide = script = Scripted(Step("No need."), Step("No need."), Step("Never asked."))
    events = stream(service, system=[{"text": "You keep profiles."}])
    assert stop_of(events) == "end_turn"
    assert "contentBlockStart" not in kinds(events)
    assert stop_of(stream(service, toolConfig=offer("first", "second", choice={"any": {}}))) == "tool_use"
    chosen = stream(service, toolConfig=offer("first", "second", choice={"tool": {"name": "second"}}))
    assert chosen[1]["contentBlockStart"]["start"]["toolUse"]["name"] == "second"
    assert len(script.steps) == 1, "a tool that must be called leaves nothing to decide"
    system, tools, _ = script.shown[0]
    assert system == "You keep profiles."
    assert [tool.name for tool in tools] == ["search_script", "show_profile"]
    assert tools[0].schema == SCHEMA


def test_the_model_is_shown_the_earlier_turns(service):
    service.decide = script = Scripted(Step("Nobody."), Step("Nobody."))
    stream(service, messages=[ASKED, used(), told(status="error")])
    asked, use, result = script.shown[0][2]
    assert asked.texts == ("Who hid the letter?",)
    assert (use.uses[0].name, use.uses[0].given) == ("search_script", {"query": "letter"})
    assert (result.results[0].id, result.results[0].failed) == ("t-1", True)
    stream(service, messages=[ASKED, used(), told(content=[{"json": {"n": 1}}])])
    assert script.shown[1][2][2].results[0].value == {"n": 1}


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ([used(input="letter"), told()], "Provide a json object"),
        ([used(name="search script"), told()], "regular expression pattern"),
        ([used(), told(), used(), told()], "ids must be unique"),
    ],
)
def test_b37_earlier_uses_have_to_be_well_formed(service, turns, words):
    with pytest.raises(ClientError, match=words) as raised:
        stream(service, messages=[ASKED, *turns])
    assert raised.value.response["Error"]["Code"] == "ValidationException"


def test_b37_an_earlier_use_may_be_of_a_tool_that_is_not_offered_any_more(service):
    service.decide = Scripted(Step("Nobody."))
    assert stop_of(stream(service, messages=[ASKED, used(name="gone"), told()])) == "end_turn"


def test_b38_a_stream_can_be_cut_in_a_tools_input(service):
    service.decide = Scripted(Step("No."), Step(calls=(SEARCH,)), Step(calls=(SEARCH,)))
    service.faults.arm("bedrock.cut", mode="silent", after=3, turn="tool_use")
    assert stop_of(stream(service)) == "end_turn", "the fault waits for a turn that uses a tool"
    events = stream(service)
    assert "messageStop" not in kinds(events)
    assert 0 < len("".join(inputs(events))) < len(json.dumps(SEARCH.given))
    service.faults.arm("bedrock.cut", mode="exception", after=2)
    with pytest.raises(EventStreamError):
        stream(service)


def test_b39_in_a_stream_nova_s_error_comes_after_the_text(service):
    service.decide = Scripted(Step("Let me look.", (SEARCH,)))
    service.faults.arm("bedrock.form", times=1, mode="sequence")
    events: list[dict[str, Any]] = []
    tools = offer("search_script")
    with pytest.raises(EventStreamError, match=r"modelStreamErrorException.*invalid sequence as part of ToolUse"):
        events.extend(service.client().converse_stream(modelId=MODEL, messages=[ASKED], toolConfig=tools)["stream"])
    assert "contentBlockDelta" in kinds(events)
    assert "messageStop" not in kinds(events)


def test_b38_an_input_that_outgrows_max_tokens_ends_in_the_middle(service):
    service.decide = Scripted(Step(calls=(SEARCH,)))
    events = stream(service, inferenceConfig={"maxTokens": 4})
    assert stop_of(events) == "max_tokens"
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads("".join(inputs(events)))
    assert events[-1]["metadata"]["usage"]["outputTokens"] == 4


@pytest.mark.parametrize(
    ("mode", "stop"),
    [
        ("misfit", "tool_use"),
        ("talk", "end_turn"),
        ("unreadable", "malformed_tool_use"),
        ("garbled", "tool_use"),
        ("unoffered", "tool_use"),
        ("again", "tool_use"),
    ],
)
def test_a_tools_use_can_be_wrong_in_many_ways(service, mode, stop):
    service.decide = Scripted(Step(calls=(SEARCH,)))
    service.faults.arm("bedrock.form", times=1, mode=mode)
    events = stream(service, messages=[ASKED, used(), told()])
    assert stop_of(events) == stop
    written = "".join(inputs(events))
    match mode:
        case "misfit":
            assert written == ""
        case "garbled":
            with pytest.raises(ValueError, match="Unterminated string"):
                json.loads(written)
        case "unoffered":
            assert events[1]["contentBlockStart"]["start"]["toolUse"]["name"] not in ("search_script", "show_profile")
        case "again":
            assert json.loads(written) == USE["input"]
        case _:
            assert written == ""


def test_the_rules_play_a_model_over_the_wire(service):
    """What the local cloud does when nobody scripts it: search first, then quote with the tool's numbers."""
    events = stream(service)
    assert json.loads("".join(inputs(events))) == {"query": "Who hid the letter?"}
    passages = {"passages": [{"n": 4, "text": "Mira hid the letter in the boathouse.", "speaker": "Ren"}]}
    shown = told(content=[{"text": json.dumps(passages)}])
    events = stream(service, messages=[ASKED, used(), shown])
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert "".join(delta["text"] for delta in deltas) == "Ren says: “Mira hid the letter in the boathouse.” [4]"
