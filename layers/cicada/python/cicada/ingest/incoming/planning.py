"""The first step of an ingest: find the new, changed and deleted uploads of a collection, and its declaration."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cicada.corpus.declared.declaration import DECLARATION, CollectionDeclaration
from cicada.corpus.declared.sectioning import SectionRules
from cicada.errors import CorpusInvalid, DocumentTooLarge
from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import Quarantined, Recipe, SourceItem, spans
from cicada.ingest.declaring import declaration_in, divided, published_declaration
from cicada.ingest.incoming.bucket import UploadChanged, Uploads, UploadUnreadable
from cicada.ingest.incoming.listed import Upload
from cicada.ingest.incoming.places import round_key, run_key
from cicada.ingest.incoming.run_records import (
    Batch,
    DeclarationPlanned,
    IngestPlan,
    Mirror,
    Mirrored,
    Planned,
    PlanSummary,
    find_record,
    put_record,
    read_mirror,
    write_again,
)
from cicada.ingest.incoming.turns import end_turn, take_turn

BATCH_DOCUMENTS = 10  # of one batch at most, which share an invocation's start
BATCH_BYTES = 64 * 2**20  # of one batch at most, unless one document is larger

HeldCounts = Callable[[str], Mapping[str, int]]  # the passages of a collection in the index, by source


@dataclass(frozen=True)
class Declared:
    """A collection's declaration, for one run."""

    declaration: CollectionDeclaration | None  # that divides its documents into sections, if any
    planned: DeclarationPlanned | None  # the change to make, if any
    still_refused: Quarantined | None = None  # the upload is unchanged since an earlier run refused it


def declared_for(
    upload: Upload | None, known: Mirrored | None, uploads: Uploads, store: ObjectStore, collection: str
) -> Declared:
    """What a collection declares: what is in its folder (``upload``), if it is valid.

    An invalid one changes nothing, and is reported. If the one that was used (``known``) was deleted, nothing is
    declared; if there never was one, the published declaration stays. Raises UploadChanged if it was replaced or
    deleted since it was listed, and IndexUnavailable.
    """
    published = published_declaration(store, collection)
    if upload is None:
        return _without_upload(known, published)
    same = known if known is not None and known.stamp == upload.stamp else None
    try:
        found = _read(upload, uploads, collection)
    except (CorpusInvalid, DocumentTooLarge, UploadUnreadable) as error:
        refused = Quarantined(source=DECLARATION, code=CorpusInvalid.code, message=str(error))
        if same is not None and same.refused == refused:
            return Declared(published, None, still_refused=refused)
        return Declared(published, DeclarationPlanned(stamp=upload.stamp, refused=refused))
    if same is not None and same.loaded and found == published:
        return Declared(found, None)
    return Declared(found, DeclarationPlanned(stamp=upload.stamp, declaration=found, before=published))


def _without_upload(known: Mirrored | None, published: CollectionDeclaration | None) -> Declared:
    if known is None:
        return Declared(published, None)
    keeps = None if known.loaded else published
    return Declared(keeps, DeclarationPlanned(before=published, withdrawn=known.loaded))


def _read(upload: Upload, uploads: Uploads, collection: str) -> CollectionDeclaration:
    with tempfile.TemporaryDirectory(prefix="declaration-") as folder:
        path = Path(folder) / DECLARATION
        uploads.download(_item(collection, upload), path)
        return declaration_in(path, name=DECLARATION, collection=collection)


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
    """Take the collection's turn, and plan what to do about its uploads; nothing while another run is at work, which
    will look again.

    ``recipe``: of the documents, without the sections; a change of either prepares all documents again; ``held``: the
    index's passages: a document that it has lost is loaded again; ``is_running``: whether another run has not ended.
    Raises IndexUnavailable, and PublishConflict if too many runs begin at the same time.
    """
    if not take_turn(store, collection, run, is_running):
        return PlanSummary(collection=collection, run=run, needed=False, deferred=True)
    again = True
    while again:
        try:
            planned, rules = _planned(uploads, store, collection, run, recipe, held(collection))
        except UploadChanged:
            continue  # the declaration was replaced since it was listed
        if planned.documents or planned.gone or planned.forgotten or planned.declaration:
            return _written(store, planned, rules, batch_documents, batch_bytes)
        again, _ = end_turn(store, collection, run, unfinished=False)
    return PlanSummary(collection=collection, run=run, needed=False)


