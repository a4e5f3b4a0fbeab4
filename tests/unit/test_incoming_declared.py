"""A ``collection.yaml`` below ``incoming/``: it is no document, divides all, and loses nothing where it is wrong."""

from __future__ import annotations

import pytest

from cicada.errors import IndexCorrupt
from cicada.index.access_rules import StoredAccessRules
from cicada.index.versions import must_be_published
from cicada.ingest.arrivals import KEPT_SECTIONS
from cicada.ingest.committing import commit
from cicada.ingest.incoming.batches import prepare, recipe_of
from cicada.ingest.incoming.finishing import finish
from cicada.ingest.incoming.places import collection_and_source, is_ignored
from cicada.ingest.incoming.planning import plan
from cicada.ingest.known_sources import IndexVectors, read_collection
from cicada.ingest.preparing import Preparer
from tests.support.declared import declaration, declared_yaml
from tests.support.embedding import WordEmbedder
from tests.support.ingest import read_here, recipe_for
from tests.unit.test_incoming import Folder, World

LOG = "# Log\n\n## Boats\n\nThe Heron leaks.\n\n## Places\n\nThe jetty is long.\n"
CHANGED = declared_yaml(ships=["Boats"], jetties=["Places"])
WRONG = "collection: shelf\nkind: 'a b'\n"


class Bucket(World):
    """A folder that is loaded into a real index."""

    def __init__(self, **contents: str) -> None:
        super().__init__()
        self.folder = Folder(**contents)
        self.embedder = WordEmbedder()
        self.recipe = recipe_for(self.embedder)

    def plan(self, run, **bounds):
        self.running.add(run)

        def held(collection):
            return read_collection(self.store, collection, self.embedder.model_id, self.embedder.dimensions).counts

        return plan(
            self.folder,
            self.store,
            "shelf",
            run,
            self.recipe,
            held=held,
            is_running=self.running.__contains__,
            **bounds,
        )

    def prepare_batch(self, batch, *, remaining_s=lambda: 900.0):
        recipe = recipe_of(batch, self.recipe, self.store)
        known = IndexVectors(self.store, "shelf", self.embedder.model_id, self.embedder.dimensions)
        one = Preparer(self.store, self.embedder, recipe, read=read_here, known=known)
        return prepare(batch, self.folder, self.store, one.prepare, remaining_s=remaining_s)

    def finish(self, run, **bounds):
        def publish(collection, prepared, gone, declares):
            return commit(self.store, self.embedder, collection, prepared, gone=gone, declares=declares)

        done = finish("shelf", run, self.folder, self.store, publish, remaining_s=lambda: 900.0, **bounds)
        self.running.discard(run)
        return done

    @property
    def declared(self):
        return must_be_published(self.store).manifest.declaration("shelf")

    @property
    def sections(self):
        held = read_collection(self.store, "shelf", self.embedder.model_id, self.embedder.dimensions)
        return held.values_of(held.sources, "metadata.section")


def declared_bucket() -> Bucket:
    bucket = Bucket(**{"collection.yaml": declared_yaml(), "log.md": LOG, "note.md": "Nothing is said."})
    bucket.run("r1")
    return bucket


@pytest.mark.parametrize(
    ("key", "place", "ignored"),
    [
        ("incoming/shelf/collection.yaml", ("shelf", "collection.yaml"), False),
        ("incoming/shelf/sub/collection.yaml", None, True),
        ("incoming/shelf/collection.yml", None, True),
        ("incoming/shelf/Collection.YAML", None, True),
    ],
)
def test_a_declaration_lies_at_the_top_of_its_folder(key, place, ignored):
    assert (collection_and_source(key), is_ignored(key)) == (place, ignored)


def test_a_run_divides_by_the_declaration_and_publishes_it():
    bucket = declared_bucket()
    report = bucket.report().report
    assert (report.documents, report.loaded, report.sections) == (2, 2, {"boats": 1, "places": 1, "other": 1})
    assert (bucket.declared, bucket.sections) == (declaration(), {"boats", "places", "other"})
    assert not bucket.plan("r2").needed


