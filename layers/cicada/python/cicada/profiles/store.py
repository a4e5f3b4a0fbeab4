"""The port of the profile store."""

from __future__ import annotations

from typing import Protocol

from cicada.profiles.heads import Listed
from cicada.profiles.record import ProfileRecord


class RecordChanged(Exception):
    """Another writer has changed the record."""


class ProfileStore(Protocol):
    """Stores records by owner. All reads are consistent.

    Every method raises :class:`cicada.errors.ProfilesUnavailable` when the store fails.
    """

    def read(self, subject: str, profile_id: str) -> ProfileRecord | None:
        """A record, or None."""

    def page(self, subject: str, after: str, limit: int) -> tuple[ProfileRecord, ...]:
        """A user's records after an id, in the order of their ids, deleted profiles included.

        Returns fewer than ``limit`` (at least 1) only if there are no more.
        """

    def heads(self, subject: str, after: str, limit: int) -> tuple[Listed, ...]:
        """As :meth:`page`, with only what lists show."""

    def write(self, subject: str, record: ProfileRecord, *, over: int) -> None:
        """Replace the record of version ``over``, 0 for none. Raises RecordChanged if another version is stored."""
