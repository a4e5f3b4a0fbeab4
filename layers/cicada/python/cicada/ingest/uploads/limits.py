"""How much users may upload."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MIB = 2**20


class UploadLimits(BaseModel):
    """What users may upload, as the functions' variable ``UPLOAD_LIMITS`` carries it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    max_bytes: int = Field(64 * MIB, ge=1)
    """Of one document."""
    max_documents: int = Field(5_000, ge=1)
    """In a collection's folder; a document that replaces another one is always accepted."""
    lifetime_s: int = Field(300, ge=1)
    """Of a form: seconds within which its upload must begin."""
    declarations: bool = False
    """Whether users may upload ``collection.yaml``, which declares who may read the collection."""
