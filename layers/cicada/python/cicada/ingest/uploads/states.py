"""The state of each uploaded document, decided from what the ingest's runs have recorded. Without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cicada.corpus.declared.declaration import DECLARATION
from cicada.ingest.contracts import Quarantined
from cicada.ingest.incoming.listed import Upload
from cicada.ingest.incoming.run_records import IngestPlan, Mirror, RunReport
from cicada.protocol.uploads import UploadedDocument, UploadState

MAX_REASON_CHARS = 500


@dataclass(frozen=True)
class FolderRecords:
    """What is recorded of a collection's folder."""

    mirror: Mirror = field(default_factory=Mirror)
    mirrored_at: datetime | None = None
    """When the mirror was last written; None if there is none."""
    plan: IngestPlan | None = None
    """Of the run at work, unless its present round has ended."""
    report: RunReport | None = None
    """The newest."""

    def planned_stamps(self) -> Mapping[str, str]:
        """What the run at work prepares: the stamp of each upload, by source."""
        if self.plan is None:
            return {}
        stamps = {planned.item.source: planned.stamp for planned in self.plan.documents}
        if self.plan.declaration is not None:
            stamps[DECLARATION] = self.plan.declaration.stamp
        return stamps


def document_state(
    upload: Upload, uploaded_at: datetime, records: FolderRecords, planned: Mapping[str, str]
) -> UploadedDocument:
    """The state of one upload; ``planned``: see :meth:`FolderRecords.planned_stamps`."""
    found = UploadedDocument(
        name=upload.source,
        bytes=upload.size,
        uploaded_at_ms=int(uploaded_at.timestamp() * 1000),
        state="waiting",
    )
    mirror = records.mirror
    known = mirror.declaration if upload.source == DECLARATION else mirror.documents.get(upload.source)
    passages = known.passages if known is not None and known.loaded else None
    # The stamp of an upload that the next run tries again is blank.
    seen = known is not None and (
        known.stamp == upload.stamp
        or (not known.stamp and records.mirrored_at is not None and uploaded_at <= records.mirrored_at)
    )
    if planned.get(upload.source) == upload.stamp and (known is None or known.stamp != upload.stamp):
        return found.model_copy(update={"state": "preparing", "passages": passages})
    if known is not None and seen and known.refused is not None:
        return _with_reason(found, "set_aside", known.refused, passages)
    if known is not None and seen and known.loaded:
        return found.model_copy(update={"state": "loaded", "passages": passages})
    failed = _failed(upload, uploaded_at, records.report)
    if failed is not None:
        return _with_reason(found, "not_prepared", failed, passages)
    return found.model_copy(update={"passages": passages})


def _failed(upload: Upload, uploaded_at: datetime, report: RunReport | None) -> Quarantined | None:
    """Why the newest run could not prepare the upload, if it tried."""
    if report is None or datetime.fromisoformat(report.ended_at) < uploaded_at:
        return None
    return next((one for one in report.not_prepared if one.source == upload.source), None)


def _with_reason(
    found: UploadedDocument, state: UploadState, why: Quarantined, passages: int | None
) -> UploadedDocument:
    reason = why.message[:MAX_REASON_CHARS]
    return found.model_copy(update={"state": state, "code": why.code, "reason": reason, "passages": passages})
