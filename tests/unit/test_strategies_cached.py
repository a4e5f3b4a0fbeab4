"""The strategies that make use of earlier answers: Hybrid and CAG."""

from __future__ import annotations

import logging
import threading

import pytest

from cicada.answering.cag import CagStrategy
from cicada.answering.hybrid import HybridStrategy
from cicada.answering.prompt import IN_PARTS, NOTHING_FOUND, number_sources
from cicada.answering.rag import RagStrategy
from cicada.answering.reuse import PIECE_CHARS, merged
from cicada.attempts.strategy import Retrieved
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import (
    CacheMiss,
    CacheUnavailable,
    DependencyDown,
    IndexUnavailable,
    ModelBusy,
    ModelUnavailable,
    OutOfTime,
)
from cicada.models.ports import Stopped, TextDelta
from cicada.protocol.events import Reused
from cicada.retrieval.ports import Hit, SearchResult
from tests.support.answers import asked, new_budget, parts
from tests.support.breakers import Clock
from tests.support.questions import NOW_S, FixedCache, FixedRetriever, ScriptedModel, looked, passage

BOATHOUSE = passage(7, "I locked the boathouse at ten.")
BELL = passage(9, "The bell rang thirteen strokes.", speaker="Tom")
LANTERN = passage(11, "The lantern was out.", speaker="Ilse")
QUOTED = 'Mara says: "I locked the boathouse at ten." [1]'


def sources(*passages, score=0.9):
    return number_sources([Hit(one, score) for one in passages])


def hybrid(retriever, cache, model=None, **changes):
    values = {"top_k": 20, "min_score": 0.5, "prompt_passages": 10}
    return HybridStrategy(retriever, cache, model or ScriptedModel(QUOTED), **(values | changes))


def cag(cache, model=None, retriever=None, prompt_passages=10):
    return CagStrategy(
        retriever or FixedRetriever(), cache, model or ScriptedModel("never"), prompt_passages=prompt_passages
    )


def faults(caplog):
    return [(record.code, record.dependency) for record in caplog.records if record.step == "fault"]


# --- Hybrid: at the same time ---


def test_the_search_and_the_look_up_are_under_way_together():
    meet = threading.Barrier(2, timeout=10)  # broken, and the test fails, if one waits for the other to end

    class Meets(FixedRetriever):
        def search(self, query):
            meet.wait()
            return super().search(query)

    class MeetsToo(FixedCache):
        def look_up(self, asked, index_version, limits, *, time_budget_s):
            meet.wait()
            return super().look_up(asked, index_version, limits, time_budget_s=time_budget_s)

    answering = hybrid(Meets(BOATHOUSE), MeetsToo(looked("contexts", *sources(BELL)))).answer(asked(), new_budget())
    retrieved, _, _ = parts(answering)
    assert {source.origin for source in retrieved.sources} == {"search", "cache"}


class SideBySide:
    """What runs together begins at the same instant, and is over when the slowest is."""

    def __init__(self, clock):
        self.clock = clock

    def each(self, do, items):
        began, ends, results = self.clock.now_s, [], []
        for item in items:
            self.clock.now_s = began
            results.append(do(item))
            ends.append(self.clock.now_s)
        self.clock.now_s = max(ends)
        return results


@pytest.mark.parametrize(("search_s", "look_up_s"), [(0.3, 0.8), (0.8, 0.3)])
def test_they_cost_what_the_slower_costs(search_s, look_up_s):
    clock = Clock(0)

    class TakesTime(FixedRetriever):
        def search(self, query):
            clock.pass_s(search_s)
            return super().search(query)

    class TakesTimeToo(FixedCache):
        def look_up(self, asked, index_version, limits, *, time_budget_s):
            clock.pass_s(look_up_s)
            return super().look_up(asked, index_version, limits, time_budget_s=time_budget_s)

    strategy = hybrid(
        TakesTime(BOATHOUSE), TakesTimeToo(looked("contexts", *sources(BELL))), concurrency=SideBySide(clock)
    )
    retrieved = next(strategy.answer(asked(), new_budget(clock=clock)))
    assert isinstance(retrieved, Retrieved)
    assert clock.now_s == pytest.approx(0.8)
    assert (retrieved.retrieval_ms, retrieved.cache_ms) == (round(search_s * 1000), round(look_up_s * 1000))


