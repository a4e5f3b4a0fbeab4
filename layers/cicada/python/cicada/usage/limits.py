"""The limits on use: as settings and overrides state them, and as clients see them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import is_
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from cicada.corpus.passages import CorpusModel

AccountKind = Literal["user", "group", "deployment"]
"""Whose use is counted: a user's, that of all members of a group, that of everybody."""
LimitName = Literal["requestsMinute", "requestsOpen", "tokensDay", "tokensMonth", "usdDay", "usdMonth"]
MICRO = 1_000_000
"""Money is counted in millionths of a US dollar, so that sums are exact."""

_absent = partial(is_, None)
Count = Annotated[int, Field(ge=0, le=10**15)]
Usd = Annotated[float, Field(ge=0, le=10**8)]


class Limits(CorpusModel):
    """The limits of one account; None where there is none. Minutes, days and months are those of UTC's calendar."""

    requests_minute: Count | None = Field(None, description="questions a minute")
    requests_open: Count | None = Field(None, description="questions that are being answered at once")
    tokens_day: Count | None = Field(None, description="tokens of text models a day, read and written")
    tokens_month: Count | None = Field(None, description="tokens of text models a month, read and written")
    usd_day: Usd | None = Field(None, description="US dollars for text models a day, by the table of prices")
    usd_month: Usd | None = Field(None, description="US dollars for text models a month, by the table of prices")

    @property
    def stated(self) -> dict[LimitName, int]:
        """The limits that there are: counts, and money in millionths of a US dollar."""
        stated: dict[LimitName, int | None] = {
            "requestsMinute": self.requests_minute,
            "requestsOpen": self.requests_open,
            "tokensDay": self.tokens_day,
            "tokensMonth": self.tokens_month,
            "usdDay": None if self.usd_day is None else round(self.usd_day * MICRO),
            "usdMonth": None if self.usd_month is None else round(self.usd_month * MICRO),
        }
        return {name: most for name, most in stated.items() if most is not None}

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were given, including those given as None: no limit."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def overridden_by(self, override: Limits) -> Limits:
        """These limits, except for those that the override gives. A field given as None takes the limit away."""
        return self.model_copy(update=override.given)

    @classmethod
    def most_generous(cls, several: Mapping[str, Limits]) -> Self:
        """The highest of each limit that any of several gives; None, no limit, is higher than all."""
        return cls(
            **{
                name: None if None in offered else max(offered)
                for name in cls.model_fields
                if (offered := [limits.given[name] for limits in several.values() if name in limits.given])
            }
        )


class UsageLimits(CorpusModel):
    """The limits of a deployment, as its settings state them."""

    user: Limits = Field(Limits(), description="of each user")
    members: dict[str, Limits] = Field(
        {}, description="of each member of a group, in place of `user`; of several groups the highest limits hold"
    )
    groups: dict[str, Limits] = Field({}, description="of a group: of all its members together")
    deployment: Limits = Field(Limits(), description="of the whole deployment")
    pool_shards: int = Field(8, ge=8, le=256, description="items that count the use of a group, or of the deployment")

    def of_user(self, groups: tuple[str, ...]) -> Limits:
        """The limits of a user who is in these groups."""
        mine = {group: self.members[group] for group in groups if group in self.members}
        return self.user.overridden_by(Limits.most_generous(mine))


UNLIMITED = UsageLimits()


class LimitState(CorpusModel):
    """How far a limit is used up."""

    account: AccountKind = Field(description="whose limit: the user's own, a group's, or the whole deployment's")
    group: str | None = Field(None, exclude_if=_absent, description="the name, of a group's limit")
    limit: LimitName | Literal["stopped"] = Field(
        description="requestsMinute: questions a minute; requestsOpen: questions that are being answered at once; "
        "tokensDay, tokensMonth, usdDay, usdMonth: what text models may use in a day or month of UTC; stopped: an "
        "administrator has stopped all spending"
    )
    most: float | None = Field(None, exclude_if=_absent, description="the limit; absent where its amount is not told")
    left: float | None = Field(
        None,
        exclude_if=_absent,
        description="what is left of it, never negative; what open questions may need is set aside",
    )
    resets_at_ms: int | None = Field(
        None, exclude_if=_absent, description="when its minute, day or month ends, in epoch milliseconds"
    )
