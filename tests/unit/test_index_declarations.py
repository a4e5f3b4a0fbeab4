"""What a collection declares of itself is part of a version, like its passages."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.change import InMemory, removal
from cicada.index.compaction import compact
from cicada.index.maintenance import collect_garbage
from cicada.index.manifest import Manifest, parse_manifest
from cicada.index.reader import IndexReader
from cicada.index.versions import must_be_published, restore, set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.retrieval.knowledge.contracts import catalogue_of
from cicada.rights import EVERYTHING
from tests.support.declared import declaration
from tests.support.embedding import WordEmbedder
from tests.support.index_changes import published_versions
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable
from tests.support.passages import make_passages as passages
from tests.unit.test_index_manifest import manifest, segment

BOATS, PLACES = declaration("script", boats=["Boats"]), declaration("script", places=["Places"])


@pytest.fixture
def store():
    return InMemoryStore()


def writer(store):
    return IndexWriter(store, WordEmbedder())


def declared(store):
    return must_be_published(store).manifest.declarations


def test_a_version_without_declarations_is_written_and_named_as_ever():
    plain = manifest(segment())
    assert b"declarations" not in plain.to_bytes()
    assert plain.version == "000003-" + manifest(segment(), declarations=()).version.partition("-")[2]


def test_a_declaration_is_part_of_what_a_version_is():
    one = manifest(segment(), declarations=(BOATS,))
    assert parse_manifest(one.to_bytes()) == one
    assert len({one.version, manifest(segment()).version, manifest(segment(), declarations=(PLACES,)).version}) == 3
    forged = one.to_bytes().replace(b"A shelf.", b"A shell.")
    with pytest.raises(IndexCorrupt):
        parse_manifest(forged)


def test_declarations_stand_in_the_order_of_their_names_and_only_of_what_is_there():
    found = manifest(
        segment("a", collection="b"),
        segment("b", collection="a"),
        declarations=(declaration("b"), declaration("a"), declaration("gone")),
    )
    assert [one.collection for one in found.declarations] == ["a", "b"]
    assert found.declaration("b") == declaration("b")
    assert found.declaration("gone") is None
    with pytest.raises(ValidationError, match="declarations"):
        Manifest.model_validate_json(found.to_bytes().replace(b'"collection": "b"', b'"collection": "c"', 1))


def test_a_change_of_the_declaration_alone_is_published_and_embeds_nothing(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)
    embedder = WordEmbedder()
    written = IndexWriter(store, embedder).replace("script", indexable(passages(3)), declaration=PLACES)
    assert (written.published, written.added, written.removed, embedder.asked) == (True, 0, 0, [])
    assert declared(store) == (PLACES,)
    again = writer(store).replace("script", indexable(passages(3)), declaration=PLACES)
    assert not again.published


def test_passages_come_and_go_and_the_declaration_stays_until_nothing_is_left(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)
    writer(store).add("script", indexable(passages(5)))
    assert declared(store) == (BOATS,)
    writer(store).delete("script", [one.id for one in passages(4)])
    assert declared(store) == (BOATS,)
    writer(store).delete("script", [one.id for one in passages(5)])
    assert declared(store) == ()


def test_a_collection_that_is_replaced_without_one_declares_nothing(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)
    written = writer(store).replace("script", indexable(passages(3)))
    assert (written.published, declared(store)) == (True, ())


def test_other_collections_keep_theirs(store):
    writer(store).replace("script", indexable(passages(2)), declaration=BOATS)
    others = [one.model_copy(update={"collection": "shelf"}) for one in passages(2)]
    writer(store).replace("shelf", indexable(others), declaration=declaration("shelf"))
    writer(store).replace("script", indexable(passages(3)), declaration=PLACES)
    assert declared(store) == (PLACES, declaration("shelf"))
    writer(store).start_over_with("shelf", InMemory(indexable(others), {}), declaration=declaration("shelf"))
    assert declared(store) == (declaration("shelf"),)


def test_a_declaration_of_another_collection_is_refused(store):
    with pytest.raises(CorpusInvalid, match="shelf"):
        writer(store).replace("script", indexable(passages(2)), declaration=declaration("shelf"))


def test_two_who_write_at_once_keep_each_others_declarations(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)

    def overtaken(held):
        others = [one.model_copy(update={"collection": "shelf"}) for one in passages(1)]
        writer(store).replace("shelf", indexable(others), declaration=declaration("shelf"))
        return removal("script", [passages(1)[0].id], held)

    writer(store).change("script", overtaken, declares=PLACES)
    assert declared(store) == (PLACES, declaration("shelf"))


def test_a_roll_back_brings_the_old_declaration_back(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)
    writer(store).replace("script", indexable(passages(3)), declaration=PLACES)
    restore(store, published_versions(store)[0])
    assert declared(store) == (BOATS,)


def test_upkeep_leaves_declarations_alone(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)
    for count in range(4, 12):
        writer(store).add("script", indexable(passages(count)))
    assert compact(store) is not None
    set_allow_partial(store, True)
    collect_garbage(store, keep_versions=1)
    assert declared(store) == (BOATS,)


def test_a_reader_has_the_catalogue_of_its_version(store):
    writer(store).replace("script", indexable(passages(3)), declaration=BOATS)
    embedder = WordEmbedder()
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        catalogue = catalogue_of(reader.current().manifest, EVERYTHING)
    finally:
        reader.close()
    assert catalogue.index_version == must_be_published(store).manifest.version
    assert (catalogue.find("script"), catalogue.find("shelf")) == (BOATS, None)
