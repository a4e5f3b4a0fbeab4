"""The action ``profile``: the operations on the caller's profiles, with paged replies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from cicada.answering.reply_pages import PAGE_BYTES, bytes_of, fitting, json_bytes, page_of
from cicada.errors import ConfirmationExpired, ProfileConflict, ProfileInvalid
from cicada.profiles.changes import By, FieldGiven, Stated
from cicada.profiles.record import Change, Evidence, NoteProof, Profile, ProfileField, ProfileRecord
from cicada.profiles.rules import clipped, is_profile_id
from cicada.profiles.service import ProfileService, operation
from cicada.protocol.actions import ConfirmChange, ManageProfile
from cicada.protocol.events import Confirm, Confirmed, ProfileChanged
from cicada.protocol.profiles import (
    ProfileChanges,
    ProfileDeleted,
    ProfileExport,
    ProfileHead,
    ProfileReply,
    Profiles,
    ProfileShown,
    TheoryHead,
)

EDITS_AN_ENTRY = 2
"""Edits in one entry of a page of the history: more could be longer than a page."""
_BAD_CURSOR = "invalid cursor"


class ProfileApi:
    """Serves the action ``profile``."""

    def __init__(self, profile_service: ProfileService, *, now_s: Callable[[], float] = time.time) -> None:
        self._profile_service = profile_service
        self._now_s = now_s

    def handle(self, action: ManageProfile, subject: str) -> ProfileReply:
        """Carry out a user's operation.

        Raises:
            ProfileUnknown, ProfileConflict, ProfileInvalid, ProfilesUnavailable.
        """
        match action.operation:
            case "list":
                return self._list(action, subject)
            case "show":
                return _shown(self._meant(action, subject), action)
            case "create":
                return _shown(self._create(action, subject), action)
            case "update":
                return _shown(self._update(action, subject), action)
            case "undo":
                return self._undo(action, subject)
            case "delete":
                profile_id, version = _addressed(action)
                version = self._profile_service.delete(_by(action, subject), profile_id, version)
                return ProfileDeleted(request_id=action.request_id, id=profile_id, version=version)
            case "history":
                return self._history(action, subject)
            case "export":
                return self._export(action, subject)

    def confirm(self, event: Confirm, action: ConfirmChange, subject: str) -> Confirmed:
        """Carry out or decline the deletion of a ``confirm`` event. Idempotent.

        Raises:
            ConfirmationExpired: nothing is deleted.
            ProfileUnknown, ProfileConflict, ProfileInvalid, ProfilesUnavailable.
        """
        told = Confirmed(
            request_id=action.request_id, confirmation_id=event.confirmation_id, outcome="declined", change=None
        )
        if not action.accept:
            return told
        by = By(subject, action.request_id, operation(action.request_id, "confirm", event.confirmation_id))
        if not self._profile_service.has_done(by, event.id):
            if self._now_s() * 1000 > event.expires_at_ms:
                raise ConfirmationExpired(event.confirmation_id)
            if event.operation == "delete":
                self._profile_service.delete(by, event.id, event.version)
            else:
                self._profile_service.update(
                    by, event.id, event.version, remove=[field.field for field in event.fields]
                )
        done = self._profile_service.change_of(by, event.id)
        if done is None:
            raise ProfileConflict("the profile was changed meanwhile")
        change = ProfileChanged(
            operation=done.operation,
            id=event.id,
            kind=event.kind,
            name=event.name,
            version=done.version,
            fields=event.fields,
            undoable=done.operation != "deleted",
        )
        return told.model_copy(update={"outcome": "done", "change": change})

    def _undo(self, action: ManageProfile, subject: str) -> ProfileReply:
        if action.id is None or action.version is None:
            raise ProfileInvalid("undo requires id and version")
        record = self._profile_service.undo(_by(action, subject), action.id, action.version)
        if record.profile is None:
            return ProfileDeleted(request_id=action.request_id, id=record.id, version=record.version)
        return _shown(record.profile, action)

    def _list(self, action: ManageProfile, subject: str) -> Profiles:
        found = self._profile_service.heads(subject, action.cursor or "")
        shown = set(ProfileHead.model_fields)
        heads = (ProfileHead(**one.model_dump(include=shown)) for one in found if action.kind in (None, one.kind))
        page, rest = page_of(heads, PAGE_BYTES)
        return Profiles(request_id=action.request_id, profiles=page, next=page[-1].id if rest else None)

    def _meant(self, action: ManageProfile, subject: str) -> Profile:
        if action.id is not None:
            return self._profile_service.show(subject, action.id)
        return self._profile_service.find(subject, action.name or "", action.kind)

    def _create(self, action: ManageProfile, subject: str) -> Profile:
        if action.kind is None or action.name is None:
            raise ProfileInvalid("a new profile requires kind and name")
        by, fields, stated = _by(action, subject), self._given(action), self._stated(action)
        return self._profile_service.create(by, action.kind, action.name, fields, stated)

    def _update(self, action: ManageProfile, subject: str) -> Profile:
        profile_id, version = _addressed(action)
        return self._profile_service.update(
            _by(action, subject),
            profile_id,
            version,
            given=self._given(action),
            remove=action.remove,
            stated=self._stated(action),
        )

    def _history(self, action: ManageProfile, subject: str) -> ProfileChanges:
        meant = self._meant(action, subject)
        profile, history = self._profile_service.with_history(subject, meant.id)
        entries = [part for change in history for part in _parts(change)]
        start = _start(action, profile)
        page, rest = page_of(entries[start:], PAGE_BYTES)
        return ProfileChanges(
            request_id=action.request_id,
            id=profile.id,
            kind=profile.kind,
            name=profile.name,
            version=profile.version,
            changes=page,
            next=_cursor(profile, start + len(page)) if rest else None,
        )

    def _export(self, action: ManageProfile, subject: str) -> ProfileExport:
        """A page of lines. The cursor is ``<id>.<version>.<characters of that line already sent>``."""
        last, version, offset = _export_place(action.cursor)
        text, room = "", PAGE_BYTES
        records = self._records_from(subject, last)
        if last:
            first = next(records, None)
            if first is None or (first.id, first.version) != (last, version):
                raise ProfileConflict("a profile was changed meanwhile: restart the export")
            records = chain([first], records)
        for record in records:
            if record.profile is None:
                continue
            line = exported(record)
            if record.id == last and offset >= len(line):
                raise ProfileInvalid(_BAD_CURSOR)
            piece = line[offset if record.id == last else 0 :]
            taken = fitting(piece, room)
            text, room = text + taken, room - json_bytes(taken)
            if len(taken) < len(piece):
                sent = len(line) - len(piece) + len(taken)
                cursor = f"{record.id}.{record.version}.{sent}"
                return ProfileExport(request_id=action.request_id, text=text, next=cursor)
        return ProfileExport(request_id=action.request_id, text=text)

    def _records_from(self, subject: str, first: str) -> Iterator[ProfileRecord]:
        """The records from an id on, including that one."""
        return self._profile_service.records(subject, f"{int(first, 16) - 1:020x}" if first and int(first, 16) else "")

    def _given(self, action: ManageProfile) -> list[FieldGiven]:
        return [FieldGiven(one.field, one.value, self._note(action, one.value)) for one in action.given]

    def _stated(self, action: ManageProfile) -> Stated | None:
        if action.statement is None:
            return None
        return Stated(action.statement, self._note(action, action.statement), action.episodes)

    def _note(self, action: ManageProfile, words: str) -> NoteProof:
        """The proof of a value that users set themselves."""
        return NoteProof(request_id=action.request_id, words=clipped(words), said_at_ms=int(self._now_s() * 1000))


def exported(record: ProfileRecord) -> str:
    """A profile with its history as one line of an export."""
    document = {
        "profile": record.profile.model_dump(mode="json", by_alias=True, exclude_none=True) if record.profile else None,
        "history": [change.model_dump(mode="json", by_alias=True, exclude_none=True) for change in record.history],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def _by(action: ManageProfile, subject: str) -> By:
    given = action.model_dump(mode="json", exclude={"v", "request_id"})
    return By(subject, action.request_id, operation(action.request_id, "profile", given))


def _addressed(action: ManageProfile) -> tuple[str, int]:
    if action.id is None or action.expected_version is None:
        raise ProfileInvalid("a change requires id and expectedVersion")
    return action.id, action.expected_version


def _shown(profile: Profile, action: ManageProfile) -> ProfileShown:
    theory = profile.theory
    start = _start(action, profile)
    head = ProfileShown(
        request_id=action.request_id,
        id=profile.id,
        kind=profile.kind,
        name=profile.name,
        version=profile.version,
        created_at_ms=profile.created_at_ms,
        changed_at_ms=profile.changed_at_ms,
        theory=TheoryHead(
            statement=theory.statement, episodes=theory.episodes, proof=theory.proof, judgement=theory.judgement
        )
        if theory and action.cursor is None
        else None,
    )
    items: list[ProfileField | Evidence] = [*profile.fields, *(theory.evidence if theory else ())]
    page, rest = page_of(items[start:], PAGE_BYTES - bytes_of(head), may_be_empty=action.cursor is None)
    return head.model_copy(
        update={
            "fields": tuple(item for item in page if isinstance(item, ProfileField)),
            "evidence": tuple(item for item in page if isinstance(item, Evidence)),
            "next": _cursor(profile, start + len(page)) if rest else None,
        }
    )


def _parts(change: Change) -> Iterator[Change]:
    """A change as entries that each fit into a page."""
    for at in range(0, max(1, len(change.edits)), EDITS_AN_ENTRY):
        yield change.model_copy(update={"edits": change.edits[at : at + EDITS_AN_ENTRY]})


def _cursor(profile: Profile, place: int) -> str:
    return f"{profile.version}.{place}"


def _start(action: ManageProfile, profile: Profile) -> int:
    """Where a page begins. Raises ProfileConflict if the profile has changed since the first page."""
    if action.cursor is None:
        return 0
    version, place = _numbers(action.cursor.split("."), 2)
    if version != profile.version:
        raise ProfileConflict(f"the profile is at version {profile.version} now: restart from the first page")
    return place


def _export_place(cursor: str | None) -> tuple[str, int, int]:
    if cursor is None:
        return "", 0, 0
    profile_id, *numbers = cursor.split(".")
    if not is_profile_id(profile_id):
        raise ProfileInvalid(_BAD_CURSOR)
    version, offset = _numbers(numbers, 2)
    return profile_id, version, offset


def _numbers(texts: Sequence[str], count: int) -> tuple[int, ...]:
    if len(texts) != count or not all(text.isascii() and text.isdigit() for text in texts):
        raise ProfileInvalid(_BAD_CURSOR)
    return tuple(map(int, texts))
