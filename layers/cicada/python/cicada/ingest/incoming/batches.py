"""The second step of an ingest: prepare a batch's documents, and store the outcome of each at once."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

from cicada.corpus.declared.sectioning import SectionRules
from cicada.errors import CicadaError, DocumentRefused, OutOfTime
from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import Prepared, Quarantined, Recipe, SourceItem
from cicada.ingest.incoming.bucket import UploadChanged, Uploads, UploadUnreadable
from cicada.ingest.incoming.run_records import (
    Batch,
    Planned,
    UploadOutcome,
    find_record,
    outcome_key,
    put_record,
    read_record,
)

logger = logging.getLogger(__name__)

TIME_MARGIN_S = 240.0
"""With less time left, a batch begins no further document, and returns to the workflow. Reading alone may take three
minutes."""

Prepare = Callable[[SourceItem, Path], Prepared]
"""Prepares one document, see :class:`cicada.ingest.preparing.Preparer`. Raises DocumentRefused for the document's own
faults, and other CicadaErrors for any other."""


def recipe_of(batch: Batch, recipe: Recipe, store: ObjectStore) -> Recipe:
    """The recipe of a batch's documents, with the rules of the collection's sections. Raises IndexCorrupt if the rules
    are missing or invalid, and IndexUnavailable."""
    if not batch.sections_key:
        return recipe
    return recipe.model_copy(update={"sections": read_record(store, batch.sections_key, SectionRules)})


def prepare(
    batch: Batch, uploads: Uploads, store: ObjectStore, prepare_one: Prepare, *, remaining_s: Callable[[], float]
) -> dict[str, int]:
    """Prepare a batch's documents, one after another, except those that an earlier try has finished.

    Returns how many were ``prepared``, ``refused``, ``failed`` (retried later) and ``superseded``. Raises OutOfTime if
    not all were reached, and ModelError or IndexUnavailable if a service failed; finished outcomes are stored.
    """
    counts = {"prepared": 0, "refused": 0, "failed": 0, "superseded": 0}
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        for number, planned in enumerate(batch.items):
            outcome, _ = find_record(store, outcome_key(batch, planned), UploadOutcome)
            if outcome is None or outcome.failed is not None:
                if remaining_s() < TIME_MARGIN_S:
                    raise OutOfTime(f"{number} of {len(batch.items)} documents of batch {batch.number} were prepared")
                outcome = _outcome(store, batch, planned, uploads, prepare_one, Path(folder) / "document")
            counts[_word(outcome)] += 1
    return counts


def _outcome(
    store: ObjectStore, batch: Batch, planned: Planned, uploads: Uploads, prepare_one: Prepare, path: Path
) -> UploadOutcome | None:
    """Prepare one document, and store the outcome; None if the upload was replaced or deleted."""
    source = planned.item.source
    try:
        outcome = UploadOutcome(prepared=prepare_one(uploads.download(planned.item, path), path))
    except UploadChanged:
        return None  # the change has sent an event of its own, so the run looks again
    except DocumentRefused as error:
        logger.warning("document quarantined", extra={"code": error.code})
        outcome = UploadOutcome(refused=Quarantined(source=source, code=error.code, message=str(error)))
    except UploadUnreadable as error:
        _log_not_prepared("upload_unreadable")
        outcome = UploadOutcome(failed=Quarantined(source=source, code="upload_unreadable", message=str(error)))
    except CicadaError as error:
        _log_not_prepared(error.code)
        outcome = UploadOutcome(failed=Quarantined(source=source, code=error.code, message=error.told))
        put_record(store, outcome_key(batch, planned), outcome)
        raise
    finally:
        path.unlink(missing_ok=True)
    put_record(store, outcome_key(batch, planned), outcome)
    return outcome


def _log_not_prepared(code: str) -> None:
    logger.warning("a document was not prepared", extra={"code": code})


def _word(outcome: UploadOutcome | None) -> str:
    if outcome is None:
        return "superseded"
    return "prepared" if outcome.prepared else "refused" if outcome.refused else "failed"
