"""Tools that show and change profiles. Only words of the user or of a cited passage are entered.

Writing tools are offered only where the user's message asks for a change. Additions and replacements are done at once,
with a receipt; removals wait for the user's confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, ProfileWritten, SourceRegistry, ToConfirm
from cicada.agents.tools.base import ProfileTool
from cicada.agents.tools.inputs import (
    CreateProfile,
    DeleteProfile,
    Fact,
    ListProfiles,
    ProfileHistory,
    RemoveFields,
    ShowProfile,
    UndoChange,
    UpdateProfile,
)
from cicada.agents.tools.shown import MAX_TOLD, change_source, head_shown, moment, numbered, profile_shown, proof_of
from cicada.errors import ToolInvalid
from cicada.profiles.changes import FieldGiven
from cicada.profiles.record import Change, Profile
from cicada.profiles.rules import name_key
from cicada.protocol.events import ChangedField, Source
from cicada.retrieval.ports import SearchLimits
from cicada.text.words import foreign_words

MAX_CHANGES = 20
"""Of a history, the newest: each is a source of its own."""


class ListProfilesTool(ProfileTool):
    """Lists the actor's profiles."""

    form = ListProfiles

    def run(
        self, given: ListProfiles, actor: Actor, _registry: SourceRegistry, _limits: SearchLimits
    ) -> Mapping[str, Any]:
        """See the port."""
        found = self.profile_service.list(actor.subject, given.kind)
        return {
            "profiles": [
                {
                    **head_shown(profile),
                    "facts": profile.facts,
                    "changed": moment(profile.changed_at_ms),
                    **({} if profile.statement is None else {"statement": profile.statement}),
                }
                for profile in found
            ]
        }


class ShowProfileTool(ProfileTool):
    """Shows one of the actor's profiles; each fact's source is registered."""

    form = ShowProfile

    def run(
        self, given: ShowProfile, actor: Actor, registry: SourceRegistry, _limits: SearchLimits
    ) -> Mapping[str, Any]:
        """See the port."""
        match given.id, given.name:
            case str(profile_id), None:
                profile = self.profile_service.show(actor.subject, profile_id)
            case None, str(name):
                profile = self.profile_service.find(actor.subject, name)
            case _:
                raise ToolInvalid("give either the name or the id")
        return profile_shown(profile, registry, actor.readable)


class ProfileHistoryTool(ProfileTool):
    """Shows what has changed in one of the actor's profiles."""

    form = ProfileHistory

    def run(
        self, given: ProfileHistory, actor: Actor, registry: SourceRegistry, _limits: SearchLimits
    ) -> Mapping[str, Any]:
        """See the port."""
        profile, history = self.profile_service.with_history(actor.subject, given.id)
        newest = list(reversed(history))[:MAX_CHANGES]
        told: dict[str, Any] = {
            **head_shown(profile),
            **({} if profile.theory is None else {"statement": profile.theory.statement}),
            "changes": [_shown(change_source(profile, change), change, registry) for change in newest],
        }
        if len(newest) < len(history):
            told["note"] = f"the newest {MAX_CHANGES} of {len(history)} changes that are remembered"
        return told


def _shown(source: Source, change: Change, registry: SourceRegistry) -> dict[str, Any]:
    """A change for the model, as a numbered source: no other source has the earlier values."""
    return {
        "citation": numbered(registry, source),
        "version": change.version,
        "operation": change.operation,
        "text": source.text,
    }


CONFIRMATION_REQUIRED = "confirmation_required"
"""The model's result of a deletion."""


