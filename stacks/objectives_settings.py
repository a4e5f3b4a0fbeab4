"""What the deployer expects of the deployment: the alarms tell when it is missed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stacks.answer_settings import Group

Share = Annotated[float, Field(gt=0, lt=1)]


class ObjectivesSettings(Group):
    """Thresholds of the alarms that ``alarmEmail`` creates."""

    answers_missing_share: Share = Field(
        0.05, description="alarm `AnswersMissing`: most of the requests of 15 minutes that may end without an answer"
    )
    answers_fell_back_share: Share = Field(
        0.25, description="alarm `AnswersFellBack`: most of the answers of 15 minutes that may come from a fallback"
    )
    first_text_s: Annotated[float, Field(gt=0, le=600)] = Field(
        10.0,
        description="alarm `FirstTextSlow`: seconds to the first text of 95 in 100 answers of 15 minutes",
    )
    usd_day: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        10.0, description="alarm `SpendingHigh`: US dollars that text models may cost in 24 hours"
    )
    least_events: Annotated[int, Field(ge=1, le=10_000)] = Field(
        2,
        description="how many failed requests, fallbacks or answers there must be in 15 minutes before the share, or "
        "the time, counts: one that stands alone is no alarm",
    )
    quota_share: Share = Field(
        0.8,
        description="alarms `ConcurrencyNearQuota` and `ModelNearQuota`: the share of a quota that may be used",
    )
    model_tokens_minute: dict[str, Annotated[int, Field(ge=1, le=1_000_000_000)]] = Field(
        {},
        max_length=4,
        description="by model ID, the quota of tokens a minute for `ModelNearQuota`, as Service Quotas shows it; a "
        "model that is not named is watched for refused calls alone",
    )
