"""The way from a question to its context: both calls side by side, what is asked of the index, and every failure."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

import pytest

from cicada.concurrency import THREADS
from cicada.corpus.declared.declaration import SECTION
from cicada.errors import AnswerMalformed, BudgetSpent, IndexUnavailable, ModelBusy, ModelUnavailable, OutOfTime
from cicada.models.ports import Stopped
from cicada.retrieval.knowledge.assembling import ContextAssembler
from cicada.retrieval.knowledge.contracts import Catalogue, CollectionChoice, NamedSection
from cicada.retrieval.knowledge.search import PLAIN_SEARCH, KnowledgeSearch, StoppableLimits, both
from cicada.retrieval.ports import UNLIMITED, Degradation, Filters, Hit, SearchQuery, SearchResult, Unlimited
from cicada.rights import EVERYTHING
from tests.support.breakers import Clock
from tests.support.campaign import (
    CAMPAIGN,
    NOTES,
    FixedExtractor,
    FixedSelector,
    a_use,
    declared,
    entry,
    held_until_stopped,
    named,
)

QUESTION = "Who is Mother Quell?"
HISTORY = CollectionChoice("notes", "npc_history", 0.9)
CAMPAIGN_2 = replace(CAMPAIGN, index_version="v2")
WITH_SCRIPT = replace(CAMPAIGN, undeclared=("script",))
QUELL = NamedSection("Mother Quell", "notes", "people", 0.9, "Mother Quell", 1)


class FixedResolver:
    """Knows places, and keeps where it was asked to look."""

    def __init__(self, *places, error=None):
        self.places, self.error, self.asked = places, error, []

    def resolve(self, names, collections, limits, readable):
        self.asked.append((tuple(one.name for one in names), tuple(collections)))
        if self.error is not None:
            raise self.error
        return tuple(one for one in self.places if one.collection in collections)


class Answers:
    """A retriever that finds one passage of the collection and section that it is asked for, but in ``empty`` ones."""

    def __init__(self, versions=("v1",), degraded=(), empty=()):
        self.queries, self.versions, self.degraded, self.empty = [], list(versions), degraded, empty
        self._lock = threading.Lock()

    def search(self, query):
        with self._lock:
            self.queries.append(query)
            version = self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]
        collection = (query.filters.collections or ("script",))[0]
        section = query.filters.metadata.get(SECTION, (None,))[0]
        found = entry(
            collection, f"{collection}-{section}", section, f"{collection} {section}", *query.filters.entities
        )
        hits = () if collection in self.empty else (Hit(found, 0.8),)
        return SearchResult(hits, version, 7, degraded=self.degraded)

    def version(self):
        return self.versions[0]


class Limited(Unlimited):
    """Limits that note what was used, and can be stopped."""

    def __init__(self, *, left_s=60.0, calls=9):
        self.left_s, self.calls, self.uses, self.wakes = left_s, calls, [], []

    def time_left_s(self):
        return self.left_s

    def call(self):
        if self.calls <= 0:
            raise BudgetSpent("no call left")
        self.calls -= 1

    def note(self, use):
        self.uses.append(use)

    def on_stop(self, wake):
        self.wakes.append(wake)
        return lambda: self.wakes.remove(wake)


def searching(selector=None, extractor=None, resolver=None, retriever=None, *, catalogue=CAMPAIGN, clock=None):
    """The way over fakes; of several catalogues each is the current one once, the last from then on."""
    catalogues = list(catalogue) if isinstance(catalogue, list) else [catalogue]
    return KnowledgeSearch(
        lambda _: catalogues.pop(0) if len(catalogues) > 1 else catalogues[0],
        selector or FixedSelector(HISTORY),
        extractor or FixedExtractor(),
        resolver or FixedResolver(),
        retriever or Answers(),
        ContextAssembler(1000, lambda hit: 10, min_score=0.5),
        clock=clock or Clock(0),
    )


def asked(*collections, limits=UNLIMITED, top_k=20, **changes):
    return SearchQuery(QUESTION, Filters(collections=collections, **changes), top_k, limits=limits, readable=EVERYTHING)


def test_a_question_is_answered_from_the_collections_and_sections_that_serve_it():
    resolver, retriever = FixedResolver(QUELL), Answers()
    gathered = searching(
        extractor=FixedExtractor(named("Mother Quell")), resolver=resolver, retriever=retriever
    ).gather(asked())
    assert resolver.asked == [(("Mother Quell",), ("notes",))]
    searched = sorted(one.filters.metadata[SECTION] for one in retriever.queries)
    assert searched == [("people",), ("people", "events")]
    assert {one.hit.passage.collection for one in gathered.chosen} == {"notes"}
    assert (gathered.index_version, gathered.engine, gathered.searched) == ("v1", "shards", 7)
    assert set(gathered.timings_ms) == {"select_extract", "resolve", "query", "assemble"}


def test_nothing_is_asked_where_nothing_that_may_be_searched_declares_itself():
    selector = FixedSelector(HISTORY)
    assert searching(selector, catalogue=Catalogue("v1", (), readable=EVERYTHING)).gather(asked()) is None
    assert searching(selector).gather(asked("script")) is None
    assert selector.asked == []


def test_the_selector_sees_only_the_collections_that_the_question_may_search():
    selector = FixedSelector(HISTORY)
    searching(selector).gather(asked("notes", "rules"))
    assert selector.asked == [(QUESTION, ("notes", "rules"))]


def test_where_nothing_is_chosen_and_nothing_named_the_search_is_plain():
    retriever = Answers()
    gathered = searching(FixedSelector(), retriever=retriever).gather(asked())
    assert [one.filters for one in retriever.queries] == [Filters()]
    assert [reason.kind for one in gathered.chosen for reason in one.why] == ["similarity"]


def test_where_nothing_is_chosen_what_is_named_is_looked_for_everywhere_beside_a_plain_search():
    resolver, retriever = FixedResolver(QUELL), Answers()
    gathered = searching(FixedSelector(), FixedExtractor(named("Mother Quell")), resolver, retriever).gather(asked())
    assert resolver.asked == [(("Mother Quell",), ("character", "notes", "rules"))]
    assert Filters() in [one.filters for one in retriever.queries]
    assert gathered.chosen[0].why[0].kind == "entity"


def test_a_collection_without_a_declaration_is_searched_beside_what_was_chosen():
    retriever = Answers()
    gathered = searching(retriever=retriever, catalogue=WITH_SCRIPT).gather(asked(top_k=5))
    assert sorted(one.filters.collections for one in retriever.queries) == [("notes",), ("script",)]
    (beside,) = [one for one in retriever.queries if one.filters.collections == ("script",)]
    assert (beside.min_score, beside.top_k, SECTION in beside.filters.metadata) == (0.5, 5, False)
    assert [(one.kind, one.section) for one in gathered.chosen[-1].why] == [("similarity", None)]


def test_a_collection_without_a_declaration_is_left_out_where_the_question_names_others():
    retriever = Answers()
    searching(retriever=retriever, catalogue=WITH_SCRIPT).gather(asked("notes"))
    assert [one.filters.collections for one in retriever.queries] == [("notes",)]
    retriever = Answers()
    searching(retriever=retriever, catalogue=WITH_SCRIPT).gather(asked("notes", "script"))
    assert sorted(one.filters.collections for one in retriever.queries) == [("notes",), ("script",)]


def test_a_choice_that_brings_nothing_gives_way_to_a_search_of_everything_and_says_so():
    retriever = Answers(empty=("notes",))
    gathered = searching(retriever=retriever).gather(asked(episodes=("ep1",)))
    assert [one.filters for one in retriever.queries][1:] == [Filters(episodes=("ep1",))]
    assert [one.hit.passage.collection for one in gathered.chosen] == ["script"]
    assert [one.code for one in gathered.degraded] == [PLAIN_SEARCH]


def test_what_declares_nothing_does_not_stand_for_a_choice_that_brings_nothing():
    retriever = Answers(empty=("notes",))
    gathered = searching(retriever=retriever, catalogue=WITH_SCRIPT).gather(asked())
    assert Filters() in [one.filters for one in retriever.queries]
    assert [one.code for one in gathered.degraded] == [PLAIN_SEARCH]


def test_a_choice_that_brings_nothing_is_enough_where_something_named_is_found():
    place = NamedSection("Ember", "character", "combat", 0.9, "Ember", 1)
    choices = (HISTORY, CollectionChoice("character", "combat_info", 0.9))
    gathered = searching(
        FixedSelector(*choices), FixedExtractor(named("Ember")), FixedResolver(place), Answers(empty=("notes",))
    ).gather(asked())
    assert {one.hit.passage.collection for one in gathered.chosen} == {"character"}
    assert gathered.degraded == ()


def test_what_the_searches_had_to_do_without_is_said_once():
    lack = Degradation("words_only", "By words alone.")
    resolver = FixedResolver(QUELL)
    gathered = searching(
        extractor=FixedExtractor(named("Mother Quell")), resolver=resolver, retriever=Answers(degraded=(lack,))
    ).gather(asked())
    assert gathered.degraded == (lack,)


@pytest.mark.parametrize("failing", ["selector", "extractor"])
@pytest.mark.parametrize("error", [ModelBusy("busy"), AnswerMalformed("odd"), BudgetSpent("spent")])
def test_either_call_that_fails_fails_the_whole_and_the_index_is_not_asked(failing, error):
    selector = FixedSelector(HISTORY, error=error if failing == "selector" else None)
    extractor = FixedExtractor(error=error if failing == "extractor" else None)
    retriever = Answers()
    with pytest.raises(type(error)) as raised:
        searching(selector, extractor, retriever=retriever).gather(asked())
    assert raised.value is error
    assert retriever.queries == []


def test_the_first_failure_stops_the_other_call_whose_use_is_still_accounted_for():
    limits = Limited()

    class Waiting(FixedExtractor):
        def extract(self, question, catalogue, limits):
            held_until_stopped(limits)

    class Failing(FixedSelector):
        def select(self, question, catalogue, limits):
            limits.note(a_use())
            raise ModelUnavailable("no answer")

    with pytest.raises(ModelUnavailable):
        searching(Failing(), Waiting()).gather(asked(limits=limits))
    assert sorted(use.purpose for use in limits.uses) == ["extract_entities", "select_intentions"]
    assert limits.wakes == []


def test_a_bug_in_one_call_stops_the_other_too():
    class Waiting(FixedSelector):
        def select(self, question, catalogue, limits):
            held_until_stopped(limits)

    with pytest.raises(ZeroDivisionError):
        searching(Waiting(), FixedExtractor(error=ZeroDivisionError())).gather(asked())


def test_a_stop_from_outside_ends_both_calls():
    limits = Limited()
    waiting = threading.Barrier(3)

    class Waiting(FixedSelector, FixedExtractor):
        def select(self, question, catalogue, limits):
            waiting.wait(20)
            held_until_stopped(limits)

        extract = select

    def stop():
        waiting.wait(20)
        for wake in list(limits.wakes):
            wake()

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(Stopped):
        searching(Waiting(), Waiting()).gather(asked(limits=limits))
    stopping.join()


def test_the_two_calls_are_under_way_at_the_same_time():
    together = threading.Barrier(2)

    class Meeting(FixedSelector, FixedExtractor):
        def select(self, question, catalogue, limits):
            together.wait(20)
            return (HISTORY,)

        def extract(self, question, catalogue, limits):
            together.wait(20)
            return ()

    assert searching(Meeting(), Meeting()).gather(asked()) is not None


def test_calls_are_counted_against_the_questions_limits():
    limits = Limited(calls=0)
    with pytest.raises(BudgetSpent):
        searching(FixedSelector(HISTORY, uses=[a_use()])).gather(asked(limits=limits))


def test_after_the_budgets_time_nothing_is_searched():
    clock = Clock(0)

    class Slow(FixedSelector):
        def select(self, question, catalogue, limits):
            clock.pass_s(10.5)
            return (HISTORY,)

    retriever = Answers()
    with pytest.raises(OutOfTime):
        searching(Slow(), retriever=retriever, clock=clock).gather(asked())
    assert retriever.queries == []


def test_searches_that_see_two_versions_are_run_once_more_and_never_mixed():
    names, selector, retriever = FixedExtractor(named("Mother Quell")), FixedSelector(HISTORY), Answers(["v1", "v2"])
    gathered = searching(selector, names, FixedResolver(QUELL), retriever, catalogue=[CAMPAIGN, CAMPAIGN_2]).gather(
        asked()
    )
    assert (gathered.index_version, len(retriever.queries)) == ("v2", 4)
    assert len(selector.asked) == 1  # the same declarations: what was chosen by them holds


def test_where_all_searches_see_another_version_than_the_choice_it_is_made_anew_by_the_new_declarations():
    moved = declared("notes", {"npc_history": ["folk"]})
    selector, retriever = FixedSelector(HISTORY), Answers(["v2"])
    gathered = searching(
        selector, retriever=retriever, catalogue=[CAMPAIGN, Catalogue("v2", (moved,), readable=EVERYTHING)]
    ).gather(asked())
    assert len(selector.asked) == 2
    assert [plan.sections for plan in gathered.plans] == [("folk",)]
    assert [reason.section for one in gathered.chosen for reason in one.why] == ["folk"]


def test_where_nothing_declares_itself_any_more_the_search_is_left_to_others():
    assert (
        searching(retriever=Answers(["v2"]), catalogue=[CAMPAIGN, Catalogue("v2", (), readable=EVERYTHING)]).gather(
            asked()
        )
        is None
    )


def test_an_index_that_does_not_stand_still_is_searched_once_without_a_choice():
    restless = Answers(["v1", "v2", "v3", "v4", "v5"])
    names, resolver = FixedExtractor(named("Mother Quell")), FixedResolver(QUELL)
    gathered = searching(
        extractor=names, resolver=resolver, retriever=restless, catalogue=[CAMPAIGN, CAMPAIGN_2]
    ).gather(asked())
    assert (gathered.index_version, gathered.plans, len(gathered.chosen)) == ("v5", (), 1)
    assert [one.code for one in gathered.degraded] == [PLAIN_SEARCH]


def test_an_index_that_cannot_be_resolved_in_fails_the_whole():
    resolver = FixedResolver(error=IndexUnavailable("gone"))
    with pytest.raises(IndexUnavailable):
        searching(extractor=FixedExtractor(named("Quell")), resolver=resolver).gather(asked())


def test_the_story_tells_how_it_came_about_and_no_word_of_the_question(caplog):
    caplog.set_level(logging.INFO, "cicada")
    searching(extractor=FixedExtractor(named("Mother Quell")), resolver=FixedResolver(QUELL)).gather(asked())
    (told,) = [record.__dict__ for record in caplog.records if record.__dict__.get("step") == "gathered"]
    assert (told["intentions"], told["named"], told["places"]) == (["notes.npc_history"], 1, 1)
    assert told["sections"] == ["notes.people", "notes.events"]
    assert "Quell" not in str(told)


# --- limits that can be stopped by themselves ---


def test_limits_within_others_have_the_less_time_of_both():
    clock = Clock(0)
    limits = StoppableLimits(Limited(left_s=5), 10, clock)
    assert limits.time_left_s() == 5
    clock.pass_s(8)
    assert limits.time_left_s() == 2
    clock.pass_s(8)
    assert limits.time_left_s() == 0


def test_a_wake_is_called_at_once_after_a_stop_and_not_when_it_was_taken_off():
    limits = StoppableLimits(UNLIMITED, 10, Clock(0))
    woken = []
    limits.on_stop(lambda: woken.append("kept"))
    limits.on_stop(lambda: woken.append("forgotten"))()
    limits.stop()
    limits.on_stop(lambda: woken.append("late"))
    assert woken == ["kept", "late"]
    with pytest.raises(Stopped):
        limits.call()


def test_both_results_come_back_as_they_were_asked_for():
    limits = StoppableLimits(UNLIMITED, 10, Clock(0))
    assert both(lambda _: "one", lambda _: 2, limits, THREADS) == ("one", 2)


def test_declarations_of_other_collections_do_not_keep_a_question_from_its_own():
    assert searching(catalogue=Catalogue("v1", (NOTES,), readable=EVERYTHING)).gather(asked("notes")) is not None
