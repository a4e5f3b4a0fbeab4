"""The first step of an ingest: which of a collection's uploads are new, changed or gone, and what is declared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cicada.corpus.declared.declaration import DECLARATION, CollectionDeclaration
from cicada.corpus.declared.sectioning import SectionRules
from cicada.errors import CorpusInvalid, DocumentTooLarge
from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import Quarantined, Recipe, SourceItem, spans
from cicada.ingest.declaring import declaration_in, divided, published_declaration
from cicada.ingest.incoming.bucket import Upload, UploadChanged, Uploads, UploadUnreadable
from cicada.ingest.incoming.places import batches_key, plan_key, sections_key
from cicada.ingest.incoming.run_records import (
    Batch,
    DeclarationPlanned,
    IngestPlan,
    Mirror,
    Mirrored,
    Planned,
    PlanSummary,
    put_record,
    read_mirror,
    read_record_if_there,
    write_again,
)
from cicada.ingest.incoming.turns import end_turn, take_turn


@dataclass(frozen=True)
class Declared:
    """What a collection declares, as a run goes by it."""

    declaration: CollectionDeclaration | None  # that divides its documents into sections, if any
    planned: DeclarationPlanned | None  # the change to make, if any
    still_refused: Quarantined | None = None  # the upload is unchanged since an earlier run refused it


def declared_for(
    upload: Upload | None, known: Mirrored | None, uploads: Uploads, store: ObjectStore, collection: str
) -> Declared:
    """What a collection declares.

    What lies in its folder (``upload``) counts. One that cannot be used changes nothing, and is reported; where one
    that was used (``known``) is gone, nothing is declared; and where there never was one, what is published stays.

    Raises:
        UploadChanged: it was uploaded again, or deleted, since it was listed.
        IndexUnavailable: the bucket does not respond.
    """
    published = published_declaration(store, collection)
    if upload is None:
        if known is None:
            return Declared(published, None)
        keeps = None if known.loaded else published
        return Declared(keeps, DeclarationPlanned(before=published, withdrawn=known.loaded))
    try:
        found = _read(upload, uploads, collection)
    except (CorpusInvalid, DocumentTooLarge, UploadUnreadable) as error:
        refused = Quarantined(source=DECLARATION, code=CorpusInvalid.code, message=str(error))
        if known is not None and known.refused == refused and known.stamp == upload.stamp:
            return Declared(published, None, still_refused=refused)
        return Declared(published, DeclarationPlanned(stamp=upload.stamp, refused=refused))
    if known is not None and known.loaded and known.stamp == upload.stamp and found == published:
        return Declared(found, None)
    return Declared(found, DeclarationPlanned(stamp=upload.stamp, declaration=found, before=published))


def _read(upload: Upload, uploads: Uploads, collection: str) -> CollectionDeclaration:
    with tempfile.TemporaryDirectory(prefix="declaration-") as folder:
        path = Path(folder) / DECLARATION
        uploads.download(_item(collection, upload), path)
        return declaration_in(path, name=DECLARATION, collection=collection)


BATCH_DOCUMENTS = 10  # of one batch at most, which share an invocation's start
BATCH_BYTES = 64 * 2**20  # of one batch at most, unless one document is larger

HeldCounts = Callable[[str], Mapping[str, int]]  # the passages of a collection in the index, by source


def plan(
    uploads: Uploads,
    store: ObjectStore,
    collection: str,
    run: str,
    recipe: Recipe,
    *,
    held: HeldCounts,
    is_running: Callable[[str], bool],
    batch_documents: int = BATCH_DOCUMENTS,
    batch_bytes: int = BATCH_BYTES,
) -> PlanSummary:
    """Take the collection's turn, and plan what is to be done about its uploads.

    Args:
        run: the run's id, unique among the collection's.
        recipe: what documents are prepared by, beside the collection's declaration: after a change of either that
            would cut or divide them otherwise, all are prepared again.
        held: what the index has: a document that it has lost, however that was, is loaded again.
        is_running: whether another run has not ended.

    Returns:
        What there is to do; nothing where another run is at work, which will look again.

    Raises:
        IndexUnavailable: the bucket does not respond.
        PublishConflict: too many others begin at the same time.
    """
    if not take_turn(store, collection, run, is_running):
        return PlanSummary(collection=collection, run=run, needed=False, deferred=True)
    again = True
    while again:
        try:
            planned, rules = _planned(uploads, store, collection, run, recipe, held(collection))
        except UploadChanged:
            continue  # the declaration was listed as it is not any more
        if planned.documents or planned.gone or planned.forgotten or planned.declaration:
            return _written(store, planned, rules, batch_documents, batch_bytes)
        again, _ = end_turn(store, collection, run, unfinished=False)
    return PlanSummary(collection=collection, run=run, needed=False)


def _planned(
    uploads: Uploads, store: ObjectStore, collection: str, run: str, recipe: Recipe, held: Mapping[str, int]
) -> tuple[IngestPlan, SectionRules | None]:
    mirror, _ = read_mirror(store, collection)
    found = list(uploads.uploads(collection))
    upload = next((upload for upload in found if upload.source == DECLARATION), None)
    declared = declared_for(upload, mirror.declaration, uploads, store, collection)
    found = [upload for upload in found if upload.source != DECLARATION]
    recipe = divided(recipe, declared.declaration)
    as_known = [upload for upload in found if _is_as_known(upload, mirror, recipe, held)]
    same = {upload.source for upload in as_known}
    refused = (mirror.documents[source].refused for source in sorted(same))
    left = mirror.documents.keys() - {upload.source for upload in found}
    before = read_record_if_there(store, plan_key(collection, run), IngestPlan)
    still_refused = tuple(one for one in refused if one is not None)
    planned = IngestPlan(
        collection=collection,
        run=run,
        round=before.round + 1 if before else 1,
        recipe_digest=recipe.digest(),
        documents=tuple(
            Planned(item=_item(collection, upload), stamp=upload.stamp) for upload in found if upload.source not in same
        ),
        gone=tuple(sorted(source for source in left if mirror.documents[source].loaded)),
        forgotten=tuple(sorted(source for source in left if not mirror.documents[source].loaded)),
        held=len(same) - len(still_refused),
        refused=(*still_refused, *((declared.still_refused,) if declared.still_refused else ())),
        ignored=tuple(uploads.ignored(collection)),
        declaration=declared.planned,
    )
    return planned, recipe.sections


def _is_as_known(upload: Upload, mirror: Mirror, recipe: Recipe, held: Mapping[str, int]) -> bool:
    """Whether nothing is to be done about an upload."""
    known = mirror.documents.get(upload.source)
    if known is None or known.stamp != upload.stamp or mirror.recipe_digest != recipe.digest():
        return False
    return known.refused is not None or held.get(upload.source, 0) == known.passages


def _written(
    store: ObjectStore, planned: IngestPlan, rules: SectionRules | None, batch_documents: int, batch_bytes: int
) -> PlanSummary:
    divided_by = ""
    if rules is not None:
        divided_by = sections_key(planned.collection, planned.run, planned.round)
        put_record(store, divided_by, rules)
    sizes = [one.item.size for one in planned.documents]
    batches = [
        Batch(
            collection=planned.collection,
            run=planned.run,
            round=planned.round,
            number=number,
            items=planned.documents[start:end],
            sections_key=divided_by,
        )
        for number, (start, end) in enumerate(spans(sizes, batch_documents, batch_bytes))
    ]
    put_record(store, plan_key(planned.collection, planned.run), planned)
    written = ",".join(batch.model_dump_json(by_alias=True) for batch in batches)
    write_again(store, batches_key(planned.collection, planned.run), f"[{written}]".encode())
    return PlanSummary(
        collection=planned.collection,
        run=planned.run,
        documents=len(planned.documents),
        gone=len(planned.gone),
        batches=len(batches),
        batches_key=batches_key(planned.collection, planned.run),
        needed=True,
    )


def _item(collection: str, upload: Upload) -> SourceItem:
    return SourceItem(collection=collection, source=upload.source, key=upload.key, etag=upload.etag, size=upload.size)