def test_a_changed_declaration_alone_divides_every_document_again_and_embeds_nothing():
    bucket = declared_bucket()
    bucket.folder.put("collection.yaml", CHANGED)
    bucket.embedder.asked.clear()
    done = bucket.run("r2")
    assert (done.loaded, done.published, bucket.embedder.asked) == (2, True, [])
    assert bucket.sections == {"ships", "jetties", "other"}
    assert bucket.declared == declaration(ships=["Boats"], jetties=["Places"])


def test_a_changed_description_is_published_without_preparing_anything():
    bucket = declared_bucket()
    bucket.folder.put("collection.yaml", declared_yaml(description="Another."))
    bucket.folder.downloads.clear()
    summary = bucket.plan("r2")
    assert (summary.needed, summary.documents, summary.batches) == (True, 0, 0)
    assert (bucket.finish("r2").published, bucket.declared.description) == (True, "Another.")
    assert set(bucket.folder.downloads) == {"collection.yaml"}


def test_a_wrong_declaration_is_reported_with_its_line_and_nothing_is_lost():
    bucket = declared_bucket()
    bucket.folder.put("collection.yaml", WRONG)
    bucket.folder.put("more.md", "# More\n\n## Boats\n\nThe Ibis floats.\n")
    done = bucket.run("r2")
    assert (done.quarantined, done.loaded) == (1, 3)
    (refused, *_) = bucket.report().report.quarantined
    assert (refused.source, refused.code) == ("collection.yaml", "corpus_invalid")
    assert "collection.yaml, line 2: kind must be" in refused.message
    assert (bucket.declared, bucket.sections) == (declaration(), {"boats", "places", "other"})
    assert not bucket.plan("r3").needed
    bucket.folder.put("note.md", "Something is said.")
    bucket.run("r3")
    report = bucket.report()
    assert ([one.source for one in report.still_refused], report.report.documents) == (["collection.yaml"], 3)


def test_a_wrong_first_declaration_leaves_documents_undivided_until_it_is_right():
    bucket = Bucket(**{"collection.yaml": WRONG, "log.md": LOG})
    assert bucket.run("r1").loaded == 1
    assert (bucket.declared, bucket.sections) == (None, {None})
    bucket.folder.put("collection.yaml", declared_yaml())
    bucket.run("r2")
    assert (bucket.declared, bucket.sections) == (declaration(), {"boats", "places"})


def test_another_collections_declaration_is_refused():
    bucket = Bucket(**{"collection.yaml": declared_yaml("boats"), "log.md": LOG})
    bucket.run("r1")
    assert "collection is boats, but the collection is shelf" in bucket.report().report.quarantined[0].message


def test_a_deleted_declaration_is_withdrawn_and_its_sections_go():
    bucket = declared_bucket()
    del bucket.folder.contents["collection.yaml"]
    bucket.run("r2")
    assert (bucket.declared, bucket.sections) == (None, {None})
    assert not bucket.plan("r3").needed


def test_what_was_declared_otherwise_stays_and_divides_uploads():
    bucket = Bucket(**{"log.md": LOG})
    bucket.run("r1")
    commit(bucket.store, bucket.embedder, "shelf", [], declares=declaration())
    bucket.run("r2")
    assert (bucket.declared, bucket.sections) == (declaration(), {"boats", "places"})
    assert not bucket.plan("r3").needed


def test_the_declaration_is_published_with_the_first_slice_of_its_documents():
    bucket = Bucket(**{"collection.yaml": declared_yaml(), "a.md": "One.", "b.md": "Two.", "c.md": "Three."})
    bucket.prepare(bucket.plan("r1"))
    seen = []

    def publish(collection, prepared, gone, declares):
        seen.append(([one.source for one in prepared], declares))
        return commit(bucket.store, bucket.embedder, collection, prepared, gone=gone, declares=declares)

    finish("shelf", "r1", bucket.folder, bucket.store, publish, remaining_s=lambda: 900.0, slice_documents=2)
    assert seen == [(["a.md", "b.md"], declaration()), (["c.md"], declaration())]


