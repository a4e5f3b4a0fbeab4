"""Keys of an ingest's objects in the bucket."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from cicada.corpus.declared.declaration import misplaced
from cicada.ingest.contracts import MAX_SOURCE_CHARS
from cicada.rights import COLLECTION_NAME

INCOMING = "incoming/"  # key prefix of uploaded documents
INGESTS = "ingests/"  # key prefix of an ingest's plan, outcomes and report
INGESTED = "ingested/"  # key prefix of the state of each mirrored folder

_NAME_CHARS = 40


def collection_and_source(key: str) -> tuple[str, str] | None:
    """The collection and the source of an uploaded object; None if it is not a document.

    Not documents: a folder's marker, a hidden file, a file outside the collections' folders, a path that is too long,
    and a declaration below the top of its folder.
    """
    collection, slash, source = key.removeprefix(INCOMING).partition("/")
    if not (key.startswith(INCOMING) and slash and is_collection(collection)):
        return None
    parts = source.split("/")
    if len(source) > MAX_SOURCE_CHARS or misplaced(source) or any(part.startswith(".") or not part for part in parts):
        return None
    return collection, source


def is_collection(name: str) -> bool:
    """Whether a collection can have this name."""
    return re.fullmatch(COLLECTION_NAME, name) is not None


def folder(collection: str) -> str:
    """Key prefix of a collection's uploaded documents."""
    return f"{INCOMING}{collection}/"


def runs_folder(collection: str) -> str:
    """Key prefix of all runs of a collection."""
    return f"{INGESTS}{collection}/"


def run_folder(collection: str, run: str) -> str:
    """Key prefix of one run."""
    return f"{runs_folder(collection)}{run}/"


def run_key(collection: str, run: str, name: Literal["plan", "batches", "progress"]) -> str:
    """Key of a run's plan, of the batches that the workflow maps over, or of how far committing has come."""
    return f"{run_folder(collection, run)}{name}.json"


def round_key(collection: str, run: str, round: int, name: str) -> str:
    """Key of an object of one look at the folder, counted from 1: ``report``, ``sections``, ``outcomes``."""
    return f"{run_folder(collection, run)}{name}-{round:03}"


def turn_key(collection: str) -> str:
    """Key of a collection's turn."""
    return f"{INGESTED}turns/{collection}.json"


def mirror_key(collection: str) -> str:
    """Key of the state of a collection's folder."""
    return f"{INGESTED}{collection}.json"


def is_ignored(key: str) -> bool:
    """Whether a key below ``incoming/`` is not a document's, nor a folder's marker or a hidden file."""
    name = key.rpartition("/")[2]
    return bool(name) and not name.startswith(".") and collection_and_source(key) is None


def execution_name(collection: str, window: int) -> str:
    """The name of the workflow's execution for one window of time: letters, digits, ``-`` and ``_``, at most 80.

    Step Functions runs a name once, so all uploads within one window share one execution.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", collection)[:_NAME_CHARS]
    return f"{plain}-{hashlib.sha256(collection.encode()).hexdigest()[:8]}-{window}"