# --- Hybrid: what is merged ---


def test_both_contribute_to_one_generation_and_say_so():
    model = ScriptedModel(QUOTED)
    cache = FixedCache(looked("contexts", *sources(BELL), similarity=0.8))
    retrieved, text, answered = parts(hybrid(FixedRetriever(BOATHOUSE), cache, model).answer(asked(), new_budget()))
    assert [(one.n, one.origin, one.score) for one in retrieved.sources] == [(1, "search", 0.9), (2, "cache", 0.72)]
    assert retrieved.reused == Reused(
        use="contexts",
        question="Who had locked the boathouse?",
        answered_at_ms=(NOW_S - 3600) * 1000,
        similarity=0.8,
    )
    assert (retrieved.found, text, answered.grounded) == (2, QUOTED, True)
    (prompt,) = model.prompts
    assert prompt.system.endswith(IN_PARTS)
    assert 'n="2"' in prompt.user


def test_a_contexts_score_counts_as_far_as_the_questions_are_alike():
    cached = sources(BELL, score=0.9) + sources(LANTERN, score=0.7)
    cache = FixedCache(looked("contexts", *cached, similarity=0.7))

    class Middling(FixedRetriever):
        def search(self, query):
            return SearchResult((Hit(BOATHOUSE, 0.6),), "v1", 1)

    retrieved, _, _ = parts(hybrid(Middling(), cache).answer(asked(), new_budget()))
    assert [(one.passage_id, one.score) for one in retrieved.sources] == [(BELL.id, 0.63), (BOATHOUSE.id, 0.6)]
    # The lantern's 0.49 is below what a hit must have, whoever brings it.


def test_what_both_bring_stands_once_as_found():
    cache = FixedCache(looked("contexts", *sources(BOATHOUSE), similarity=0.9))
    retrieved, _, _ = parts(hybrid(FixedRetriever(BOATHOUSE), cache).answer(asked(), new_budget()))
    assert [(one.passage_id, one.origin, one.score) for one in retrieved.sources] == [(BOATHOUSE.id, "search", 0.9)]
    assert retrieved.reused is None  # it contributed nothing


def test_a_message_in_another_language_is_the_same_message():
    translated = BOATHOUSE.model_copy(update={"id": "ep1-0007-ja", "text": "十時に鍵をかけた。"})
    assert [one.passage_id for one in merged(sources(BOATHOUSE), sources(translated))] == [BOATHOUSE.id]


def test_passages_of_a_document_are_the_same_by_place_and_words():
    def page(identity, text, number=3):
        locator = DocumentLocator(source="rules.pdf", title="Rules", page=number)
        return Passage(id=identity, collection="rulebook", text=text, context=text, locator=locator)

    first, again = page("a", "The keeper holds the keys."), page("b", "The keeper holds the keys.")
    other, elsewhere = page("c", "Nobody else may."), page("d", "The keeper holds the keys.", 9)
    ids = [one.passage_id for one in merged(sources(first), sources(again, other, elsewhere))]
    assert ids == ["a", "c", "d"]


def test_no_more_passages_of_an_earlier_answer_are_considered_than_is_set():
    cached = sources(*(passage(n, f"Line {n}.") for n in range(20, 40)))
    retrieved, _, _ = parts(
        hybrid(FixedRetriever(BOATHOUSE), FixedCache(looked("contexts", *cached)), cache_passages=3).answer(
            asked(), new_budget()
        )
    )
    assert [source.origin for source in retrieved.sources] == ["search", "cache", "cache", "cache"]