class _WritingTool(ProfileTool):
    writes = in_worker = True

    def _given(self, facts: Sequence[Fact], actor: Actor, registry: SourceRegistry) -> list[FieldGiven]:
        return [FieldGiven(fact.field, fact.value, proof_of(fact, actor, registry)) for fact in facts]

    def _seen(self, actor: Actor, profile_id: str, version: int) -> Profile:
        """The profile. Raises ToolInvalid for another version than the model has seen."""
        profile = self.profile_service.show(actor.subject, profile_id)
        if profile.version != version:
            raise ToolInvalid(f"version {profile.version} is current, not {version}: read the profile again first")
        return profile

    def _to_confirm(
        self, given: DeleteProfile | RemoveFields, actor: Actor, profile: Profile, fields: Sequence[ChangedField]
    ) -> ToConfirm:
        """A deletion that waits for the user."""
        return ToConfirm(
            told={
                "result": CONFIRMATION_REQUIRED,
                "profile": profile.name,
                **({"fields": [field.field for field in fields]} if isinstance(given, RemoveFields) else {}),
                "note": "nothing was deleted yet: the user is asked to confirm it. Say so, and do not call this again",
            },
            confirmation_id=self.by(given, actor).operation_id,
            operation="remove_fields" if isinstance(given, RemoveFields) else "delete",
            profile_id=profile.id,
            kind=profile.kind,
            name=profile.theory.statement if profile.theory else profile.name,
            version=profile.version,
            fields=tuple(fields),
            expires_at_ms=self.profile_service.confirm_until_ms(),
        )


class CreateProfileTool(_WritingTool):
    """Makes a profile of the actor's."""

    form = CreateProfile

    def run(
        self, given: CreateProfile, actor: Actor, registry: SourceRegistry, _limits: SearchLimits
    ) -> ProfileWritten:
        """See the port."""
        texts = (text for source in registry.sources for text in (source.text, source.locator.label()))
        unknown = foreign_words(given.name, *actor.said, *texts)
        if unknown:
            raise ToolInvalid(f"neither the user's message nor a passage names {', '.join(unknown[:MAX_TOLD])}")
        facts, by = self._given(given.fields, actor, registry), self.by(given, actor)
        profile = self.profile_service.create(by, given.kind, given.name, facts)
        return self.written({"created": profile_shown(profile, registry, actor.readable)}, by, profile)


class UpdateProfileTool(_WritingTool):
    """Sets facts of one of the actor's profiles."""

    form = UpdateProfile

    def run(
        self, given: UpdateProfile, actor: Actor, registry: SourceRegistry, _limits: SearchLimits
    ) -> ProfileWritten:
        """See the port."""
        facts, by = self._given(given.set, actor, registry), self.by(given, actor)
        profile = self.profile_service.update(by, given.id, given.expected_version, given=facts)
        return self.written({"updated": profile_shown(profile, registry, actor.readable)}, by, profile)


class UndoChangeTool(_WritingTool):
    """Takes back one change of one of the actor's profiles; never its creation, which would delete it unasked."""

    form = UndoChange

    def run(self, given: UndoChange, actor: Actor, registry: SourceRegistry, _limits: SearchLimits) -> ProfileWritten:
        """See the port."""
        profile, history = self.profile_service.with_history(actor.subject, given.id)
        if any(change.version == given.version and change.operation == "created" for change in history):
            raise ToolInvalid("this change created the profile: delete the profile to undo it")
        by = self.by(given, actor)
        undone = self.profile_service.undo(by, given.id, given.version).profile
        told = {} if undone is None else profile_shown(undone, registry, actor.readable)
        return self.written({"undone": told}, by, profile)


class RemoveFieldsTool(_WritingTool):
    """Asks the user whether facts are to be removed from one of their profiles."""

    form = RemoveFields

    def run(self, given: RemoveFields, actor: Actor, _registry: SourceRegistry, _limits: SearchLimits) -> ToConfirm:
        """See the port."""
        profile = self._seen(actor, given.id, given.expected_version)
        kept = {name_key(field.name): field for field in profile.fields}
        missing = [name for name in given.fields if name_key(name) not in kept]
        if missing:
            raise ToolInvalid(f"unknown field {', '.join(missing[:MAX_TOLD])}")
        fields = (kept[name] for name in dict.fromkeys(map(name_key, given.fields)))
        gone = [ChangedField(field=field.name, before=field.value) for field in fields]
        return self._to_confirm(given, actor, profile, gone)


class DeleteProfileTool(_WritingTool):
    """Asks the user whether one of their profiles is to be deleted."""

    form = DeleteProfile

    def run(self, given: DeleteProfile, actor: Actor, _registry: SourceRegistry, _limits: SearchLimits) -> ToConfirm:
        """See the port."""
        profile = self._seen(actor, given.id, given.expected_version)
        gone = [ChangedField(field=field.name, before=field.value) for field in profile.fields]
        return self._to_confirm(given, actor, profile, gone)
