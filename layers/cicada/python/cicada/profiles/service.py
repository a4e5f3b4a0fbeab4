"""The operations on profiles, each on behalf of one user."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cicada.errors import ProfileConflict, ProfileInvalid, ProfileUnknown
from cicada.profiles import changes
from cicada.profiles.changes import By, ChangeContext, FieldGiven, Stated
from cicada.profiles.heads import Listed, StoredHead
from cicada.profiles.record import Change, Evidence, Kind, Profile, ProfileRecord, Verdict
from cicada.profiles.rules import MAX_NAME_CHARS, ProfileLimits, is_profile_id, line, name_key, profile_id
from cicada.profiles.store import ProfileStore, RecordChanged

PAGE = 100  # heads per read
MAX_SKEW_MS = 60_000  # how far the clocks of two functions may differ
WHOLE_PAGE = 3  # whole records per read: an export's page seldom holds more


def operation(request_id: str, name: str, given: Any) -> str:
    """The id of an operation on a JSON-serialisable input; the same when the operation is repeated."""
    canonical = json.dumps(given, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(f"{request_id}\0{name}\0{canonical}".encode()).hexdigest()[:32]


class ProfileService:
    """Lists, shows and changes one user's profiles.

    The owner is part of every key, so another user's profile is unknown, like a missing one. Every method raises
    :class:`cicada.errors.ProfilesUnavailable` when the store fails.
    """

    def __init__(
        self, store: ProfileStore, *, limits: ProfileLimits | None = None, now_s: Callable[[], float] = time.time
    ) -> None:
        """``now_s`` returns epoch seconds."""
        self._store = store
        self._limits = limits or ProfileLimits()
        self._now_s = now_s

    def list(self, subject: str, kind: Kind | None = None) -> tuple[StoredHead, ...]:
        """A user's profiles without their facts, sorted by kind and name."""
        wanted = (head for head in self.heads(subject) if kind in (None, head.kind))
        return tuple(sorted(wanted, key=lambda head: (head.kind, name_key(head.name))))

    def heads(self, subject: str, after: str = "") -> Iterator[StoredHead]:
        """A user's profiles without their facts, in the order of their ids, starting after an id."""
        return (listed.head for listed in self._listed(subject, after) if listed.head is not None)

    def show(self, subject: str, profile_id: str) -> Profile:
        """One profile. Raises ProfileUnknown."""
        return self._read(subject, profile_id)[1]

    def find(self, subject: str, name: str, kind: Kind | None = None) -> Profile:
        """The profile with a name. Raises ProfileUnknown, or ProfileInvalid if ``kind`` is needed to choose one."""
        if kind is not None:
            return self.show(subject, profile_id(kind, name))
        found = [head for head in self.list(subject) if name_key(head.name) == name_key(name)]
        if not found:
            raise ProfileUnknown("this user has no profile with this name")
        if len(found) > 1:
            kinds = ", ".join(head.kind for head in found)
            raise ProfileInvalid(f"several profiles have this name: specify the kind ({kinds})")
        return self.show(subject, found[0].id)

    def records(self, subject: str, after: str = "") -> Iterator[ProfileRecord]:
        """A user's records in the order of their ids, starting after an id, deleted profiles included."""
        _refuse_invalid_cursor(after)
        while page := self._store.page(subject, after, WHOLE_PAGE):
            yield from page
            after = page[-1].id

    def with_history(self, subject: str, profile_id: str) -> tuple[Profile, tuple[Change, ...]]:
        """A profile and its changes, oldest first, from one read. Raises ProfileUnknown."""
        record, profile = self._read(subject, profile_id)
        return profile, record.history

    def create(
        self, by: By, kind: Kind, name: str, fields: Sequence[FieldGiven] = (), stated: Stated | None = None
    ) -> Profile:
        """Create a profile; ``stated`` is for kind ``theory`` alone.

        Raises:
            ProfileConflict: the user has one of that kind and name (case is ignored); the message has id and version.
            ProfileUnknown: a repeated operation, and the profile was deleted since.
            ProfileInvalid: it breaks a rule or a limit.
        """
        new_id = profile_id(kind, line("the name", name, MAX_NAME_CHARS))
        old = self._store.read(by.subject, new_id)
        if (done := _done(old, by)) is not None:
            return done
        self._refuse_existing(old)
        self._refuse_more(by.subject, known=old is not None)
        new = changes.created(old, kind, name, fields, stated, self._context(by))
        try:
            self._store.write(by.subject, new, over=old.version if old else 0)
        except RecordChanged:
            current = self._store.read(by.subject, new_id)
            if (done := _done(current, by)) is not None:
                return done
            self._refuse_existing(current)
            raise ProfileConflict("the profile was deleted at the same time: try again") from None
        return _profile(new)

    def update(
        self,
        by: By,
        profile_id: str,
        expected_version: int,
        *,
        given: Sequence[FieldGiven] = (),
        remove: Sequence[str] = (),
        stated: Stated | None = None,
    ) -> Profile:
        """Set and remove fields, or replace a theory's statement, which drops its evidence and verdict.

        ``expected_version`` is the version the caller last read. A field whose value is unchanged keeps its proof.

        Raises:
            ProfileUnknown: this user has no such profile.
            ProfileConflict: it has another version; the message names it.
            ProfileInvalid: it breaks a rule or a limit.
        """
        return _profile(
            self._change(
                by,
                profile_id,
                expected_version,
                lambda old, profile, context: changes.updated(old, profile, given, remove, stated, context),
            )
        )

    def judge(
        self, by: By, profile_id: str, expected_version: int, verdict: Verdict, evidence: Sequence[Evidence]
    ) -> Profile:
        """Store the evidence for and against a theory, and the verdict on it.

        Raises ProfileInvalid if the profile is no theory or nothing is cited, and what :meth:`update` raises.
        """
        return _profile(
            self._change(
                by,
                profile_id,
                expected_version,
                lambda old, profile, context: changes.judged(old, profile, verdict, evidence, context),
            )
        )

    def undo(self, by: By, profile_id: str, version: int) -> ProfileRecord:
        """Undo the change that made a version; undoing the creation leaves a record without profile.

        Raises:
            ProfileUnknown: this user has no such profile.
            ProfileConflict: the result of that change was changed since.
            ProfileInvalid: the history no longer has that change.
        """
        return self._change(
            by, profile_id, None, lambda old, profile, context: changes.undone(old, profile, version, context)
        )

    def delete(self, by: By, profile_id: str, expected_version: int) -> int:
        """Delete a profile with its history, and return the new version. Raises as :meth:`update`."""
        return self._change(
            by, profile_id, expected_version, lambda old, _profile, context: changes.deleted(old, context)
        ).version

    def change_of(self, by: By, profile_id: str) -> Change | None:
        """The change that this operation made to a profile, which may be deleted since; None if it made none."""
        record = self._known(by.subject, profile_id)
        return None if record is None else record.change_of(by.operation_id)

    def changes_for(self, subject: str, request_id: str, since_ms: int) -> Iterator[tuple[Profile, Change]]:
        """The changes that a request made, with their profiles, deleted profiles left out.

        ``since_ms`` is when the request was accepted, in epoch milliseconds; profiles last changed earlier are skipped.
        """
        for head in self.heads(subject):
            if head.changed_at_ms < since_ms - MAX_SKEW_MS:
                continue
            record = self._known(subject, head.id)
            for change in record.history if record and record.profile else ():
                if change.request_id == request_id and record and record.profile:
                    yield record.profile, change

    def has_done(self, by: By, profile_id: str) -> bool:
        """Whether this operation has changed a profile already, which may be deleted since."""
        return self.change_of(by, profile_id) is not None

    def confirm_until_ms(self) -> int:
        """When a deletion requested now stops being confirmable, in epoch milliseconds."""
        return self._now_ms() + self._limits.confirm_s * 1000

    def _listed(self, subject: str, after: str = "") -> Iterator[Listed]:
        _refuse_invalid_cursor(after)
        while True:
            page = self._store.heads(subject, after, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def _refuse_more(self, subject: str, *, known: bool) -> None:
        """Raise ProfileInvalid at a limit. A deleted profile of the same ``known`` name is counted already."""
        living = deleted = 0
        for listed in self._listed(subject):
            living += listed.head is not None
            deleted += listed.head is None and (listed.expires_at or 0) > self._now_s()
        if living >= self._limits.profiles:
            raise ProfileInvalid(f"a user can have at most {self._limits.profiles} profiles")
        if deleted >= self._limits.deleted and not known:
            raise ProfileInvalid(f"{deleted} deleted profiles have not expired yet: create a new one later")

    def _change(
        self,
        by: By,
        profile_id: str,
        expected_version: int | None,
        change: Callable[[ProfileRecord, Profile, ChangeContext], ProfileRecord],
    ) -> ProfileRecord:
        """``expected_version`` is None if ``change`` checks the current state itself."""
        old = self._known(by.subject, profile_id)
        if old is not None and old.change_of(by.operation_id) is not None:
            return old
        old, profile = _living(old)
        if expected_version not in (None, old.version):
            raise ProfileConflict(f"version {old.version} is current, not {expected_version}: read it again first")
        new = change(old, profile, self._context(by))
        if new is old:
            return old
        try:
            self._store.write(by.subject, new, over=old.version)
        except RecordChanged:
            # A retry of this very operation may have won the race: then its result is this call's result.
            current = self._known(by.subject, profile_id)
            if current is not None and current.change_of(by.operation_id) is not None:
                return current
            current, _ = _living(current)
            raise ProfileConflict(f"version {current.version} is current: read it again first") from None
        return new

    def _read(self, subject: str, profile_id: str) -> tuple[ProfileRecord, Profile]:
        return _living(self._known(subject, profile_id))

    def _known(self, subject: str, profile_id: str) -> ProfileRecord | None:
        """Reads valid ids only: other text must never become part of a key."""
        return self._store.read(subject, profile_id) if is_profile_id(profile_id) else None

    def _context(self, by: By) -> ChangeContext:
        return ChangeContext(by, self._now_ms(), self._limits)

    @staticmethod
    def _refuse_existing(old: ProfileRecord | None) -> None:
        if old is not None and old.profile is not None:
            raise ProfileConflict(f"a profile of this kind and name already exists: id {old.id}, version {old.version}")

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


def _refuse_invalid_cursor(after: str) -> None:
    if after and not is_profile_id(after):
        raise ProfileInvalid("invalid cursor")


def _living(record: ProfileRecord | None) -> tuple[ProfileRecord, Profile]:
    if record is None or record.profile is None:
        raise ProfileUnknown("this user has no such profile")
    return record, record.profile


def _done(record: ProfileRecord | None, by: By) -> Profile | None:
    """The current profile if this operation created it, else None. Raises ProfileUnknown if it was deleted since: a
    repeated creation does not restore it."""
    return None if record is None or record.change_of(by.operation_id) is None else _profile(record)


def _profile(record: ProfileRecord) -> Profile:
    if record.profile is None:
        raise ProfileUnknown("this user no longer has this profile")
    return record.profile