def test_the_prompt_takes_the_best_of_both():
    found = [passage(n, f"Line {n}.") for n in range(1, 6)]
    cache = FixedCache(looked("contexts", *sources(BELL, score=1.0), similarity=0.95))
    strategy = hybrid(FixedRetriever(*found), cache, prompt_passages=3)
    retrieved, _, _ = parts(strategy.answer(asked(), new_budget()))
    assert [one.passage_id for one in retrieved.sources] == [BELL.id, "ep1-0001", "ep1-0002"]
    assert [one.n for one in retrieved.sources] == [1, 2, 3]
    assert retrieved.found == 6


def test_passages_that_the_prompt_does_not_take_are_no_contribution():
    cache = FixedCache(looked("contexts", *sources(BELL), similarity=0.6))
    strategy = hybrid(FixedRetriever(BOATHOUSE, LANTERN), cache, prompt_passages=2)
    retrieved, _, _ = parts(strategy.answer(asked(), new_budget()))
    assert {one.origin for one in retrieved.sources} == {"search"}
    assert retrieved.reused is None


def test_contexts_of_another_version_than_was_searched_are_left_out():
    cache = FixedCache(looked("contexts", *sources(BELL), index_version="v0"))
    retrieved, _, _ = parts(hybrid(FixedRetriever(BOATHOUSE), cache).answer(asked(), new_budget()))
    assert [one.origin for one in retrieved.sources] == ["search"]
    assert (retrieved.index_version, retrieved.reused) == ("v1", None)


def test_where_neither_brings_anything_code_says_so():
    _, text, answered = parts(hybrid(FixedRetriever(), FixedCache(looked("miss"))).answer(asked(), new_budget()))
    assert (text, answered.stop_reason) == (NOTHING_FOUND, "nothing_found")


def test_the_cache_is_asked_for_the_completed_question_under_the_version_searched():
    cache = FixedCache(looked("miss"))
    question = asked("When did Mara lock it?")
    parts(hybrid(FixedRetriever(BOATHOUSE), cache).answer(question, new_budget()))
    assert cache.asked == [(question, "v1")]


# --- Hybrid and RAG: the same answer again ---


def rag(retriever, cache, model=None):
    return RagStrategy(retriever, cache, model or ScriptedModel(QUOTED), top_k=20, min_score=0.5, prompt_passages=10)


@pytest.mark.parametrize("strategy", [hybrid, rag])
def test_the_same_question_gets_its_earlier_answer_beside_the_search_without_a_model(strategy):
    found = looked("answer", *sources(BOATHOUSE))
    model = ScriptedModel("never")
    attempt_budget = new_budget(calls=0)
    retrieved, text, answered = parts(
        strategy(FixedRetriever(BELL), FixedCache(found), model).answer(asked(), attempt_budget)
    )
    assert (text, answered.citations, answered.grounded) == (found.text, found.citations, True)
    assert retrieved.reused is not None
    assert (retrieved.reused.use, retrieved.index_version) == ("answer", "v1")
    assert [(one.passage_id, one.origin) for one in retrieved.sources] == [(BOATHOUSE.id, "cache")]
    assert (model.prompts, attempt_budget.made) == ([], [])


@pytest.mark.parametrize("strategy", [hybrid, rag])
def test_an_earlier_answer_of_another_version_is_not_given_again(strategy):
    cache = FixedCache(looked("answer", *sources(BELL), index_version="v0"))
    retrieved, text, _ = parts(strategy(FixedRetriever(BOATHOUSE), cache).answer(asked(), new_budget()))
    assert (text, retrieved.reused) == (QUOTED, None)


