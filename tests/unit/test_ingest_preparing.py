"""Preparing a document: what is done once is never done again, and what cannot be loaded is told from what fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from cicada.corpus.indexable import Indexable
from cicada.errors import (
    DocumentBroken,
    DocumentInvalid,
    DocumentUnsupported,
    IndexMismatch,
    ModelBusy,
    ModelRefused,
)
from cicada.index.embedding import EMBED_BATCH
from cicada.index.writer import IndexWriter
from cicada.ingest.known_sources import IndexVectors
from cicada.ingest.prepared import PreparedFile
from cicada.ingest.preparing import Preparer
from tests.support.embedding import WordEmbedder
from tests.support.ingest import Reading, item, recipe_for, script_of
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

LINES = [f"Paragraph number {number} tells about the harbour." for number in range(40)]


@pytest.fixture
def store():
    return InMemoryStore()


@pytest.fixture
def embedder():
    return WordEmbedder()


@pytest.fixture
def reading():
    return Reading()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "upload"
    path.write_text("\n\n".join(LINES), encoding="utf-8")
    return path


def preparer(store, embedder, reading, **options):
    chunks = options.pop("chunks", {})
    return Preparer(store, embedder, recipe_for(embedder, **chunks), read=reading, **options)


def prepared_items(store, prepared):
    file = PreparedFile.open(store, prepared.key)
    return file.read(store, range(file.count)).items


def test_a_document_is_read_cut_embedded_and_kept(store, embedder, reading, file):
    prepared = preparer(store, embedder, reading).prepare(item("harbour.md", metadata={"workflow_id": "w1"}), file)
    items = prepared_items(store, prepared)
    assert (prepared.passages, prepared.reused) == (len(items), False)
    assert prepared.embedded == len(set(embedder.asked)) == len(embedder.asked) > 1
    assert {one.passage.locator.source for one in items} == {"harbour.md"}
    assert {one.passage.metadata["workflow_id"] for one in items} == {"w1"}
    assert {one.passage.metadata["doc_type"] for one in items} == {"markdown"}


def test_what_was_prepared_before_is_neither_read_nor_embedded(store, embedder, reading, file):
    first = preparer(store, embedder, reading).prepare(item("harbour.md"), file)
    embedder.asked.clear()
    again = preparer(store, embedder, reading).prepare(item("harbour.md"), file)
    assert (again.reused, again.embedded, again.cost_usd) == (True, 0, 0.0)
    assert (again.key, again.passages) == (first.key, first.passages)
    assert (embedder.asked, reading.sources) == ([], ["harbour.md"])


def test_a_damaged_prepared_object_is_made_again(store, embedder, reading, file):
    first = preparer(store, embedder, reading).prepare(item("harbour.md"), file)
    sound = store.objects[first.key]
    store.objects[first.key] = sound[:-3]
    again = preparer(store, embedder, reading).prepare(item("harbour.md"), file)
    assert not again.reused
    assert store.objects == {first.key: sound}


class Fails(WordEmbedder):
    """Raises once so many texts were embedded."""

    def __init__(self, after, error):
        super().__init__()
        self.left, self.error = after, error

    def embed(self, texts, *, time_budget_s):
        if self.left < len(texts):
            raise self.error
        self.left -= len(texts)
        return super().embed(texts, time_budget_s=time_budget_s)


def test_a_large_document_goes_on_where_it_was_broken_off(store, embedder, reading, tmp_path):
    path = tmp_path / "upload"
    lines = [f"Sentence {number} is about the thing of the number {number}." for number in range(700)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    failing = Fails(128 + 64, ModelBusy("throttled"))
    with pytest.raises(ModelBusy):
        preparer(store, failing, reading, checkpoint_texts=64).prepare(item("large.txt"), path)
    assert len(failing.asked) == 192
    done = preparer(store, embedder, reading, checkpoint_texts=64).prepare(item("large.txt"), path)
    assert done.embedded == len(embedder.asked) > 0
    assert not set(embedder.asked) & set(failing.asked)
    assert list(store.objects) == [done.key]


def test_what_is_kept_of_a_large_document_is_not_used_when_it_is_damaged(store, embedder, reading, file):
    failing = Fails(EMBED_BATCH, ModelBusy("throttled"))
    chunks = {"boundaries": "embedding"}
    lines = [f"Sentence {number} is about the thing of the number {number}." for number in range(300)]
    file.write_text("\n\n".join(lines), encoding="utf-8")
    with pytest.raises(ModelBusy):
        preparer(store, failing, reading, checkpoint_texts=16, chunks=chunks).prepare(item("large.txt"), file)
    assert store.objects
    store.objects = {key: data[:-1] + b"?" for key, data in store.objects.items()}
    preparer(store, embedder, reading, checkpoint_texts=16, chunks=chunks).prepare(item("large.txt"), file)
    assert set(failing.asked) <= set(embedder.asked)


def test_vectors_that_the_index_has_are_not_made_again(store, embedder, reading, file):
    first = preparer(store, embedder, reading).prepare(item("harbour.md"), file)
    IndexWriter(store, embedder).replace("shelf", prepared_items(store, first))
    store.delete(first.key)
    file.write_text("\n\n".join([*LINES[:-1], "The end is another one."]), encoding="utf-8")
    embedder.asked.clear()
    known = IndexVectors(store, "shelf", embedder.model_id, embedder.dimensions)
    again = preparer(store, embedder, reading, known=known).prepare(item("harbour.md"), file)
    bodies = {one.parts[0].text for one in prepared_items(store, again)}
    assert [text for text in embedder.asked if text in bodies] == [text for text in bodies if "another one" in text]
    assert again.embedded == len(embedder.asked)
    assert again.passages == first.passages


def test_an_index_of_another_model_has_no_vectors_of_use(store, embedder):
    IndexWriter(store, WordEmbedder("another")).replace("script", indexable(make_passages(2)))
    known = IndexVectors(store, "script", embedder.model_id, embedder.dimensions)
    assert known({one.recipe() for one in indexable(make_passages(2))}) == {}


def test_a_script_is_cut_into_its_messages_whatever_its_file_is_called(store, embedder, reading, file):
    file.write_text(script_of({"m1": "The lamp is lit.", "m2": "Nobody rang."}), encoding="utf-8")
    items = prepared_items(store, preparer(store, embedder, reading).prepare(item("ep1.jsonl"), file))
    assert [one.passage.id for one in items] == ["m1", "m2"]
    assert items[0].passage.locator.kind == "script"
    assert items[0].passage.metadata == {"source": "ep1.jsonl", "doc_type": "script"}


def test_a_script_says_where_its_messages_play_and_not_whose_they_are(store, embedder, reading, file):
    said = '"metadata": {"location": "jetty", "workflow_id": "theirs"}}'
    file.write_text(script_of({"m1": "The lamp is lit."}).replace('lit."}', f'lit.", {said}'), encoding="utf-8")
    for given in ({}, {"workflow_id": "ours"}):
        prepared = preparer(store, embedder, reading).prepare(item("ep1.jsonl", metadata=given), file)
        (found,) = prepared_items(store, prepared)
        expected = {"location": "jetty", "source": "ep1.jsonl", "doc_type": "script", **given}
        assert found.passage.metadata == expected


def test_a_script_that_breaks_its_format_is_refused_by_name_and_line(store, embedder, reading, file):
    text = script_of({"m1": "The lamp is lit.", "m2": "Nobody rang."}).replace('"Nobody rang."', "7")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentInvalid, match=r"^ep1\.jsonl:2: textENG: must be a string$"):
        preparer(store, embedder, reading).prepare(item("ep1.jsonl"), file)


def test_what_no_reader_reads_is_refused_and_leaves_nothing(store, embedder, reading, file):
    with pytest.raises(DocumentUnsupported):
        preparer(store, embedder, reading).prepare(item("harbour.exe"), file)
    assert store.objects == {}


def test_a_file_that_is_gone_is_refused(store, embedder, reading, tmp_path):
    with pytest.raises(DocumentBroken, match="cannot be read"):
        preparer(store, embedder, reading).prepare(item("harbour.md"), tmp_path / "gone")


def test_a_file_that_changes_while_it_is_read_is_refused(store, embedder, file):
    def read(source, path, *, title):
        path.write_text("It is another one now.", encoding="utf-8")
        return Reading()(source, path, title=title)

    with pytest.raises(DocumentBroken, match="changed while"):
        preparer(store, embedder, read).prepare(item("harbour.md"), file)


class Refuses(WordEmbedder):
    """Refuses texts with a word in them."""

    def __init__(self, word):
        super().__init__()
        self.word = word

    def embed(self, texts, *, time_budget_s):
        if any(self.word in text for text in texts):
            raise ModelRefused("text 0: it is too long")
        return super().embed(texts, time_budget_s=time_budget_s)


def test_a_text_that_the_model_refuses_is_its_documents_fault(store, reading, file):
    with pytest.raises(DocumentInvalid, match="rejected one of its texts"):
        preparer(store, Refuses("harbour"), reading).prepare(item("harbour.md"), file)


def test_a_model_that_refuses_every_text_is_no_documents_fault(store, reading, file):
    with pytest.raises(ModelRefused):
        preparer(store, Refuses(""), reading).prepare(item("harbour.md"), file)


def test_the_recipes_model_is_the_embedders(store, embedder):
    with pytest.raises(IndexMismatch):
        Preparer(store, WordEmbedder("another"), recipe_for(embedder))


def test_embedding_takes_turns(store, reading, file):
    turn = threading.BoundedSemaphore(1)

    class Watching(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            assert not turn.acquire(blocking=False)
            return super().embed(texts, time_budget_s=time_budget_s)

    assert preparer(store, Watching(), reading, turn=turn).prepare(item("harbour.md"), file).embedded


@dataclass
class Enriched:
    items: list[Indexable]
    cost_usd: float | None
    notes: tuple[str, ...]
    complete: bool


class Summaries:
    def __init__(self, cost_usd, *, complete=True):
        self.cost_usd, self.complete = cost_usd, complete

    def enrich(self, document, items):
        summed = [type(one)(one.passage.model_copy(update={"summary": document.title}), one.parts) for one in items]
        return Enriched(summed, self.cost_usd, ("a page was left out",), self.complete)


@pytest.mark.parametrize("cost_usd", [0.25, None])
def test_what_enrichment_adds_and_costs_is_kept(store, reading, file, cost_usd):
    embedder = WordEmbedder("local.words")
    prepared = preparer(store, embedder, reading, enricher=Summaries(cost_usd)).prepare(item("a.md", title="T"), file)
    assert {one.passage.summary for one in prepared_items(store, prepared)} == {"T"}
    assert (prepared.cost_usd, prepared.notes) == (cost_usd, ("a page was left out",))
    again = preparer(store, embedder, reading, enricher=None).prepare(item("a.md", title="T"), file)
    assert again.notes == ("a page was left out",)


def test_a_model_without_a_known_price_has_no_cost(store, embedder, reading, file):
    assert preparer(store, embedder, reading).prepare(item("a.md"), file).cost_usd is None


def test_what_enrichment_could_not_do_is_tried_again_and_nothing_else(store, embedder, reading, file):
    first = preparer(store, embedder, reading, enricher=Summaries(0.1, complete=False)).prepare(item("a.md"), file)
    embedder.asked.clear()
    again = preparer(store, embedder, reading, enricher=Summaries(0.1)).prepare(item("a.md"), file)
    assert (again.reused, again.key, embedder.asked) == (False, first.key, [])
    found = preparer(store, embedder, reading, enricher=Summaries(0.1)).prepare(item("a.md"), file)
    assert found.reused
    assert (first.complete, again.complete, found.complete) == (False, True, True)


def test_what_enrichment_still_cannot_do_is_told_again(store, embedder, reading, file):
    for _ in range(2):
        enricher = Summaries(0.1, complete=False)
        assert not preparer(store, embedder, reading, enricher=enricher).prepare(item("a.md"), file).complete
