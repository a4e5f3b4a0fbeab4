"""Tools that change profiles: only what the user has said, or a passage, is ever kept in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool
from cicada.agents.tools.deleting import asks_to_delete_unspaced, deletions_in, words_of
from cicada.agents.tools.forms import CreateProfile, DeleteProfile, Fact, UpdateProfile
from cicada.agents.tools.shown import profile_shown, proof_of
from cicada.agents.tools.theories import called
from cicada.agents.tools.wording import MAX_TOLD, lacking, share_of
from cicada.errors import ToolInvalid
from cicada.profiles.changes import FieldGiven
from cicada.profiles.heads import Head, head_of
from cicada.profiles.rules import folded
from cicada.retrieval.ports import Limits

MIN_SHARE_OF_VALUE = 0.6
"""The share of a fact's words that a message must have which has it removed without naming its field."""


class _WritingTool(DeskTool):
    writes = True

    def _given(self, facts: Sequence[Fact], actor: Actor, shelf: Shelf) -> list[FieldGiven]:
        return [
            FieldGiven(fact.field, fact.value, proof_of(fact.field, fact.value, fact.citation, actor, shelf))
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
            raise ToolInvalid(f"neither the user's message nor a passage names {', '.join(unknown[:MAX_TOLD])}")
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
        if given.remove:
            self._refuse_unasked(given, actor)
        facts = self._given(given.set, actor, shelf)
        profile = self.desk.update(
            self.by(given, actor), given.id, given.expected_version, given=facts, remove=given.remove
        )
        return {"updated": profile_shown(profile, shelf)}

    def _refuse_unasked(self, given: UpdateProfile, actor: Actor) -> None:
        by = self.by(given, actor)
        if self.desk.has_done(by, given.id):
            return
        profile = self.desk.show(actor.subject, given.id)
        kept = {folded(field.name): field.value for field in profile.fields}
        owners = called(head_of(profile))
        asked = deletions_in(actor.message, *owners, *given.remove, *kept, *kept.values())
        for name in given.remove:
            value = kept.get(folded(name), "")
            if not (_is_asked(name, asked, actor, *owners) or any(_speaks_of(value, words) for words in asked)):
                raise ToolInvalid(
                    f"the user's message does not ask to remove {name}: only what it names is removed, and in words "
                    f"such as: remove {name if words_of(name) else value}"
                )


class DeleteProfileTool(_WritingTool):
    """Deletes one of the actor's profiles, where the user's message asks for that and names it."""

    form = DeleteProfile

    def run(self, given: DeleteProfile, actor: Actor, _shelf: Shelf, _limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        by = self.by(given, actor)
        deleted = {"id": given.id}
        if not self.desk.has_done(by, given.id):
            head = head_of(self.desk.show(actor.subject, given.id))
            self._refuse_unasked(head, actor)
            deleted |= {"kind": head.kind, "name": called(head)[0]}
        self.desk.delete(by, given.id, given.expected_version)
        return {"deleted": deleted}

    def _refuse_unasked(self, head: Head, actor: Actor) -> None:
        others = [one for one in self.desk.list(actor.subject) if one.id != head.id]
        names = (name for one in (head, *others) for name in called(one))
        asked = deletions_in(actor.message, head.id, *names)
        if _is_asked(head.id, asked, actor):
            return
        mine = [name for name in called(head) if _is_asked(name, asked, actor)]
        if not mine:
            name = called(head)[0]
            wish = f"{'the profile' if head.statement is None else 'the theory that'} {name}"
            raise ToolInvalid(
                f"the user's message does not ask to delete {wish}: tell the user to say so in a message that names "
                f"it, such as: delete {wish if words_of(name) else head.id}"
            )
        for other in others:
            theirs = [name for name in called(other) if _is_asked(name, asked, actor)]
            if any(_holds(name, own, actor) for name in theirs for own in mine):
                raise ToolInvalid(
                    f"the message may mean {called(other)[0]} ({other.kind}) as well: tell the user to name the id, "
                    f"such as: delete {head.id}"
                )


def _holds(name: str, own: str, actor: Actor) -> bool:
    """Whether one name is a part of another: by its words, or where nothing parts words by its letters."""
    if frozenset(words_of(own)) <= frozenset(words_of(name)):
        return True
    return folded(own) in folded(name) and asks_to_delete_unspaced(actor.message, name)


def _is_asked(name: str, asked: Sequence[frozenset[str]], actor: Actor, *owners: str) -> bool:
    """Whether one of the message's wishes to delete has all words of a name."""
    words = frozenset(words_of(name))
    return any(words <= one for one in asked if words) or asks_to_delete_unspaced(actor.message, name, *owners)


def _speaks_of(value: str, asked: frozenset[str]) -> bool:
    """Whether a wish to remove something has most of a fact's words."""
    return share_of(value, " ".join(asked)) >= MIN_SHARE_OF_VALUE
