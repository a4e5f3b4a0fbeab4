"""Where entities stand: every section, over all segments, of the selected collections only."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexMissing, OutOfTime
from cicada.index.writer import IndexWriter
from cicada.retrieval.knowledge.contracts import Catalogue
from cicada.retrieval.knowledge.gazetteer_words import Filed, merged
from cicada.retrieval.knowledge.resolving import (
    MAX_PART_OF,
    MIN_PART_CHARS,
    PART_CONFIDENCE,
    IndexResolver,
    OtherNames,
    SegmentNames,
)
from cicada.retrieval.ports import TimeLimit
from cicada.rights import EVERYTHING
from cicada.text.names import bare_key, spelling_key
from tests.support.campaign import CHARACTER, NOTES, RULES, declared, entry, named
from tests.support.embedding import WordEmbedder
from tests.support.entities import reading, stored
from tests.support.object_stores import InMemoryStore

PASSAGES = [
    entry("character", "c1", "combat", "The axe burns.", "Ember"),
    entry("character", "c2", "inventory", "An axe named Ember.", "EMBER", "Kiln Island"),
    entry("character", "c3", "inventory", "Ember, once more.", "Ember"),
    entry("notes", "n1", "events", "We found Ember.", "Ember", "Mother Quell"),
    entry("notes", "n2", "people", "Quell sells rope.", "Mother Quell"),
    entry("notes", "n3", "people", "Quell again.", "mother  quell"),
    entry("rules", "r1", "mechanics", "Burning things.", "Burning"),
    entry("rules", "r2", "mechanics", "Grappling.", "Grapple"),
    entry("rules", "r3", None, "An appendix on Ember.", "Ember"),
]


class Counted:
    """A resolver over a store, and how often each collection was looked up in the index."""

    def __init__(self, reader, *declarations, **options):
        self.looked_up = looked_up = Counter[str]()

        class Counting(IndexResolver):
            def _looked_up(self, index, collection, wanted):
                looked_up[collection] += 1
                return super()._looked_up(index, collection, wanted)

        self.resolver = Counting(
            reader,
            catalogue_of=lambda index, readable: Catalogue(
                index.manifest.version, declarations or (CHARACTER, NOTES, RULES), readable=readable
            ),
            **options,
        )

    def places(self, name, *collections, **details):
        found = self.resolver.resolve([named(name, **details)], collections, readable=EVERYTHING)
        return [(one.collection, one.section, one.entity, one.passages) for one in found]


@pytest.fixture(params=[1, 2, 100], ids=lambda rows: f"{rows} rows a segment")
def counted(request):
    with reading(stored(*PASSAGES, segment_rows=request.param)) as reader:
        yield Counted(reader)


def test_every_section_of_every_selected_collection_is_found_with_its_passages(counted):
    assert counted.places("Ember", "character", "notes", "rules") == [
        ("character", "combat", "Ember", 1),
        ("character", "inventory", "EMBER", 2),
        ("notes", "events", "Ember", 1),
        ("rules", "other", "Ember", 1),
    ]


def test_a_collection_that_was_not_selected_is_not_looked_in(counted):
    assert counted.places("Ember", "notes") == [("notes", "events", "Ember", 1)]
    assert set(counted.looked_up) == {"notes"}


def test_a_search_for_a_place_can_filter_by_all_its_spellings(counted):
    (place,) = counted.resolver.resolve([named("Mother Quell")], ["notes"], readable=EVERYTHING)[1:]
    assert (place.section, place.spelt, place.passages) == ("people", ("Mother Quell", "mother  quell"), 2)


def test_a_place_says_by_which_words_and_how_surely_it_was_found(counted):
    (place,) = counted.resolver.resolve([named("Grapple", 0.75, "grappling")], ["rules"], readable=EVERYTHING)
    assert (place.matched, place.confidence) == ("grappling", 0.75)


@pytest.mark.parametrize("name", ["ember", "the Ember", "THE RED AXE", "red axe"])
def test_case_articles_and_declared_other_names_make_no_difference_in_any_collection(counted, name):
    assert counted.places(name, "character", "notes") == counted.places("Ember", "character", "notes")


def test_a_part_of_a_name_finds_it_less_surely_where_nothing_has_the_whole_name(counted):
    found = counted.resolver.resolve([named("Quell", 0.8)], ["notes"], readable=EVERYTHING)
    assert {(one.entity, one.section) for one in found} == {("Mother Quell", "events"), ("Mother Quell", "people")}
    assert {one.confidence for one in found} == {round(0.8 * PART_CONFIDENCE, 4)}


@pytest.mark.parametrize("name", ["Quel", "other", "No", "Mother Quell's rope", "?", ""])
def test_letters_inside_of_a_word_and_words_beside_a_name_find_nothing(counted, name):
    assert counted.places(name, "notes") == []


def test_two_names_for_one_entity_give_its_places_once_and_as_the_surer_says(counted):
    found = counted.resolver.resolve([named("the red axe", 0.7), named("Ember", 0.95)], ["notes"], readable=EVERYTHING)
    assert [(one.entity, one.confidence) for one in found] == [("Ember", 0.95)]


def test_deleted_passages_name_nothing_any_more():
    store = stored(*PASSAGES)
    with reading(store) as reader:
        counted = Counted(reader)
        assert counted.places("Mother Quell", "notes")
        IndexWriter(store, WordEmbedder()).delete("notes", ["n2", "n3"])
        reader.refresh()
        assert counted.places("Mother Quell", "notes") == [("notes", "events", "Mother Quell", 1)]
        IndexWriter(store, WordEmbedder()).delete("rules", ["r1", "r2", "r3"])
        reader.refresh()
        assert counted.places("Grapple", "rules") == []


def test_what_is_found_in_an_immutable_collection_is_remembered_as_long_as_the_version_stands():
    store = stored(*PASSAGES)
    with reading(store) as reader:
        counted = Counted(reader)
        first = counted.places("Grapple", "rules", "notes")
        assert counted.places("grapple", "rules", "notes", confidence=0.7) == first
        assert counted.looked_up == {"rules": 1, "notes": 2}
        IndexWriter(store, WordEmbedder()).delete("notes", ["n1"])
        reader.refresh()
        assert counted.places("Grapple", "rules") == first
        assert counted.looked_up["rules"] == 2


def test_no_more_is_remembered_than_may_be():
    with reading(stored(*PASSAGES)) as reader:
        counted = Counted(reader, answers_held=2, names_held=1)
        for name in ("Grapple", "Burning", "Ember", "Grapple"):
            counted.places(name, "rules")
        assert counted.looked_up["rules"] == 4
        assert counted.places("Ember", "rules") == [("rules", "other", "Ember", 1)]
        assert counted.looked_up["rules"] == 4


def test_an_index_that_names_nobody_and_a_collection_that_is_not_there_have_no_places():
    with reading(stored(entry("notes", "n1", "people", "Nobody."))) as reader:
        assert Counted(reader).places("Ember", "notes", "rules") == []


def test_where_no_version_is_published_there_is_nothing_to_resolve_in():
    with reading(InMemoryStore()) as reader, pytest.raises(IndexMissing):
        Counted(reader).places("Ember", "notes")


def test_names_with_signs_are_looked_for_as_they_are():
    passages = [entry("notes", "n1", "people", "It.", "C++ (the tongue)"), entry("notes", "n2", "people", "A.", "Ae.")]
    with reading(stored(*passages)) as reader:
        counted = Counted(reader, declared("notes", {"npc_history": ["people"]}))
        assert counted.places("c++ (the tongue)", "notes") == [("notes", "people", "C++ (the tongue)", 1)]
        assert counted.places("c++", "notes") == [("notes", "people", "C++ (the tongue)", 1)]


def test_what_joins_a_names_words_makes_no_difference():
    passages = [
        entry("ledger", "n1", "debts", "It.", "Mary Jane"),
        entry("gossip", "n2", "people", "She.", "Mary-Jane"),
        entry("gossip", "n3", "people", "Her.", "mary\u2010jane"),
        entry("gossip", "n4", "events", "Who.", "Mary-Jane O\u2019Neill"),
    ]
    with reading(stored(*passages)) as reader:
        counted = Counted(reader)
        for name in ("Mary Jane", "Mary-Jane", "MARY\u2013JANE"):
            assert counted.places(name, "ledger", "gossip") == [
                ("ledger", "debts", "Mary Jane", 1),
                ("gossip", "people", "Mary-Jane", 2),
            ]
        assert counted.places("O'Neill", "gossip") == [("gossip", "events", "Mary-Jane O\u2019Neill", 1)]


def test_an_alias_of_two_entities_does_not_make_them_one():
    passages = [
        entry("notes", "n1", "people", "Xandra sails.", "Xandra"),
        entry("notes", "n2", "events", "Yorick bakes.", "Yorick"),
        entry("notes", "n3", "people", "A captain.", "The Captain"),
    ]
    captains = declared("notes", {"npc_history": ["people", "events"]}, Xandra=["the Captain"], Yorick=["the Captain"])
    with reading(stored(*passages)) as reader:
        counted = Counted(reader, captains)
        assert counted.places("Xandra", "notes") == [("notes", "people", "Xandra", 1)]
        assert counted.places("Yorick", "notes") == [("notes", "events", "Yorick", 1)]
        assert [entity for _, _, entity, _ in counted.places("Captain", "notes")] == ["The Captain", "Xandra", "Yorick"]


def test_names_that_collections_declare_as_each_others_are_one_whatever_they_are_called_there():
    sheet = declared("character", {"combat_info": ["combat"]}, Candle_King=["the Wax Lord"])
    notes = declared("notes", {"npc_history": ["people"]}, Tobit_Wexcombe=["the Candle King", "the Wax Lord"])
    others = OtherNames((sheet, notes))
    every = {"candle king", "tobit wexcombe", "wax lord"}
    assert [others.of(name) for name in ("The Candle King", "tobit wexcombe", "Wax Lord")] == [every] * 3
    assert others.of("candle-king") == every
    assert others.of("Somebody") == {"somebody"}


def test_a_name_that_is_a_part_of_too_many_tells_none_of_them():
    def passages(count):
        return [entry("notes", f"n{n}", "people", "One of them.", f"Prawle {n}") for n in range(count)]

    for count, places in ((MAX_PART_OF, MAX_PART_OF), (MAX_PART_OF + 1, 0)):
        with reading(stored(*passages(count))) as reader:
            assert len(Counted(reader).places("Prawle", "notes")) == places


def test_without_time_nothing_is_resolved():
    with reading(stored(*PASSAGES)) as reader, pytest.raises(OutOfTime):
        Counted(reader).resolver.resolve([named("Ember")], ["notes"], TimeLimit(lambda: 0.0), readable=EVERYTHING)


@pytest.mark.parametrize(
    ("known", "asked"),
    [("Der Wirt", "Wirt"), ("Wirt", "der Wirt"), ("La  Paz", "paz"), ("The Ember", "ember"), ("An Nguyen", "Nguyen")],
)
def test_a_name_is_found_without_the_article_of_any_language_that_it_is_filed_with(known, asked):
    assert list(SegmentNames([known, "Wirtin"]).whole([bare_key(asked)])) == [spelling_key(known)]
    assert len(merged([Filed(known, 1), Filed(asked, 2)], ())) == 1


WORDS = st.sampled_from(["ember", "the", "der", "of", "quell", "kiln", "c++", "o'neil", "一", "an", "em", "mother"])
NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" ".join), max_size=12)


@given(NAMES, st.lists(WORDS, min_size=1, max_size=3).map(" ".join))
@settings(max_examples=100)
def test_what_is_looked_up_is_what_going_through_all_names_would_find(values, wanted):
    names = SegmentNames(values)
    wanted = bare_key(wanted)
    pattern = re.compile(rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])")
    assert set(names.whole([wanted])) >= {spelling_key(name) for name in values if bare_key(name) == wanted}
    keys = set(map(spelling_key, values))
    parts = {key for key in keys if pattern.search(key)} if len(wanted) >= MIN_PART_CHARS else set()
    assert set(names.with_part([wanted])) == parts
    assert {spelling_key(values[code]) for key in keys for code in names.codes(key)} == keys
