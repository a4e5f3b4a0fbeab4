"""ConverseAgent, by a real boto3 client over real HTTP: the contract of agents, and what is this wire's alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cicada.agents.converse.agent import ConverseAgent
from cicada.agents.looping import HOLD_CHARS
from cicada.breakers.dependencies import agent_breaker, verdict
from cicada.errors import AnswerMalformed
from cicada.models.model_ids import Sampling
from cicada.models.retries import RetryPolicy
from cicada.models.structured_output import MALFORMED_HINT
from tests.wire.agent_contract import AgentContract, Rig, Run, Turn, Use
from tests.wire.script_service import ScriptedRig, serving_script

MODEL = "local.extractive"
MAX_TURN_TOKENS = 500


class ConverseRig(ScriptedRig):
    """The adapter, aimed at a server that plays a script."""

    model_id = MODEL
    temperature: float | None = None

    def agent(self) -> ConverseAgent:
        return ConverseAgent(
            self.service.client(),
            self.model_id,
            max_turn_tokens=MAX_TURN_TOKENS,
            temperature=self.temperature,
            retry=RetryPolicy(max_attempts=2, base_s=0.01),
            sampling=Sampling(),
        )


class TestConverse(AgentContract):
    """The contract."""

    @pytest.fixture
    def rig(self) -> Iterator[Rig]:
        with serving_script() as service:
            yield ConverseRig(service)


@pytest.fixture
def rig() -> Iterator[ConverseRig]:
    with serving_script() as service:
        yield ConverseRig(service)


def test_tools_are_offered_with_their_schemas_and_the_turns_bound(rig):
    rig.play(Turn(("Nothing.",)))
    Run(rig).go()
    body = rig.service.bodies[0]
    specs = [tool["toolSpec"] for tool in body["toolConfig"]["tools"]]
    assert [spec["name"] for spec in specs] == ["search_script", "create_profile", "give_verdict"]
    assert specs[1]["inputSchema"]["json"]["required"] == ["name"]
    assert body["inferenceConfig"] == {"maxTokens": MAX_TURN_TOKENS}


def test_opening_calls_stand_as_a_turn_of_the_models_and_its_results(rig):
    rig.play(Turn(("In the boathouse [1].",)))
    run = Run(rig)
    run.go(run.task(("search_script", {"query": "letter"}), ("search_script", {"query": "key"})))
    asked, used, told = rig.service.bodies[0]["messages"]
    assert [message["role"] for message in (asked, used, told)] == ["user", "assistant", "user"]
    assert [block["toolUse"]["input"]["query"] for block in used["content"]] == ["letter", "key"]
    ids = [block["toolUse"]["toolUseId"] for block in used["content"]]
    assert [block["toolResult"]["toolUseId"] for block in told["content"]] == ids


def test_the_replies_of_one_turn_go_back_in_one_turn_each_to_its_use(rig):
    uses = (Use("search_script", {"query": "letter"}, "a"), Use("drop_table", {}, "b"))
    rig.play(Turn(uses=uses), Turn(("Found [1].",)))
    Run(rig).go()
    used, told = rig.service.bodies[1]["messages"][-2:]
    assert [block["toolUse"]["toolUseId"] for block in used["content"]] == ["a", "b"]
    results = [block["toolResult"] for block in told["content"]]
    assert [(result["toolUseId"], result["status"]) for result in results] == [("a", "success"), ("b", "error")]


def test_input_that_is_no_json_is_refused_and_given_back_as_none(rig):
    rig.play(Turn(uses=(Use("create_profile", '{"name": "Mi'),)), Turn(("It was not noted.",)))
    run = Run(rig).go()
    used, told = rig.service.bodies[1]["messages"][-2:]
    assert used["content"][0]["toolUse"]["input"] == {}
    assert told["content"][0]["toolResult"]["status"] == "error"
    assert rig.world.done == []
    assert run.text == "It was not noted."


def test_text_longer_than_what_is_held_back_stays_when_a_tool_follows(rig):
    long = "Mira is a ferrywoman. " * (HOLD_CHARS // 10)
    rig.play(Turn((long,), (Use("search_script", {"query": "letter"}),)), Turn(("She hid it [1].",)))
    assert Run(rig).go().text == f"{long}\n\nShe hid it [1]."


def test_thoughts_that_nova_writes_into_its_text_are_no_part_of_the_answer(rig):
    rig.play(Turn(("<think", "ing>I should search.</thin", "king>\n\nMira is a ferrywoman.")))
    assert Run(rig).go().text == "Mira is a ferrywoman."


@pytest.mark.parametrize("fault", ["malformed", "sequence"])
def test_a_turn_that_the_service_cannot_read_is_asked_for_once_more(rig, fault):
    rig.play(Turn(("Let me",), fault=fault), Turn(("Here.",)))
    assert Run(rig).go().text == "Here."
    first, second = (body["system"][0]["text"] for body in rig.service.bodies)
    assert second == f"{first}\n\n{MALFORMED_HINT}"


@pytest.mark.parametrize("fault", ["malformed", "sequence"])
def test_a_second_turn_that_the_service_cannot_read_ends_the_run_without_blaming_the_model(rig, fault):
    rig.play(Turn(fault=fault), Turn(fault=fault), Turn(("Never.",)))
    error = Run(rig).fails()
    assert (error.code, verdict(agent_breaker("converse"), error)) == ("answer_malformed", "answered")


def test_a_malformed_use_of_a_tool_after_shown_text_ends_the_run(rig):
    rig.play(Turn(("Mira is a ferrywoman. " * HOLD_CHARS,), fault="sequence"), Turn(("Never.",)))
    assert isinstance(Run(rig).fails(), AnswerMalformed)


def test_nova_decodes_greedily_where_it_has_tools(rig):
    rig.play(Turn(("Nothing.",)))
    rig.model_id, rig.temperature = "us.amazon.nova-lite-v1:0", 0.7
    Run(rig).go()
    (body,) = rig.service.bodies
    assert body["inferenceConfig"] == {"maxTokens": MAX_TURN_TOKENS, "temperature": 0.0}
    assert body["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 1}}
