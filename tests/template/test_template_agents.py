"""The agents: what the functions are told of them, and what the answer worker may do for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from cicada.agents.limits import AgentCaps
from cicada.answering.attempt_start import CLOSING_RESERVE_S
from cicada.attempts.chain import AGENTS
from cicada.settings import AnswerSettings, MessageProcessorSettings
from stacks.agents_settings import AgentsSettings
from stacks.answer_states import TIME_BUDGETS_S
from tests.template.templates import Synthesis

AUTH = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}
NOVA_PRO = "amazon.nova-pro-v1:0"


def streamed(synthesis: Synthesis) -> set[str]:
    """The models whose answers the answer worker may stream."""
    return {
        resource.rsplit("/", 1)[-1]
        for action, resource, _ in synthesis.permissions("AnswerRole")
        if action == "bedrock:InvokeModelWithResponseStream" and "foundation-model" in resource
    }


def actions(synthesis: Synthesis) -> set[str]:
    return {action for action, _, _ in synthesis.permissions("AnswerRole")}


@pytest.fixture(scope="module")
def without(make: Callable[[dict[str, Any]], Synthesis]) -> Synthesis:
    return make({"auth": AUTH, "agents": {"adapter": "none", "modelId": NOVA_PRO}})


@pytest.fixture(scope="module")
def of_its_own(make: Callable[[dict[str, Any]], Synthesis]) -> Synthesis:
    return make({"auth": AUTH, "agents": {"modelId": NOVA_PRO, "maxTurns": 5, "timeS": 20.0}})


def test_by_default_the_answer_worker_runs_them_with_the_model_of_grounded_answers(shipped: Synthesis) -> None:
    settings = AnswerSettings.read(shipped.environment("answer"))
    assert (settings.agents_adapter, settings.agents_model_id, settings.agents_deployed) == ("converse", "", {})
    assert MessageProcessorSettings.read(shipped.environment("message_processor")).agents_enabled
    assert not {action for action in actions(shipped) if "Agent" in action or "Harness" in action}


def test_the_caps_that_are_shipped_are_those_of_the_code(shipped: Synthesis) -> None:
    told = AnswerSettings.read(shipped.environment("answer"))
    caps = AgentCaps()
    assert told.agents_max_turns == caps.max_turns
    assert told.agents_max_tool_calls == caps.max_tool_calls
    assert told.agents_max_tokens == caps.max_tokens
    assert told.agents_max_turn_tokens == caps.max_turn_tokens
    assert told.agents_time_s == caps.time_s


def test_a_model_of_their_own_may_be_streamed_and_their_caps_are_told(of_its_own: Synthesis) -> None:
    settings = AnswerSettings.read(of_its_own.environment("answer"))
    assert (settings.agents_model_id, settings.agents_max_turns, settings.agents_time_s) == (NOVA_PRO, 5, 20.0)
    assert NOVA_PRO in streamed(of_its_own)


def test_without_agents_no_model_is_allowed_for_them_and_nobody_enters_there(without: Synthesis) -> None:
    assert NOVA_PRO not in streamed(without)
    assert AnswerSettings.read(without.environment("answer")).agents_adapter == "none"
    assert not MessageProcessorSettings.read(without.environment("message_processor")).agents_enabled


def test_a_run_ends_before_its_attempt_does() -> None:
    longest_s = min(TIME_BUDGETS_S[name] for name in AGENTS) - CLOSING_RESERVE_S
    assert AgentsSettings(timeS=longest_s).time_s == longest_s
    with pytest.raises(ValidationError):
        AgentsSettings(timeS=longest_s + 1)
