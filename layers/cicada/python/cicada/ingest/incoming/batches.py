"""The second step of an ingest: a batch's documents are prepared, and what became of each is kept at once."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cicada.corpus.declared.sectioning import SectionRules
from cicada.errors import CicadaError, DocumentRefused, OutOfTime
from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import Prepared, Quarantined, Recipe, SourceItem
from cicada.ingest.incoming.bucket import UploadChanged, Uploads, UploadUnreadable
from cicada.ingest.incoming.places import outcome_key
from cicada.ingest.incoming.run_records import (
    Batch,
    Planned,
    UploadOutcome,
    put_record,
    read_record,
    read_record_if_there,
)

logger = logging.getLogger(__name__)

TIME_MARGIN_S = 240.0
"""With less time left than this, a batch begins no further document, and is given back to the workflow. Reading alone
may take three minutes of it."""


class Prepare(Protocol):
    """Prepares one document, see :class:`cicada.ingest.preparing.Preparer`."""

    def __call__(self, item: SourceItem, path: Path) -> Prepared:
        """Raises DocumentRefused for the document's own faults, and other CicadaErrors for everybody else's."""
        ...


def recipe_of(batch: Batch, recipe: Recipe, store: ObjectStore) -> Recipe:
    """What a batch's documents are prepared by: the collection's recipe, and the rules of its sections. Raises
    IndexCorrupt if the rules are not there any more, or cannot be read, and IndexUnavailable if the bucket does not
    respond."""
    if not batch.sections_key:
        return recipe
    return recipe.model_copy(update={"sections": read_record(store, batch.sections_key, SectionRules)})


def prepare(
    batch: Batch, uploads: Uploads, store: ObjectStore, prepare_one: Prepare, *, remaining_s: Callable[[], float]
) -> dict[str, int]:
    """Prepare a batch's documents, one after another. Those that an earlier try came to an end with are passed over.

    Returns:
        How many were ``prepared``, ``refused``, ``failed`` (they are tried again later) and ``superseded``.

    Raises:
        OutOfTime: not all were reached.
        ModelError, IndexUnavailable: a service failed; what was prepared is kept, and why it failed.
    """
    counts = {"prepared": 0, "refused": 0, "failed": 0, "superseded": 0}
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        for number, planned in enumerate(batch.items):
            outcome = read_record_if_there(store, _key(batch, planned), UploadOutcome)
            if outcome is None or not outcome.final:
                if remaining_s() < TIME_MARGIN_S:
                    raise OutOfTime(f"{number} of {len(batch.items)} documents of batch {batch.number} are prepared")
                outcome = _outcome(store, batch, planned, uploads, prepare_one, Path(folder) / "document")
            counts[_word(outcome)] += 1
    return counts


def _outcome(
    store: ObjectStore, batch: Batch, planned: Planned, uploads: Uploads, prepare_one: Prepare, path: Path
) -> UploadOutcome | None:
    """Prepare one document, and keep what became of it; None if it is not there any more."""
    source = planned.item.source
    try:
        outcome = UploadOutcome(prepared=prepare_one(uploads.download(planned.item, path), path))
    except UploadChanged:
        return None  # the run looks again: whoever changed it has asked for that
    except DocumentRefused as error:
        logger.warning("a document is quarantined", extra={"code": error.code, "collection": batch.collection})
        outcome = UploadOutcome(refused=Quarantined(source=source, code=error.code, message=str(error)))
    except UploadUnreadable as error:
        outcome = UploadOutcome(failed=Quarantined(source=source, code="upload_unreadable", message=str(error)))
    except CicadaError as error:
        outcome = UploadOutcome(failed=Quarantined(source=source, code=error.code, message=error.told))
        put_record(store, _key(batch, planned), outcome)
        raise
    finally:
        path.unlink(missing_ok=True)
    put_record(store, _key(batch, planned), outcome)
    return outcome


def _key(batch: Batch, planned: Planned) -> str:
    return outcome_key(batch.collection, batch.run, batch.round, planned.digest())


def _word(outcome: UploadOutcome | None) -> str:
    if outcome is None:
        return "superseded"
    return "prepared" if outcome.prepared else "refused" if outcome.refused else "failed"