def _planned(
    uploads: Uploads, store: ObjectStore, collection: str, run: str, recipe: Recipe, held: Mapping[str, int]
) -> tuple[IngestPlan, SectionRules | None]:
    mirror = read_mirror(store, collection)
    found = {upload.source: upload for upload in uploads.uploads(collection)}
    declared = declared_for(found.pop(DECLARATION, None), mirror.declaration, uploads, store, collection)
    recipe = divided(recipe, declared.declaration)
    same = _unchanged(found.values(), mirror, recipe, held)
    refused = tuple(known.refused for _, known in sorted(same.items()) if known.refused is not None)
    gone, forgotten = _deleted(found, mirror)
    before, _ = find_record(store, run_key(collection, run, "plan"), IngestPlan)
    planned = IngestPlan(
        collection=collection,
        run=run,
        round=before.round + 1 if before else 1,
        recipe_digest=recipe.digest(),
        documents=tuple(
            Planned(item=_item(collection, upload), stamp=upload.stamp)
            for source, upload in found.items()
            if source not in same
        ),
        gone=gone,
        forgotten=forgotten,
        held=len(same) - len(refused),
        refused=(*refused, *((declared.still_refused,) if declared.still_refused else ())),
        ignored=tuple(uploads.ignored(collection)),
        declaration=declared.planned,
    )
    return planned, recipe.sections


def _unchanged(found: Iterable[Upload], mirror: Mirror, recipe: Recipe, held: Mapping[str, int]) -> dict[str, Mirrored]:
    """The uploads with nothing to do, by source."""
    if mirror.recipe_digest != recipe.digest():
        return {}
    return {
        upload.source: known
        for upload in found
        if (known := mirror.documents.get(upload.source)) is not None
        and known.stamp == upload.stamp
        and (known.refused is not None or held.get(upload.source, 0) == known.passages)
    }


def _deleted(found: Mapping[str, Upload], mirror: Mirror) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The deleted sources: those that were loaded, and those that were not."""
    left = [(source, known.loaded) for source, known in sorted(mirror.documents.items()) if source not in found]
    return tuple(source for source, loaded in left if loaded), tuple(source for source, loaded in left if not loaded)


def _written(
    store: ObjectStore, planned: IngestPlan, rules: SectionRules | None, batch_documents: int, batch_bytes: int
) -> PlanSummary:
    of = {"collection": planned.collection, "run": planned.run}
    divided_by = ""
    if rules is not None:
        divided_by = f"{round_key(**of, round=planned.round, name='sections')}.json"
        put_record(store, divided_by, rules)
    groups = spans([one.item.size for one in planned.documents], batch_documents, batch_bytes)
    batches = [
        Batch(
            **of,
            round=planned.round,
            number=number,
            items=planned.documents[start:end],
            sections_key=divided_by,
        )
        for number, (start, end) in enumerate(groups)
    ]
    put_record(store, run_key(**of, name="plan"), planned)
    batches_key = run_key(**of, name="batches")
    write_again(store, batches_key, f"[{','.join(batch.model_dump_json(by_alias=True) for batch in batches)}]".encode())
    return PlanSummary(
        **of,
        documents=len(planned.documents),
        gone=len(planned.gone),
        batches=len(batches),
        batches_key=batches_key,
        needed=True,
    )


def _item(collection: str, upload: Upload) -> SourceItem:
    return SourceItem(collection=collection, source=upload.source, key=upload.key, etag=upload.etag, size=upload.size)
