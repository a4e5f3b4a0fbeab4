"""What an uploaded ``collection.yaml`` has a run do."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.declared.files import DECLARATION
from cicada.errors import CorpusInvalid, DocumentTooLarge
from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import Quarantined, SourceItem
from cicada.ingest.declaring import declaration_in, published_declaration
from cicada.ingest.incoming.bucket import Upload, Uploads, UploadUnreadable
from cicada.ingest.incoming.records import DeclarationPlanned, Mirrored


@dataclass(frozen=True)
class Declared:
    """What a collection declares, as a run goes by it."""

    declaration: CollectionDeclaration | None
    """By which its documents are divided; None where it declares nothing."""
    planned: DeclarationPlanned | None
    """What is to be done about it; None for nothing."""
    still_refused: Quarantined | None = None
    """The upload lies there just as an earlier run refused it."""


def declared_for(
    upload: Upload | None, known: Mirrored | None, uploads: Uploads, store: ObjectStore, collection: str
) -> Declared:
    """What a collection declares.

    What lies in its folder counts. One that cannot be used changes nothing, and is reported; where one that was used is
    not there any more, nothing is declared; and where there never was one, what is published stays.

    Args:
        upload: the folder's declaration, if there is one.
        known: what is remembered of it.
        uploads: the folder.
        store: the bucket.
        collection: whose folder.

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
    as_known = known is not None and known.loaded and known.stamp == upload.stamp and found == published
    if as_known:
        return Declared(found, None)
    return Declared(found, DeclarationPlanned(stamp=upload.stamp, declaration=found, before=published))


def _read(upload: Upload, uploads: Uploads, collection: str) -> CollectionDeclaration:
    item = SourceItem(collection=collection, source=upload.source, key=upload.key, etag=upload.etag, size=upload.size)
    with tempfile.TemporaryDirectory(prefix="declaration-") as folder:
        path = Path(folder) / DECLARATION
        uploads.download(item, path)
        return declaration_in(path, name=DECLARATION, collection=collection)
