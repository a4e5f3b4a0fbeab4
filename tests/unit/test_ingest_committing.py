"""Committing: one version with all documents that were prepared, and a reason for each that is not in it."""

from __future__ import annotations

import pytest

from cicada.errors import (
    CorpusInvalid,
    DocumentConflict,
    DocumentUnknown,
    IndexCorrupt,
    IndexMismatch,
    PublishConflict,
)
from cicada.index.manifest import SEGMENTS_PREFIX
from cicada.index.versions import must_be_published
from cicada.index.writer import IndexWriter
from cicada.ingest import arrivals, committing
from cicada.ingest.committing import commit
from cicada.ingest.contracts import Owner, Quarantined
from cicada.ingest.preparing import Preparer
from tests.support.embedding import WordEmbedder
from tests.support.index_content import content
from tests.support.ingest import found_in, item, read_here, recipe_for, script_of
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

TEXTS = {"a.md": "The lamp is lit.", "b.md": "Nobody rang the bell.", "c.txt": "The boat left at noon."}


@pytest.fixture
def store():
    return InMemoryStore()


@pytest.fixture
def embedder():
    return WordEmbedder()


@pytest.fixture
def prepare(store, tmp_path):
    """Prepares documents, given by their texts."""

    def prepare(texts, **given):
        model = WordEmbedder()
        preparer = Preparer(store, model, recipe_for(model), read=read_here)
        prepared = []
        for source, text in texts.items():
            path = tmp_path / "document"
            path.write_text(text, encoding="utf-8")
            prepared.append(preparer.prepare(item(source, **given), path))
        return prepared

    return prepare


def test_all_documents_are_in_one_version_and_nothing_is_embedded(store, embedder, prepare):
    prepared = prepare(TEXTS)
    report = commit(store, embedder, "shelf", prepared)
    assert embedder.asked == []
    assert (report.documents, report.loaded, report.unchanged, report.passages) == (3, 3, 0, 3)
    assert (report.published, report.added) == (True, 3)
    assert report.embedded == sum(one.embedded for one in prepared) >= 3
    assert must_be_published(store).manifest.number == 1
    assert found_in(store, WordEmbedder(), "nobody rang the bell")[0] == ("b.md", TEXTS["b.md"])


def test_committing_again_publishes_nothing(store, embedder, prepare):
    first = commit(store, embedder, "shelf", prepare(TEXTS))
    again = commit(store, embedder, "shelf", prepare(TEXTS), exactly=True)
    assert (again.published, again.unchanged, again.loaded, again.version) == (False, 3, 3, first.version)


def test_other_documents_stay_unless_exactly_these_are_wanted(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare(TEXTS))
    changed = prepare({"a.md": "The lamp went out."})
    added = commit(store, embedder, "shelf", changed)
    assert (added.passages, added.added, added.deleted, added.removed) == (3, 1, 1, ())
    exact = commit(store, embedder, "shelf", changed, exactly=True)
    assert (exact.passages, exact.removed, exact.unchanged) == (1, ("b.md", "c.txt"), 1)


def test_sources_that_are_gone_are_deleted(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare(TEXTS))
    report = commit(store, embedder, "shelf", [], gone=["b.md", "never.md"])
    assert (report.removed, report.deleted, report.passages) == (("b.md",), 1, 2)


def test_nothing_is_deleted_where_nothing_is(store, embedder):
    report = commit(store, embedder, "shelf", [], gone=["b.md"])
    assert (report.published, report.removed, report.version) == (False, (), "")


@pytest.mark.parametrize("exactly", [False, True])
def test_a_quarantined_document_stays_as_it_was(store, embedder, prepare, exactly):
    commit(store, embedder, "shelf", prepare(TEXTS))
    poison = Quarantined(source="b.md", code="document_broken", message="breaks off")
    rest = prepare({"a.md": "The lamp went out.", "c.txt": TEXTS["c.txt"]})
    report = commit(store, embedder, "shelf", rest, exactly=exactly, quarantined=[poison])
    assert (report.documents, report.loaded, report.quarantined) == (3, 2, (poison,))
    assert {source for source, _ in found_in(store, embedder)} == set(TEXTS)


