"""From choices and places to a context: what is asked of each collection, and what of it an answer is written from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.concurrency import THREADS
from cicada.corpus.declared.declaration import OTHER_SECTION
from cicada.retrieval.knowledge.assembling import (
    MAX_CONTEXT_PASSAGES,
    NAMED_LEFT_OUT,
    PLAINLY_BETTER,
    SURE_AN_INTENTION,
    SURE_BETTER,
    ContextAssembler,
    stands_in,
)
from cicada.retrieval.knowledge.contracts import CollectionChoice, NamedSection
from cicada.retrieval.knowledge.querying import (
    AT_ONCE,
    LEAST_AN_INTENTION,
    MAX_PLACES,
    CollectionQuery,
    SearchHits,
    collection_queries,
    plain_query,
    plan_queries,
    search_all,
)
from cicada.retrieval.ports import Filters, Hit, SearchQuery, SearchResult
from cicada.rights import EVERYTHING
from tests.support.campaign import CAMPAIGN, entry

COMBAT = CollectionChoice("character", "combat_info", 0.9)
ABILITIES = CollectionChoice("character", "abilities_info", 0.8)
HISTORY = CollectionChoice("notes", "npc_history", 0.95)
ASKED = SearchQuery("What can Ember do?", Filters(episodes=("ep1",)), top_k=20, min_score=0.5, readable=EVERYTHING)


def place(collection, section, entity="Ember", confidence=0.9, **changes):
    return NamedSection(entity, collection, section, confidence, changes.pop("matched", entity), 1, **changes)


# --- planning ---


def test_a_plan_has_the_sections_of_its_intentions_and_those_that_name_an_entity_each_once():
    (plan,) = plan_queries(
        [COMBAT, ABILITIES], [place("character", "inventory"), place("character", "combat")], CAMPAIGN
    )
    assert plan.sections == ("combat", "abilities", "inventory")
    assert plan.choices == (COMBAT, ABILITIES)


def test_the_surest_collection_comes_first_and_one_that_only_an_entity_leads_to_last():
    plans = plan_queries([COMBAT, HISTORY], [place("rules", "mechanics")], CAMPAIGN)
    assert [(plan.collection, plan.sections) for plan in plans] == [
        ("notes", ("people", "events")),
        ("character", ("combat",)),
        ("rules", ("mechanics",)),
    ]


def test_of_one_intention_chosen_twice_the_surer_counts():
    (plan,) = plan_queries([CollectionChoice("notes", "npc_history", 0.7), HISTORY], [], CAMPAIGN)
    assert plan.choices == (HISTORY,)


def test_what_the_catalogue_does_not_have_is_not_planned():
    choices = [CollectionChoice("elsewhere", "npc_history", 0.9), CollectionChoice("notes", "gossip", 0.9)]
    assert plan_queries(choices, [place("elsewhere", "people")], CAMPAIGN) == ()


# --- querying ---


def test_each_intention_each_place_and_what_only_an_entity_led_to_are_searched_within_the_questions_filters():
    plans = plan_queries([COMBAT, ABILITIES], [place("character", "inventory", spellings=("EMBER", "Ember"))], CAMPAIGN)
    queries = collection_queries(plans, CAMPAIGN, ASKED, passages_per_collection=8)
    found = [(one.why, one.query.filters.metadata["section"], one.query.filters.entities) for one in queries]
    assert found == [
        ("intention", ("combat",), ()),
        ("intention", ("abilities",), ()),
        ("section", ("inventory",), ()),
        ("entity", ("inventory",), ("EMBER", "Ember")),
    ]
    assert {one.query.filters.collections for one in queries} == {("character",)}
    assert {one.query.filters.episodes for one in queries} == {("ep1",)}
    assert [one.query.top_k for one in queries[:2]] == [4, 4]


def test_a_collection_asked_for_many_things_still_has_some_passages_for_each():
    plans = plan_queries([COMBAT, ABILITIES], [], CAMPAIGN)
    queries = collection_queries(plans, CAMPAIGN, ASKED, passages_per_collection=1)
    assert [one.query.top_k for one in queries] == [LEAST_AN_INTENTION] * 2


def test_the_surest_places_are_searched_where_there_are_too_many():
    places = [place("notes", "people", f"Entity {n}", n / 1000) for n in range(1, MAX_PLACES + 11)]
    queries = collection_queries(plan_queries([], places, CAMPAIGN), CAMPAIGN, ASKED, passages_per_collection=8)
    searched = [one.place.entity for one in queries if one.place]
    assert len(searched) == MAX_PLACES
    assert searched[0] == f"Entity {MAX_PLACES + 10}"


def test_what_stands_everywhere_leaves_room_for_a_search_of_what_stands_once():
    everywhere = [place("notes", f"s{n}", "Teasel", 1.0) for n in range(MAX_PLACES + 2)]
    elsewhere = [place("rules", f"r{n}", "Teasel", 0.7) for n in range(2)]
    plans = plan_queries([], [*everywhere, *elsewhere, place("notes", "people", "Quell", 0.6)], CAMPAIGN)
    queries = collection_queries(plans, CAMPAIGN, ASKED, passages_per_collection=8)
    searched = [(one.place.collection, one.place.entity, one.place.section) for one in queries if one.place]
    assert searched[:3] == [("notes", "Teasel", "s0"), ("rules", "Teasel", "r0"), ("notes", "Quell", "people")]
    assert searched[3:5] == [("notes", "Teasel", "s1"), ("rules", "Teasel", "r1")]
    assert len(searched) == MAX_PLACES


def test_a_plain_search_keeps_the_questions_filters_unless_it_is_for_some_collections():
    assert plain_query(ASKED, ()).query == ASKED
    assert plain_query(ASKED, ("script",)).query.filters == Filters(collections=("script",), episodes=("ep1",))


class Sections:
    """A retriever that finds passages by their collection, sections and entities, and ranks them as they come."""

    def __init__(self, *passages, version="v1", scores=None):
        self.passages = passages
        self.version_now = version
        self.scores = scores or {}
        self.queries = []

    def search(self, query):
        self.queries.append(query)
        wanted = query.filters
        passing = [
            one
            for one in self.passages
            if (not wanted.collections or one.collection in wanted.collections)
            and one.metadata.get("section") in wanted.metadata.get("section", (one.metadata.get("section"),))
            and (not wanted.entities or set(wanted.entities) & set(one.entities))
        ]
        hits = [Hit(one, self.scores.get(one.id, 0.9)) for one in passing]
        hits = sorted((hit for hit in hits if hit.score >= query.min_score), key=lambda hit: -hit.score)
        return SearchResult(tuple(hits[: query.top_k]), self.version_now, len(passing))

    def version(self):
        return self.version_now


def test_all_searches_are_run_and_stay_in_their_order():
    retriever = Sections(entry("notes", "n1", "people", "Quell."))
    queries = [CollectionQuery(SearchQuery(f"q{n}", readable=EVERYTHING), "similarity") for n in range(3 * AT_ONCE + 1)]
    found = search_all(queries, retriever, THREADS)
    assert [one.asked for one in found] == queries
    assert {query.text for query in retriever.queries} == {one.query.text for one in queries}
    assert search_all([], retriever, THREADS) == ()


# --- assembling ---


def context(passages, choices=(), places=(), *, budget=1_000, scores=None, min_score=0.5, plain=False):
    """The context of these passages, each of which costs as many tokens as it has characters and its surroundings."""
    plans = plan_queries(choices, places, CAMPAIGN)
    queries = collection_queries(plans, CAMPAIGN, ASKED, passages_per_collection=8)
    queries = (*queries, plain_query(ASKED, ())) if plain else queries
    found = search_all(queries, Sections(*passages, scores=scores), THREADS)
    assembler = ContextAssembler(budget, cost, min_score=min_score)
    return assembler.assemble(found, plans, CAMPAIGN)


def cost(hit):
    around = "" if hit.passage.context == hit.passage.text else hit.passage.context
    return len(hit.passage.text) + len(around)


def ids(context):
    return [one.hit.passage.id for one in context.chosen]


def reasons(context):
    return {
        one.hit.passage.id: [(reason.kind, reason.name, reason.section) for reason in one.why] for one in context.chosen
    }


def test_every_passage_says_why_it_is_there_the_weightiest_reason_first():
    passages = [
        entry("character", "c1", "combat", "The axe strikes.", "Ember"),
        entry("character", "c2", "combat", "The bow shoots."),
        entry("character", "c3", "inventory", "An axe.", "Ember"),
        entry("character", "c4", "inventory", "A rope."),
        entry("script", "s1", None, "Elsewhere."),
    ]
    places = [place("character", "combat", matched="the red axe"), place("character", "inventory")]
    found = context(passages, [COMBAT], places, plain=True)
    assert reasons(found) == {
        "c1": [("entity", "Ember", "combat"), ("intention", "combat_info", "combat")],
        "c2": [("intention", "combat_info", "combat")],
        "c3": [("entity", "Ember", "inventory")],
        "c4": [("similarity", None, "inventory")],
        "s1": [("similarity", None, None)],
    }
    (first,) = [one.why[0] for one in found.chosen if one.hit.passage.id == "c1"]
    assert (first.matched, first.confidence) == ("the red axe", 0.9)


def test_what_is_named_comes_first_then_the_intentions_then_the_nearest():
    passages = [
        entry("character", "near", "combat", "The nearest."),
        entry("character", "far", "inventory", "An axe.", "Ember"),
        entry("notes", "told", "events", "We found it."),
    ]
    scores = {"near": 0.99, "far": 0.01, "told": 0.3}
    found = context(passages, [COMBAT, HISTORY], [place("character", "inventory")], scores=scores)
    assert ids(found) == ["far", "near", "told"]


def test_an_entity_in_three_places_is_in_the_context_three_times_however_far_the_places_are():
    passages = [
        entry("character", "c", "inventory", "An axe named Ember.", "Ember"),
        entry("notes", "n", "events", "Ember was found.", "Ember"),
        entry("rules", "r", "mechanics", "Ember, a relic.", "Ember"),
        *(entry("notes", f"near{n}", "people", f"Something near, number {n}.") for n in range(20)),
    ]
    places = [place("character", "inventory"), place("notes", "events"), place("rules", "mechanics")]
    scores = {"c": 0.02, "n": 0.01, "r": 0.03}
    found = context(passages, [HISTORY], places, scores=scores, budget=120)
    assert ids(found)[:3] == ["r", "c", "n"]
    assert found.degraded == ()


def test_a_name_that_stands_everywhere_does_not_crowd_out_what_is_asked_of_it():
    everywhere = [entry("notes", f"n{n}", "people" if n % 2 else "events", f"Ember {n}.", "Ember") for n in range(2)]
    asked_for = entry("character", "asked", "combat", "x" * 40)
    places = [place("notes", "people"), place("notes", "events")]
    found = context([*everywhere, asked_for], [COMBAT], places, budget=52, scores={"asked": 0.1})
    assert ids(found) == ["n1", "asked"]
    assert [one.code for one in found.degraded] == [NAMED_LEFT_OUT]


def test_the_best_of_an_intention_are_taken_whatever_they_score_and_others_only_if_they_are_near():
    passages = [entry("notes", f"n{n}", "people", f"Entry {n}.") for n in range(SURE_AN_INTENTION + 3)]
    far = {one.id: 0.4 - n / 100 for n, one in enumerate(passages)}
    assert ids(context(passages, [HISTORY], scores=far)) == [one.id for one in passages[:SURE_AN_INTENTION]]


def test_what_is_plainly_better_than_all_that_the_intentions_brought_comes_before_them():
    notes = [entry("notes", f"n{n}", "people", f"Entry {n}.") for n in range(2)]
    scenes = [entry("script", f"s{n}", None, f"Scene {n}.") for n in range(SURE_BETTER + 1)]
    scores = {"n0": 0.6, "n1": 0.55, **{one.id: 0.95 - n / 100 for n, one in enumerate(scenes)}}
    found = context([*notes, *scenes], [HISTORY], scores=scores, plain=True)
    assert ids(found) == ["s0", "s1", "s2", "n0", "n1", "s3"]
    assert reasons(found)["s0"] == [("similarity", None, None)]
    even = {**scores, **{one.id: 0.6 + PLAINLY_BETTER - 0.01 for one in scenes}}
    assert ids(context([*notes, *scenes], [HISTORY], scores=even, plain=True))[:2] == ["n0", "n1"]


def test_what_is_plainly_better_is_not_crowded_out_by_a_name_that_stands_everywhere():
    everywhere = [entry("notes", f"n{n}", "people" if n % 2 else "events", f"Ember {n}.", "Ember") for n in range(2)]
    scene = entry("script", "scene", None, "x" * 40)
    places = [place("notes", "people"), place("notes", "events")]
    scores = {"n0": 0.4, "n1": 0.3, "scene": 0.9}
    found = context([*everywhere, scene], [], places, budget=52, scores=scores, plain=True)
    assert ids(found) == ["n0", "scene"]


def test_a_context_has_no_more_passages_than_an_event_can_show_however_short_they_are():
    many = [entry("notes", f"n{n}", "people", f"Quell {n}.", "Ember") for n in range(MAX_CONTEXT_PASSAGES + 5)]
    plans = plan_queries([HISTORY], [], CAMPAIGN)
    asked_for = SearchHits(
        CollectionQuery(ASKED, "intention", choice=HISTORY),
        SearchResult(tuple(Hit(one, 0.9) for one in many), "v1", len(many)),
    )
    found = ContextAssembler(100_000, cost, min_score=0.5).assemble([asked_for], plans, CAMPAIGN)
    assert (len(found.chosen), found.found) == (MAX_CONTEXT_PASSAGES, len(many))


def test_a_passage_comes_once_and_so_do_its_words():
    passages = [
        entry("notes", "n1", "people", "Quell sells rope.", "Ember"),
        entry("notes", "n2", "people", "Quell  sells ROPE."),
        entry("notes", "n3", "events", "Quell sells rope.", "Ember"),
    ]
    places = [place("notes", "people"), place("notes", "events")]
    assert ids(context(passages, [HISTORY])) == ["n1"]
    assert ids(context(passages, [HISTORY], places)) == ["n1", "n3"]  # each is what stands at a place of its own


def test_what_does_not_fit_with_its_surroundings_is_taken_by_itself():
    long = entry("notes", "n1", "people", "Short.", "Ember", context="Before. Short. After." * 10)
    (chosen,) = context([long], [HISTORY], [place("notes", "people")], budget=20).chosen
    assert (chosen.hit.passage.text, chosen.hit.passage.context) == ("Short.", "Short.")


def test_one_passage_is_there_even_where_it_is_larger_than_the_budget():
    passages = [entry("notes", "n1", "people", "x" * 100), entry("notes", "n2", "people", "y" * 100)]
    assert ids(context(passages, [HISTORY], budget=10)) == ["n1"]


def test_what_is_named_and_found_no_room_is_said():
    passages = [
        entry("character", "c", "inventory", "x" * 60, "Ember"),
        entry("notes", "n", "events", "y" * 60, "Ember"),
    ]
    found = context(passages, [HISTORY], [place("character", "inventory"), place("notes", "events")], budget=100)
    assert [one.code for one in found.degraded] == [NAMED_LEFT_OUT]
    assert "2 sections; 1 of them" in found.degraded[0].message


def test_what_the_questions_own_filters_hold_back_is_not_called_left_out():
    assert context([], [HISTORY], [place("notes", "events")]).degraded == ()


SECTIONS = {"character": ["combat", "abilities", "inventory"], "notes": ["people", "events"], "rules": ["mechanics"]}


@st.composite
def corpora(draw):
    """Passages with sections, entities and scores; what is asked of them; and a budget."""
    count = draw(st.integers(1, 12))
    passages, scores = [], {}
    for n in range(count):
        collection = draw(st.sampled_from(sorted(SECTIONS)))
        names = draw(st.lists(st.sampled_from(["Ember", "Quell", "Kiln"]), unique=True, max_size=2))
        text = draw(st.sampled_from(["same words", f"own words {n}", "x" * draw(st.integers(1, 80))]))
        around = draw(st.sampled_from([text, f"before {text} after"]))
        section = draw(st.sampled_from(SECTIONS[collection]))
        passages.append(entry(collection, f"p{n}", section, text, *names, context=around))
        scores[f"p{n}"] = draw(st.floats(0, 1))
    places = [
        place(collection, section, entity)
        for collection, section, entity in {
            (one.collection, one.metadata.get("section", OTHER_SECTION), name)
            for one in passages
            for name in one.entities
        }
        if draw(st.booleans())
    ]
    choices = draw(st.lists(st.sampled_from([COMBAT, ABILITIES, HISTORY]), unique=True, min_size=1))
    return passages, scores, choices, places, draw(st.integers(1, 400))


@settings(max_examples=120)
@given(corpora())
def test_a_context_keeps_its_budget_holds_what_is_named_and_nothing_twice(corpus):
    passages, scores, choices, places, budget = corpus
    found = context(passages, choices, places, budget=budget, scores=scores)
    chosen = [one.hit.passage for one in found.chosen]
    assert found.tokens <= budget or len(chosen) == 1
    assert found.tokens == sum(cost(one.hit) for one in found.chosen)
    assert len({(one.collection, one.id) for one in chosen}) == len(chosen)
    missing = [one for one in places if not any(stands_in(passage, one) for passage in chosen)]
    assert bool(missing) == bool(found.degraded)
    if budget >= sum(cost(Hit(one, 0.0)) for one in passages):
        assert not missing
    words = [" ".join(one.text.split()) for one in chosen]
    alone = {(one.collection, one.metadata["section"]) for one in chosen if one.entities}
    assert len(words) - len(set(words)) <= len(alone)  # only what stands at a place of its own is repeated
    assert all(one.why for one in found.chosen)
    assert found.found >= len(chosen)


def test_nothing_found_is_an_empty_context():
    empty = SearchHits(plain_query(ASKED, ()), SearchResult((), "v1", 0))
    found = ContextAssembler(100, cost, min_score=0.5).assemble([empty], (), CAMPAIGN)
    assert (found.chosen, found.found, found.degraded) == ((), 0, ())
