"""The in-memory twin of the store of profiles. The contract tests run over it and over DynamoDB alike."""

from __future__ import annotations

import time
from collections.abc import Callable

from cicada.answering.profile_api import ProfileApi
from cicada.profiles.heads import Listed, head_of
from cicada.profiles.record import Profile, ProfileRecord
from cicada.profiles.service import ProfileService
from cicada.profiles.store import RecordChanged


class InMemoryProfiles:
    """A :class:`cicada.profiles.store.ProfileStore`. ``before_write`` and ``after_write`` may cause faults."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], ProfileRecord] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None
        self.writes = 0
        self.records_read = 0
        """Whole records that pages have read."""

    def read(self, subject: str, profile_id: str) -> ProfileRecord | None:
        return self.stored.get((subject, profile_id))

    def page(self, subject: str, after: str, limit: int) -> tuple[ProfileRecord, ...]:
        ids = sorted(profile_id for owner, profile_id in self.stored if owner == subject and profile_id > after)
        self.records_read += len(ids[:limit])
        return tuple(self.stored[subject, profile_id] for profile_id in ids[:limit])

    def heads(self, subject: str, after: str, limit: int) -> tuple[Listed, ...]:
        ids = sorted(profile_id for owner, profile_id in self.stored if owner == subject and profile_id > after)
        found = (self.stored[subject, profile_id] for profile_id in ids[:limit])
        return tuple(
            Listed(record.id, None if record.profile is None else head_of(record.profile), record.expires_at)
            for record in found
        )

    def write(self, subject: str, record: ProfileRecord, *, over: int) -> None:
        self.before_write()
        stands = self.stored.get((subject, record.id))
        if (stands.version if stands else 0) != over:
            raise RecordChanged(record.id)
        self.stored[subject, record.id] = record
        self.writes += 1
        self.after_write()


def profile_counter(now_s: Callable[[], float] = time.time) -> ProfileApi:
    """A counter over an empty store."""
    return ProfileApi(ProfileService(InMemoryProfiles(), now_s=now_s), now_s=now_s)


def profile_of(record: ProfileRecord) -> Profile:
    """The profile of a record that has one."""
    assert record.profile is not None
    return record.profile
