"""Receipts: what users are told of a change, from the record of the change and never from a model's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cicada.agents.ports import ToConfirm
from cicada.delivery.record import RequestHead
from cicada.profiles.record import Change, Profile
from cicada.profiles.rules import clipped
from cicada.profiles.service import ProfileService
from cicada.protocol.events import ChangedField, Confirm, ProfileChanged

MAX_SHOWN_CHARS = 300
"""Of a value before and after. The history has all of it."""
MAX_SHOWN_BYTES = 20 * 1024
"""Of all fields together, as JSON: beyond it the values are cut shorter, so that the event fits its limit."""


def told_change(change: Change, profile: Profile) -> ProfileChanged:
    """A change as its user is told; ``profile`` is the changed one, before or after."""
    return ProfileChanged(
        operation=change.operation,
        id=profile.id,
        kind=profile.kind,
        name=profile.theory.statement if profile.theory else profile.name,
        version=change.version,
        fields=_shown(ChangedField(field=edit.field, before=edit.before, after=edit.after) for edit in change.edits),
        undoable=change.operation != "deleted",
    )


def confirm_of(attempt: int, wanted: ToConfirm) -> Confirm:
    """The event that asks the user to confirm a deletion."""
    return Confirm(
        attempt=attempt,
        confirmation_id=wanted.confirmation_id,
        operation=wanted.operation,
        id=wanted.profile_id,
        kind=wanted.kind,
        name=wanted.name,
        version=wanted.version,
        fields=_shown(wanted.fields),
        expires_at_ms=wanted.expires_at_ms,
    )


def told_changes(profile_service: ProfileService, head: RequestHead) -> Iterator[ProfileChanged]:
    """What a request has changed in its user's profiles so far, from their records."""
    for profile, change in profile_service.changes_for(head.key.subject, head.key.request_id, head.accepted_at_ms):
        yield told_change(change, profile)


def change_words(change: ProfileChanged) -> str:
    """A change in a few words: *updated the character “Corin”*."""
    return f"{change.operation} the {change.kind.replace('_', ' ')} “{change.name}”"


def _shown(fields: Iterable[ChangedField]) -> tuple[ChangedField, ...]:
    whole, chars = tuple(fields), MAX_SHOWN_CHARS
    while True:
        shown = tuple(_cut(field, chars) for field in whole)
        if chars == 1 or sum(len(one.model_dump_json(by_alias=True).encode()) for one in shown) <= MAX_SHOWN_BYTES:
            return shown
        chars = max(1, chars * 3 // 4)


def _cut(field: ChangedField, chars: int) -> ChangedField:
    before, after = (None if value is None else clipped(value, chars) for value in (field.before, field.after))
    return ChangedField(field=field.field, before=before, after=after)