@pytest.mark.parametrize("exactly", [False, True])
def test_a_load_of_which_nothing_is_left_changes_nothing(store, embedder, prepare, exactly):
    commit(store, embedder, "shelf", prepare(TEXTS))
    version = must_be_published(store).manifest.version
    poison = Quarantined(source="new.md", code="document_broken", message="breaks off")
    report = commit(store, embedder, "shelf", [], exactly=exactly, quarantined=[poison])
    assert (report.version, report.published, report.passages, report.loaded) == (version, False, 3, 0)


def test_of_two_documents_with_a_passage_in_common_the_later_one_is_quarantined(store, embedder, prepare):
    scripts = {"1.jsonl": {"m1": "One.", "m2": "Two."}, "2.jsonl": {"m2": "Other."}, "3.jsonl": {"m3": "Three."}}
    prepared = prepare({source: script_of(messages) for source, messages in scripts.items()})
    report = commit(store, embedder, "shelf", prepared, exactly=True)
    assert [(one.source, one.code) for one in report.quarantined] == [("2.jsonl", "document_invalid")]
    assert report.quarantined[0].message == "its passage m2 has an id that one of 1.jsonl has"
    assert (report.loaded, sorted(content(store)["shelf"])) == (2, ["m1", "m2", "m3"])


def test_a_document_with_a_passage_of_one_that_stays_is_quarantined(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare({"1.jsonl": script_of({"m1": "One."})}))
    report = commit(store, embedder, "shelf", prepare({"2.jsonl": script_of({"m1": "Other.", "m2": "Two."})}))
    assert report.quarantined[0].message == "its passage m1 has an id that one of 1.jsonl has"
    assert list(content(store)["shelf"]) == ["m1"]


def test_a_passage_may_move_to_another_document_of_the_same_load(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare({"1.jsonl": script_of({"m1": "One.", "m2": "Two."})}))
    moved = prepare({"1.jsonl": script_of({"m1": "One."}), "2.jsonl": script_of({"m2": "Two."})})
    report = commit(store, embedder, "shelf", moved)
    assert (report.quarantined, report.loaded, report.passages) == ((), 2, 2)


def test_who_is_quarantined_stays_in_the_way_of_others(store, embedder, prepare):
    held = {"2.jsonl": script_of({"m2": "Two."}), "1.jsonl": script_of({"m1": "One."})}
    commit(store, embedder, "shelf", prepare(held))
    # 2 would take m1 from 1, which is changed only after it; so 2 stays as it was, and 3 cannot have its m2
    scripts = {"1.jsonl": {"m1": "New."}, "2.jsonl": {"m1": "Two."}, "3.jsonl": {"m2": "Three."}}
    prepared = prepare({source: script_of(messages) for source, messages in scripts.items()})
    report = commit(store, embedder, "shelf", prepared)
    assert [one.source for one in report.quarantined] == ["2.jsonl", "3.jsonl"]
    assert {id: found.line["text"] for id, found in content(store)["shelf"].items()} == {"m1": "New.", "m2": "Two."}


def test_a_document_with_too_many_kinds_of_metadata_is_quarantined(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare({"a.md": "One."}, metadata={f"k{n}": "v" for n in range(32)}))
    many = prepare({"b.md": "Two."}, metadata={f"l{n}": "v" for n in range(32)})
    report = commit(store, embedder, "shelf", [*many, *prepare({"c.md": "Three."}, metadata={"k1": "v"})])
    assert [one.source for one in report.quarantined] == ["b.md"]
    assert "fields to filter by" in report.quarantined[0].message
    assert report.passages == 2


def test_fields_of_documents_that_are_gone_are_not_in_the_way(store, embedder, prepare):
    kept = prepare({"kept.md": "Nought."}, metadata={"k0": "v"})
    commit(store, embedder, "shelf", [*kept, *prepare({"a.md": "One."}, metadata={f"k{n}": "v" for n in range(32)})])
    commit(store, embedder, "shelf", [], gone=["a.md"])
    commit(store, embedder, "shelf", prepare({"b.md": "Two."}, metadata={f"l{n}": "v" for n in range(32)}))
    report = commit(store, embedder, "shelf", prepare({"c.md": "Three."}, metadata={f"m{n}": "v" for n in range(20)}))
    assert (report.quarantined, report.passages) == ((), 3)


