"""Tools that look at profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool
from cicada.agents.tools.forms import ListProfiles, ProfileHistory, ShowProfile
from cicada.agents.tools.shown import moment, numbered, profile_shown, proof_source
from cicada.errors import ToolInvalid
from cicada.profiles.record import Change, Profile
from cicada.retrieval.ports import Limits


class ListProfilesTool(DeskTool):
    """Lists the actor's profiles."""

    form = ListProfiles

    def run(self, given: ListProfiles, actor: Actor, _shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        found = self.desk.list(actor.subject, given.kind)
        return {
            "profiles": [
                {
                    "id": profile.id,
                    "kind": profile.kind,
                    "name": profile.name,
                    "version": profile.version,
                    "facts": len(profile.fields),
                    "changed": moment(profile.changed_at_ms),
                }
                for profile in found
            ]
        }


class ShowProfileTool(DeskTool):
    """Shows one of the actor's profiles; each fact's source goes onto the shelf."""

    form = ShowProfile

    def run(self, given: ShowProfile, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        match given.id, given.name:
            case str(profile_id), None:
                profile = self.desk.show(actor.subject, profile_id)
            case None, str(name):
                profile = self.desk.find(actor.subject, name)
            case _:
                raise ToolInvalid("give either the name or the id")
        return profile_shown(profile, shelf)


class ProfileHistoryTool(DeskTool):
    """Shows what has changed in one of the actor's profiles."""

    form = ProfileHistory

    def run(self, given: ProfileHistory, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        profile, history = self.desk.with_history(actor.subject, given.id)
        numbers = {
            field.name: numbered(shelf, proof_source(profile, field.name, field.value, field.proof))
            for field in profile.fields
        }
        return {
            "id": profile.id,
            "kind": profile.kind,
            "name": profile.name,
            "version": profile.version,
            "changes": [_shown(change, profile, numbers) for change in reversed(history)],
        }


def _shown(change: Change, profile: Profile, numbers: Mapping[str, int | None]) -> dict[str, Any]:
    """A change as the model reads it, with the number of what supports a value that stands since."""
    stands = {field.name: field.changed_at_ms for field in profile.fields}
    edits = []
    for edit in change.edits:
        current = {} if stands.get(edit.field) != change.at_ms else {"citation": numbers[edit.field]}
        edits.append({"field": edit.field, "before": edit.before, "after": edit.after, **current})
    return {
        "version": change.version,
        "when": moment(change.at_ms),
        "operation": change.operation,
        "edits": edits,
    }
