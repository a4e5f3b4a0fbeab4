"""A folder's ``collection.yaml``: it divides what is loaded, is published with it, and goes when it is gone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.access_rules import ACCESS_KEY, StoredAccessRules
from cicada.index.manifest import CURRENT_KEY
from cicada.index.reader import IndexReader
from cicada.index.versions import must_be_published, read_current, restore
from cicada.index.writer import IndexWriter
from cicada.ingest.arrivals import KEPT_SECTIONS
from cicada.ingest.contracts import EnrichmentOptions
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.estimating import estimate_load
from cicada.ingest.loading import load_documents, scripts_alone, unload
from cicada.ingest.scripts import load_script
from cicada.ingest.sources import source_files
from cicada.retrieval.knowledge.contracts import catalogue_of
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING, ConfiguredAccess
from cicada_cli.load_view import words_of_ingest, words_of_script
from tests.support.declared import declaration, declared_yaml
from tests.support.embedding import WordEmbedder
from tests.support.ingest import Reading, recipe_for, script_of, shelf
from tests.support.object_stores import InMemoryStore

LOG = "# Log\n\n## Boats\n\nThe Heron leaks.\n\n## Places\n\nThe jetty is long.\n"
TEXTS = {"log.md": LOG, "note.md": "Nothing is said here."}
DECLARED = {**TEXTS, "collection.yaml": declared_yaml()}


@pytest.fixture
def store():
    return InMemoryStore()


def load(folder, store, embedder=None, reading=None, **options):
    embedder = embedder or WordEmbedder()
    recipe = recipe_for(embedder)
    return load_documents([folder], "shelf", store, embedder, recipe, read=reading or Reading(), **options)


def search(store, query="the", **where):
    embedder = WordEmbedder()
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        asked = SearchQuery(query, top_k=100, min_score=0.0, filters=Filters(**where), readable=EVERYTHING)
        return [hit.passage for hit in ShardRetriever(reader, embedder).search(asked).hits]
    finally:
        reader.close()


def sections(store):
    return {one.text.splitlines()[-1]: one.metadata.get("section") for one in search(store)}


def declared(store):
    return must_be_published(store).manifest.declarations


def test_passages_are_told_their_sections_and_the_declaration_is_published(store, tmp_path):
    report = load(shelf(tmp_path, DECLARED), store)
    assert (report.documents, report.loaded, report.quarantined) == (2, 2, ())
    assert report.sections == {"boats": 1, "places": 1, "other": 1}
    assert sections(store) == {
        "The Heron leaks.": "boats",
        "The jetty is long.": "places",
        "Nothing is said here.": "other",
    }
    assert [one.text for one in search(store, metadata={"section": ("boats",)})] == ["The Heron leaks."]
    assert declared(store) == (declaration(),)


def test_a_changed_section_divides_again_and_embeds_nothing_that_stays_as_it_was(store, tmp_path):
    load(shelf(tmp_path, DECLARED), store)
    embedder = WordEmbedder()
    changed = {**TEXTS, "collection.yaml": declared_yaml(ships=["Boats"], jetties=["Places"], rafts=["Rafts"])}
    report = load(shelf(tmp_path, changed), store, embedder)
    assert (report.published, report.embedded, embedder.asked) == (True, 0, [])
    assert report.sections == {"ships": 1, "jetties": 1, "rafts": 0, "other": 1}
    assert set(sections(store).values()) == {"ships", "jetties", "other"}


def test_a_changed_description_is_published_and_reads_no_document_again(store, tmp_path):
    load(shelf(tmp_path, DECLARED), store)
    reading = Reading()
    changed = {**TEXTS, "collection.yaml": declared_yaml(description="Another shelf.")}
    report = load(shelf(tmp_path, changed), store, reading=reading)
    assert (report.published, report.unchanged, report.added, reading.sources) == (True, 2, 0, [])
    assert declared(store)[0].description == "Another shelf."
    assert not load(tmp_path, store).published


def test_without_the_file_a_collection_declares_nothing_any_more(store, tmp_path):
    load(shelf(tmp_path, DECLARED), store)
    report = load(shelf(tmp_path, TEXTS), store)
    assert (report.published, report.embedded, report.sections) == (True, 0, {})
    assert declared(store) == ()
    assert set(sections(store).values()) == {None}


def test_documents_that_are_added_go_by_what_is_published(store, tmp_path):
    load(shelf(tmp_path / "a", DECLARED), store)
    load(shelf(tmp_path / "b", {"more.md": "# More\n\n## Boats\n\nThe Ibis floats.\n"}), store, exactly=False)
    assert declared(store) == (declaration(),)
    assert sections(store)["The Ibis floats."] == "boats"


def test_documents_are_not_added_with_other_sections_than_the_collection_has(store, tmp_path):
    load(shelf(tmp_path / "a", DECLARED), store)
    more = {"more.md": "# More\n\n## Boats\n\nThe Ibis floats.\n"}
    reworded = shelf(tmp_path / "b", {**more, "collection.yaml": declared_yaml(description="Another shelf.")})
    assert load(reworded, store, exactly=False).published
    assert declared(store)[0].description == "Another shelf."
    other = shelf(tmp_path / "c", {**more, "collection.yaml": declared_yaml(ships=["Boats"])})
    with pytest.raises(CorpusInvalid, match="load the folder"):
        load(other, store, exactly=False)
    with pytest.raises(CorpusInvalid, match="load the folder"):
        estimate_load([other], "shelf", store, recipe_for(WordEmbedder()), read=Reading(), exactly=False)
    assert set(sections(store).values()) == {"boats", "places", "other"}


def test_a_declaration_may_come_with_the_first_documents_that_are_added_and_not_with_later_ones(store, tmp_path):
    load(shelf(tmp_path / "a", DECLARED), store, exactly=False)
    assert declared(store) == (declaration(),)
    load(shelf(tmp_path / "b", TEXTS), store)
    with pytest.raises(CorpusInvalid, match="load the folder"):
        load(tmp_path / "a", store, exactly=False)


def test_documents_that_are_added_while_the_sections_change_are_divided_again(store, tmp_path):
    load(shelf(tmp_path / "a", DECLARED), store)
    changed = shelf(tmp_path / "b", {**TEXTS, "collection.yaml": declared_yaml(ships=["Boats"], jetties=["Places"])})

    class Overtaken(Reading):
        def __call__(self, source, path, *, title):
            if not self.sources:
                load(changed, store)
            return super().__call__(source, path, title=title)

    reading = Overtaken()
    more = shelf(tmp_path / "c", {"more.md": "# More\n\n## Boats\n\nThe Ibis floats.\n"})
    assert load(more, store, reading=reading, exactly=False).published
    assert reading.sources == ["more.md", "more.md"]
    assert sections(store)["The Ibis floats."] == "ships"
    assert declared(store) == (declaration(ships=["Boats"], jetties=["Places"]),)


def test_what_stays_of_a_refused_document_is_said_to_keep_its_sections(store, tmp_path):
    load(shelf(tmp_path, DECLARED), store)
    refused = {"log.md": "", "note.md": TEXTS["note.md"]}
    assert load(shelf(tmp_path, {**refused, "collection.yaml": declared_yaml()}), store).notes == {}
    changed = {**refused, "collection.yaml": declared_yaml(ships=["Boats"], jetties=["Places"])}
    report = load(shelf(tmp_path, changed), store)
    assert [one.source for one in report.quarantined] == ["log.md"]
    assert report.notes == {"log.md": (KEPT_SECTIONS,)}


def test_a_load_tells_that_the_collection_declares_nothing_any_more(store, tmp_path):
    assert not load(shelf(tmp_path, DECLARED), store).undeclared
    report = load(shelf(tmp_path, TEXTS), store)
    assert report.undeclared
    assert "shelf has no declaration now" in words_of_ingest(report, None, 0.1)
    assert not load(tmp_path, store).undeclared
    load(shelf(tmp_path, DECLARED), store)
    assert unload(store, WordEmbedder(), "shelf", list(TEXTS)).undeclared
    load(tmp_path, store)
    script = load_script([shelf(tmp_path / "s", {"e.jsonl": script_of({"m": "Hm."})})], "shelf", store, WordEmbedder())
    assert "shelf has no declaration now" in words_of_script(script, None, 0.1)


def test_unloading_takes_the_declaration_with_the_last_document_or_by_its_name(store, tmp_path):
    load(shelf(tmp_path, DECLARED), store)
    unload(store, WordEmbedder(), "shelf", ["note.md"])
    assert declared(store) == (declaration(),)
    report = unload(store, WordEmbedder(), "shelf", ["collection.yaml"])
    assert (report.removed, report.published, declared(store)) == (("collection.yaml",), True, ())
    assert unload(store, WordEmbedder(), "shelf", ["collection.yaml"]).removed == ()
    load(tmp_path, store)
    unload(store, WordEmbedder(), "shelf", ["note.md", "log.md"])
    assert declared(store) == ()


def test_a_wrong_declaration_loads_nothing_and_names_file_and_line(store, tmp_path):
    folder = shelf(tmp_path, {**TEXTS, "collection.yaml": "collection: shelf\nkind: 'a b'\n"})
    with pytest.raises(CorpusInvalid, match=r"collection\.yaml, line 2: kind must be"):
        load(folder, store)
    with pytest.raises(CorpusInvalid, match="collection is boats, but the collection is shelf"):
        load(shelf(tmp_path, {**TEXTS, "collection.yaml": declared_yaml("boats")}), store)
    assert list(store.entries("index/")) == []


def test_a_declaration_that_is_misplaced_is_set_aside_with_the_reason(store, tmp_path):
    names = ("Collection.yaml", "sub/collection.yaml", "collection.yml")
    report = load(shelf(tmp_path, {"a.md": "Text.", **dict.fromkeys(names, declared_yaml())}), store)
    assert [(one.source, one.message) for one in report.quarantined] == [
        ("Collection.yaml", "a collection is declared in a file called collection.yaml"),
        ("collection.yml", "a collection is declared in a file called collection.yaml"),
        ("sub/collection.yaml", "declares the collection of its own folder: load sub by itself"),
    ]
    with pytest.raises(CorpusInvalid, match=r": no document beside collection\.yaml"):
        source_files([shelf(tmp_path / "only", {"collection.yaml": declared_yaml()})])


def test_the_sections_key_is_the_declarations_own(store, tmp_path):
    with pytest.raises(CorpusInvalid, match="section is reserved"):
        load(shelf(tmp_path, DECLARED), store, metadata={"section": "mine"})
    load(shelf(tmp_path, TEXTS), store, metadata={"section": "mine"})
    assert set(sections(store).values()) == {"mine"}


def test_a_declared_script_is_divided_by_its_episodes_and_chapters(store, tmp_path):
    texts = {"ep1.jsonl": script_of({"m1": "The boat left."}), "collection.yaml": declared_yaml(first=["One > c1"])}
    folder = shelf(tmp_path, texts)
    assert not scripts_alone(source_files([folder]))
    load(folder, store)
    assert sections(store) == {"The boat left.": "first"}


def test_declared_names_stand_before_those_that_enrichment_finds(store, tmp_path):
    text = declared_yaml().replace('"aliases":{}', '"aliases":{"Old Heron":["the Heron"],"Mira Vale":["Mira"]}')
    log = "# Log\n\n## Boats\n\nThe Heron leaks, said Mira. We asked Mira, and Tam Reed. Then Tam Reed rowed.\n"
    enricher = Enricher(EnrichmentOptions(), None, store)
    load(shelf(tmp_path, {"log.md": log, "collection.yaml": text}), store, enricher=enricher)
    (found,) = search(store)
    assert found.entities[:2] == ("Old Heron", "Mira Vale")
    assert "Tam Reed" in found.entities
    assert "Mira" not in found.entities


def test_an_estimate_tells_the_sections_before_and_after(store, tmp_path):
    folder, recipe = shelf(tmp_path, DECLARED), recipe_for(WordEmbedder())
    before = estimate_load([folder], "shelf", store, recipe, read=Reading())
    load(folder, store)
    after = estimate_load([folder], "shelf", store, recipe, read=Reading())
    assert before.sections == after.sections == {"boats": 1, "places": 1, "other": 1}
    assert (before.documents, after.documents, after.prepared) == (2, 0, 2)


def test_a_start_over_publishes_the_declaration(store, tmp_path):
    others = load_documents(
        [shelf(tmp_path / "x", TEXTS)], "x", store, WordEmbedder(), recipe_for(WordEmbedder()), read=Reading()
    )
    assert others.published
    load(shelf(tmp_path / "shelf", DECLARED), store, start_over=True)
    assert declared(store) == (declaration(),)
    assert IndexWriter(store, WordEmbedder()).delete("x", ["none"]).passages == 0


def rule(store):
    return StoredAccessRules(store).rules().readers.get("shelf")


def with_readers(readers):
    """The folder with a field of its declaration, which is written as JSON."""
    return {**TEXTS, "collection.yaml": declared_yaml().replace("{", f'{{"readers": {readers}, ', 1)}


def restricted(*groups):
    return with_readers(json.dumps(groups))


def test_a_folder_says_who_may_read_it_and_the_rule_goes_with_its_declaration(store, tmp_path):
    load(shelf(tmp_path, restricted("gms", "players")), store)
    assert (rule(store), declared(store)[0].readers) == (("gms", "players"),) * 2
    load(shelf(tmp_path, {"other.md": "More."}), store, exactly=False)  # adds, and declares nothing
    assert rule(store) == ("gms", "players")
    unload(store, WordEmbedder(), "shelf", ["other.md"])
    assert rule(store) == ("gms", "players")
    load(shelf(tmp_path, restricted()), store)
    assert rule(store) == ()
    load(shelf(tmp_path, DECLARED), store)
    assert rule(store) is None
    load(shelf(tmp_path, restricted("gms")), store)
    load(shelf(tmp_path, TEXTS), store)
    assert rule(store) is None
    load(shelf(tmp_path, restricted("gms")), store)
    load_script([shelf(tmp_path / "s", {"e.jsonl": script_of({"m": "Hm."})})], "shelf", store, WordEmbedder())
    assert rule(store) is None


@pytest.mark.parametrize(
    ("before", "after", "meanwhile"),
    [
        (None, ("gms",), ("gms",)),
        (("gms",), None, ("gms",)),
        (("gms", "players"), ("players", "scribes"), ("players",)),
        (("gms",), ("scribes",), ()),
    ],
)
def test_nobody_reads_new_passages_by_old_rights_or_old_ones_by_new_rights(store, tmp_path, before, after, meanwhile):
    def files(readers, text):
        return {**(DECLARED if readers is None else restricted(*readers)), "note.md": text}

    load(shelf(tmp_path, files(before, "Old.")), store)
    found = []

    class Watching(InMemoryStore):
        objects = store.objects

        def write(self, key, data, *, replaces):
            if key == CURRENT_KEY:
                found.append(rule(store))
            return super().write(key, data, replaces=replaces)

    watching = Watching()
    watching.objects = store.objects
    load(shelf(tmp_path, files(after, "New.")), watching)
    assert (found, rule(store)) == ([meanwhile], after)


@pytest.mark.parametrize("readers", ["null", "", '"gms"', '["a,b"]', '[""]', '{"gms": 1}', "[[]]"])
def test_readers_that_are_no_list_of_groups_are_refused(store, tmp_path, readers):
    files = with_readers(readers)
    with pytest.raises(CorpusInvalid, match="readers"):
        load(shelf(tmp_path, files), store)
    assert rule(store) is None


def test_a_rule_that_cannot_be_stored_publishes_nothing(store, tmp_path):
    store.write(ACCESS_KEY, b"?", replaces=None)
    with pytest.raises(IndexCorrupt):
        load(shelf(tmp_path, restricted("gms")), store)
    assert read_current(store) is None


def test_rights_of_before_a_load_do_not_open_what_it_closes(store, tmp_path):
    """An attempt that has resolved its rights meets a version that was published afterwards."""
    load(shelf(tmp_path / "a", {"open.md": "All may read this."}), store)
    before = StoredAccessRules(store).rules()
    load(shelf(tmp_path / "b", restricted("gms")), store)
    manifest = must_be_published(store).manifest
    assert [manifest.readable_by(before.readable(groups)) for groups in ((), ("gms",))] == [set(), {"shelf"}]
    assert manifest.readable_by(EVERYTHING) == {"shelf"}
    assert catalogue_of(manifest, before.readable(())).collections == ()
    wins = StoredAccessRules(store, ConfiguredAccess(collections={"shelf": ("players",)})).rules()
    assert manifest.readable_by(wins.readable(("players",))) == {"shelf"}


def test_a_roll_back_brings_the_rule_of_a_deleted_collection_back(store, tmp_path):
    load(shelf(tmp_path, restricted("gms")), store)
    version = must_be_published(store).manifest.version
    unload(store, WordEmbedder(), "shelf", [*TEXTS, "collection.yaml"])
    assert (rule(store), must_be_published(store).manifest.collections) == (None, ())
    restore(store, version)
    assert (rule(store), must_be_published(store).manifest.collections) == (("gms",), ("shelf",))


def test_a_roll_back_leaves_a_later_rule_as_it_is(store, tmp_path):
    load(shelf(tmp_path, restricted("gms", "players")), store)
    version = must_be_published(store).manifest.version
    load(shelf(tmp_path, restricted("gms")), store)
    restore(store, version)
    assert rule(store) == ("gms",)


class Interrupted(InMemoryStore):
    """Another load comes between a load's version and its rule."""

    def __init__(self) -> None:
        super().__init__()
        self.then: Callable[[], object] | None = None

    def write(self, key, data, *, replaces):
        etag = super().write(key, data, replaces=replaces)
        if key == CURRENT_KEY and self.then is not None:
            then, self.then = self.then, None
            then()
        return etag


@pytest.mark.parametrize("script", [False, True])
def test_a_load_that_ends_late_does_not_open_what_another_has_closed(tmp_path, script):
    store = Interrupted()
    load(shelf(tmp_path / "a", restricted("gms")), store)
    closed = shelf(tmp_path / "b", {**restricted("gms"), "secret.md": "Secret."})
    opening = shelf(tmp_path / "c", {"e.jsonl": script_of({"m": "Hm."})} if script else DECLARED)
    store.then = lambda: load(closed, store)
    load_script([opening], "shelf", store, WordEmbedder()) if script else load(opening, store)
    assert "Secret." in {one.text for one in search(store)}
    assert rule(store) == ("gms",)
