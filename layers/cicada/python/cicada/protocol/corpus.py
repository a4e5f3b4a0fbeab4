"""Replies to the actions ``collections``, ``documents``, ``search`` and ``read``: what the corpus holds.

Each is one frame. A longer list has pages, linked by ``next``.
"""

from __future__ import annotations

from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from cicada.corpus.passages import Locator
from cicada.protocol.events import Degraded, Payload, Reply, Source

_NEXT = "the cursor to ask for the next page with; null on the last"


class EpisodeListed(Payload):
    """An episode of a collection."""

    id: str = Field(description="the value of the filter `episodes`")
    name: str | None = None
    passages: int


class SectionListed(Payload):
    """A heading of the first level, over all documents of a collection."""

    path: str = Field(description="a value of the filter `sections`")
    passages: int = Field(description="below this heading")


class CollectionListed(Payload):
    """A collection that the user may read."""

    name: str
    title: str | None = Field(None, description="for people; from the declaration")
    description: str | None = Field(None, description="what it holds; from the declaration")
    passages: int
    documents: int
    episodes: tuple[EpisodeListed, ...] = Field((), description="at most 100, by id")
    sections: tuple[SectionListed, ...] = Field((), description="at most 50, those with the most passages first")
    more_episodes: int = Field(0, description="episodes that are not listed")
    more_sections: int = Field(0, description="sections that are not listed")
    upload: bool = Field(False, description="the user may upload documents to it")


class Collections(Reply):
    """What the user may read and ask about."""

    type: Literal["collections"] = "collections"
    index_version: str | None = Field(description="null where nothing is published")
    collections: tuple[CollectionListed, ...] = Field(description="by name")
    upload_to: tuple[str, ...] = Field(
        (), description="names of further collections that the user may create by an upload; `*` for any name"
    )
    examples: tuple[str, ...] = Field((), description="at most 6 questions about what the user may read")
    empty: bool = Field(description="the user can read no passage")
    next: str | None = Field(None, description=_NEXT)


class DocumentListed(Payload):
    """A document of a collection."""

    source: str = Field(description="a value of the filter `documents`")
    title: str
    passages: int
    sections: tuple[str, ...] = Field(
        (), description="its headings of the first level, at most 20, in its order: values of the filter `sections`"
    )
    original: bool = Field(description="the file as it was uploaded is kept; `read` gives its URL")


class Documents(Reply):
    """A page of a collection's documents, by source."""

    type: Literal["documents"] = "documents"
    collection: str
    documents: tuple[DocumentListed, ...]
    next: str | None = Field(None, description=_NEXT)


class SearchFound(Reply):
    """The passages that a search found, best first."""

    type: Literal["found"] = "found"
    index_version: str
    engine: str = Field("shards", description="what searched: shards, s3vectors or kendra")
    query: str
    degraded: tuple[Degraded, ...] = Field((), description="why this is less than the whole; empty when it is not")
    sources: tuple[Source, ...] = Field(description="as in the event `sources`")


class OriginalFile(Payload):
    """Where the file as it was uploaded can be downloaded."""

    url: str
    expires_at_ms: int = Field(description="epoch milliseconds")


class DocumentRead(Payload):
    """The document of a passage that was read."""

    source: str
    title: str
    original: OriginalFile | None = Field(None, description="null where the file is not kept")


class PassageRead(Payload):
    """A passage in the order of its document."""

    passage_id: str
    locator: Locator
    text: str
    clipped: bool = Field(False, exclude_if=not_, description="the text was shortened to fit the frame")


class Passages(Reply):
    """A passage and those around it."""

    type: Literal["passages"] = "passages"
    index_version: str = Field(description="in which it was read")
    collection: str
    document: DocumentRead
    passages: tuple[PassageRead, ...]
    at: Annotated[int, Field(ge=0)] = Field(description="the place of the passage that was asked for, from 0")
    has_previous: bool = Field(description="the document goes on before the first passage")
    has_next: bool = Field(description="the document goes on after the last passage")


CorpusReply = Collections | Documents | SearchFound | Passages
