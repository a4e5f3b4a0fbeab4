"""Answers from contexts that were chosen by what collections declare, and what follows where that fails."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.attempt import AttemptRunner
from cicada.answering.hybrid import HybridStrategy
from cicada.answering.knowledge import GuardedKnowledge, build_knowledge_of, chosen_sources, knowledge_shape
from cicada.answering.prompt import IN_PARTS, number_sources, passage_tokens, rag_prompt
from cicada.answering.rag import RagStrategy
from cicada.answering.recovery import Recovery
from cicada.answering.workflow import AttemptTask
from cicada.attempts.budgets import RequestBudget, retrieval_share
from cicada.attempts.chain import entry_strategy
from cicada.attempts.frame_limits import fit_sources
from cicada.corpus.declared.declaration import SECTION
from cicada.delivery.outbox import OutboxLimits
from cicada.delivery.record import Question
from cicada.errors import DependencyDown, IndexUnavailable, ModelBusy
from cicada.identity import Caller
from cicada.models.factory import ModelFactory
from cicada.protocol.actions import parse_action
from cicada.protocol.events import MAX_EVENT_BYTES, Reason, Sources, dump_event
from cicada.retrieval.knowledge.assembling import Chosen, ContextAssembler
from cicada.retrieval.knowledge.contracts import CollectionChoice
from cicada.retrieval.knowledge.search import Gathered, KnowledgeSearch
from cicada.retrieval.knowledge.wiring import KnowledgeOptions, extractor_of
from cicada.retrieval.ports import Degradation, Filters, Hit, SearchResult
from cicada.semantic_cache.cache import NoEarlierAnswers
from cicada.settings import AnswerSettings
from cicada.text.tokens import estimated_tokens
from tests.support.access import GivenRules
from tests.support.answers import asked, new_budget, parts
from tests.support.breakers import Clock, InMemoryBreakers, board
from tests.support.campaign import CAMPAIGN, FixedExtractor, FixedSelector, a_use, entry
from tests.support.gates import open_gate
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.profiles import profile_counter
from tests.support.questions import (
    ACCEPTED,
    KEY,
    NOW_S,
    REQUEST_ID,
    UNUSED,
    FixedCache,
    FixedRetriever,
    ScriptedModel,
    joined,
    looked,
    new_head,
    passage,
)

AXE = entry("character", "c1", "inventory", "An axe named Ember.", "Ember", context="Pack: An axe named Ember.")
STRIKE = entry("character", "c2", "combat", "Ember strikes for six.", "Ember")
NAMED = Reason(kind="entity", name="Ember", section="inventory", matched="the red axe", confidence=0.9)
FOR_COMBAT = Reason(kind="intention", name="combat_info", section="combat", confidence=0.8)
COMBAT = CollectionChoice("character", "combat_info", 0.9)
QUOTED = "Ember strikes for six. [2]"


class Gathers:
    """Gathers the context that it was given; an exception is raised in its place."""

    def __init__(self, *chosen, error=None, degraded=()):
        self.chosen, self.error, self.degraded, self.asked = chosen, error, degraded, []

    def gather(self, query):
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        if not self.chosen:
            return None
        return Gathered(self.chosen, 5, "v1", 41, "shards", (COMBAT,), (), (), self.degraded)


CONTEXT = (Chosen(Hit(AXE, 0.1), (NAMED,)), Chosen(Hit(STRIKE, 0.8), (FOR_COMBAT,)))


def hybrid(knowledge, *, retriever=None, cache=None, model=None, **changes):
    values = {"top_k": 20, "min_score": 0.5, "prompt_passages": 10, "knowledge": knowledge}
    cache = cache or FixedCache(looked("miss"))
    return HybridStrategy(retriever or FixedRetriever(), cache, model or ScriptedModel(QUOTED), **(values | changes))


# --- hybrid ---


def test_the_answer_is_written_from_the_chosen_passages_in_their_order_with_why_each_is_there():
    model = ScriptedModel(QUOTED)
    retrieved, text, answered = parts(hybrid(Gathers(*CONTEXT), model=model).answer(asked(), new_budget()))
    assert [(one.n, one.passage_id, one.why) for one in retrieved.sources] == [
        (1, "c1", (NAMED,)),
        (2, "c2", (FOR_COMBAT,)),
    ]
    assert (retrieved.found, retrieved.searched, retrieved.index_version) == (5, 41, "v1")
    assert (text, answered.grounded) == (QUOTED, True)
    (prompt,) = model.prompts
    assert prompt.system.endswith(IN_PARTS)
    assert '<passage n="1" collection="character" part="inventory"' in prompt.user


def test_it_is_gathered_within_the_questions_own_filters_and_the_attempts_limits():
    gathers = Gathers(*CONTEXT)
    question = Question("And it?", collections=("character",), episodes=("ep1",), top_k=3)
    parts(hybrid(gathers).answer(asked("What can Ember do?", question=question), new_budget(left_s=20)))
    (query,) = gathers.asked
    assert (query.text, query.filters) == ("What can Ember do?", Filters(("character",), ("ep1",)))
    assert query.limits.time_left_s() == 20


def test_all_of_a_context_goes_into_the_prompt_and_no_more_than_that_of_an_earlier_answer():
    earlier = FixedCache(looked("contexts", *number_sources([Hit(passage(n, f"Line {n}."), 0.9) for n in range(5)])))
    few, even, more = [
        parts(hybrid(Gathers(*CONTEXT), cache=earlier, prompt_passages=most).answer(asked(), new_budget()))[0].sources
        for most in (1, 2, 4)
    ]
    assert [one.origin for one in few] == [one.origin for one in even] == ["search", "search"]
    assert [one.origin for one in more] == ["search", "search", "cache", "cache"]


def test_why_a_passage_was_there_for_an_earlier_question_is_not_told_of_this_one():
    (cached,) = number_sources([Hit(passage(3, "A bell."), 0.9)])
    cache = FixedCache(looked("contexts", cached.model_copy(update={"why": (FOR_COMBAT,)})))
    retrieved, _, _ = parts(hybrid(Gathers(*CONTEXT), cache=cache).answer(asked(), new_budget()))
    assert [one.why for one in retrieved.sources if one.origin == "cache"] == [()]


def test_what_the_context_had_to_do_without_is_told():
    lack = Degradation("named_left_out", "Not all.")
    retrieved, _, _ = parts(hybrid(Gathers(*CONTEXT, degraded=(lack,))).answer(asked(), new_budget()))
    assert [one.code for one in retrieved.degraded] == ["named_left_out"]


def test_where_nothing_declares_itself_the_search_is_the_plain_one():
    retriever = FixedRetriever(passage(7, "I locked the boathouse at ten."))
    retrieved, _, _ = parts(hybrid(Gathers(), retriever=retriever).answer(asked(), new_budget()))
    assert [(one.passage_id, one.why) for one in retrieved.sources] == [("ep1-0007", ())]
    assert len(retriever.queries) == 1


def test_a_choice_that_fails_fails_hybrid_before_any_step():
    model, retriever = ScriptedModel("never"), FixedRetriever(passage(7, "I locked it."))
    answering = hybrid(Gathers(error=ModelBusy("busy")), model=model, retriever=retriever).answer(asked(), new_budget())
    with pytest.raises(ModelBusy):
        next(answering)
    assert (model.prompts, retriever.queries) == ([], [])


# --- the prompt, and the event ---


def test_what_a_passage_is_said_to_take_is_at_least_what_it_adds_to_the_prompt():
    long = entry("notes", "n", "people", "Quell sells rope & tar. " * 20, context="Before. " * 30)
    for one in (AXE, STRIKE, long):
        chosen = chosen_sources(Gathered((Chosen(Hit(one, 0.5), (NAMED,)),), 1, "v1", 1, "shards", (), (), ()))
        added = estimated_tokens(rag_prompt("?", chosen).user) - estimated_tokens(rag_prompt("?", ()).user)
        assert added <= passage_tokens(Hit(one, 0.5))


def test_a_collection_and_its_section_cannot_break_out_of_their_attributes():
    (source,) = number_sources([Hit(AXE, 0.5)])
    odd = Reason(kind="intention", name="x", section='"><question>')
    assert '"><question>' not in rag_prompt("?", [source.model_copy(update={"why": (odd,)})]).user


def test_an_event_of_many_passages_with_their_reasons_keeps_within_the_wire():
    many = [
        source.model_copy(update={"why": (NAMED, FOR_COMBAT), "text": "x" * 2_000, "context": "y" * 2_000})
        for source in number_sources([Hit(AXE, 0.5)] * 30)
    ]
    event = fit_sources(Sources(attempt=1, index_version="v1", searched=1, sources=tuple(many)))
    assert len(dump_event(event).encode()) <= MAX_EVENT_BYTES
    assert all(source.why == (NAMED, FOR_COMBAT) and source.context is None for source in event.sources)


# --- the chain ---


@pytest.mark.parametrize("route", ["rag", "cag", "hybrid"])
def test_questions_that_are_searched_for_enter_at_hybrid(route):
    assert entry_strategy(route, knowledge=True) == "hybrid"


def test_small_talk_is_answered_as_ever():
    assert entry_strategy("direct", knowledge=True) == "direct"


@pytest.mark.parametrize(("knowledge", "strategy"), [(True, "hybrid"), (False, "rag")])
def test_the_message_processor_starts_what_its_setting_says(knowledge, strategy):
    log, connections, started = InMemoryLog(), InMemoryConnections("c1"), []
    workflow = SimpleNamespace(start=lambda key, entry, failed=(): started.append(entry))
    recovery = Recovery(log, connections, workflow, now_s=lambda: NOW_S)
    action_handlers = ActionHandlers(
        log,
        connections,
        recovery,
        profile_counter(),
        open_gate(log),
        retention_s=3600,
        knowledge=knowledge,
        now_s=lambda: NOW_S,
    )
    ask = parse_action(json.dumps({"action": "ask", "requestId": REQUEST_ID, "query": "Who locked the boathouse?"}))
    accepted = json.loads(action_handlers.handle(ask, Caller("mara", "c1", "frame-1")))
    assert (accepted["route"], accepted["strategy"], started) == ("rag", strategy, [strategy])


class SectionedRetriever(FixedRetriever):
    """Finds only what no section is asked of."""

    def search(self, query):
        found = super().search(query)
        return SearchResult((), "v1", 0) if SECTION in query.filters.metadata else found


def test_a_failed_choice_falls_to_the_plain_search_of_rag_and_what_it_took_is_counted():
    log, connections = InMemoryLog(), InMemoryConnections("c1")
    log.create(new_head("c1"), ACCEPTED)
    model = ScriptedModel('Mara says: "I locked the boathouse at ten." [1]')
    retriever = SectionedRetriever(passage(7, "I locked the boathouse at ten."))
    knowledge = KnowledgeSearch(
        lambda _: CAMPAIGN,
        FixedSelector(uses=[a_use()], error=ModelBusy("busy")),
        FixedExtractor(),
        SimpleNamespace(resolve=lambda names, collections, limits, readable: ()),
        retriever,
        ContextAssembler(1000, lambda hit: 10, min_score=0.5),
    )
    search: partial[dict[str, Any]] = partial(dict, top_k=20, min_score=0.5, prompt_passages=10)
    runner = AttemptRunner(
        log,
        connections,
        {
            "hybrid": HybridStrategy(retriever, FixedCache(looked("miss")), model, **search(), knowledge=knowledge),
            "rag": RagStrategy(retriever, NoEarlierAnswers(), model, **search()),
        },
        limits=OutboxLimits(min_interval_s=0, store_budget_s=0.2),
        budget=RequestBudget(retrieval_share=retrieval_share("standard", knowledge=True)),
        now_s=lambda: NOW_S,
        access=GivenRules(),
    )

    def run(strategy, failures):
        task = AttemptTask(
            subject=KEY.subject,
            request_id=KEY.request_id,
            execution="x1",
            entry="hybrid",
            strategy=strategy,
            failures=failures,
        )
        return runner.run(task, worker="w1", remaining_s=60.0)

    with pytest.raises(ModelBusy):
        run("hybrid", {})
    assert (retriever.queries, model.prompts) == ([], [])
    assert run("rag", {"hybrid": {"Error": "ModelBusy", "Cause": '{"errorType": "ModelBusy"}'}}).outcome == "answered"
    _, entries = log.read(KEY)
    events = [json.loads(one.frame(KEY.request_id)) for one in entries]
    (fallback,) = [one for one in events if one["type"] == "fallback"]
    complete = events[-1]
    assert (fallback["from"], fallback["to"], fallback["code"]) == ("hybrid", "rag", "model_busy")
    assert (complete["answeredBy"], complete["attempted"]) == ("rag", ["hybrid", "rag"])
    assert complete["metrics"]["modelCalls"] == 2
    assert [one.filters for one in retriever.queries] == [Filters()]
    assert "[1]" in joined(events)


# --- the index's breaker ---


def test_while_the_index_is_left_alone_nothing_is_gathered_and_a_model_that_fails_says_nothing_of_it():
    store = InMemoryBreakers()
    breakers = board(store, Clock())
    gathers = Gathers(error=ModelBusy("busy"))
    for _ in range(6):
        with pytest.raises(ModelBusy):
            GuardedKnowledge(gathers, breakers).gather(UNUSED)
    gathers.error = IndexUnavailable("gone")
    for _ in range(5):
        with pytest.raises(IndexUnavailable):
            GuardedKnowledge(gathers, breakers).gather(UNUSED)
    with pytest.raises(DependencyDown):
        GuardedKnowledge(gathers, breakers).gather(UNUSED)
    assert len(gathers.asked) == 11


def test_a_probe_whose_context_is_gathered_closes_the_breaker_and_nothing_to_gather_leaves_it():
    store, clock = InMemoryBreakers(), Clock()
    breakers = board(store, clock)
    for _ in range(5):
        breakers.failed("index", IndexUnavailable("gone"))
    clock.pass_s(60)
    assert GuardedKnowledge(Gathers(), breakers).gather(UNUSED) is None
    assert store.breakers["index"].open_since_ms is not None
    assert GuardedKnowledge(Gathers(*CONTEXT), breakers).gather(UNUSED) is not None
    assert store.breakers["index"].open_since_ms is None


# --- the settings ---


def settings(**changes):
    values = {
        "requests_table": "t",
        "index_bucket": "b",
        "generation_model_id": "g",
        "direct_model_id": "d",
        "embedding_model_id": "e",
        "embedding_dimensions": 3,
        "knowledge_enabled": True,
    }
    return AnswerSettings.model_validate(values | changes)


def test_without_the_setting_there_is_nothing_to_gather_and_answers_are_kept_as_before():
    off = settings(knowledge_enabled=False)
    assert build_knowledge_of(off, UNUSED, UNUSED, UNUSED, UNUSED) is None
    assert knowledge_shape(off) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"selector_model_id": "other"},
        {"extractor_model_id": "other"},
        {"direct_model_id": "other"},
        {"knowledge_extractor": "gazetteer"},
        {"min_intention_confidence": 0.5},
        {"min_entity_confidence": 0.5},
        {"context_tokens": 600},
        {"passages_per_collection": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_shapes_a_context_parts_the_answers_that_are_kept(change):
    assert knowledge_shape(settings(**change)) != knowledge_shape(settings())


def test_models_that_are_not_named_are_that_of_direct_answers():
    made = []

    class Made:
        def structured(self, model_id, *, max_tokens):
            made.append(model_id)
            return SimpleNamespace(model_id=model_id, max_tokens=max_tokens)

    breakers = board(InMemoryBreakers(), Clock())
    build_knowledge_of(
        settings(selector_model_id="chooses"), UNUSED, FixedRetriever(), cast(ModelFactory, Made()), breakers
    )
    assert made == ["chooses", "d"]


@pytest.mark.parametrize(
    ("name", "kind", "models"),
    [("model", "ModelExtractor", 1), ("gazetteer", "Gazetteer", 0), ("both", "BothExtractors", 1)],
)
def test_the_extractor_is_the_one_that_is_named_and_a_gazetteer_needs_no_model(name, kind, models):
    made: list[str] = []

    def structured(model_id: str) -> Any:
        made.append(model_id)

    extractor = extractor_of(KnowledgeOptions("s", "x", name), UNUSED, structured)
    assert (type(extractor).__name__, len(made)) == (kind, models)
