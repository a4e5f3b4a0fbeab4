"""Tools that look at profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool
from cicada.agents.tools.forms import ListProfiles, ProfileHistory, ShowProfile
from cicada.agents.tools.shown import change_source, moment, numbered, profile_shown
from cicada.errors import ToolInvalid
from cicada.profiles.record import Change
from cicada.protocol.events import Source
from cicada.retrieval.ports import Limits

MAX_CHANGES = 20
"""Of a history, the newest: each is a source of its own."""


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
                    "facts": profile.facts,
                    "changed": moment(profile.changed_at_ms),
                    **({} if profile.statement is None else {"statement": profile.statement}),
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
        newest = list(reversed(history))[:MAX_CHANGES]
        told: dict[str, Any] = {
            "id": profile.id,
            "kind": profile.kind,
            "name": profile.name,
            "version": profile.version,
            **({} if profile.theory is None else {"statement": profile.theory.statement}),
            "changes": [_shown(change_source(profile, change), change, shelf) for change in newest],
        }
        if len(newest) < len(history):
            told["note"] = f"the newest {MAX_CHANGES} of {len(history)} changes that are remembered"
        return told


def _shown(source: Source, change: Change, shelf: Shelf) -> dict[str, Any]:
    """A change as the model reads it, with its number: what was there before is in no other source."""
    return {
        "citation": numbered(shelf, source),
        "version": change.version,
        "operation": change.operation,
        "text": source.text,
    }
