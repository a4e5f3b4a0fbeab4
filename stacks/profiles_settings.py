"""Profiles: the deployer's settings for how much a user can keep."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, TypeAdapter, model_validator

from cicada.profiles.rules import ProfileLimits, full_bytes
from stacks.answer_settings import Group

KIB = 1024
DAY_S = 24 * 3600
_DEFAULTS = ProfileLimits()
MAX_RECORD_KIB = 384
"""An item of DynamoDB holds 400 KiB: the rest is for what stands around the record."""


class ProfilesSettings(Group):
    """What one user can keep, and for how long deleted profiles are remembered."""

    max_profiles: Annotated[int, Field(ge=1, le=1_000)] = Field(
        _DEFAULTS.profiles, description="maximum profiles, including theories, per user"
    )
    max_fields: Annotated[int, Field(ge=1, le=100)] = Field(_DEFAULTS.fields, description="maximum facts per profile")
    max_history_entries: Annotated[int, Field(ge=10, le=500)] = Field(
        _DEFAULTS.history_entries,
        description="maximum history entries per profile, newest first; also used to detect repeated changes",
    )
    max_record_kib: Annotated[int, Field(ge=64, le=MAX_RECORD_KIB)] = Field(
        _DEFAULTS.record_bytes // KIB,
        description="maximum size of a profile with its history, in KiB; the oldest history entries are removed "
        "first. Must fit `profiles.maxFields` facts of full length",
    )
    confirm_seconds: Annotated[int, Field(ge=60, le=3_600)] = Field(
        _DEFAULTS.confirm_s, description="seconds to confirm a deletion that an agent requests"
    )
    deleted_kept_days: Annotated[int, Field(ge=1, le=365)] = Field(
        _DEFAULTS.deleted_kept_s // DAY_S,
        description="days to keep the version number, without content, of a deleted profile",
    )
    max_deleted: Annotated[int, Field(ge=10, le=2_000)] = Field(
        _DEFAULTS.deleted,
        description="maximum deleted profiles to keep per user; above it, new profiles are rejected until some expire",
    )
    max_deleted_history_entries: Annotated[int, Field(ge=1, le=50)] = Field(
        _DEFAULTS.deleted_history_entries,
        description="maximum history entries, without content, to keep of a deleted profile",
    )

    @model_validator(mode="after")
    def _a_full_profile_can_be_kept(self) -> ProfilesSettings:
        least_kib = -(-full_bytes(self.limits()) // KIB)
        if least_kib > MAX_RECORD_KIB:
            raise ValueError(
                f"maxFields: a full profile would take {least_kib} KiB, and an item of DynamoDB has room for "
                f"{MAX_RECORD_KIB}: lower it"
            )
        if least_kib > self.max_record_kib:
            raise ValueError(
                f"maxRecordKib: must be at least {least_kib}: a profile with maxFields facts of full length takes so "
                "much with its newest change"
            )
        if self.max_deleted_history_entries > self.max_history_entries:
            raise ValueError("maxDeletedHistoryEntries: must not be above maxHistoryEntries")
        return self

    def limits(self) -> ProfileLimits:
        """These settings as the functions know them."""
        return ProfileLimits(
            profiles=self.max_profiles,
            fields=self.max_fields,
            history_entries=self.max_history_entries,
            record_bytes=self.max_record_kib * KIB,
            confirm_s=self.confirm_seconds,
            deleted_kept_s=self.deleted_kept_days * DAY_S,
            deleted=self.max_deleted,
            deleted_history_entries=self.max_deleted_history_entries,
        )

    def environment(self) -> dict[str, str]:
        """The variables of functions that read or write profiles."""
        return {"PROFILE_LIMITS": TypeAdapter(ProfileLimits).dump_json(self.limits()).decode()}
