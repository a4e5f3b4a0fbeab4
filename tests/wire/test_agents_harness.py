"""HarnessAgent, by a real boto3 client over real HTTP: the contract of agents, and what is this wire's alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cicada.agents.exchange import AgentExchange
from cicada.agents.harness.agent import HarnessAgent
from cicada.agents.harness.invocation import Harness
from cicada.errors import (
    AgentCapReached,
    AgentError,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    ModelUnavailable,
)
from cicada.models.converse import StreamedTurn
from cicada.models.model_ids import Sampling
from cicada.models.retries import RetryPolicy
from cicada_local.agents.turns import BrainCall, Step
from cicada_local.bedrock.replies import INVALID_SEQUENCE
from tests.wire.agent_contract import LETTER, AgentContract, Rig, Run, Turn, Use, World
from tests.wire.harness_service import HarnessService, serving_harness
from tests.wire.script_service import ScriptedRig, serving_script

MODEL = "local.extractive"
ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:harness/agents-Ab3dEf6h1j"
MAX_TURN_TOKENS = 500


class HarnessRig(ScriptedRig):
    """The adapter, aimed at a server that plays a script."""

    def agent(self) -> HarnessAgent:
        return HarnessAgent(
            self.service.client("bedrock-agentcore"),
            Harness(ARN, "current"),
            MODEL,
            max_turn_tokens=MAX_TURN_TOKENS,
            temperature=0.2,
            retry=RetryPolicy(max_attempts=2, base_s=0.01),
            sampling=Sampling(),
        )


class TestHarness(AgentContract):
    """The contract."""

    @pytest.fixture
    def rig(self) -> Iterator[Rig]:
        with serving_script() as service:
            yield HarnessRig(service)


@pytest.fixture
def rig() -> Iterator[HarnessRig]:
    with serving_script() as service:
        yield HarnessRig(service)


def test_every_invocation_overrides_all_that_the_harness_could_say(rig):
    uses = Turn(uses=(Use("search_script", {"query": "letter"}),))
    rig.play(uses, Turn(("In the boathouse [1].",)))
    Run(rig).go()
    for body in rig.service.bodies:
        assert body["allowedTools"] == ["search_script", "create_profile", "give_verdict"]
        assert [tool["type"] for tool in body["tools"]] == ["inline_function"] * 3
        assert body["tools"][1]["config"]["inlineFunction"]["inputSchema"]["required"] == ["name"]
        assert (body["maxIterations"], body["maxTokens"]) == (1, MAX_TURN_TOKENS)
        assert 1 <= body["timeoutSeconds"] <= 45
        config = body["model"]["bedrockModelConfig"]
        assert (config["modelId"], config["maxTokens"], config["temperature"]) == (MODEL, MAX_TURN_TOKENS, 0.2)
        assert body["systemPrompt"][0]["text"].startswith("You keep profiles.")
        assert body["skills"] == []


def test_without_tools_none_is_allowed_not_even_those_of_the_session(rig):
    rig.world.tools = lambda: ()
    rig.play(Turn(("Nothing.",)))
    Run(rig).go()
    assert rig.service.bodies[0]["allowedTools"] == ["no_tool"]
    assert rig.service.bodies[0]["tools"] == []


def test_every_invocation_has_a_session_of_its_own_that_nobody_else_can_name(rig):
    rig.play(Turn(fault="throttled"), Turn(uses=(Use("search_script", {"query": "letter"}),)), Turn(("There [1].",)))
    Run(rig).go()
    sessions = rig.service.sessions
    assert len(set(sessions)) == len(sessions) == 3
    assert {len(session) for session in sessions} == {73}
    (actor,) = {body["actorId"] for body in rig.service.bodies}
    assert all(session.startswith(f"{actor}-") for session in sessions)
    assert "asker" not in actor


def test_opening_calls_and_results_stand_in_the_messages_as_turns(rig):
    rig.play(Turn(uses=(Use("search_script", {"query": "key"}, "u-2"),)), Turn(("There [1][2].",)))
    run = Run(rig)
    run.go(run.task(("search_script", {"query": "letter"})))
    roles = [[message["role"] for message in body["messages"]] for body in rig.service.bodies]
    assert roles == [["user", "assistant", "user"], ["user", "assistant", "user", "assistant", "user"]]
    used, told = rig.service.bodies[1]["messages"][-2:]
    assert used["content"][0]["toolUse"]["input"] == {"query": "key"}
    assert told["content"][0]["toolResult"]["toolUseId"] == "u-2"


# --- over the stand-in, which is stricter than a script ---


@pytest.fixture
def service() -> Iterator[HarnessService]:
    with serving_harness() as running:
        yield running


class StandInRig(HarnessRig):
    """The adapter, aimed at the stand-in."""

    def __init__(self, service: HarnessService) -> None:
        self.standin = service
        self.world = World()

    def agent(self) -> HarnessAgent:
        return HarnessAgent(
            self.standin.client(),
            Harness(self.standin.harness.arn, "DEFAULT"),
            MODEL,
            max_turn_tokens=MAX_TURN_TOKENS,
            retry=RetryPolicy(max_attempts=2, base_s=0.01),
        )


def run_with(service: HarnessService, *steps: Step) -> Run:
    left = list(steps)
    service.decide = lambda *_: left.pop(0)
    return Run(StandInRig(service))


SEARCH = Step("Let me look.", (BrainCall("search_script", {"query": "letter"}),))
ANSWER = Step("She hid it in the boathouse [1].")


def test_the_stand_in_hands_the_tools_over_and_takes_their_results(service):
    run = run_with(service, SEARCH, ANSWER)
    assert run.go().text == "She hid it in the boathouse [1]."
    assert run.rig.world.done == [("search_script", "tenant-7/asker-one", {"query": "letter"})]
    system, tools, turns = service.shown[1]
    assert system.startswith("You keep profiles. Answer")
    assert [tool.name for tool in tools] == ["search_script", "create_profile", "give_verdict"], "and no shell"
    assert LETTER in turns[-1].results[0].text


def test_two_uses_under_one_index_are_two(service):
    both = Step("", (BrainCall("search_script", {"query": "letter"}), BrainCall("search_script", {"query": "key"})))
    run = run_with(service, both, ANSWER)
    service.faults.arm("harness.one_index", times=1)
    run.go()
    assert [given["query"] for _, _, given in run.rig.world.done] == ["letter", "key"]


def test_a_tool_that_the_model_was_not_offered_is_refused_and_told(service):
    run = run_with(service, SEARCH, ANSWER)
    service.faults.arm("harness.form", times=1, mode="unoffered")
    run.go()
    assert run.rig.world.done == []
    assert "tool_invalid" in service.shown[1][2][-1].results[0].text


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("max_iterations_exceeded", AgentCapReached),
        ("timeout_exceeded", AgentCapReached),
        ("max_output_tokens_exceeded", AnswerTruncated),
        ("partial_turn", AnswerIncomplete),
        ("interrupted", AnswerIncomplete),
        ("hook_stopped", AnswerIncomplete),
    ],
)
def test_a_stop_of_the_harness_is_an_error_of_ours(service, reason, error):
    service.faults.arm("harness.stop", stop_reason=reason)
    assert isinstance(run_with(service, ANSWER).fails(), error)


def test_a_harness_that_breaks_down_is_invoked_once_more(service):
    service.faults.arm("harness.error", times=1, exception="RuntimeClientError", status=424)
    assert run_with(service, ANSWER).go().text == ANSWER.text
    service.faults.arm("harness.error", exception="RuntimeClientError", status=424)
    assert isinstance(run_with(service, ANSWER).fails(), ModelUnavailable)
    service.faults.disarm()
    service.faults.arm("harness.error", exception="RuntimeClientError", status=424, message=INVALID_SEQUENCE)
    assert isinstance(run_with(service, ANSWER).fails(), AnswerMalformed)


def test_a_tool_that_the_harness_runs_itself_ends_the_run(rig):
    own: dict[str, Any] = {
        "contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "a", "name": "shell"}}}
    }
    own["contentBlockStart"]["start"]["toolUse"]["type"] = "server_tool_use"
    run = Run(rig)
    call = rig.agent().call(run.task(), AgentExchange(run.task(), run.box.tools), StreamedTurn(), left_s=5.0)
    with pytest.raises(AgentError, match="ran a built-in tool"):
        call.read(own)
