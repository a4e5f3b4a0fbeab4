"""What users, groups and the deployment may use: the deployer's settings, and whether they can hold a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from cicada.rights import GroupName
from cicada.usage.limits import LimitName
from stacks.answer_settings import Budget, Group
from stacks.auth_settings import AuthSettings

MOST = 1_000_000_000_000
"""Of any limit: what is more is none."""


def _whole(limits: dict[LimitName, float]) -> dict[LimitName, float]:
    """Requests and tokens as whole numbers."""
    for name, most in limits.items():
        if not name.startswith("usd") and most != int(most):
            raise ValueError(f"{name}: must be a whole number")
    return {name: most if name.startswith("usd") else int(most) for name, most in limits.items()}


AccountLimits = Annotated[dict[LimitName, Annotated[float, Field(gt=0, le=MOST)]], AfterValidator(_whole)]


class UsageLimitsSettings(Group):
    """Limits by account; one that is not named does not exist."""

    user: AccountLimits = Field(
        {},
        description="limits per user, any of `requestsMinute`, `requestsOpen`, `tokensDay`, `tokensMonth`, "
        "`usdDay`, `usdMonth`; see `docs/limits.md`",
    )
    members: dict[GroupName, AccountLimits] = Field(
        {},
        description="per group, limits of each member, instead of `usageLimits.user`; a member of several groups "
        "gets the highest of each",
    )
    groups: dict[GroupName, AccountLimits] = Field({}, description="per group, limits of all members together")
    deployment: AccountLimits = Field({}, description="limits of all users together")
    pool_shards: Annotated[int, Field(ge=8, le=256)] = Field(
        8,
        description="number of counter items for a group or for all users. Each supports 250 questions per "
        "second. Increase it before a month's load requires it; decrease it only at the start of a "
        "month, since counts in removed items are lost",
    )

    def check(self, auth: AuthSettings, budget: Budget) -> None:
        """Raise ValueError if no token could name a group, or no question could fit into a limit."""
        groups = tuple(dict.fromkeys((*self.members, *self.groups)))
        if groups:
            auth.check_groups("usageLimits", groups)
        for path, limits in self._accounts():
            for name, most in limits.items():
                _check_holds_a_question(f"usageLimits.{path}.{name}", name, most, budget)

    def environment(self) -> dict[str, str]:
        """The variable of the function that takes questions; none where nothing is limited."""
        limits = self.model_dump_json(by_alias=True, exclude_defaults=True)
        return {} if limits == "{}" else {"USAGE_LIMITS": limits}

    def told(self, budget: Budget) -> dict[str, object]:
        """What administrators' programs know of the limits, with what a question reserves."""
        limits = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"request": {"tokens": budget.request_tokens, "usd": budget.request_cost_usd}, **limits}

    def _accounts(self) -> Iterator[tuple[str, Mapping[LimitName, float]]]:
        """The limits of each account, with the path of their setting."""
        yield "user", self.user
        yield from ((f"members.{group}", limits) for group, limits in self.members.items())
        yield from ((f"groups.{group}", limits) for group, limits in self.groups.items())
        yield "deployment", self.deployment


def _check_holds_a_question(path: str, name: LimitName, most: float, budget: Budget) -> None:
    if name.startswith("requests"):
        return
    in_usd = name.startswith("usd")
    reserved = budget.request_cost_usd if in_usd else budget.request_tokens
    if most < reserved:
        raise ValueError(
            f"{path}: must be at least {reserved:g}: a question reserves so much before it is answered, by "
            f"budget.{'requestCostUsd' if in_usd else 'requestTokens'}"
        )
