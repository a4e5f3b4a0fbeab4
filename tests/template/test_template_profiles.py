"""The limits of profiles: every function that reads or writes profiles is told the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cicada.profiles.rules import ProfileLimits
from cicada.settings import AnswerSettings, MessageProcessorSettings, ProfileSettings
from tests.template.templates import Synthesis


@pytest.fixture(scope="module")
def classic(make: Callable[[dict[str, Any]], Synthesis], full_settings: dict[str, Any]) -> Synthesis:
    return make(full_settings | {"agents": {"adapter": "classic", "modelId": "amazon.nova-lite-v1:0"}})


def tools_environment(synthesis: Synthesis) -> dict[str, str]:
    (tools,) = (f for f in synthesis.resources("AWS::Lambda::Function") if f.id.startswith("AgentsTools"))
    variables = tools.properties["Environment"]["Variables"]
    return {name: value for name, value in variables.items() if name == "PROFILE_LIMITS"} | {"REQUESTS_TABLE": "told"}


def test_what_is_shipped_are_the_limits_of_the_code(shipped: Synthesis) -> None:
    assert "PROFILE_LIMITS" in shipped.environment("answer")
    assert AnswerSettings.read(shipped.environment("answer")).profile_limits == ProfileLimits()


def test_clients_and_agents_are_held_to_the_same(classic: Synthesis) -> None:
    told = [
        MessageProcessorSettings.read(classic.environment("message_processor")).profile_limits,
        AnswerSettings.read(classic.environment("answer")).profile_limits,
        ProfileSettings.read(tools_environment(classic)).profile_limits,
    ]
    assert told == 3 * [
        ProfileLimits(
            profiles=20,
            fields=10,
            history_entries=12,
            record_bytes=256 * 1024,
            confirm_s=120,
            deleted_kept_s=2 * 24 * 3600,
            deleted=30,
            deleted_history_entries=5,
        )
    ]
