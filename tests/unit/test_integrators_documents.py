"""One document into the index by a call, back out whole and in order, and its summary."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import (
    DocumentBroken,
    DocumentInvalid,
    DocumentUnknown,
    IndexCorrupt,
    IndexUnavailable,
    RetrievalInvalid,
)
from cicada.index.versions import must_be_published, set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined
from cicada.ingest.enrichment.describing import DocumentAbstract
from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.integrators.documents import IndexDocumentRequest, SummaryRequest, document_summary, index_document
from cicada.retrieval.documents import DocumentReader
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.entities import reading
from tests.support.index_changes import replace_sources
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages
from tests.support.pipelines import ScriptedModel

PLACE = {"collection": "shelf", "source": "notes/tides.md"}


class Ingest:
    """What prepares and commits; it notes what it is given."""

    def __init__(self, **report) -> None:
        self.report = {"documents": 1, "loaded": 1, "unchanged": 0, "version": "v2", "published": True, **report}
        self.items: list[Any] = []
        self.data = b""
        self.collections: list[str] = []
        self.commits: list[Any] = []
        self.owner = None
        self.error: Exception | None = None

    def prepare_for(self, collection):
        self.collections.append(collection)
        return self._prepare

    def _prepare(self, item, path: Path):
        self.items.append(item)
        self.data = path.read_bytes()
        if self.error:
            raise self.error
        return Prepared(
            source=item.source,
            key="k",
            digest="d",
            passages=3,
            embedded=2,
            reused=False,
            notes=("a note",),
            cost_usd=0.01,
        )

    def commit(self, collection, prepared, gone, owner):
        self.owner = owner.workflow_id
        self.commits.append((collection, [one.source for one in prepared], list(gone)))
        return IngestReport(collection=collection, **self.report)

    def call(self, **request):
        return index_document(IndexDocumentRequest(**PLACE | request), self.prepare_for, self.commit)


def test_a_text_is_prepared_by_its_collections_rules_and_published():
    ingest = Ingest(added=3, deleted=1, passages=40)
    told = ingest.call(content="# Tides\n\nÉbb.", title="Tides", metadata={"author": "Ada"}, workflow_id="w1")
    (item,) = ingest.items
    assert (ingest.collections, ingest.data) == (["shelf"], "# Tides\n\nÉbb.".encode())
    assert (item.source, item.size, item.title) == ("notes/tides.md", len(ingest.data), "Tides")
    assert item.metadata == {"author": "Ada", "workflow_id": "w1"}
    assert ingest.commits == [("shelf", ["notes/tides.md"], [])]
    assert told.model_dump() == {
        "success": True,
        "collection": "shelf",
        "source": "notes/tides.md",
        "unchanged": False,
        "passages": 3,
        "added": 3,
        "deleted": 1,
        "embedded": 2,
        "index_version": "v2",
        "published": True,
        "cost_usd": 0.01,
        "notes": ("a note",),
        "error": None,
    }


def test_bytes_come_in_base64():
    ingest = Ingest()
    ingest.call(content_base64=base64.b64encode(b"%PDF\x00\xff").decode())
    assert ingest.data == b"%PDF\x00\xff"


@pytest.mark.parametrize("given", ["???", "YWJj\nYWJj", "é", "YWJ"])
def test_what_is_no_base64_is_refused_before_anything_is_prepared(given: str):
    ingest = Ingest()
    with pytest.raises(RetrievalInvalid, match=r"^content_base64: invalid base64$"):
        ingest.call(content_base64=given)
    assert ingest.items == ingest.commits == []


def test_a_document_that_the_index_holds_just_so_is_unchanged():
    assert Ingest(published=False).call(content="x").unchanged


def test_a_deletion_prepares_nothing():
    ingest = Ingest(loaded=0, deleted=4, removed=("notes/tides.md",))
    told = ingest.call(delete=True)
    assert ingest.commits == [("shelf", [], ["notes/tides.md"])]
    assert ingest.items == []
    assert (told.passages, told.deleted, told.embedded, told.cost_usd) == (0, 4, 0, 0.0)


@pytest.mark.parametrize(
    ("given", "owner"),
    [
        ({}, None),
        ({"workflow_id": "w1"}, "w1"),
        ({"metadata": {"workflow_id": "w2"}}, "w2"),
        ({"workflow_id": "w1", "metadata": {"workflow_id": "w1"}}, "w1"),
    ],
)
@pytest.mark.parametrize("what", [{"content": "x"}, {"delete": True}])
def test_a_call_touches_documents_of_its_workflow_alone(given: dict[str, Any], owner: str | None, what: dict[str, Any]):
    ingest = Ingest()
    ingest.call(**given, **what)
    assert ingest.owner == owner
    assert all(item.metadata.get("workflow_id") == owner for item in ingest.items)


def test_a_document_that_cannot_be_read_changes_nothing():
    ingest = Ingest()
    ingest.error = DocumentBroken("it breaks off")
    with pytest.raises(DocumentBroken):
        ingest.call(content="x")
    assert ingest.commits == []


@pytest.mark.parametrize(
    ("code", "raised"), [("document_invalid", DocumentInvalid), ("index_corrupt", IndexUnavailable)]
)
def test_a_document_that_is_not_committed_is_refused_or_to_be_tried_again(code: str, raised: type[Exception]):
    refused = Quarantined(source="notes/tides.md", code=code, message="why it is not")
    with pytest.raises(raised):
        Ingest(quarantined=(refused,), loaded=0).call(content="x")


def test_a_refused_document_is_not_told_of_the_one_whose_way_it_is_in():
    told = "its passage m1 has an id that one of others/secret.jsonl has"
    refused = Quarantined(source="notes/tides.md", code="document_invalid", message=told)
    with pytest.raises(DocumentInvalid) as raised:
        Ingest(quarantined=(refused,), loaded=0).call(content="x")
    assert "secret" not in str(raised.value)


# --- reading a document back ---


def page(
    name: str, number: int | None, *, source: str = "a.pdf", collection: str = "shelf", **metadata: str
) -> Passage:
    return Passage(
        id=f"{source}-{name}",
        collection=collection,
        text=f"The text {name}.",
        context=f"The text {name}.",
        locator=DocumentLocator(source=source, title="About A", page=number),
        metadata={"source": source, **metadata},
    )


def store_of(*passages: Passage) -> InMemoryStore:
    store = InMemoryStore()
    for collection in dict.fromkeys(one.collection for one in passages):
        own = [one for one in passages if one.collection == collection]
        IndexWriter(store, WordEmbedder(), segment_rows=2).replace(collection, indexable(own))
    return store


SHELF = (
    page("one", 1, workflow_id="w1"),
    page("two", 2, workflow_id="w1"),
    page("three", 10, workflow_id="w1"),
    page("x", 1, source="b.pdf", workflow_id="w2"),
    page("elsewhere", 1, collection="other"),
)


def test_a_document_is_read_whole_and_in_its_order():
    with reading(store_of(*SHELF)) as index:
        found = DocumentReader(index).read("shelf", "a.pdf", readable=EVERYTHING)
    assert [passage.text for passage in found.passages] == ["The text one.", "The text two.", "The text three."]
    assert found.title == "About A"
    assert found.index_version


def test_passages_of_an_edit_stand_where_their_pages_belong():
    store = store_of(*SHELF)
    edited = [SHELF[0], page("new", 2), SHELF[2]]
    replace_sources(IndexWriter(store, WordEmbedder()), "shelf", indexable(edited), ["a.pdf"])
    with reading(store) as index:
        found = DocumentReader(index).read("shelf", "a.pdf", readable=EVERYTHING)
    assert [passage.text for passage in found.passages] == ["The text one.", "The text new.", "The text three."]


@pytest.mark.parametrize(
    "asked", [("shelf", "c.pdf"), ("nothing", "a.pdf"), ("shelf", "a.pdf", "w2"), ("shelf", "b.pdf", "w1")]
)
def test_a_document_that_is_not_there_or_is_anothers_is_unknown(asked: tuple[str, ...]):
    with reading(store_of(*SHELF)) as index, pytest.raises(DocumentUnknown):
        DocumentReader(index).read(*asked, readable=EVERYTHING)


def test_a_workflow_reads_its_own_documents():
    with reading(store_of(*SHELF)) as index:
        assert len(DocumentReader(index).read("shelf", "a.pdf", "w1", readable=EVERYTHING).passages) == 3


def part(name: str, *sections: str, text: str | None = None) -> Passage:
    """A passage of a document without pages."""
    locator = DocumentLocator(source="a.md", title="About A", section=" > ".join(sections) or None)
    told = text or f"{name}."
    return Passage(id=name, collection="shelf", text=told, context=told, locator=locator, metadata={"source": "a.md"})


PARTS = (
    part("intro"),
    part("1a", "One"),
    part("1b", "One"),
    part("1c", "One"),
    part("2", "Two"),
    part("2.1", "Two", "First"),
    part("3", "Three"),
)


def edited(*versions: list[Passage]) -> list[str]:
    """The names of the passages that come back after a document was loaded in several versions."""
    store = store_of(*PARTS)
    for version in versions:
        replace_sources(IndexWriter(store, WordEmbedder()), "shelf", indexable(version), ["a.md"])
    with reading(store) as index:
        return [passage.id for passage in DocumentReader(index).read("shelf", "a.md", readable=EVERYTHING).passages]


@pytest.mark.parametrize(
    "version",
    [
        [part("new"), *PARTS[1:]],
        [PARTS[0], part("new", "One"), *PARTS[2:]],
        [*PARTS[:2], part("new", "One"), part("newer", "One"), *PARTS[3:]],
        [PARTS[0], part("new", "One"), *PARTS[4:]],
        [*PARTS[:4], part("1d", "One"), *PARTS[4:]],
        [*PARTS[:6], part("2.2", "Two", "Second"), PARTS[6]],
        [*PARTS, part("4", "Four"), part("4.1", "Four", "First")],
        [part("one", "Three"), part("two", "One"), part("three")],
        [*PARTS[:2], part("1b", "One", text="Changed."), *PARTS[3:]],
    ],
)
def test_passages_of_an_edit_stand_where_their_sections_belong(version: list[Passage]):
    assert edited(version) == [one.id for one in version]


def test_edits_upon_edits_stay_in_order():
    first = [*PARTS[:2], part("new", "One"), *PARTS[3:]]
    second = [*PARTS[:2], part("newer", "One"), *PARTS[3:6], part("3x", "Three")]
    third = [part("intro2"), *second[1:], part("4", "Four")]
    assert edited(first, second, third) == [one.id for one in third]


def test_a_message_of_a_script_that_is_changed_stays_in_its_chapter():
    script = [one.model_copy(update={"metadata": {"source": "s.jsonl"}}) for one in make_passages(6)]
    chapters = [
        one.model_copy(update={"locator": one.locator.model_copy(update={"chapter_id": f"c{number // 2}"})})
        for number, one in enumerate(script)
    ]
    store = store_of(*chapters)
    changed = [*chapters[:2], chapters[2].model_copy(update={"text": "Changed."}), *chapters[3:]]
    replace_sources(IndexWriter(store, WordEmbedder()), "script", indexable(changed), ["s.jsonl"])
    with reading(store) as index:
        found = DocumentReader(index).read("script", "s.jsonl", readable=EVERYTHING)
    assert [passage.text for passage in found.passages] == [passage.text for passage in changed]


def damaged(store: InMemoryStore, number: int) -> InMemoryStore:
    """The store with one of its segments cut off, and what can be read of its version to be used."""
    key = must_be_published(store).manifest.segments[number].key
    set_allow_partial(store, True)
    store.objects[key] = store.objects[key][:100]
    return store


def test_a_document_that_can_be_read_in_part_is_told_as_such():
    with reading(damaged(store_of(*SHELF[:3]), 1)) as index:
        found = DocumentReader(index).read("shelf", "a.pdf", readable=EVERYTHING)
        assert [one.code for one in found.degraded] == ["partial_index"]
        assert len(found.passages) == 2
        with pytest.raises(IndexCorrupt):
            DocumentReader(index).read("shelf", "c.pdf", readable=EVERYTHING)


def test_what_cannot_be_read_of_other_collections_is_not_told():
    store = store_of(*SHELF[:3], SHELF[4])
    with reading(damaged(store, -1)) as index:
        assert DocumentReader(index).read("shelf", "a.pdf", readable=EVERYTHING).degraded == ()


# --- its summary ---


def test_a_summary_is_made_once_of_the_passages_in_their_order():
    store = store_of(*SHELF)
    model = ScriptedModel({DocumentAbstract: DocumentAbstract(summary="It is about A.")})
    with reading(store) as index:
        documents, summaries = DocumentReader(index), DocumentSummaries(store, model)
        request = SummaryRequest(collection="shelf", source="a.pdf", workflow_id="w1")
        first, second = (document_summary(request, EVERYTHING, documents, summaries) for _ in range(2))
    assert (first.success, first.summary, first.title, first.passages) == (True, "It is about A.", "About A", 3)
    assert (first.made, second.made, second.cost_usd) == (True, False, 0.0)
    assert second.summary == first.summary
    (prompt,) = model.prompts
    assert prompt.user.index("one.") < prompt.user.index("two.") < prompt.user.index("three.")


def test_a_summary_of_a_part_is_told_as_such_and_not_taken_for_the_wholes():
    store = store_of(*SHELF[:3])
    whole = dict(store.objects)
    model = ScriptedModel({DocumentAbstract: DocumentAbstract(summary="It is about A.")})
    request = SummaryRequest(collection="shelf", source="a.pdf")
    kept = InMemoryStore()
    with reading(damaged(store, 1)) as index:
        part = document_summary(request, EVERYTHING, DocumentReader(index), DocumentSummaries(kept, model))
    assert [(one.stage, one.code) for one in part.degraded] == [("read", "partial_index")]
    store.objects.update(whole)
    with reading(store) as index:
        told = document_summary(request, EVERYTHING, DocumentReader(index), DocumentSummaries(kept, model))
    assert (told.made, told.degraded, told.passages) == (True, (), 3)


def test_anothers_document_is_not_summarised():
    model = ScriptedModel({})
    with reading(store_of(*SHELF)) as index, pytest.raises(DocumentUnknown):
        request = SummaryRequest(collection="shelf", source="a.pdf", workflow_id="w2")
        document_summary(request, EVERYTHING, DocumentReader(index), DocumentSummaries(InMemoryStore(), model))
    assert model.prompts == []
