"""Who may read which collections: rules by the groups of a user's token, and what they allow one asker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

GROUP_NAME = r"^[^\s,\x00-\x1f]([^,\x00-\x1f]{0,126}[^\s,\x00-\x1f])?$"
GroupName = Annotated[str, StringConstraints(pattern=GROUP_NAME)]
"""A group's name; commas are left out because groups are passed on as a list with commas."""
COLLECTION_NAME = r"\w[\w-]{0,63}"


def _as_collections_are_called(name: str) -> str:
    """Pydantic's patterns also fit letters with marks of their own, which no collection has: a rule would be idle."""
    if re.fullmatch(COLLECTION_NAME, name) is None:
        raise PydanticCustomError("no_collection", "must be a collection's name, with letters in composed form (NFC)")
    return name


CollectionName = Annotated[
    str, StringConstraints(pattern=f"^{COLLECTION_NAME}$"), AfterValidator(_as_collections_are_called)
]
"""As a collection of the index can be called."""
Readers = tuple[str, ...]
"""The groups that may read a collection; a member of any may. Empty: nobody may."""
Default = Literal["everybody", "nobody"]
ReadersByCollection = dict[CollectionName, tuple[GroupName, ...]]


@dataclass(frozen=True)
class Readable:
    """The collections that one asker may read: all or none, except for those that are named."""

    others: bool
    """Whether collections that are not in ``exceptions`` may be read."""
    exceptions: frozenset[str] = frozenset()
    groups: tuple[str, ...] | None = field(default=None, compare=False)
    """The asker's groups, for a search engine with access rules of its own; None for an administrator."""
    ruled: frozenset[str] = field(default=frozenset(), compare=False)
    """The collections that had a rule when these rights were made."""

    def allows(self, collection: str) -> bool:
        """Whether the asker may read a collection."""
        return self.others != (collection in self.exceptions)

    def allows_declared(self, collection: str, readers: Readers | None) -> bool:
        """Whether the asker may read a collection in a version in which it declares these readers.

        The version can have been published after these rights were made: without a rule, its own declaration counts.
        """
        if readers is not None and self.groups is not None and collection not in self.ruled:
            return self.allows(collection) and not frozenset(readers).isdisjoint(self.groups)
        return self.allows(collection)

    def among(self, collections: Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """For an engine that filters by names: the collections to search, None for all but the second ones.

        ``collections`` are those that a question names; all where it names none.
        """
        if collections:
            return tuple(filter(self.allows, collections)), ()
        named = tuple(sorted(self.exceptions))
        return (None, named) if self.others else (named, ())

    @property
    def key(self) -> str:
        """Equal for askers with equal rights, and for no others."""
        return "\n".join(["all but" if self.others else "none but", *sorted(self.exceptions)])


EVERYTHING = Readable(others=True)
"""For administrators, who can read the index itself."""
NOTHING = Readable(others=False)


@dataclass(frozen=True)
class AccessRules:
    """Who may read each collection."""

    default: Default = "everybody"
    """Who may read a collection without a rule."""
    readers: Mapping[str, Readers] = field(default_factory=dict)
    """By collection."""

    def readable(self, groups: tuple[str, ...]) -> Readable:
        """What a member of these groups may read."""
        others = self.default == "everybody"
        mine = frozenset(groups)
        differing = {name for name, readers in self.readers.items() if bool(mine.intersection(readers)) != others}
        return Readable(others, frozenset(differing), groups, frozenset(self.readers))


class ConfiguredAccess(BaseModel):
    """What a deployment's settings say of access, as the functions' variable ``ACCESS`` carries it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    default: Default = "everybody"
    collections: ReadersByCollection = Field(default_factory=dict)
    """For these collections it wins over what they declare."""


ANY_COLLECTION = "*"
"""In the settings of uploads: every collection that is not named there, and those that do not exist yet."""


class Uploaders(BaseModel):
    """Who may upload to which collections, as the functions' variable ``UPLOADERS`` carries it.

    A user who may upload must be allowed to read the collection too: see ``docs/access.md``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    everybody: bool = False
    """Whether all callers may upload to all collections: on a laptop without sign-in."""
    collections: dict[CollectionName | Literal["*"], tuple[GroupName, ...]] = Field(default_factory=dict)
    """By collection, the groups whose members may; ``*`` stands for those that are not named."""

    def may_upload(self, collection: str, groups: tuple[str, ...]) -> bool:
        """Whether a member of these groups may upload to a collection."""
        uploaders = self.collections.get(collection, self.collections.get(ANY_COLLECTION, ()))
        return self.everybody or not frozenset(groups).isdisjoint(uploaders)

    def may_create(self, groups: tuple[str, ...]) -> tuple[str, ...]:
        """The named collections that a member of these groups may upload to, and ``*`` for those that are not named."""
        if self.everybody:
            return (ANY_COLLECTION,)
        return tuple(sorted(name for name in self.collections if self.may_upload(name, groups)))
