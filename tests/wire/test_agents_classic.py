"""ClassicAgent, by a real boto3 client over real HTTP, with the action-group function: the contract of agents, and what
is this wire's alone."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from cicada.agents.classic.agent import ClassicAgent, DeployedAgent
from cicada.agents.classic.function import ActionFunction
from cicada.agents.classic.invocation import Invocations
from cicada.agents.classic.schema import function_of
from cicada.agents.limits import AgentCaps
from cicada.agents.ports import Tool
from cicada.delivery.record import Question, RequestHead, RequestKey
from cicada.errors import AgentCapReached, AgentError, AgentUnavailable, AnswerBlocked, RequestUnknown, StreamBroken
from cicada.models.retries import RetryPolicy
from cicada_local.agents.turns import BrainCall, BrainTool, Step
from cicada_local.agents.turns import Turn as Said
from tests.support.access import GivenRules
from tests.wire.agent_contract import PATIENCE_S, QUESTION, SUBJECT, AgentContract, Fault, Run, Turn, Use, World
from tests.wire.agents_service import (
    AGENT_ID,
    ALIAS_ID,
    MODEL,
    READING_AGENT_ID,
    AgentsService,
    function,
    serving_agents,
)

MAX_TURN_TOKENS = 500
DEPLOYED = [DeployedAgent(agent_id, ALIAS_ID, MODEL) for agent_id in (AGENT_ID, READING_AGENT_ID)]
EARLY: dict[Fault | None, tuple[str, dict[str, Any]]] = {
    "throttled": ("agents.throttle", {}),
    "unavailable": ("agents.error", {}),
    "refused": ("agents.error", {"exception": "AccessDeniedException", "status": 403}),
}


class Requests:
    """The requests' table: one open request."""

    def __init__(self) -> None:
        self.head_ = RequestHead(
            RequestKey(SUBJECT, "request-1"), Question(QUESTION), "origin", 1_700_000_000_000, expires_at=1 << 40
        )

    def head(self, key: RequestKey) -> RequestHead:
        if key != self.head_.key:
            raise RequestUnknown("there is no such request")
        return self.head_