@pytest.mark.parametrize("damage", [lambda data: data[:-2], lambda data: b"", None])
def test_a_document_whose_prepared_object_is_damaged_is_quarantined(store, embedder, prepare, damage):
    prepared = prepare(TEXTS)
    if damage is None:
        store.delete(prepared[1].key)
    else:
        store.objects[prepared[1].key] = damage(store.objects[prepared[1].key])
    report = commit(store, embedder, "shelf", prepared, exactly=True)
    assert [(one.source, one.code) for one in report.quarantined] == [("b.md", "index_corrupt")]
    assert (report.loaded, report.passages) == (2, 2)


def test_one_document_prepared_twice_is_one(store, embedder, prepare):
    (once,) = prepare({"a.md": "One."})
    assert commit(store, embedder, "shelf", [once, once]).quarantined == ()


def test_of_two_documents_of_one_name_the_later_one_is_quarantined(store, embedder, prepare):
    report = commit(store, embedder, "shelf", [*prepare({"a.md": "One."}), *prepare({"a.md": "Two."})])
    assert [one.message for one in report.quarantined] == ["another document of this load has the same name"]
    assert found_in(store, embedder) == [("a.md", "One.")]


def test_a_large_commit_is_written_in_pieces_that_fit_into_memory(store, embedder, prepare, monkeypatch):
    text = "\n\n".join(f"Paragraph {number} has its own words {number}." for number in range(300))
    prepared = prepare({"a.txt": text, "b.txt": text.replace("own", "new"), "c.txt": "Short."})
    monkeypatch.setattr(arrivals, "SLICE_BYTES", 4_000)
    report = commit(store, embedder, "shelf", prepared)
    assert report.passages == sum(one.passages for one in prepared)
    assert len(store.keys(SEGMENTS_PREFIX)) > 3
    assert embedder.asked == []
    assert len(content(store)["shelf"]) == report.passages


def test_more_than_the_bound_is_refused_by_its_number(store, embedder, prepare, monkeypatch):
    monkeypatch.setattr(committing, "MAX_COMMIT_PASSAGES", 2)
    with pytest.raises(CorpusInvalid, match="3 passages exceed the limit of 2"):
        commit(store, embedder, "shelf", prepare(TEXTS))


def test_a_document_of_another_model_is_not_committed(store, prepare):
    with pytest.raises(IndexMismatch):
        commit(store, WordEmbedder("another"), "shelf", prepare(TEXTS))


def test_starting_over_leaves_other_collections_out(store, embedder, prepare):
    IndexWriter(store, WordEmbedder("old")).replace("script", indexable(make_passages(2)))
    with pytest.raises(IndexMismatch):
        commit(store, embedder, "shelf", prepare(TEXTS), exactly=True)
    commit(store, embedder, "shelf", prepare(TEXTS), start_over=True)
    assert list(content(store)) == ["shelf"]


def test_a_damaged_collection_is_mended_by_exactly_these_documents(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare(TEXTS))
    (segment,) = store.keys(SEGMENTS_PREFIX)
    store.objects[segment] = store.objects[segment][:100]
    with pytest.raises(IndexCorrupt):
        commit(store, embedder, "shelf", prepare(TEXTS))
    report = commit(store, embedder, "shelf", prepare(TEXTS), exactly=True)
    assert (report.published, report.passages, embedder.asked) == (True, 3, [])
    assert len(found_in(store, embedder)) == 3


def test_what_others_change_meanwhile_is_planned_upon_again(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare(TEXTS))
    theirs, ours = prepare({"a.md": "Theirs."}), prepare({"a.md": "Ours."})
    others = [theirs]

    def progress(stage, done, total):
        if stage == "publishing" and done == 0 and others:
            commit(store, embedder, "shelf", others.pop())

    assert commit(store, embedder, "shelf", ours, progress=progress).published
    assert ("a.md", "Ours.") in found_in(store, embedder)


