"""Load a script into the index: ``cicada load`` for scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.corpus.scripts import read_script, script_files
from cicada.corpus.windows import passages
from cicada.errors import CorpusInvalid
from cicada.index.ports import ObjectStore, Progress, silent
from cicada.index.writer import IndexWriter, WriteResult
from cicada.ingest.committing import settle_readers
from cicada.ingest.incoming.places import is_collection
from cicada.models.ports import Embedder


@dataclass(frozen=True)
class LoadReport:
    """The result of a load."""

    collection: str
    files: int
    messages: int
    episodes: Mapping[str, str]  # names by id, in story order
    written: WriteResult

    @property
    def undeclared(self) -> bool:
        """Whether the collection's declaration was dropped: a script that is loaded by itself declares nothing."""
        return self.written.declared is not None


def load_script(
    paths: Sequence[Path],
    collection: str,
    store: ObjectStore,
    embedder: Embedder,
    progress: Progress = silent,
    *,
    start_over: bool = False,
    verify: bool = False,
) -> LoadReport:
    """Make a collection of the index hold exactly one script.

    Loading it again embeds only what has changed, and publishes nothing if nothing has. ``start_over`` drops all other
    collections: for another embedding model, or a damaged index; ``verify`` reads every byte of the collection to find
    and repair all damage. Raises CorpusInvalid if the script or the collection's name is invalid, and the errors of
    :meth:`IndexWriter.replace <cicada.index.writer.IndexWriter.replace>`.
    """
    checked_collection(collection)
    files = script_files(paths)
    progress("reading", 0, len(files))
    messages = read_script(files)
    progress("reading", len(files), len(files))
    writer = IndexWriter(store, embedder, progress=progress)
    items = passages(collection, messages)
    written = writer.start_over(collection, items) if start_over else writer.replace(collection, items, verify=verify)
    settle_readers(store, collection, None)  # a script that is loaded by itself declares nothing
    return LoadReport(
        collection=collection,
        files=len(files),
        messages=len(messages),
        episodes={message.episode_id: message.episode_name for message in messages},
        written=written,
    )


def checked_collection(collection: str) -> str:
    """A collection's name. Raises CorpusInvalid if it is invalid."""
    if not is_collection(collection):
        raise CorpusInvalid(f"{collection!r} is not a valid collection name: up to 64 letters, digits, '_' and '-'")
    return collection
