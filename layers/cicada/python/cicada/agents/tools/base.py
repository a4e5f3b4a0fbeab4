"""What all tools share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from cicada.agents.ports import Actor, ProfileWritten, TheoryVerdict, ToolInput
from cicada.agents.receipts import told_change
from cicada.errors import ToolInvalid
from cicada.models.structured_output import form_description, form_name
from cicada.profiles.changes import By
from cicada.profiles.record import NoteProof, Profile
from cicada.profiles.rules import clipped
from cicada.profiles.service import ProfileService, operation
from cicada.retrieval.ports import Filters, Retriever
from cicada.text.visible import visible


@dataclass(frozen=True)
class ProfileTool:
    """A tool named after its form: see :class:`cicada.agents.ports.Tool`."""

    profile_service: ProfileService
    retriever: Retriever

    form: ClassVar[type[ToolInput]]
    writes: ClassVar[bool] = False
    in_worker: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """See the port."""
        return form_name(self.form)

    @property
    def description(self) -> str:
        """See the port."""
        return form_description(self.form)

    def by(self, given: ToolInput, actor: Actor) -> By:
        """The author of a change. Repeats of a call in one request are one operation."""
        done = operation(actor.request_id, self.name, given.model_dump(mode="json"))
        return By(actor.subject, actor.request_id, done, reversibly=True)

    def written(
        self, told: Mapping[str, Any], by: By, profile: Profile, verdict: TheoryVerdict | None = None
    ) -> ProfileWritten:
        """The result of a change, with the receipt from the profile's record. Raises ToolInvalid if nothing changed."""
        change = self.profile_service.change_of(by, profile.id)
        if change is None:
            raise ToolInvalid("nothing changed: all of this is already stored")
        back = replace(by, operation_id=operation(by.request_id, "take back", by.operation_id), reversibly=False)
        undo = partial(self.profile_service.undo, back, profile.id, change.version)
        return ProfileWritten(told, told_change(change, profile), verdict, undo)


def note_of(actor: Actor) -> NoteProof:
    """The user's message as a proof."""
    words = clipped(" ".join(visible(actor.message).split()))
    return NoteProof(request_id=actor.request_id, words=words, said_at_ms=actor.said_at_ms)


def scope_of(actor: Actor, collections: Sequence[str] = (), episodes: Sequence[str] = ()) -> Filters:
    """The filters of a search. Raises ToolInvalid outside of the user's own limits."""
    return Filters(
        collections=_within("collections", collections, actor.collections),
        episodes=_within("episodes", episodes, actor.episodes),
        documents=actor.documents,
        sections=actor.sections,
    )


def _within(what: str, wanted: Sequence[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    if allowed and not set(wanted) <= set(allowed):
        raise ToolInvalid(f"the user limits this question to the {what} {', '.join(allowed)}")
    return tuple(dict.fromkeys(wanted)) or allowed
