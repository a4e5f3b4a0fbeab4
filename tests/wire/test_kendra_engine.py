"""Searching an Amazon Kendra index, by boto3's own code against the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cicada.corpus.passages import DocumentLocator
from cicada.errors import IndexMismatch, IndexMissing, IndexUnavailable
from cicada.retrieval.kendra import MAX_RESULTS, SCORES, KendraRetriever
from cicada.retrieval.managed import query_config
from cicada.retrieval.ports import Filters, SearchQuery, SearchResult
from cicada.rights import EVERYTHING, AccessRules
from cicada_local.kendra import Kendra
from tests.wire.engine_services import EngineService, serving

INDEX = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def service() -> Iterator[EngineService]:
    service = EngineService()
    with serving(service, Kendra(service.faults, [INDEX])) as running:
        types = {
            "source": "STRING_VALUE",
            "page": "STRING_VALUE",
            "episode": "STRING_VALUE",
            "chunk_summary": "STRING_VALUE",
            "tags": "STRING_LIST_VALUE",
            "entities": "STRING_LIST_VALUE",
            "entity_codes": "STRING_LIST_VALUE",
        }
        updates = [{"Name": name, "Type": type} for name, type in {**types, "collection": "STRING_VALUE"}.items()]
        running.client("kendra").update_index(Id=INDEX, DocumentMetadataConfigurationUpdates=updates)
        yield running


def put(service: EngineService, id: str, text: str, *, title: str = "", **attributes: Any) -> None:
    kinds = {str: "StringValue", int: "LongValue", list: "StringListValue"}
    listed = [{"Key": key, "Value": {kinds[type(value)]: value}} for key, value in attributes.items()]
    document = {"Id": id, "Title": title, "Blob": text.encode(), "Attributes": listed}
    assert service.client("kendra").batch_put_document(IndexId=INDEX, Documents=[document])["FailedDocuments"] == []


def search(service: EngineService, text: str, *, index: str = INDEX, **query: Any) -> SearchResult:
    retriever = KendraRetriever(service.client("kendra", config=query_config(2.0)), index)
    return retriever.search(SearchQuery(text, **{"min_score": 0.0, "readable": EVERYTHING, **query}))


def test_a_result_names_its_engine_and_where_it_stands(service: EngineService) -> None:
    put(
        service, "a", "The fog bell rings.", title="Bells", source="bells.pdf", _excerpt_page_number=12, tags=["x", "y"]
    )
    result = search(service, "fog bell")
    (hit,) = result.hits
    passage = hit.passage
    assert (passage.text, passage.context, passage.collection) == (
        "The fog bell rings.",
        "The fog bell rings.",
        "kendra",
    )
    assert passage.locator == DocumentLocator(source="bells.pdf", title="Bells", page=12)
    assert passage.metadata == {"source": "bells.pdf", "page": "12", "tags": "x, y"}
    assert (result.engine, result.searched, result.degraded) == ("kendra", 0, ())
    assert result.index_version == f"kendra:{INDEX}"
    assert set(result.timings_ms) == {"query"}


@pytest.mark.parametrize(
    ("document", "source", "page", "page_shown", "uri"),
    [
        ({}, "Unknown", None, "N/A", None),
        ({"title": "Bells"}, "Bells", None, "N/A", None),
        ({"title": "Bells", "source": "bells.pdf"}, "bells.pdf", None, "N/A", None),
        ({"page": "iv"}, "Unknown", None, "iv", None),
        ({"page": "4", "_excerpt_page_number": 9}, "Unknown", 4, "4", None),
        ({"_source_uri": "https://example.org/bells"}, "Unknown", None, "N/A", "https://example.org/bells"),
    ],
)
def test_what_a_document_lacks_has_a_stand_in(
    service: EngineService, document: dict[str, Any], source: str, page: int | None, page_shown: str, uri: str | None
) -> None:
    put(service, "a", "The fog bell rings.", **document)
    passage = search(service, "fog bell").hits[0].passage
    assert isinstance(passage.locator, DocumentLocator)
    assert (passage.locator.source, passage.locator.page, passage.metadata["page"]) == (source, page, page_shown)
    assert passage.metadata.get("source_uri") == uri
    assert passage.locator.label()


def test_the_same_passage_has_the_same_id_in_every_search(service: EngineService) -> None:
    put(service, "https://example.org/" + "a" * 300, "The fog bell rings.")
    (first,), (second,) = (search(service, text).hits for text in ("fog", "bell"))
    assert first.passage.id == second.passage.id
    assert len(first.passage.id) <= 256


def test_kendras_order_stands_and_low_confidence_falls_below_the_default(service: EngineService) -> None:
    put(service, "a", "The fog bell.")
    put(service, "b", "A bell, " + "and much else that happened there on that day " * 10)
    put(service, "c", "Die fog bell.", _language_code="de")
    items = service.client("kendra").retrieve(IndexId=INDEX, QueryText="fog bell")["ResultItems"]
    hits = search(service, "fog bell").hits
    assert [hit.passage.text for hit in hits] == [item["Content"] for item in items]
    assert [hit.score for hit in hits] == [SCORES[item["ScoreAttributes"]["ScoreConfidence"]] for item in items]
    shown = {hit.passage.id[0] for hit in search(service, "fog bell", min_score=0.5).hits}
    assert shown == {"a", "c"}


def test_as_many_come_as_are_asked_for(service: EngineService) -> None:
    for n in range(12):
        put(service, str(n), "A bell.")
    assert len(search(service, "bell", top_k=11).hits) == 11
    assert len(search(service, "bell", top_k=3).hits) == 3


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(), "abc"),
        (Filters(episodes=("ep1",)), "a"),
        (Filters(episodes=("ep1", "ep2")), "ab"),
        (Filters(episodes=("ep1", "ep2"), metadata={"source": ("two.pdf",)}), "b"),
        (Filters(documents=("two.pdf",)), "b"),
        (Filters(collections=("papers",)), "c"),
        (Filters(collections=("papers",), episodes=("ep1",)), ""),
    ],
)
def test_filters_become_attribute_filters(service: EngineService, filters: Filters, found: str) -> None:
    put(service, "a", "A bell.", episode="ep1", source="one.pdf")
    put(service, "b", "A bell.", episode="ep2", source="two.pdf")
    put(service, "c", "A bell.", collection="papers")
    hits = search(service, "bell", filters=filters).hits
    assert "".join(sorted(hit.passage.id[0] for hit in hits)) == found
    if found == "c":
        assert hits[0].passage.collection == "papers"


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(entities=("Mira",)), "ab"),
        (Filters(entities=("Jon", "Nobody")), "a"),
        (Filters(codes=("P0700",)), "bc"),
        (Filters(entities=("Mira",), codes=("P0700",), episodes=("ep1", "ep2")), "b"),
        (Filters(entities=(*(f"name {number}" for number in range(25)), "Mira")), "ab"),
    ],
)
def test_lists_are_filtered_by_any_of_their_values(service: EngineService, filters: Filters, found: str) -> None:
    put(service, "a", "A bell.", entities=["Mira", "Jon"], episode="ep1")
    put(service, "b", "A bell.", entities=["Mira"], entity_codes=["P0700", "A-1"], episode="ep2")
    put(service, "c", "A bell.", entity_codes=["P0700"], episode="ep2")
    assert "".join(sorted(hit.passage.id[0] for hit in search(service, "bell", filters=filters).hits)) == found


def test_what_others_add_to_passages_comes_with_them(service: EngineService) -> None:
    put(service, "a", "A bell.", entities=["Mira", "Jon"], entity_codes=["P0700"], chunk_summary="Of a bell.")
    (hit,) = search(service, "bell").hits
    passage = hit.passage
    assert (passage.entities, passage.codes, passage.summary) == (("Mira", "Jon"), ("P0700",), "Of a bell.")
    assert passage.metadata == {"source": "Unknown", "page": "N/A"}


def test_a_filter_that_the_index_does_not_have_is_an_error_and_not_everything(service: EngineService) -> None:
    put(service, "a", "A bell.")
    with pytest.raises(IndexMismatch, match="speaker"):
        search(service, "bell", filters=Filters(speakers=("Ada",)))


@pytest.mark.parametrize(
    ("rules", "collections", "seen"),
    [
        (AccessRules(), (), ["a", "b", "c"]),
        (AccessRules(readers={"notes": ()}), (), ["a", "c"]),
        (AccessRules(readers={f"other{n}": () for n in range(24)} | {"notes": ()}), (), ["a", "c"]),
        (AccessRules(readers={"kendra": ()}), (), ["a", "b"]),  # documents that name no collection
        (AccessRules("nobody", {"notes": ("gm",)}), (), ["b"]),
        (AccessRules(readers={"notes": ()}), ("notes", "script"), ["a"]),
        (AccessRules(readers={"notes": ()}), ("notes",), []),
        (AccessRules("nobody"), (), []),
    ],
)
def test_nothing_is_found_in_a_collection_that_the_asker_may_not_read(
    service: EngineService, rules: AccessRules, collections: tuple[str, ...], seen: list[str]
) -> None:
    put(service, "a", "The bell a.", collection="script")
    put(service, "b", "The bell b.", collection="notes")
    put(service, "c", "The bell c.")
    found = search(service, "bell", filters=Filters(collections), readable=rules.readable(("gm",)))
    assert sorted(hit.passage.text[-2] for hit in found.hits) == seen


def test_the_indexs_own_rules_hold_for_the_askers_groups(service: EngineService) -> None:
    entry = {"Name": "gm", "Type": "GROUP", "Access": "ALLOW"}
    document = {"Id": "a", "Blob": b"The bell.", "AccessControlList": [entry]}
    service.client("kendra").batch_put_document(IndexId=INDEX, Documents=[document])
    put(service, "b", "A bell.")
    seen = {
        groups: len(search(service, "bell", readable=AccessRules().readable(groups)).hits)
        for groups in ((), ("players",), ("players", "gm"))
    }
    assert seen == {(): 1, ("players",): 1, ("players", "gm"): 2}
    assert len(search(service, "bell").hits) == 2  # an administrator's


def test_a_mode_that_kendra_does_not_have_is_said(service: EngineService) -> None:
    put(service, "a", "A bell.")
    for mode in ("dense", "keyword"):
        result = search(service, "bell", mode=mode)
        assert len(result.hits) == 1
        assert [note.code for note in result.degraded] == ["mode_fallback"]


def test_failures_are_told_in_the_domains_words(service: EngineService) -> None:
    with pytest.raises(IndexMissing, match="Amazon Kendra"):
        search(service, "bell", index="9" * 36)
    service.faults.arm("kendra.throttle")
    with pytest.raises(IndexUnavailable, match="Rate exceeded"):
        search(service, "bell")
    assert service.calls["Retrieve"] == 1 + 2


def test_a_query_of_any_length_is_sent(service: EngineService) -> None:
    put(service, "a", "A bell.")
    assert search(service, "bell " * 2000).hits


def test_more_than_kendra_returns_is_not_silently_less(service: EngineService) -> None:
    for number in range(MAX_RESULTS + 1):
        put(service, f"d{number}", f"The bell number {number} rings.")
    capped = search(service, "bell", top_k=MAX_RESULTS + 1)
    assert (len(capped.hits), [note.code for note in capped.degraded]) == (MAX_RESULTS, ["top_k_capped"])
    assert search(service, "bell", top_k=MAX_RESULTS).degraded == ()
