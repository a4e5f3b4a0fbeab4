"""Tools that change profiles: only what the user has said, or a passage, is ever kept in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool
from cicada.agents.tools.forms import CreateProfile, DeleteProfile, Fact, UpdateProfile
from cicada.agents.tools.shown import profile_shown, proof_of
from cicada.agents.tools.wording import lacking, names_any
from cicada.errors import ToolInvalid
from cicada.profiles.changes import FieldGiven
from cicada.profiles.record import Profile
from cicada.retrieval.ports import Limits


class _WritingTool(DeskTool):
    writes = True

    def _given(self, facts: Sequence[Fact], actor: Actor, shelf: Shelf) -> list[FieldGiven]:
        version = self.retriever.version() if any(fact.citation is not None for fact in facts) else ""
        return [
            FieldGiven(fact.field, fact.value, proof_of(fact.field, fact.value, fact.citation, actor, shelf, version))
            for fact in facts
        ]


class CreateProfileTool(_WritingTool):
    """Makes a profile of the actor's."""

    form = CreateProfile

    def run(self, given: CreateProfile, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        texts = (text for source in shelf.sources for text in (source.text, source.locator.label()))
        unknown = lacking(given.name, actor.message, *texts)
        if unknown:
            raise ToolInvalid(f"neither the user's message nor a passage names {', '.join(unknown[:6])}")
        facts = self._given(given.fields, actor, shelf)
        profile = self.desk.create(self.by(given, actor), given.kind, given.name, facts)
        return {"created": profile_shown(profile, shelf)}


class UpdateProfileTool(_WritingTool):
    """Sets and removes facts of one of the actor's profiles."""

    form = UpdateProfile

    def run(self, given: UpdateProfile, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        if not given.set and not given.remove:
            raise ToolInvalid("nothing is to be changed")
        for name in given.remove:
            if not names_any(name, actor.message):
                raise ToolInvalid(f"the user's message does not speak of {name}: only what it names is removed")
        facts = self._given(given.set, actor, shelf)
        profile = self.desk.update(
            self.by(given, actor), given.id, given.expected_version, given=facts, remove=given.remove
        )
        return {"updated": profile_shown(profile, shelf)}


class DeleteProfileTool(_WritingTool):
    """Deletes one of the actor's profiles, where the user's message names it."""

    form = DeleteProfile

    def run(self, given: DeleteProfile, actor: Actor, _shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        profile = self.desk.show(actor.subject, given.id)
        if not _is_named(profile, actor):
            raise ToolInvalid(
                f"the user's message does not name {profile.name}: ask whether that is what is to be deleted"
            )
        self.desk.delete(self.by(given, actor), given.id, given.expected_version)
        return {"deleted": {"id": profile.id, "kind": profile.kind, "name": profile.name}}


def _is_named(profile: Profile, actor: Actor) -> bool:
    return profile.id in actor.message or names_any(profile.name, actor.message)
