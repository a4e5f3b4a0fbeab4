"""Who may read which collections: the deployer's settings, which win over what collections declare."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cicada.rights import CollectionName, GroupName
from stacks.answer_settings import Group
from stacks.auth_settings import AuthSettings


class AccessSettings(Group):
    """Who may read a collection without a rule, and rules by collection."""

    default: Literal["everybody", "nobody"] = Field(
        "everybody",
        description="who can read a collection that has no `readers` declaration and is not in "
        "`access.collections`; see `docs/access.md`",
    )
    collections: dict[CollectionName, tuple[GroupName, ...]] = Field(
        {},
        description="per collection, the groups that can read it; overrides the collection's declaration. An "
        "empty list denies everyone",
    )

    def check(self, auth: AuthSettings) -> None:
        """Raise ValueError if no token could name a group that may read something."""
        if self.default == "nobody" or self.collections:
            named = [group for groups in self.collections.values() for group in groups]
            auth.check_groups("access", tuple(dict.fromkeys(named)))

    def environment(self) -> dict[str, str]:
        """The variable of the functions that search; none where the settings say nothing."""
        told = self.model_dump_json(by_alias=True, exclude_defaults=True)
        return {} if told == "{}" else {"ACCESS": told}