def test_rag_writes_from_its_own_search_where_an_earlier_question_is_only_near():
    cache = FixedCache(looked("contexts", *sources(BELL)))
    retrieved, text, _ = parts(rag(FixedRetriever(BOATHOUSE), cache).answer(asked(), new_budget()))
    assert (text, retrieved.reused) == (QUOTED, None)
    assert [one.origin for one in retrieved.sources] == ["search"]


# --- Hybrid: what fails ---


def test_a_miss_is_an_answer_from_the_search_alone():
    retrieved, text, _ = parts(
        hybrid(FixedRetriever(BOATHOUSE), FixedCache(looked("miss"))).answer(asked(), new_budget())
    )
    assert (text, retrieved.degraded, retrieved.reused) == (QUOTED, (), None)
    assert retrieved.cache_ms is not None


@pytest.mark.parametrize(
    "error",
    [
        CacheUnavailable("throttled"),
        ModelUnavailable("no vector"),
        OutOfTime("late"),
        DependencyDown("cache keeps failing"),
    ],
)
def test_a_cache_that_fails_is_done_without_and_said(caplog, error):
    cache = FixedCache(looked("miss"), error=error)
    retrieved, text, answered = parts(hybrid(FixedRetriever(BOATHOUSE), cache).answer(asked(), new_budget()))
    assert (text, answered.grounded) == (QUOTED, True)
    assert [one.code for one in retrieved.degraded] == ["cache_unavailable"]
    assert faults(caplog) == [(error.code, "cache")]


def test_a_version_that_is_not_known_costs_the_look_up_alone():
    class Unknown(FixedRetriever):
        def version(self):
            raise IndexUnavailable("no answer")

    cache = FixedCache(looked("contexts", *sources(BELL)))
    retrieved, _, _ = parts(hybrid(Unknown(BOATHOUSE), cache).answer(asked(), new_budget()))
    assert ([one.code for one in retrieved.degraded], cache.asked) == (["cache_unavailable"], [])


def test_a_search_that_fails_fails_it_whatever_the_cache_has():
    model = ScriptedModel("never")
    cache = FixedCache(looked("contexts", *sources(BELL)))
    answering = hybrid(FixedRetriever(error=IndexUnavailable("no answer")), cache, model)
    with pytest.raises(IndexUnavailable):
        parts(answering.answer(asked(), new_budget()))
    assert model.prompts == []


def test_hybrid_does_not_need_the_cache():
    assert hybrid(FixedRetriever(), FixedCache(looked("miss"))).needs == ("index", "model:local.extractive")


# --- CAG: the same answer again ---


def test_a_very_near_question_gets_the_earlier_answer_again_without_a_model():
    found = looked("answer", *sources(BOATHOUSE))
    model = ScriptedModel("never")
    attempt_budget = new_budget(calls=0)
    retrieved, text, answered = parts(cag(FixedCache(found), model).answer(asked(), attempt_budget))
    assert text == found.text
    assert (answered.model_id, answered.stop_reason) == ("model-of-then", "end_turn")
    assert (answered.citations, answered.grounded) == (found.citations, True)
    assert retrieved.reused == Reused(
        use="answer", question=found.question, answered_at_ms=found.answered_at_ms, similarity=0.96
    )
    assert [(one.n, one.passage_id, one.origin) for one in retrieved.sources] == [(1, BOATHOUSE.id, "cache")]
    assert (retrieved.index_version, retrieved.engine, retrieved.retrieval_ms) == ("v1", "cache", None)
    assert retrieved.cache_ms is not None
    assert (model.prompts, attempt_budget.made) == ([], [])


def test_a_long_answer_is_given_in_pieces():
    text = QUOTED + " " + "Nothing else is told of it. " * 100
    found = looked("answer", *sources(BOATHOUSE), text=text)
    steps = list(cag(FixedCache(found)).answer(asked(), new_budget()))
    pieces = [step.text for step in steps if isinstance(step, TextDelta)]
    assert "".join(pieces) == text
    assert len(pieces) > 2
    assert all(0 < len(piece) <= PIECE_CHARS for piece in pieces)