def test_exactly_these_documents_are_not_pressed_upon_others_changes(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare(TEXTS))
    theirs, ours = prepare({"d.md": "Theirs."}), prepare({"a.md": "Ours."})
    others = [theirs]

    def progress(stage, done, total):
        if stage == "publishing" and done == 0 and others:
            commit(store, embedder, "shelf", others.pop())

    with pytest.raises(PublishConflict):
        commit(store, embedder, "shelf", ours, exactly=True, progress=progress)


# --- whose documents ---

OF = {"w1": {"workflow_id": "w1"}, "w2": {"workflow_id": "w2"}, None: {}}
OTHERS = [("w1", "w2"), ("w1", None), (None, "w1")]


@pytest.mark.parametrize(("holder", "caller"), OTHERS)
def test_an_owner_neither_replaces_nor_deletes_anothers_document(store, embedder, prepare, holder, caller):
    commit(store, embedder, "shelf", prepare(TEXTS, metadata=OF[holder]))
    before = content(store)
    with pytest.raises(DocumentConflict):
        commit(
            store,
            embedder,
            "shelf",
            prepare({"a.md": "Mine.", "new.md": "New."}, metadata=OF[caller]),
            owner=Owner(workflow_id=caller),
        )
    with pytest.raises(DocumentUnknown):
        commit(store, embedder, "shelf", [], gone=["a.md"], owner=Owner(workflow_id=caller))
    assert content(store) == before


@pytest.mark.parametrize("workflow_id", ["w1", None])
def test_an_owner_replaces_and_deletes_its_own(store, embedder, prepare, workflow_id):
    own, owner = OF[workflow_id], Owner(workflow_id=workflow_id)
    commit(store, embedder, "shelf", prepare({"b.md": "Another's."}, metadata=OF["w2"]))
    for text in ("One.", "Two."):
        assert commit(store, embedder, "shelf", prepare({"a.md": text}, metadata=own), owner=owner).published
    assert commit(store, embedder, "shelf", [], gone=["a.md"], owner=owner).removed == ("a.md",)
    assert not commit(store, embedder, "shelf", [], gone=["a.md"], owner=owner).published
    assert found_in(store, embedder) == [("b.md", "Another's.")]


def test_a_document_whose_passages_are_of_several_workflows_is_no_owners(store, embedder):
    one, other = make_passages(2)
    mixed = [
        one.model_copy(update={"metadata": {"source": "s.jsonl", **OF["w1"]}}),
        other.model_copy(update={"metadata": {"source": "s.jsonl", **OF["w2"]}}),
    ]
    IndexWriter(store, embedder).replace("script", indexable(mixed))
    for workflow_id in ("w1", "w2", None):
        with pytest.raises(DocumentUnknown):
            commit(store, embedder, "script", [], gone=["s.jsonl"], owner=Owner(workflow_id=workflow_id))


def test_without_an_owner_a_document_changes_its_workflow(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare({"a.md": "One."}, metadata=OF["w1"]))
    assert commit(store, embedder, "shelf", prepare({"a.md": "One."}, metadata=OF["w2"])).added == 1
    assert commit(store, embedder, "shelf", [], gone=["a.md"], owner=Owner(workflow_id="w2")).deleted == 1


def test_who_comes_first_owns_a_source_also_between_plan_and_publication(store, embedder, prepare):
    commit(store, embedder, "shelf", prepare({"b.md": "Other."}))
    theirs, ours = (prepare({"a.md": f"Of {of}."}, metadata=OF[of]) for of in ("w1", "w2"))
    others = [theirs]

    def progress(stage, done, total):
        if stage == "publishing" and done == 0 and others:
            commit(store, embedder, "shelf", others.pop(), owner=Owner(workflow_id="w1"))

    with pytest.raises(DocumentConflict):
        commit(store, embedder, "shelf", ours, owner=Owner(workflow_id="w2"), progress=progress)
    assert ("a.md", "Of w1.") in found_in(store, embedder)
