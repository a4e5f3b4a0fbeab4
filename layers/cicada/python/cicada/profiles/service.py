"""The operations on profiles, each in the name of one user."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cicada.errors import ProfileConflict, ProfileInvalid, ProfileUnknown
from cicada.profiles import changes
from cicada.profiles.changes import By, FieldGiven, Stated
from cicada.profiles.heads import Listed, StoredHead
from cicada.profiles.record import Change, Evidence, Kind, Profile, ProfileRecord, Verdict
from cicada.profiles.rules import MAX_NAME_CHARS, ProfileLimits, is_profile_id, line, name_key, profile_id
from cicada.profiles.store import ProfileStore, RecordChanged

PAGE = 100
"""Heads that are read at a time."""
MAX_SKEW_MS = 60_000
"""By how much the clocks of two functions may differ."""
WHOLE_PAGE = 3
"""Whole records that are read at a time: an export's page holds a part of one, and seldom more than a few."""


def operation(request_id: str, name: str, given: Any) -> str:
    """The id of an operation (a tool, or an action's) on an input that JSON can hold: the same where it is repeated."""
    canonical = json.dumps(given, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(f"{request_id}\0{name}\0{canonical}".encode()).hexdigest()[:32]


class ProfileService:
    """Lists, shows and changes the profiles of the user who asks.

    A profile of somebody else is unknown, and so is one that is not there: the owner is part of every key that is read.
    Every method raises :class:`cicada.errors.ProfilesUnavailable` when the store fails.
    """

    def __init__(
        self, store: ProfileStore, *, limits: ProfileLimits | None = None, now_s: Callable[[], float] = time.time
    ) -> None:
        """``now_s``: epoch seconds."""
        self._store = store
        self._limits = limits or ProfileLimits()
        self._now_s = now_s

    # --- looking ---

    def list(self, subject: str, kind: Kind | None = None) -> tuple[StoredHead, ...]:
        """A user's profiles, by kind and name, without their facts."""
        wanted = (head for head in self.heads(subject) if kind in (None, head.kind))
        return tuple(sorted(wanted, key=lambda head: (head.kind, name_key(head.name))))

    def heads(self, subject: str, after: str = "") -> Iterator[StoredHead]:
        """A user's profiles in the order of their ids, from the one after an id, without their facts."""
        return (listed.head for listed in self._listed(subject, after) if listed.head is not None)

    def show(self, subject: str, profile_id: str) -> Profile:
        """One profile. Raises ProfileUnknown."""
        return self._read(subject, profile_id)[1]

    def find(self, subject: str, name: str, kind: Kind | None = None) -> Profile:
        """The profile of a name. Raises ProfileUnknown if there is none, and ProfileInvalid if there are some of
        several kinds, and ``kind`` is not given."""
        if kind is not None:
            return self.show(subject, profile_id(kind, name))
        found = [head for head in self.list(subject) if name_key(head.name) == name_key(name)]
        if not found:
            raise ProfileUnknown("this user has no profile of that name")
        if len(found) > 1:
            kinds = ", ".join(head.kind for head in found)
            raise ProfileInvalid(f"there are several of that name: say which kind ({kinds})")
        return self.show(subject, found[0].id)

    def records(self, subject: str, after: str = "") -> Iterator[ProfileRecord]:
        """A user's records in the order of their ids, from the one after an id; those of deleted profiles too."""
        _refuse_other(after)
        while page := self._store.page(subject, after, WHOLE_PAGE):
            yield from page
            after = page[-1].id

    def with_history(self, subject: str, profile_id: str) -> tuple[Profile, tuple[Change, ...]]:
        """A profile and its changes, oldest first, as they stand at one moment. Raises ProfileUnknown."""
        record, profile = self._read(subject, profile_id)
        return profile, record.history

    # --- changing ---

    def create(
        self, by: By, kind: Kind, name: str, fields: Sequence[FieldGiven] = (), stated: Stated | None = None
    ) -> Profile:
        """Make a profile.

        Args:
            name: one user has one profile of a kind and name; case does not count.
            fields: what is known already.
            stated: what a theory says; of kind ``theory`` alone.

        Raises:
            ProfileConflict: there is one of that kind and name; the message names its id and version.
            ProfileUnknown: this very operation made it, and it was deleted since.
            ProfileInvalid: it breaks a rule or a limit.
        """
        name = line("the name", name, MAX_NAME_CHARS)
        new_id = profile_id(kind, name)
        old = self._store.read(by.subject, new_id)
        if (done := _done(old, by)) is not None:
            return done
        self._refuse_existing(old)
        self._refuse_more(by.subject, known=old is not None)
        new = changes.created(old, kind, name, fields, stated, by=by, at_ms=self._now_ms(), limits=self._limits)
        try:
            self._store.write(by.subject, new, over=old.version if old else 0)
        except RecordChanged:
            stands = self._store.read(by.subject, new_id)
            if (done := _done(stands, by)) is not None:
                return done
            self._refuse_existing(stands)
            raise ProfileConflict("it was deleted this very moment: try again") from None
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
        """Set and remove fields, or refine a theory: its evidence and verdict were the old statement's, and go.

        Args:
            expected_version: the one that the caller last read.
            given: what is to be kept; a value that stands there already keeps its proof.
            remove: names of fields.
            stated: what the theory says now.

        Raises:
            ProfileUnknown: this user has no such profile.
            ProfileConflict: it has another version; the message names it.
            ProfileInvalid: it breaks a rule or a limit.
        """

        def change(old: ProfileRecord, profile: Profile) -> ProfileRecord:
            at_ms = self._now_ms()
            return changes.updated(old, profile, given, remove, stated, by=by, at_ms=at_ms, limits=self._limits)

        return _profile(self._change(by, profile_id, expected_version, change))

    def judge(
        self,
        by: By,
        profile_id: str,
        expected_version: int,
        verdict: Verdict,
        evidence: Sequence[Evidence],
    ) -> Profile:
        """Keep what speaks for and against a theory, and what is concluded from it.

        Raises ProfileInvalid if it is no theory, or no piece of the evidence is cited, and else as :meth:`update`.
        """

        def change(old: ProfileRecord, profile: Profile) -> ProfileRecord:
            at_ms = self._now_ms()
            return changes.judged(old, profile, verdict, evidence, by=by, at_ms=at_ms, limits=self._limits)

        return _profile(self._change(by, profile_id, expected_version, change))

    def undo(self, by: By, profile_id: str, version: int) -> ProfileRecord:
        """Take back the change that made a version: what it replaced stands again, what it added is gone.

        The record has no profile where the change was the profile's creation.

        Raises:
            ProfileUnknown: this user has no such profile.
            ProfileConflict: what that change did was changed since.
            ProfileInvalid: the history does not have that change any more.
        """

        def change(old: ProfileRecord, profile: Profile) -> ProfileRecord:
            return changes.undone(old, profile, version, by=by, at_ms=self._now_ms(), limits=self._limits)

        return self._change(by, profile_id, None, change)

    def delete(self, by: By, profile_id: str, expected_version: int) -> int:
        """Delete a profile with its history, and return the version that this makes. Raises as :meth:`update`."""
        return self._change(
            by,
            profile_id,
            expected_version,
            lambda old, _profile: changes.deleted(old, by=by, at_ms=self._now_ms(), limits=self._limits),
        ).version

    def change_of(self, by: By, profile_id: str) -> Change | None:
        """The change that this very operation has made to a profile, be it deleted since; None where it has not."""
        record = self._known(by.subject, profile_id)
        return None if record is None else record.change_of(by.operation_id)

    def changes_for(self, subject: str, request_id: str, since_ms: int) -> Iterator[tuple[Profile, Change]]:
        """What a request has changed in profiles that still stand, each change with its profile.

        ``since_ms``: when it was accepted, in epoch milliseconds: what was not changed since is not read.
        """
        for head in self.heads(subject):
            if head.changed_at_ms < since_ms - MAX_SKEW_MS:
                continue
            record = self._known(subject, head.id)
            for change in record.history if record and record.profile else ():
                if change.request_id == request_id and record and record.profile:
                    yield record.profile, change

    def has_done(self, by: By, profile_id: str) -> bool:
        """Whether this very operation has changed a profile already, be it deleted since."""
        return self.change_of(by, profile_id) is not None

    def confirm_until_ms(self) -> int:
        """Until when a deletion that is asked for now can be confirmed, in epoch milliseconds."""
        return self._now_ms() + self._limits.confirm_s * 1000

    # --- below ---

    def _listed(self, subject: str, after: str = "") -> Iterator[Listed]:
        _refuse_other(after)
        while True:
            page = self._store.heads(subject, after, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def _refuse_more(self, subject: str, *, known: bool) -> None:
        """No new profile beyond the limits; what a deleted one has left under its name counts once, as it does now."""
        living = deleted = 0
        for listed in self._listed(subject):
            living += listed.head is not None
            deleted += listed.head is None and (listed.expires_at or 0) > self._now_s()
        if living >= self._limits.profiles:
            raise ProfileInvalid(f"a user has {self._limits.profiles} profiles at most")
        if deleted >= self._limits.deleted and not known:
            raise ProfileInvalid(
                f"{deleted} deleted profiles are still remembered: a new one has to wait until some are forgotten"
            )

    def _change(
        self,
        by: By,
        profile_id: str,
        expected_version: int | None,
        change: Callable[[ProfileRecord, Profile], ProfileRecord],
    ) -> ProfileRecord:
        """``expected_version``: None where the change itself checks what stands."""
        old = self._known(by.subject, profile_id)
        if old is not None and old.change_of(by.operation_id) is not None:
            return old
        old, profile = _living(old)
        if expected_version not in (None, old.version):
            raise ProfileConflict(f"version {old.version} stands, not {expected_version}: look at it again first")
        new = change(old, profile)
        if new is old:
            return old
        try:
            self._store.write(by.subject, new, over=old.version)
        except RecordChanged:
            stands = self._known(by.subject, profile_id)
            if stands is not None and stands.change_of(by.operation_id) is not None:
                return stands
            stands, _ = _living(stands)
            raise ProfileConflict(f"version {stands.version} stands: look at it again first") from None
        return new

    def _read(self, subject: str, profile_id: str) -> tuple[ProfileRecord, Profile]:
        return _living(self._known(subject, profile_id))

    def _known(self, subject: str, profile_id: str) -> ProfileRecord | None:
        """An id that is none of ours is never a part of a key."""
        return self._store.read(subject, profile_id) if is_profile_id(profile_id) else None

    @staticmethod
    def _refuse_existing(old: ProfileRecord | None) -> None:
        if old is not None and old.profile is not None:
            raise ProfileConflict(f"there is one of that kind and name: id {old.id}, version {old.version}")

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


def _refuse_other(after: str) -> None:
    """An id that is none of ours is never a part of a key."""
    if after and not is_profile_id(after):
        raise ProfileInvalid("that is no place to go on from")


def _living(record: ProfileRecord | None) -> tuple[ProfileRecord, Profile]:
    if record is None or record.profile is None:
        raise ProfileUnknown("this user has no such profile")
    return record, record.profile


def _done(record: ProfileRecord | None, by: By) -> Profile | None:
    """The profile as it stands, where this very operation has made it; None where it has not. Raises ProfileUnknown if
    it has, and the profile was deleted since: whoever does it again does not bring it back."""
    if record is None or record.change_of(by.operation_id) is None:
        return None
    return _profile(record)


def _profile(record: ProfileRecord) -> Profile:
    """Of a record that an operation has changed. Raises ProfileUnknown where it was deleted since."""
    if record.profile is None:
        raise ProfileUnknown("this user has no such profile any more")
    return record.profile