def test_documents_below_a_wrong_declaration_are_read_by_nobody_unless_they_were_before():
    bucket = Bucket(**{"collection.yaml": WRONG, "log.md": LOG})
    bucket.run("r1")
    access = StoredAccessRules(bucket.store)
    assert must_be_published(bucket.store).manifest.count == 2
    assert access.rules().readers == {"shelf": ()}
    bucket.folder.put("note.md", "More.")  # the wrong declaration has been reported, and stays
    bucket.run("r2")
    assert access.rules().readers == {"shelf": ()}
    bucket.folder.put("collection.yaml", declared_yaml())
    bucket.run("r3")
    assert access.rules().readers == {}
    bucket.folder.put("collection.yaml", WRONG)
    bucket.run("r4")
    assert access.rules().readers == {}


def test_a_batch_whose_rules_are_gone_is_not_prepared_without_them():
    bucket = Bucket(**{"collection.yaml": declared_yaml(), "a.md": "One."})
    (batch,) = bucket.batches(bucket.plan("r1"))
    bucket.store.delete(batch.sections_key)
    with pytest.raises(IndexCorrupt):
        bucket.prepare_batch(batch)


def test_a_run_that_dies_between_slices_has_moved_towards_what_is_declared_and_the_next_ends_it():
    bucket = Bucket(**{"collection.yaml": declared_yaml(), "a.md": LOG, "b.md": LOG.replace("Heron", "Ibis")})
    bucket.run("r1")
    bucket.folder.put("collection.yaml", CHANGED)
    bucket.prepare(bucket.plan("r2"))

    def publish(collection, prepared, gone, declares):
        if any(one.source == "b.md" for one in prepared):
            raise RuntimeError("the worker dies")
        return commit(bucket.store, bucket.embedder, collection, prepared, gone=gone, declares=declares)

    with pytest.raises(RuntimeError):
        finish("shelf", "r2", bucket.folder, bucket.store, publish, remaining_s=lambda: 900.0, slice_documents=1)
    assert bucket.declared == declaration(ships=["Boats"], jetties=["Places"])
    assert bucket.sections == {"ships", "jetties", "boats", "places"}
    bucket.running.discard("r2")
    bucket.run("r3")
    assert bucket.sections == {"ships", "jetties"}


def test_another_look_of_the_same_run_divides_by_what_is_declared_then():
    bucket = declared_bucket()
    bucket.folder.put("log.md", LOG + "More.")
    bucket.prepare(bucket.plan("r2"))
    bucket.folder.put("collection.yaml", CHANGED)
    assert bucket.plan("r3").deferred
    assert bucket.finish("r2").again
    bucket.run("r2")
    assert bucket.sections == {"ships", "jetties", "other"}


def test_documents_that_were_divided_by_what_is_not_declared_any_more_are_prepared_again():
    bucket = Bucket(**{"log.md": LOG})
    bucket.run("r1")
    bucket.folder.put("log.md", LOG + "More.")
    bucket.prepare(bucket.plan("r2"))
    commit(bucket.store, bucket.embedder, "shelf", [], declares=declaration())
    done = bucket.finish("r2")
    assert (done.again, done.loaded, done.not_prepared) == (True, 0, 1)
    (waiting,) = bucket.report().not_prepared
    assert (waiting.source, waiting.code) == ("log.md", "declaration_changed")
    assert bucket.run("r2").loaded == 1
    assert bucket.sections == {"boats", "places"}


def test_a_refused_document_is_reported_to_keep_its_earlier_sections():
    bucket = declared_bucket()
    bucket.folder.put("collection.yaml", CHANGED)
    bucket.folder.put("log.md", "")
    bucket.run("r2")
    report = bucket.report().report
    assert [one.source for one in report.quarantined] == ["log.md"]
    assert report.notes == {"log.md": (KEPT_SECTIONS,)}
    assert bucket.sections == {"boats", "places", "other"}
