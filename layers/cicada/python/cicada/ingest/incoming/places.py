"""Where the things of an ingest lie in the bucket."""

from __future__ import annotations

import hashlib
import re

from cicada.corpus.declared.declaration import misplaced
from cicada.ingest.contracts import MAX_SOURCE_CHARS

INCOMING = "incoming/"  # key prefix of uploaded documents
INGESTS = "ingests/"  # key prefix of an ingest's plan, outcomes and report
INGESTED = "ingested/"  # key prefix of the state of each mirrored folder

_COLLECTION = re.compile(r"\w[\w-]{0,63}")
_NAME_CHARS = 40


def collection_and_source(key: str) -> tuple[str, str] | None:
    """The collection that an uploaded object belongs to, and its name there; None for what is no document.

    A folder's marker, a hidden file, a file beside the collections' folders, a path that is too long, and a declaration
    that does not lie at the top of the collection's folder are none.
    """
    collection, slash, source = key.removeprefix(INCOMING).partition("/")
    if not (key.startswith(INCOMING) and slash and is_collection(collection)):
        return None
    parts = source.split("/")
    if len(source) > MAX_SOURCE_CHARS or misplaced(source) or any(part.startswith(".") or not part for part in parts):
        return None
    return collection, source


def is_collection(name: str) -> bool:
    """Whether a folder of this name below ``incoming/`` is a collection's."""
    return _COLLECTION.fullmatch(name) is not None


def folder(collection: str) -> str:
    """Begins the keys of a collection's uploaded documents."""
    return f"{INCOMING}{collection}/"


def runs_folder(collection: str) -> str:
    """Begins the keys of what a collection's runs leave."""
    return f"{INGESTS}{collection}/"


def run_folder(collection: str, run: str) -> str:
    """Begins the keys of what one run leaves."""
    return f"{runs_folder(collection)}{run}/"


def batches_key(collection: str, run: str) -> str:
    """Of the array of batches that the workflow maps over."""
    return run_folder(collection, run) + "batches.json"


def plan_key(collection: str, run: str) -> str:
    """Of a run's plan."""
    return run_folder(collection, run) + "plan.json"


def sections_key(collection: str, run: str, round: int) -> str:
    """Of the rules by which the documents of a run's look at the folder are divided."""
    return f"{run_folder(collection, run)}sections-{round:03}.json"


def outcome_key(collection: str, run: str, round: int, digest: str) -> str:
    """Of what became of one upload in a run's look at the folder: another one may divide it otherwise."""
    return f"{run_folder(collection, run)}outcomes-{round:03}/{digest}.json"


def progress_key(collection: str, run: str) -> str:
    """Of how far a run has come with committing."""
    return run_folder(collection, run) + "progress.json"


def report_key(collection: str, run: str, round: int) -> str:
    """Of the report of a run's look at the folder, counted from 1."""
    return f"{run_folder(collection, run)}report-{round:03}.json"


def turn_key(collection: str) -> str:
    """Of whose turn it is at a collection."""
    return f"{INGESTED}turns/{collection}.json"


def mirror_key(collection: str) -> str:
    """Of what is known of a collection's folder."""
    return f"{INGESTED}{collection}.json"


def is_ignored(key: str) -> bool:
    """Whether a key below ``incoming/`` is no document's, and no folder's marker or hidden file either."""
    name = key.rpartition("/")[2]
    return bool(name) and not name.startswith(".") and collection_and_source(key) is None


def execution_name(collection: str, window: int) -> str:
    """The name of the workflow's execution for one window of time: letters, digits, ``-`` and ``_``, at most 80.

    Two uploads within one window have one name, and so one execution.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", collection)[:_NAME_CHARS]
    return f"{plain}-{hashlib.sha256(collection.encode()).hexdigest()[:8]}-{window}"
