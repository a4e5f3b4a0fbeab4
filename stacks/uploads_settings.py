"""Uploads by users: the deployer's settings for who may, and how much."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cicada.corpus.readers.limits import ReadLimits
from cicada.ingest.uploads.limits import MIB, UploadLimits
from cicada.rights import CollectionName, GroupName, Uploaders
from stacks.answer_settings import Group
from stacks.auth_settings import AuthSettings

_DEFAULTS = UploadLimits()


class UploadsSettings(Group):
    """Who may upload documents to which collections, by the page and other clients."""

    uploaders: dict[CollectionName | Literal["*"], tuple[GroupName, ...]] = Field(
        {},
        description="per collection, the groups whose members can upload documents, list uploads and delete "
        "them; `*` matches all other collections. Empty disables uploads; see `docs/uploads.md`",
    )
    max_file_mb: Annotated[int, Field(ge=1, le=ReadLimits().max_bytes // MIB)] = Field(
        _DEFAULTS.max_bytes // MIB, description="maximum size of an uploaded document, in MiB"
    )
    max_documents: Annotated[int, Field(ge=1, le=100_000)] = Field(
        _DEFAULTS.max_documents, description="maximum documents in a collection's folder"
    )
    form_seconds: Annotated[int, Field(ge=60, le=3_600)] = Field(
        _DEFAULTS.lifetime_s, description="lifetime of an upload URL, in seconds"
    )
    declarations: bool = Field(
        _DEFAULTS.declarations,
        description="allow uploaders to upload and delete `collection.yaml`, which declares the collection's "
        "access rules",
    )

    def check(self, auth: AuthSettings) -> None:
        """Raise ValueError if no token could name a group that may upload."""
        if self.uploaders and auth.mode != "none":
            named = [group for groups in self.uploaders.values() for group in groups]
            auth.check_groups("uploads.uploaders", tuple(dict.fromkeys(named)))

    def enabled(self, auth: AuthSettings) -> bool:
        """Whether anybody may upload: those who are named, and everybody where nobody signs in."""
        return bool(self.uploaders) or auth.mode == "none"

    def told(self, auth: AuthSettings) -> Uploaders:
        """Who may upload, as the functions know it."""
        return Uploaders(everybody=auth.mode == "none" and not self.uploaders, collections=self.uploaders)

    def limits(self) -> UploadLimits:
        """The limits as the function knows them."""
        return UploadLimits(
            max_bytes=self.max_file_mb * MIB,
            max_documents=self.max_documents,
            lifetime_s=self.form_seconds,
            declarations=self.declarations,
        )

    def uploaders_environment(self, auth: AuthSettings) -> dict[str, str]:
        """The variable of the functions that tell users where they may upload; none where nobody may."""
        if not self.enabled(auth):
            return {}
        return {"UPLOADERS": self.told(auth).model_dump_json(exclude_defaults=True)}