class ClassicRig:
    """The adapter and the action-group function, aimed at the stand-in with a scripted model."""

    streams_turns = False
    reports_usage = True

    def __init__(self, service: AgentsService) -> None:
        self.service = service
        self.world = World()
        self.requests = Requests()
        self.turns: deque[Turn] = deque()
        self.now: Turn = Turn()
        self.heard: list[str] = []
        self.offered: list[set[str]] = []
        self.serve(self.world.tools, self.requests.head_.key)
        service.before = self._arrives
        service.decide = self._decide
        service.reckon = lambda prompt, step: (self.now.input_tokens, self.now.output_tokens)
        service.function = self._function

    def play(self, *turns: Turn) -> None:
        self.turns.extend(turns)

    def serve(self, tools: Callable[[], Sequence[Tool[Any]]], key: RequestKey) -> None:
        self.tools = tools
        self.requests.head_ = replace(self.requests.head_, key=key)
        for agent_id, told in (
            (AGENT_ID, tools()),
            (READING_AGENT_ID, [tool for tool in tools() if not tool.writes]),
        ):
            groups: dict[bool, list[Any]] = {False: [], True: []}
            for tool in told:
                schema = function_of(tool)
                kinds = {one.name: one.kind + ("!" if one.required else "") for one in schema.parameters}
                groups[tool.in_worker].append(function(schema.name, **kinds))
            self.service.deploy(agent_id, reading=groups[False], writing=groups[True])

    def agent(self) -> ClassicAgent:
        invocations = Invocations(self.service.client(), retry=RetryPolicy(max_attempts=2, base_s=0.01))
        return ClassicAgent(invocations, *DEPLOYED, max_turn_tokens=MAX_TURN_TOKENS)

    def closed_by_caller(self) -> bool:
        return self.service.handled.wait(PATIENCE_S)

    def _arrives(self) -> None:
        if self.turns and self.turns[0].fault in EARLY:
            name, params = EARLY[self.turns.popleft().fault]
            self.service.faults.arm(name, times=1, **params)

    def _decide(self, system: str, tools: Sequence[BrainTool], turns: Sequence[Said]) -> Step:
        self.offered.append({tool.name for tool in tools})
        self.heard.append(
            json.dumps([system, *([*turn.texts, *(result.text for result in turn.results)] for turn in turns)])
        )
        self.now = turn = self.turns.popleft()
        text = "".join(turn.text)
        match turn.fault:
            case "cut" | "exception" | "stall":
                mode = "reset" if turn.fault == "cut" else turn.fault
                self.service.faults.arm("agents.cut", times=1, mode=mode, after=1 if text else 0)
            case "truncated":
                self.service.faults.arm("agents.stop", times=1, stop_reason="max_tokens")
            case "filtered":
                self.service.faults.arm("agents.block", times=1)
        calls = []
        for use in turn.uses:
            assert not isinstance(use.given, str)
            calls.append(BrainCall(use.name, use.given))
        return Step(text, tuple(calls))

    def _function(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return ActionFunction(self.requests, self.tools(), now_s=time.time, access=GivenRules()).answer(event)


@pytest.fixture
def rig() -> Iterator[ClassicRig]:
    with serving_agents() as service:
        yield ClassicRig(service)


class TestClassic(AgentContract):
    """The contract."""

    @pytest.fixture
    def rig(self, rig: ClassicRig) -> ClassicRig:
        return rig


# --- what is this wire's alone ---


def test_a_run_has_a_session_of_its_own_that_names_nobody(rig):
    rig.play(Turn(("One.",)), Turn(("Two.",)))
    Run(rig).go()
    Run(rig).go()
    first, second = rig.service.sessions
    assert first != second
    assert SUBJECT not in first


def test_a_request_asks_for_the_trace_and_a_streamed_answer_in_the_users_name(rig):
    rig.play(Turn(("One.",)))
    Run(rig).go()
    (body,) = rig.service.bodies
    assert body["enableTrace"] is True
    assert body["streamingConfigurations"] == {"streamFinalResponse": True}
    attributes = body["sessionState"]["sessionAttributes"]
    assert (attributes["subject"], attributes["requestId"]) == (SUBJECT, "request-1")
    assert "promptSessionAttributes" not in body["sessionState"]
    assert SUBJECT not in body["inputText"]


def test_numbers_of_opening_calls_go_on_in_the_function_and_back(rig):
    rig.play(
        Turn(uses=(Use("search_script", {"query": "key"}),)),
        Turn(uses=(Use("create_profile", {"name": "Mira"}),)),
        Turn(uses=(Use("search_script", {"query": "opening"}),)),
        Turn(("Both [1][2].",)),
    )
    run = Run(rig)
    run.go(run.task(("search_script", {"query": "opening"})))
    assert [(one.n, one.passage_id) for one in run.registry.sources] == [(1, "p-opening"), (2, "p-key")]
    assert [event["sessionAttributes"]["shelf"].count(",") for event in rig.service.events] == [0, 1]


def test_a_passage_under_the_number_of_another_ends_the_run(rig):
    function = rig.service.function
    rig.service.function = lambda event: {**function(event), "sessionAttributes": event["sessionAttributes"]}
    rig.play(*(Turn(uses=(Use("search_script", {"query": name}),)) for name in ("letter", "key")), Turn(("Never.",)))
    error = Run(rig).fails()
    assert isinstance(error, AgentError)
    assert "passage 1" in str(error)


@pytest.mark.parametrize("mode", ["half_frame", "corrupt", "garbled", "silent"])
def test_every_other_cut_is_a_broken_stream_too(rig, mode):
    rig.play(Turn(("Mira hid the letter in the boathouse.",)))
    rig.service.faults.arm("agents.cut", times=1, mode=mode, after=1)
    run = Run(rig)
    assert isinstance(run.fails(), StreamBroken)
    assert run.text == "Mira "


def test_a_silent_stream_is_broken(rig):
    rig.play(Turn(("Mira hid the letter.",), fault="stall"))
    agent = rig.agent()
    agent._invocations._silence_s = 2.0  # longer than a busy machine takes for the first words
    rig.agent = lambda: agent
    assert isinstance(Run(rig).fails(), StreamBroken)


def test_a_whole_answer_counts_although_its_chunk_was_cut_off(rig):
    """The final response stands in the trace, whole, before the chunk of an answer that is not streamed."""
    rig.play(Turn(("Mira hid the letter.",)))
    client = rig.service.client()
    unstreamed = client.invoke_agent

    def invoke_agent(**request: Any) -> Any:
        del request["streamingConfigurations"]
        return unstreamed(**request)

    client.invoke_agent = invoke_agent
    agent = ClassicAgent(Invocations(client), *DEPLOYED)
    rig.agent = lambda: agent
    assert Run(rig).go().pieces == ["Mira hid the letter."]


def test_a_function_that_refuses_the_run_ends_it(rig):
    rig.requests.head_ = RequestHead(
        RequestKey("somebody-else", "request-1"), Question(QUESTION), "origin", 1, expires_at=1 << 40
    )
    rig.play(Turn(uses=(Use("search_script", {"query": "letter"}),)), Turn(("Never.",)))
    assert isinstance(Run(rig).fails(), AgentError)
    assert rig.world.done == []


def test_a_conflict_and_a_missing_agent_are_told_apart(rig):
    rig.service.faults.arm("agents.error", exception="ConflictException", status=409)
    assert isinstance(Run(rig).fails(), AgentUnavailable)
    rig.service.faults.disarm()
    rig.service.store.delete_alias(AGENT_ID, ALIAS_ID)
    error = Run(rig).fails()
    assert isinstance(error, AgentError)
    assert not isinstance(error, AgentUnavailable)


def test_a_guardrail_that_steps_in_blocks_the_answer(rig):
    rig.play(Turn(("Secret.",), fault="filtered"))
    run = Run(rig)
    assert isinstance(run.fails(), AnswerBlocked)
    assert run.text == ""


def test_a_turn_that_the_service_takes_itself_counts_towards_the_cap(rig):
    rig.play(Turn(uses=(Use("search_script", {"query": "a"}),)), Turn(("Never.",)))
    error = Run(rig, AgentCaps(max_turns=1)).fails()
    assert isinstance(error, AgentCapReached)
    assert "turns" in str(error)