# --- CAG: from the earlier passages ---


def test_a_near_question_gets_a_new_answer_from_the_earlier_passages():
    model = ScriptedModel(QUOTED)
    cached = (*sources(BELL, score=0.6), *(one.model_copy(update={"n": 2}) for one in sources(BOATHOUSE)))
    cache = FixedCache(looked("contexts", *cached, similarity=0.9))
    attempt_budget = new_budget()
    retrieved, text, answered = parts(cag(cache, model).answer(asked(), attempt_budget))
    assert text == QUOTED
    assert [(one.n, one.passage_id, one.score, one.origin) for one in retrieved.sources] == [
        (1, BOATHOUSE.id, 0.81, "cache"),
        (2, BELL.id, 0.54, "cache"),
    ]
    assert retrieved.reused is not None
    assert retrieved.reused.use == "contexts"
    assert (answered.model_id, answered.grounded, attempt_budget.spent.calls) == (model.model_id, True, 1)


def test_the_prompt_takes_the_best_of_the_earlier_passages():
    model = ScriptedModel(QUOTED)
    cache = FixedCache(looked("contexts", *sources(BOATHOUSE, BELL, LANTERN)))
    retrieved, _, _ = parts(cag(cache, model, prompt_passages=2).answer(asked(), new_budget()))
    assert (len(retrieved.sources), retrieved.found) == (2, 3)


@pytest.mark.parametrize(
    ("found", "calls", "why"),
    [
        (looked("miss", compared=0), 2, "no earlier question"),
        (looked("miss"), 2, "nearest of 3 earlier questions has a similarity of 0.00$"),
        (looked("contexts"), 2, "none was kept"),
        (looked("contexts", *sources(BOATHOUSE)), 0, "no call is left"),
    ],
)
def test_anything_else_is_a_miss(found, calls, why):
    model = ScriptedModel("never")
    with pytest.raises(CacheMiss, match=why):
        parts(cag(FixedCache(found), model).answer(asked(), new_budget(calls=calls)))
    assert model.prompts == []


@pytest.mark.parametrize("error", [CacheUnavailable("throttled"), ModelUnavailable("no vector"), OutOfTime("late")])
def test_a_cache_that_fails_fails_cag(error):
    with pytest.raises(type(error)):
        parts(cag(FixedCache(looked("miss"), error=error)).answer(asked(), new_budget()))


def test_without_a_version_there_is_nothing_to_look_up():
    cache = FixedCache(looked("miss"))
    with pytest.raises(IndexUnavailable):
        parts(cag(cache, retriever=FixedRetriever(error=IndexUnavailable("no answer"))).answer(asked(), new_budget()))
    assert cache.asked == []


def test_a_model_that_fails_fails_cag_and_a_stop_passes_through():
    cache = FixedCache(looked("contexts", *sources(BOATHOUSE)))
    with pytest.raises(ModelBusy):
        parts(cag(cache, ScriptedModel(ModelBusy("throttled"))).answer(asked(), new_budget()))
    attempt_budget = new_budget()
    answering = cag(cache, ScriptedModel("one ", "two ")).answer(asked(), attempt_budget)
    while not isinstance(next(answering), TextDelta):
        pass
    attempt_budget.stop()
    with pytest.raises(Stopped):
        next(answering)


def test_cag_needs_the_cache_alone():
    assert cag(FixedCache(looked("miss"))).needs == ("cache",)


def test_what_was_reused_is_told(caplog):
    caplog.set_level(logging.INFO, "cicada")
    parts(cag(FixedCache(looked("answer", *sources(BOATHOUSE)))).answer(asked(), new_budget()))
    told = [record.__dict__ for record in caplog.records if record.step == "retrieved"]
    assert [(one["used"], one["used_from_cache"], one["engine"]) for one in told] == [(1, 1, "cache")]
