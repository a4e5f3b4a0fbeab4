"""Replies to the action ``upload``. Each is one frame; a long list has pages, linked by ``next``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cicada.protocol.events import Payload, Reply

UploadState = Literal["waiting", "preparing", "loaded", "set_aside", "not_prepared"]


class UploadBegun(Reply):
    """The form that uploads the document: a POST of ``multipart/form-data`` to ``url``, first ``fields``, then the
    document as ``file``."""

    type: Literal["upload"] = "upload"
    collection: str
    name: str = Field(description="as the document will be called: in composed form (NFC)")
    url: str
    fields: dict[str, str]
    expires_at_ms: int = Field(description="epoch milliseconds; the upload must have begun before")


class UploadedDocument(Payload):
    """A document in a collection's folder."""

    name: str
    bytes: int
    uploaded_at_ms: int = Field(description="epoch milliseconds")
    state: UploadState = Field(
        description="waiting: the next run will look at it; preparing: a run works on it; loaded: its passages are in "
        "the collection; set_aside: it cannot be loaded as it is; not_prepared: something failed, and the next run "
        "tries again"
    )
    code: str | None = Field(None, description="stable: why it is set aside or not prepared")
    reason: str | None = Field(None, description="the same in words")
    passages: int | None = Field(None, description="that the collection holds of it, be it of an earlier upload")


class IngestRun(Payload):
    """The run that works on the collection."""

    state: Literal["running", "stopped"] = Field(
        description="stopped: it ended before its work was done; the next upload starts another"
    )
    started_at_ms: int = Field(description="epoch milliseconds")


class Uploads(Reply):
    """The documents in a collection's folder, by name."""

    type: Literal["uploads"] = "uploads"
    collection: str
    documents: tuple[UploadedDocument, ...]
    run: IngestRun | None = Field(None, description="absent where no run works on the collection")
    max_bytes: int = Field(description="of one document at most")
    next: str | None = Field(None, description="the cursor to ask for the next page with; null on the last")


class UploadDeleted(Reply):
    """The document was deleted from the folder; the next run deletes its passages."""

    type: Literal["upload_deleted"] = "upload_deleted"
    collection: str
    name: str


UploadReply = UploadBegun | Uploads | UploadDeleted
