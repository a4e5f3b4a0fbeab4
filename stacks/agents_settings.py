"""The agents: the deployer's settings for who runs them, with which model, and within which caps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.answer_settings import Group, ModelId


class AgentsSettings(Group):
    """The agents that keep a user's profiles and weigh their theories."""

    adapter: Literal["none", "converse", "classic", "harness"] = Field(
        "converse",
        description="how agents run: in the answer function with a model that supports tools (`converse`), with "
        "Amazon Bedrock Agents (`classic`, for accounts that used them before 2026-07-30), with an "
        "AgentCore harness (`harness`), or not at all (`none`; the search answers instead). See "
        "`docs/agents.md`",
    )
    model_id: ModelId | None = Field(
        None,
        description="the Amazon Bedrock model for agents; `null` uses `models.generationModelId`",
    )
    max_turns: Annotated[int, Field(ge=1, le=30)] = Field(
        8, description="maximum model turns per question; each turn calls tools or answers"
    )
    max_tool_calls: Annotated[int, Field(ge=1, le=60)] = Field(12, description="maximum tool calls per question")
    max_tokens: Annotated[int, Field(ge=4_000, le=1_000_000)] = Field(
        48_000,
        description="maximum tokens, input and output, of all turns for one question; also limited to half of "
        "`budget.requestTokens`",
    )
    max_turn_tokens: Annotated[int, Field(ge=256, le=32_000)] = Field(
        2_048, description="maximum output tokens of one turn"
    )
    time_s: Annotated[float, Field(ge=5, le=52)] = Field(
        45.0, description="agent timeout per question, in seconds; after it the search answers"
    )

    def runs_on(self, generation_model_id: str) -> str | None:
        """The model that the agents call; None where there are none."""
        return None if self.adapter == "none" else self.model_id or generation_model_id
