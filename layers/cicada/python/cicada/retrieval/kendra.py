"""Retrieval by Amazon Kendra, for those who have an index there: its ``Retrieve``, its ranking, its documents.

Kendra is closed to new customers. Its index is filled by the customer's own data sources, not by Cicada.

Source: botocore's service model ``kendra`` of API version 2019-02-03 (botocore 1.44), operation Retrieve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.retrieval.managed import reading_failures, top_k_capped
from cicada.retrieval.ports import Degradation, Filters, Hit, Laps, SearchQuery, SearchResult
from cicada.rights import Readable

ENGINE = "kendra"
ENTITIES, ENTITY_CODES = "entities", "entity_codes"
NAME = "Amazon Kendra"
COLLECTION = "kendra"
"""The collection of a document that names none."""
UNKNOWN_SOURCE = "Unknown"
NO_PAGE = "N/A"
MAX_RESULTS = 100
MAX_LIST_VALUES = 10
"""Strings of one list of values."""
MAX_FILTERS = 10
"""Filters side by side in one list."""
NOBODY = "cicada:asker-without-groups"
"""The user that an asker without groups searches as: Kendra needs a user or a group to hide what others may read."""
MAX_QUERY_CHARS = 1000
"""Kendra uses only 30 words of a query, without stop words and punctuation."""

SCORES: Mapping[str, float] = {"VERY_HIGH": 0.95, "HIGH": 0.8, "MEDIUM": 0.6, "NOT_AVAILABLE": 0.5, "LOW": 0.25}
"""Scores for Kendra's confidence. Without one, as in every language but English, it is the default ``min_score``, so
that the passage is shown; one of low confidence is not."""

_MAX_COLLECTION_CHARS = 64
_MAX_DOCUMENT_ID_CHARS = 200
_DIGEST_CHARS = 16
_SOURCES = ("source", "_source")
_SUMMARIES = ("chunk_summary", "summary")
_URIS = ("source_uri", "_source_uri", "document_uri")
_PAGES = ("page", "_excerpt_page_number")


class KendraRetriever:
    """The retrieval port over one Kendra index. What Kendra ranks first is first here."""

    def __init__(self, client: Any, index_id: str) -> None:
        """``client`` is boto3's ``kendra`` client, made with :func:`cicada.retrieval.managed.query_config`."""
        self._client = client
        self._index_id = index_id

    def held_version(self) -> str | None:
        """None: Kendra has its own documents, and no version of the index."""
        return None

    def version(self) -> str:
        """The Kendra index's id, as its documents have no version."""
        return f"{ENGINE}:{self._index_id}"

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query: see :class:`cicada.retrieval.ports.Retriever`."""
        laps = Laps()
        if query.readable.among(query.filters.collections)[0] == ():
            return SearchResult((), self.version(), 0, laps.ms, ENGINE, _notes(query, capped=False))
        request: dict[str, Any] = {
            "IndexId": self._index_id,
            "QueryText": query.text[:MAX_QUERY_CHARS],
            "PageNumber": 1,
            "PageSize": min(MAX_RESULTS, query.top_k),
        }
        where = attribute_filter(query.filters, query.readable)
        if where is not None:
            request["AttributeFilter"] = where
        if query.readable.groups is not None:
            request["UserContext"] = user_context(query.readable.groups)
        with reading_failures(NAME):
            items = self._client.retrieve(**request).get("ResultItems", [])
        laps.lap("query")
        # A document without the attribute passes a filter that excludes others' collections.
        allowed = (hit for hit in _hits(items) if query.readable.allows(hit.passage.collection))
        hits = tuple(hit for hit in allowed if hit.score >= query.min_score)[: query.top_k]
        capped = len(items) >= MAX_RESULTS and len(items) == len(hits) < query.top_k
        return SearchResult(hits, self.version(), 0, laps.ms, ENGINE, _notes(query, capped=capped))


def _notes(query: SearchQuery, *, capped: bool) -> tuple[Degradation, ...]:
    notes = []
    if query.mode != "hybrid":
        told = f"Amazon Kendra ranks in its own way and has no {query.mode} search."
        notes.append(Degradation("mode_fallback", told))
    if capped:
        notes.append(top_k_capped(NAME, MAX_RESULTS))
    return tuple(notes)


def user_context(groups: Sequence[str]) -> dict[str, Any]:
    """Whom Kendra's own access rules are to be applied for."""
    return {"Groups": list(groups)} if groups else {"UserId": NOBODY}


