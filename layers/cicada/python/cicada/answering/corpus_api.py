"""The actions ``collections``, ``documents``, ``search`` and ``read``, with the rights of a search."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, assert_never

from cicada.answering.grounding import degradations
from cicada.answering.prompt import number_sources
from cicada.answering.reply_pages import PAGE_BYTES, bytes_of, fitting, json_bytes, page_of
from cicada.attempts.frame_limits import fit_sources
from cicada.errors import CicadaError, IndexMissing, PassageUnknown, Unauthorized
from cicada.identity import Caller
from cicada.index.access_rules import AccessRulesStore
from cicada.index.loaded_index import LoadedIndex
from cicada.index.reader import IndexReader
from cicada.protocol.actions import CorpusAction, ListCollections, ListDocuments, ReadPassages, Search
from cicada.protocol.corpus import (
    CollectionListed,
    Collections,
    CorpusReply,
    DocumentRead,
    Documents,
    OriginalFile,
    PassageRead,
    Passages,
    SearchFound,
)
from cicada.protocol.events import Refused, Reply, Sources
from cicada.retrieval.corpus_lists import collections_of, documents_of
from cicada.retrieval.example_questions import examples_of
from cicada.retrieval.names import NameChecker
from cicada.retrieval.passage_reader import Surroundings, read_around
from cicada.retrieval.ports import Filters, Retriever, SearchQuery, TimeLimit, filters_of
from cicada.retrieval.shards import read_index
from cicada.rights import Readable

logger = logging.getLogger(__name__)

MIN_TEXT_BYTES = 1_024
"""Of the passage that was asked for, if its place leaves no room in the frame."""


class Originals(Protocol):
    """The files as they were uploaded."""

    def kept(self, collection: str, sources: Sequence[str]) -> frozenset[str]:
        """The sources whose file is kept; none where that cannot be told."""

    def link(self, collection: str, source: str) -> OriginalFile | None:
        """Where a file can be downloaded for some minutes; None if it is not kept, or that cannot be told."""


class UploadRights(Protocol):
    """Who may upload documents."""

    def may_upload(self, collection: str, groups: tuple[str, ...]) -> bool:
        """Whether a member of the groups may upload to a collection."""

    def may_create(self, groups: tuple[str, ...]) -> tuple[str, ...]:
        """Names of collections that such a user may create by an upload; ``*`` for any name."""


@dataclass(frozen=True)
class CorpusApi:
    """Answers the actions about the corpus."""

    reader: IndexReader
    retriever: Retriever
    names: NameChecker
    access: AccessRulesStore
    originals: Originals
    _: KW_ONLY
    top_k: int
    min_score: float
    admit: Callable[[Caller], None] | None = None
    """Is called before a search, where there are limits on use. Raises LimitReached or SpendingStopped."""
    uploads: UploadRights | None = None
    """None where nobody uploads."""
    time_left_s: Callable[[], float] = lambda: float("inf")

    def handle(self, action: CorpusAction, caller: Caller) -> Reply:
        """Carry out an action. One that fails is refused in the reply.

        Raises Unauthorized if the caller's tokens were revoked, which is looked at here for a search only.
        """
        try:
            return self._carry_out(action, caller)
        except Unauthorized:
            raise
        except CicadaError as error:
            logger.info("action refused", extra={"action": action.action, "code": error.code, "why": str(error)})
            return Refused.of(error, action.request_id)

    def _carry_out(self, action: CorpusAction, caller: Caller) -> CorpusReply:
        match action:
            case Search():
                if self.admit is not None:
                    self.admit(caller)
                return self._search(action, self._readable(caller))
            case ListCollections():
                return self._collections(action, caller, self._readable(caller))
            case ListDocuments():
                return self._documents(action, self._readable(caller))
            case ReadPassages():
                return self._read(action, self._readable(caller))
            case _:
                assert_never(action)

    def _readable(self, caller: Caller) -> Readable:
        return self.access.rules().readable(caller.groups)

    def _collections(self, action: ListCollections, caller: Caller, readable: Readable) -> Collections:
        try:
            (found, examples), view = read_index(self.reader, readable, _held)
        except IndexMissing:
            found, examples, view = (), (), None
        after = action.cursor or ""
        uploads, groups = self.uploads, caller.groups
        if uploads is not None:
            found = tuple(one.model_copy(update={"upload": uploads.may_upload(one.name, groups)}) for one in found)
        room = PAGE_BYTES - sum(map(json_bytes, examples))
        listed, more = page_of((_fitted(one, room) for one in found if one.name > after), room)
        return Collections(
            request_id=action.request_id,
            index_version=None if view is None else view.manifest.version,
            collections=listed,
            upload_to=() if uploads is None else uploads.may_create(groups),
            examples=() if action.cursor else examples,
            empty=not any(one.passages for one in found),
            next=listed[-1].name if more else None,
        )

    def _documents(self, action: ListDocuments, readable: Readable) -> Documents:
        self.names.check(Filters(collections=(action.collection,)), readable)
        found, _ = read_index(
            self.reader,
            readable,
            lambda view: documents_of(view, action.collection, prefix=action.prefix or "", after=action.cursor or ""),
        )
        kept = self.originals.kept(action.collection, [one.source for one in found.documents])
        documents, more = page_of(
            (one.model_copy(update={"original": one.source in kept}) for one in found.documents), PAGE_BYTES
        )
        return Documents(
            request_id=action.request_id,
            collection=action.collection,
            documents=documents,
            next=documents[-1].source if more or found.more else None,
        )

    def _search(self, action: Search, readable: Readable) -> SearchFound:
        query = SearchQuery(
            action.query,
            filters_of(action),
            action.top_k or self.top_k,
            self.min_score,
            limits=TimeLimit(self.time_left_s),
            readable=readable,
        )
        found = self.retriever.search(query)
        event = fit_sources(
            Sources(
                attempt=0,
                query=action.query,
                index_version=found.index_version,
                searched=found.searched,
                engine=found.engine,
                degraded=degradations(found),
                sources=number_sources(found.hits),
            )
        )
        return SearchFound(
            request_id=action.request_id,
            index_version=event.index_version,
            engine=event.engine,
            query=action.query,
            degraded=event.degraded,
            sources=event.sources,
        )

    def _read(self, action: ReadPassages, readable: Readable) -> Passages:
        try:
            found, view = read_index(self.reader, readable, lambda view: _around(view, action))
        except PassageUnknown as error:
            current = self.reader.current().manifest.version
            changed = action.index_version not in (None, current)
            raise PassageUnknown(str(error), changed=changed) from error
        asked = found.passages[found.at]
        document = DocumentRead(
            source=found.source, title=found.title, original=self.originals.link(asked.collection, found.source)
        )
        fitted, shown = _fitting(found, PAGE_BYTES - bytes_of(document))
        return Passages(
            request_id=action.request_id,
            index_version=view.manifest.version,
            collection=asked.collection,
            document=document,
            passages=shown,
            at=fitted.at,
            has_previous=fitted.has_previous,
            has_next=fitted.has_next,
        )


def _held(view: LoadedIndex) -> tuple[tuple[CollectionListed, ...], tuple[str, ...]]:
    return collections_of(view), examples_of(view)


def _around(view: LoadedIndex, action: ReadPassages) -> Surroundings:
    return read_around(view, action.passage_id, action.collection, before=action.before, after=action.after)


def _fitted(listed: CollectionListed, room: int) -> CollectionListed:
    """A collection with as many of its episodes and sections as a page has room for."""
    while bytes_of(listed) > room and (listed.episodes or listed.sections):
        episodes, sections = len(listed.episodes) // 2, len(listed.sections) // 2
        listed = listed.model_copy(
            update={
                "episodes": listed.episodes[:episodes],
                "sections": listed.sections[:sections],
                "more_episodes": listed.more_episodes + len(listed.episodes) - episodes,
                "more_sections": listed.more_sections + len(listed.sections) - sections,
            }
        )
    return listed


def _fitting(found: Surroundings, room: int) -> tuple[Surroundings, tuple[PassageRead, ...]]:
    """The passages nearest to the one that was asked for, as many as there is room for."""
    shown = [PassageRead(passage_id=one.id, locator=one.locator, text=one.text) for one in found.passages]
    asked = shown[found.at]
    if (size := bytes_of(asked)) > room:
        left = max(MIN_TEXT_BYTES, room - (size - json_bytes(asked.text)) - len(',"clipped":true'))
        shown[found.at] = asked.model_copy(update={"text": fitting(asked.text, left), "clipped": True})
    first, end = found.at, found.at + 1
    room -= bytes_of(shown[found.at])
    for distance in range(1, len(shown)):
        for at in (found.at - distance, found.at + distance):
            touches = at in (first - 1, end)
            if 0 <= at < len(shown) and touches and (size := bytes_of(shown[at]) + 1) <= room:
                first, end, room = min(first, at), max(end, at + 1), room - size
    return found.narrowed(first, end), tuple(shown[first:end])
