"""Documents for tests of ingest: small Markdown files, read in this process, and a recipe for the test's embedder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.documents import Document
from cicada.corpus.readers.dispatch import read_document
from cicada.index.ports import ObjectStore
from cicada.index.reader import IndexReader
from cicada.ingest.contracts import Recipe, SourceItem
from cicada.models.ports import Embedder
from cicada.retrieval.ports import SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING

SCRIPT_LINE = (
    '{{"episodeId": "ep1", "episodeName": "One", "chapterId": "c1", "messageId": "{id}", "speaker": "Mira", '
    '"textENG": "{text}"}}\n'
)


def recipe_for(embedder: Embedder, **chunks: object) -> Recipe:
    return Recipe(
        embedding_model_id=embedder.model_id,
        dimensions=embedder.dimensions,
        chunks=ChunkOptions.model_validate({"chunk_size": 50, "overlap": 0, **chunks}),
    )


def read_here(source: str, path: Path, *, title: str | None) -> Document:
    """As :func:`cicada.corpus.readers.sandbox.read_safely`, without a process."""
    return read_document(source, path.read_bytes(), title=title)


class Reading:
    """Counts what is read."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def __call__(self, source: str, path: Path, *, title: str | None) -> Document:
        self.sources.append(source)
        return read_here(source, path, title=title)


def item(source: str, *, collection: str = "shelf", **given: object) -> SourceItem:
    return SourceItem.model_validate({"collection": collection, "source": source, "key": "", "size": 1, **given})


def shelf(folder: Path, texts: Mapping[str, str]) -> Path:
    """A folder that holds exactly these files."""
    for path in [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []:
        path.unlink()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def script_of(messages: Mapping[str, str]) -> str:
    """A script's file, by message id."""
    return "".join(SCRIPT_LINE.format(id=id, text=text) for id, text in messages.items())


def found_in(store: ObjectStore, embedder: Embedder, query: str = "the") -> list[tuple[str, str]]:
    """Source and text of whatever the index holds, best first."""
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        result = ShardRetriever(reader, embedder).search(
            SearchQuery(query, top_k=100, min_score=0.0, readable=EVERYTHING)
        )
    finally:
        reader.close()
    return [(source_of(hit.passage), hit.passage.text) for hit in result.hits]


def source_of(passage: object) -> str:
    locator, metadata = passage.locator, passage.metadata  # type: ignore[attr-defined]
    return str(getattr(locator, "source", None) or metadata.get("source", ""))
