"""Tools that keep what users suspect."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cicada.agents.ports import Actor, Shelf, Written
from cicada.agents.tools.base import DeskTool, note_of, scope_of
from cicada.agents.tools.forms import ListTheories, RefineTheory, StateTheory
from cicada.agents.tools.shown import MAX_TOLD, moment, numbered, profile_shown, theory_source
from cicada.errors import ProfileConflict, ProfileInvalid, ToolInvalid
from cicada.profiles.changes import By, Stated
from cicada.profiles.heads import Head
from cicada.profiles.record import Profile
from cicada.profiles.rules import MAX_NAME_CHARS, claim_of, clipped, profile_id
from cicada.retrieval.ports import Limits
from cicada.text.words import foreign_words, quotes

MAX_CITED = 12
"""Theories of a list that can be cited: the shelf has room for 40 sources, and evidence needs most of it."""
_DIGEST_CHARS = 10


class ListTheoriesTool(DeskTool):
    """Lists the actor's theories."""

    form = ListTheories

    def run(self, _given: ListTheories, actor: Actor, shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port. Each theory is a source, as the note that it is, as long as there is room for evidence."""
        heads = self.desk.list(actor.subject, "theory")
        return {"theories": [_listed(head, shelf, cited=at < MAX_CITED) for at, head in enumerate(heads)]}


class StateTheoryTool(DeskTool):
    """Keeps a theory of the actor's."""

    form = StateTheory
    writes = in_worker = True

    def run(self, given: StateTheory, actor: Actor, shelf: Shelf, _limits: Limits) -> Written:
        """See the port."""
        _refuse_unquoted(given, actor)
        scope_of(actor, episodes=given.episodes)
        by = self.by(given, actor)
        profile = self._filed(by, Stated(given.statement, note_of(actor), given.episodes))
        return self.written({"stated": profile_shown(profile, shelf)}, by, profile)

    def _filed(self, by: By, stated: Stated) -> Profile:
        """Under the statement; apart, where a theory that was filed under that says something else by now."""
        name, apart = theory_name(stated.statement), theory_name(stated.statement, by.operation_id)
        if self.desk.has_done(by, profile_id("theory", apart)):
            name = apart
        try:
            return self.desk.create(by, "theory", name, stated=stated)
        except ProfileConflict:
            claim = claim_of(stated.statement)
            for head in self.desk.list(by.subject, "theory"):
                if head.statement is not None and claim_of(head.statement) == claim:
                    raise ProfileConflict(f"there is one that says so: id {head.id}, version {head.version}") from None
        return self.desk.create(by, "theory", apart, stated=stated)


class RefineTheoryTool(DeskTool):
    """Replaces the statement of one of the actor's theories."""

    form = RefineTheory
    writes = in_worker = True

    def run(self, given: RefineTheory, actor: Actor, shelf: Shelf, _limits: Limits) -> Written:
        """See the port."""
        old = self.desk.show(actor.subject, given.id).theory
        if old is None:
            raise ProfileInvalid("only a theory has a statement")
        _refuse_unquoted(given, actor, old.statement)
        stated = Stated(given.statement, note_of(actor), old.episodes)
        by = self.by(given, actor)
        profile = self.desk.update(by, given.id, given.expected_version, stated=stated)
        return self.written({"refined": profile_shown(profile, shelf)}, by, profile)


def theory_name(statement: str, apart: str = "") -> str:
    """What a theory is filed under: its statement, and where that is cut, or if it is filed ``apart`` from others of
    that statement, a digest of all of it, so that theories which begin alike are two. It stays when the statement is
    refined."""
    name = " ".join(statement.split()).rstrip(".!?")
    if len(name) <= MAX_NAME_CHARS and not apart:
        return name
    digest = hashlib.sha256(f"{claim_of(statement)}{apart}".encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{clipped(name, MAX_NAME_CHARS - len(digest) - 2)} #{digest}"


def _refuse_unquoted(given: StateTheory | RefineTheory, actor: Actor, *kept: str) -> None:
    """A statement is made of words that the user's message states, or that are kept already."""
    if not any(quotes(said, given.quote) for said in actor.said):
        raise ToolInvalid("the user's message does not have the quote: copy its words exactly")
    unsaid = foreign_words(given.statement, given.quote, *kept)
    if unsaid:
        raise ToolInvalid(f"the quote does not say {', '.join(unsaid[:MAX_TOLD])}: keep the theory in the user's words")


def _listed(head: Head, shelf: Shelf, *, cited: bool) -> dict[str, Any]:
    number = numbered(shelf, theory_source(head)) if cited else None
    return {
        "id": head.id,
        "version": head.version,
        "statement": head.statement,
        **({} if number is None else {"citation": number}),
        "episodes": list(head.episodes),
        "evidence": head.evidence,
        "verdict": head.verdict,
        "changed": moment(head.changed_at_ms),
    }
