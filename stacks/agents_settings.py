"""The agents: the deployer's settings for who runs them, with which model, and within which caps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.answer_settings import Group, ModelId


class AgentsSettings(Group):
    """The agents that keep a user's profiles and weigh their theories."""

    adapter: Literal["none", "converse", "classic", "harness"] = Field(
        "converse",
        description="what runs them: the function itself, with a model that can use tools (`converse`); Amazon Bedrock "
        "Agents (`classic`, for accounts that had them before 2026-07-30); an AgentCore harness (`harness`); or "
        "nothing: such questions are answered by a search (`none`). See `docs/agents.md`",
    )
    model_id: ModelId | None = Field(
        None,
        description="the model, on Amazon Bedrock, that uses the tools; `null` takes `models.generationModelId`",
    )
    max_turns: Annotated[int, Field(ge=1, le=30)] = Field(
        8, description="turns of the model for one question; each uses tools, or answers"
    )
    max_tool_calls: Annotated[int, Field(ge=1, le=60)] = Field(
        12, description="uses of tools by the model for one question"
    )
    max_tokens: Annotated[int, Field(ge=4_000, le=1_000_000)] = Field(
        48_000,
        description="tokens that all turns for one question may read and write; half of `budget.requestTokens` is a "
        "bound too",
    )
    max_turn_tokens: Annotated[int, Field(ge=256, le=32_000)] = Field(
        2_048, description="tokens that one turn may write"
    )
    time_s: Annotated[float, Field(ge=5, le=52)] = Field(
        45.0, description="seconds that an agent may take for one question; then a search answers it"
    )

    def runs_on(self, generation_model_id: str) -> str | None:
        """The model that the agents call; None where there are none."""
        return None if self.adapter == "none" else self.model_id or generation_model_id
