"""What profiles need of the outside: a store of records, by owner."""

from __future__ import annotations

from typing import Protocol

from cicada.profiles.heads import Listed
from cicada.profiles.record import ProfileRecord


class RecordChanged(Exception):
    """Somebody else has written the record meanwhile."""


class ProfileStore(Protocol):
    """The store of records. The owner is part of every key: another user's record reads as absent.

    Every method raises :class:`cicada.errors.ProfilesUnavailable` when the store fails.
    """

    def read(self, subject: str, profile_id: str) -> ProfileRecord | None:
        """A consistent read; None where there is none."""
        ...

    def page(self, subject: str, after: str, limit: int) -> tuple[ProfileRecord, ...]:
        """The next records of a user above an id, in the order of their ids, those of deleted profiles among them.

        A consistent read. Fewer than ``limit``, which is from 1, are returned only where there are no more of them; a
        page that the store itself cuts short is read on.
        """
        ...

    def heads(self, subject: str, after: str, limit: int) -> tuple[Listed, ...]:
        """As :meth:`page`, with nothing of the records but what lists need."""
        ...

    def write(self, subject: str, record: ProfileRecord, *, over: int) -> None:
        """Replace a record, whole. Raises RecordChanged if another version than ``over`` stands.

        ``over``: the version that it replaces; 0 where there is none.
        """
        ...
