"""Tools that keep what users suspect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool, note_of, scope_of
from cicada.agents.tools.forms import ListTheories, RefineTheory, StateTheory
from cicada.agents.tools.shown import moment, profile_shown
from cicada.agents.tools.wording import share_of
from cicada.errors import ProfileInvalid, ToolInvalid
from cicada.profiles.changes import Stated, evidence_words
from cicada.profiles.record import Profile
from cicada.profiles.rules import MAX_NAME_CHARS, clipped
from cicada.retrieval.ports import Limits

MIN_SHARE_OF_MESSAGE = 0.5
"""The share of a statement's words that the user's message must have: who *she* is may have been said before."""


class ListTheoriesTool(DeskTool):
    """Lists the actor's theories."""

    form = ListTheories

    def run(self, _given: ListTheories, actor: Actor, _shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        return {"theories": [_listed(profile) for profile in self.desk.list(actor.subject, "theory")]}


class StateTheoryTool(DeskTool):
    """Keeps a theory of the actor's."""

    form = StateTheory
    writes = True

    def run(self, given: StateTheory, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        _refuse_others(given.statement, actor.message)
        scope_of(actor, episodes=given.episodes)
        stated = Stated(given.statement, note_of(actor), given.episodes)
        profile = self.desk.create(self.by(given, actor), "theory", theory_name(given.statement), stated=stated)
        return {"stated": profile_shown(profile, shelf)}


class RefineTheoryTool(DeskTool):
    """Replaces the statement of one of the actor's theories."""

    form = RefineTheory
    writes = True

    def run(self, given: RefineTheory, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        old = self.desk.show(actor.subject, given.id).theory
        if old is None:
            raise ProfileInvalid("only a theory has a statement")
        _refuse_others(given.statement, actor.message, old.statement)
        stated = Stated(given.statement, note_of(actor), old.episodes)
        profile = self.desk.update(self.by(given, actor), given.id, given.expected_version, stated=stated)
        return {"refined": profile_shown(profile, shelf)}


def theory_name(statement: str) -> str:
    """What a theory is filed under: its statement, clipped. It stays when the statement is refined."""
    return clipped(" ".join(statement.split()).rstrip(".!?"), MAX_NAME_CHARS)


def _refuse_others(statement: str, *said: str) -> None:
    if share_of(statement, *said) < MIN_SHARE_OF_MESSAGE:
        raise ToolInvalid("the user's message does not say that: keep the theory in the user's words")


def _listed(profile: Profile) -> dict[str, Any]:
    theory = profile.theory
    judgement = theory.judgement if theory else None
    return {
        "id": profile.id,
        "version": profile.version,
        "statement": theory.statement if theory else profile.name,
        "episodes": list(theory.episodes) if theory else [],
        "evidence": evidence_words(theory) if theory else None,
        "verdict": judgement.verdict if judgement else None,
        "changed": moment(profile.changed_at_ms),
    }
