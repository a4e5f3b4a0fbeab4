"""The records of an ingest, as objects of the bucket."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from cicada.errors import IndexCorrupt, PublishConflict
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.ingest.incoming.places import mirror_key
from cicada.ingest.incoming.records import Mirror

Record = TypeVar("Record", bound=BaseModel)


def read_mirror(store: ObjectStore, collection: str) -> tuple[Mirror, str | None]:
    """What is known of a collection's folder, and the object's entity tag; an empty one where nothing is."""
    try:
        found = store.read(mirror_key(collection))
    except ObjectMissing:
        return Mirror(), None
    return parsed(mirror_key(collection), found.data, Mirror), found.etag


def read_record(store: ObjectStore, key: str, record: type[Record]) -> Record:
    """A record.

    Raises:
        IndexCorrupt: there is none, or it cannot be read.
    """
    try:
        return parsed(key, store.read(key).data, record)
    except ObjectMissing as error:
        raise IndexCorrupt(f"{key} is missing", key=key) from error


def parsed(key: str, data: bytes, record: type[Record]) -> Record:
    """The record in an object's bytes. Raises IndexCorrupt if there is none."""
    try:
        return record.model_validate_json(data)
    except ValidationError as error:
        raise IndexCorrupt(f"{key} cannot be read", key=key) from error


def read_record_if_there(store: ObjectStore, key: str, record: type[Record]) -> Record | None:
    """A record; None if there is none.

    Raises:
        IndexCorrupt: it cannot be read.
    """
    try:
        return parsed(key, store.read(key).data, record)
    except ObjectMissing:
        return None


def put_record(store: ObjectStore, key: str, record: BaseModel) -> None:
    """Write a record of this run: see :func:`write_again`."""
    write_again(store, key, record.model_dump_json(by_alias=True).encode())


def write_again(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object of this run; a step that is repeated replaces what it wrote before.

    Raises:
        PublishConflict: the same step is repeated by two at once.
    """
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed:
        try:
            found = store.read(key)
            if found.data != data:
                store.write(key, data, replaces=found.etag)
        except (ObjectMissing, PreconditionFailed) as error:
            raise PublishConflict(f"{key} is written by somebody else") from error
