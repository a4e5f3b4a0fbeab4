"""The sample campaign: what its collections declare, what is loaded of it, and the questions labelled with it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.declared.declaration import OTHER_SECTION, SECTION, CollectionDeclaration
from cicada.corpus.declared.parsing import read_declaration
from cicada.corpus.readers.detect import HEAD_BYTES, doc_type_of
from cicada.index.versions import read_current
from cicada.ingest.loading import load_documents
from cicada.retrieval.knowledge.contracts import NamedEntity, catalogue_of
from cicada.retrieval.knowledge.resolving import IndexResolver
from cicada.rights import EVERYTHING
from cicada.text.characters import folded
from tests.support.embedding import WordEmbedder
from tests.support.entities import reading
from tests.support.index_content import content
from tests.support.ingest import read_here, recipe_for
from tests.support.object_stores import InMemoryStore

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN = ROOT / "samples" / "campaign"
QUESTIONS = [
    json.loads(line)
    for line in (ROOT / "tests" / "data" / "campaign_questions.jsonl").read_text(encoding="utf-8").splitlines()
]
INTENTIONS = {
    "character_data": "character_basics combat_info abilities_info inventory_info magic_info story_info social_info "
    "progress_info",
    "session_notes": "npc_history location_history event_recap decision_history quest_status combat_recap "
    "character_development",
    "rulebook": "describe_entity compare_entities level_progression action_options rule_mechanics calculate_values "
    "spell_details class_spell_access monster_stats condition_effects character_creation multiclass_rules "
    "equipment_properties damage_types rest_mechanics skill_usage find_by_criteria prerequisite_check "
    "interaction_rules tactical_usage environmental_rules creature_abilities saving_throws magic_item_usage "
    "planar_properties travel_rules downtime_activities prices_and_wages companion_rules term_definitions",
}
PASSAGES = {"character_data": (60, 110), "session_notes": (70, 120), "rulebook": (150, 260)}
"""How many each has, from and to."""


def declared(collection: str) -> CollectionDeclaration:
    return read_declaration((CAMPAIGN / collection / "collection.yaml").read_bytes(), collection=collection)


DECLARED = {collection: declared(collection) for collection in INTENTIONS}


class Loaded:
    """The campaign in an index in memory."""

    def __init__(self) -> None:
        self.store, embedder = InMemoryStore(), WordEmbedder()
        recipe = recipe_for(embedder).model_copy(update={"chunks": ChunkOptions()})
        self.reports = {
            collection: load_documents(
                [CAMPAIGN / collection], collection, self.store, embedder, recipe, read=read_here
            )
            for collection in INTENTIONS
        }
        self.passages: dict[str, list[dict[str, Any]]] = {
            collection: [found.line for found in of_collection.values()]
            for collection, of_collection in content(self.store).items()
        }

    def places(self, name: str, collections: list[str]) -> set[tuple[str, str]]:
        """Where the passages of these collections name somebody."""
        return {
            (collection, passage["metadata"][SECTION])
            for collection in collections
            for passage in self.passages[collection]
            if folded(name) in map(folded, passage.get("entities", ()))
        }


@pytest.fixture(scope="module")
def loaded():
    return Loaded()


def named_in(question):
    return [
        (entity["name"], {(collection, section) for collection, section in entity["places"]})
        for entity in question["entities"]
    ]


@pytest.mark.parametrize("collection", INTENTIONS)
def test_a_collection_declares_its_intentions_each_with_examples(collection):
    found = DECLARED[collection]
    assert found.kind == collection
    assert [intention.name for intention in found.intentions] == INTENTIONS[collection].split()
    assert all(2 <= len(intention.examples) <= 4 for intention in found.intentions)
    assert found.immutable == (collection == "rulebook")


@pytest.mark.parametrize("collection", INTENTIONS)
def test_every_section_is_what_some_intention_needs(collection):
    found = DECLARED[collection]
    assert {section.name for section in found.sections} == {
        section for intention in found.intentions for section in intention.sections
    }


@pytest.mark.parametrize("collection", INTENTIONS)
def test_every_section_holds_something_and_nothing_is_outside_of_them(collection, loaded):
    report = loaded.reports[collection]
    assert report.quarantined == ()
    assert report.sections.keys() == {section.name for section in DECLARED[collection].sections} - {OTHER_SECTION}
    fewest, most = PASSAGES[collection]
    assert fewest <= report.passages <= most


def test_the_declarations_are_published_with_the_collections(loaded):
    current = read_current(loaded.store)
    assert current is not None
    assert catalogue_of(current.manifest, EVERYTHING).collections == tuple(DECLARED[name] for name in sorted(DECLARED))


@pytest.mark.parametrize("collection", INTENTIONS)
def test_each_file_says_by_itself_what_it_is(collection):
    types = {
        doc_type_of(path.name, path.read_bytes()[:HEAD_BYTES])
        for path in (CAMPAIGN / collection).iterdir()
        if path.name != "collection.yaml"
    }
    assert types == ({"yaml"} if collection == "character_data" else {"markdown"})


@pytest.mark.parametrize("collection", INTENTIONS)
def test_whoever_has_other_names_is_somebody_of_the_collection(collection, loaded):
    named = {folded(name) for passage in loaded.passages[collection] for name in passage.get("entities", ())}
    assert {name for name in DECLARED[collection].names.aliases if folded(name) not in named} == set()


def test_no_other_name_is_shared_within_a_collection():
    for found in DECLARED.values():
        others = Counter(other.casefold() for held in found.names.aliases.values() for other in held)
        names = {name.casefold() for name in found.names.aliases}
        assert [other for other, count in others.items() if count > 1 or other in names] == []


def test_no_labelled_question_is_an_intentions_example_or_asked_twice():
    examples = {
        example.casefold()
        for found in DECLARED.values()
        for intention in found.intentions
        for example in intention.examples
    }
    asked = [question["question"].casefold() for question in QUESTIONS]
    assert len(set(asked)) == len(asked) >= 100
    assert examples.isdisjoint(asked)


@pytest.mark.parametrize("half", ["tuning", "held_aside"])
def test_each_half_asks_for_every_intention_for_nothing_and_for_nobody(half):
    own = [question for question in QUESTIONS if question["split"] == half]
    wanted = {
        collection: {intention for question in own for intention in question["collections"].get(collection, ())}
        for collection in INTENTIONS
    }
    assert wanted == {collection: set(names.split()) for collection, names in INTENTIONS.items()}
    assert any(not question["collections"] for question in own)
    assert any(question["collections"] and not question["entities"] for question in own)
    assert any(len(question["collections"]) == len(INTENTIONS) for question in own)
    assert abs(len(own) - len(QUESTIONS) / 2) <= len(QUESTIONS) * 0.05


def test_labels_name_what_is_declared_in_the_questions_own_words():
    for question in QUESTIONS:
        for collection, intentions in question["collections"].items():
            assert intentions, question
            assert set(intentions) <= set(INTENTIONS[collection].split()), question
        for entity in question["entities"]:
            assert entity["as"] in question["question"], question
            assert {collection for collection, _ in entity["places"]} <= question["collections"].keys(), question


def test_the_labelled_places_are_all_that_the_wanted_collections_have(loaded):
    wrong = [
        (question["question"], name, places, found)
        for question in QUESTIONS
        for name, places in named_in(question)
        if (found := loaded.places(name, list(question["collections"]))) != places
    ]
    assert wrong == []


def test_everybody_who_is_labelled_stands_somewhere(loaded):
    names = {name for question in QUESTIONS for name, _ in named_in(question)}
    assert {name for name in names if not loaded.places(name, list(INTENTIONS))} == set()


def test_the_resolver_finds_the_labelled_places(loaded):
    with reading(loaded.store) as reader:
        resolver = IndexResolver(reader, catalogue_of=lambda index, readable: catalogue_of(index.manifest, readable))
        for question in QUESTIONS:
            for name, places in named_in(question):
                found = resolver.resolve(
                    [NamedEntity(name, 1.0, name, "gazetteer")], list(question["collections"]), readable=EVERYTHING
                )
                assert {(place.collection, place.section) for place in found} == places, question


def test_one_thing_stands_in_all_three_collections(loaded):
    everywhere = [
        name
        for question in QUESTIONS
        for name, places in named_in(question)
        if {collection for collection, _ in places} == INTENTIONS.keys()
    ]
    assert {"Heron Lantern", "Bell of Warding", "Drowned Bellman", "Glass Otter"} <= set(everywhere)


def test_the_named_axe_is_in_the_inventory_and_in_combat(loaded):
    places = loaded.places("Gutterflame", ["character_data"])
    assert {("character_data", "combat"), ("character_data", "inventory")} <= places
    assert loaded.places("Gutterflame", ["rulebook"]) == set()


def test_grappling_is_a_roll_of_athletics_and_the_sheet_has_its_bonus(loaded):
    def about(collection, name):
        return [
            passage["text"] for passage in loaded.passages[collection] if passage.get("entities", [None])[0] == name
        ]

    assert any("athletics" in text for text in about("rulebook", "Grappling"))
    assert any("bonus: +6" in text for text in about("character_data", "Athletics"))