def attribute_filter(filters: Filters, readable: Readable) -> dict[str, Any] | None:
    """A search's filters, and the asker's rights, as Retrieve takes them; None without any.

    The index's attributes have the filters' names, with one string each; ``entities`` and ``entity_codes`` are lists of
    strings. Kendra refuses unknown attributes, and more than 10 filters or lists of values side by side.
    """
    wanted, unwanted = readable.among(filters.collections)
    fields: dict[str, Sequence[str]] = {
        "collection": wanted or (),
        "episode": filters.episodes,
        "speaker": filters.speakers,
        "source": filters.documents,
        "section": filters.sections,
        **filters.metadata,
    }
    lists: dict[str, Sequence[str]] = {ENTITIES: filters.entities, ENTITY_CODES: filters.codes}
    groups = [_any_of(key, values) for key, values in fields.items() if values]
    groups += [_contains_any(key, values) for key, values in lists.items() if values]
    for at in range(0, len(unwanted), MAX_FILTERS):
        groups.append({"NotFilter": _any_of("collection", unwanted[at : at + MAX_FILTERS])})
    if len(groups) > 1:
        return {"AndAllFilters": groups}
    return groups[0] if groups else None


def _any_of(key: str, values: Sequence[str]) -> dict[str, Any]:
    equal = [{"EqualsTo": {"Key": key, "Value": {"StringValue": value}}} for value in values]
    return {"OrAllFilters": equal} if len(equal) > 1 else equal[0]


def _contains_any(key: str, values: Sequence[str]) -> dict[str, Any]:
    lists = [list(values[at : at + MAX_LIST_VALUES]) for at in range(0, len(values), MAX_LIST_VALUES)]
    contains = [{"ContainsAny": {"Key": key, "Value": {"StringListValue": some}}} for some in lists]
    return {"OrAllFilters": contains} if len(contains) > 1 else contains[0]


def _hits(items: Sequence[Mapping[str, Any]]) -> Iterator[Hit]:
    for item in items:
        if item.get("Content", "").strip():
            confidence = item.get("ScoreAttributes", {}).get("ScoreConfidence", "NOT_AVAILABLE")
            yield Hit(passage_of(item), SCORES.get(confidence, SCORES["NOT_AVAILABLE"]))


def passage_of(item: Mapping[str, Any]) -> Passage:
    """A result of Retrieve as a passage.

    The source is the attribute ``source``, else the title, else *Unknown*; the page is an attribute or *N/A*; the URI
    is the attribute ``source_uri`` or ``_source_uri``, else the document's. The attributes ``entities``,
    ``entity_codes``, and ``chunk_summary`` or ``summary``, correspond to our enrichment.
    """
    content: str = item["Content"]
    given = {one["Key"]: one.get("Value", {}) for one in item.get("DocumentAttributes", ())}
    attributes = {key: text for key, value in given.items() if (text := _plain(value))}
    title = str(item.get("DocumentTitle") or attributes.get("_document_title", "")).strip()
    source = _first(attributes, _SOURCES, title or UNKNOWN_SOURCE)
    page = _first(attributes, _PAGES, NO_PAGE)
    uri = _first(attributes, _URIS, str(item.get("DocumentURI") or ""))
    return Passage(
        id=_stable_id(str(item.get("DocumentId") or source), content),
        collection=_collection(attributes),
        text=content,
        context=content,
        locator=DocumentLocator(source=source, title=title, page=_page_number(page)),
        metadata={**_own(attributes), "source": source, "page": page, **({"source_uri": uri} if uri else {})},
        summary=_first(attributes, _SUMMARIES, "") or None,
        entities=_listed(given.get(ENTITIES, {})),
        codes=_listed(given.get(ENTITY_CODES, {})),
    )


def _stable_id(document_id: str, content: str) -> str:
    """The document and a digest of the passage: Kendra's own ids differ from query to query."""
    if len(document_id) > _MAX_DOCUMENT_ID_CHARS:
        document_id = hashlib.sha256(document_id.encode()).hexdigest()
    return f"{document_id}#{hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_CHARS]}"


def _collection(attributes: Mapping[str, str]) -> str:
    named = attributes.get("collection", COLLECTION)
    return named if len(named) <= _MAX_COLLECTION_CHARS else COLLECTION


def _own(attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes without a field of their own in a passage."""
    mapped = {"collection", ENTITIES, ENTITY_CODES, *_SOURCES, *_PAGES, *_URIS, *_SUMMARIES}
    return {key: value for key, value in attributes.items() if key not in mapped and not key.startswith("_")}


def _first(attributes: Mapping[str, str], keys: Sequence[str], otherwise: str) -> str:
    return next((attributes[key] for key in keys if key in attributes), otherwise)


def _page_number(page: str) -> int | None:
    return int(page) if page.isascii() and page.isdigit() and int(page) > 0 else None


def _listed(value: Mapping[str, Any]) -> tuple[str, ...]:
    """An attribute's values: those of a list, or its one."""
    found = value.get("StringListValue") or [_plain(value)]
    return tuple(dict.fromkeys(str(one).strip() for one in found if str(one).strip()))


def _plain(value: Mapping[str, Any]) -> str:
    """An attribute's value as text; empty when it has none."""
    for kind in ("StringValue", "LongValue", "DateValue", "StringListValue"):
        found = value.get(kind)
        if found is None:
            continue
        if isinstance(found, datetime):
            return found.isoformat()
        return ", ".join(map(str, found)) if isinstance(found, list) else str(found).strip()
    return ""
