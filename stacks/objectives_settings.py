"""What the deployer expects of the deployment: the alarms tell when it is missed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stacks.answer_settings import Group

Share = Annotated[float, Field(gt=0, lt=1)]


class ObjectivesSettings(Group):
    """Thresholds of the alarms that ``alarmEmail`` creates."""

    answers_missing_share: Share = Field(
        0.05, description="alarm `AnswersMissing`: maximum share of requests without an answer in 15 minutes"
    )
    answers_fell_back_share: Share = Field(
        0.25, description="alarm `AnswersFellBack`: maximum share of answers from a fallback in 15 minutes"
    )
    first_text_s: Annotated[float, Field(gt=0, le=600)] = Field(
        10.0,
        description="alarm `FirstTextSlow`: maximum 95th percentile of the time to the first text in 15 minutes, "
        "in seconds",
    )
    usd_day: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        10.0, description="alarm `SpendingHigh`: maximum cost of text models in 24 hours, in US dollars"
    )
    least_events: Annotated[int, Field(ge=1, le=10_000)] = Field(
        2,
        description="minimum number of failed requests, fallbacks or answers in 15 minutes before these alarms "
        "evaluate; prevents alarms for single events",
    )
    quota_share: Share = Field(
        0.8,
        description="alarms `ConcurrencyNearQuota` and `ModelNearQuota`: maximum used share of a quota",
    )
    model_tokens_minute: dict[str, Annotated[int, Field(ge=1, le=1_000_000_000)]] = Field(
        {},
        max_length=4,
        description="per model ID, the quota of tokens per minute for `ModelNearQuota`, as shown in Service "
        "Quotas; for other models only throttled calls are monitored",
    )
