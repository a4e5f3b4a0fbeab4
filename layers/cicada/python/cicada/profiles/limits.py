"""The limits of profiles that a deployer may want others of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProfileLimits:
    """They bound what is written. What was written under other limits is read as it is."""

    profiles: int = 200
    """That one user has."""
    fields: int = 50
    """That one profile has."""
    history_entries: int = 50
    """That are kept of one profile: the newest."""
    record_bytes: int = 360 * 1024
    """Of one profile with its history, in UTF-8: an item of DynamoDB holds 400 KB. The oldest entries of the history
    make room; what does not fit without them is refused."""
    confirm_s: int = 600
    """Seconds within which the user can confirm a deletion that an agent has asked for."""
    deleted_kept_s: int = 90 * 24 * 3600
    """Seconds for which a deleted profile's version is remembered."""
    deleted: int = 400
    """Deleted profiles of one user that are remembered at a time: with so many, one of a new name has to wait."""
    deleted_history_entries: int = 10
    """That a deleted profile keeps, without their words: the newest."""
