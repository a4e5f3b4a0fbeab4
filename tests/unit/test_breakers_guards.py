"""The guarded ports: every call tells its breaker one outcome, and an open breaker refuses."""

from __future__ import annotations

import pytest

from cicada.agents.limits import AgentCaps
from cicada.agents.ports import Actor, AgentFinished, AgentTask
from cicada.agents.source_registry import NumberedSources
from cicada.agents.tool_runner import ToolRunner
from cicada.breakers.guards import (
    FAIR_BUDGET_S,
    FAIR_EMBED_BUDGET_S,
    GuardedAgent,
    GuardedCache,
    GuardedEmbedder,
    GuardedModel,
    GuardedRetriever,
)
from cicada.errors import (
    AgentCapReached,
    AgentUnavailable,
    AnswerIncomplete,
    BudgetSpent,
    CacheUnavailable,
    DependencyDown,
    IndexUnavailable,
    ModelBusy,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.ports import Finished, Prompt, Stopped, TextDelta, Unbounded
from cicada.retrieval.ports import UNLIMITED, SearchQuery, TimeLimit, Unlimited
from cicada.rights import EVERYTHING
from tests.support.agents import ScriptedAgent
from tests.support.breakers import Clock, InMemoryBreakers, board
from tests.support.questions import UNUSED, FixedCache, FixedRetriever, ScriptedModel, looked, passage

MODEL = "model:local.extractive"
PROMPT = Prompt("", "Who?")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store():
    return InMemoryBreakers()


@pytest.fixture
def breakers(store, clock):
    return board(store, clock)


def stream(model, time_budget_s=60.0, call_scope=None):
    return model.stream(PROMPT, time_budget_s=time_budget_s, call_scope=call_scope or Unbounded())


def outage(breakers, name, error, times=5):
    for _ in range(times):
        breakers.failed(name, error)


def failures(store, name):
    return len(store.breakers[name].failures_ms) if name in store.breakers else 0


# --- text models ---


def test_a_guarded_model_is_the_model_and_costs_no_write(breakers, store):
    model = ScriptedModel("Hel", "lo")
    guarded = GuardedModel(model, breakers)
    steps = list(stream(guarded))
    assert steps[:2] == [TextDelta("Hel"), TextDelta("lo")]
    assert isinstance(steps[2], Finished)
    assert (guarded.model_id, guarded.max_tokens) == (model.model_id, model.max_tokens)
    assert store.calls == ["read"]


@pytest.mark.parametrize("error", [ModelBusy("throttled"), ModelUnavailable("no answer"), StreamBroken("cut")])
def test_five_failures_and_the_model_is_not_called_any_more(breakers, store, error):
    model = ScriptedModel("Half an ans", error)
    guarded = GuardedModel(model, breakers)
    for _ in range(5):
        with pytest.raises(type(error)):
            list(stream(guarded))
    with pytest.raises(DependencyDown):
        list(stream(guarded))
    assert len(model.prompts) == 5


@pytest.mark.parametrize("error", [AnswerIncomplete("guardrail"), BudgetSpent("none left"), Stopped(), RuntimeError()])
def test_what_is_not_the_models_failure_does_not_count(breakers, store, error):
    guarded = GuardedModel(ScriptedModel(error), breakers)
    for _ in range(6):
        with pytest.raises(type(error)):
            list(stream(guarded))
    assert store.breakers == {}


def test_a_model_that_had_hardly_any_time_is_not_blamed(breakers, store):
    guarded = GuardedModel(ScriptedModel(ModelUnavailable("the time budget ran out")), breakers)
    with pytest.raises(ModelUnavailable):
        list(stream(guarded, time_budget_s=FAIR_BUDGET_S / 2))
    assert failures(store, MODEL) == 0
    with pytest.raises(ModelUnavailable):
        list(stream(guarded, time_budget_s=FAIR_BUDGET_S))
    assert failures(store, MODEL) == 1


def test_but_a_throttle_is_a_throttle_however_little_time_there_was(breakers, store):
    with pytest.raises(ModelBusy):
        list(stream(GuardedModel(ScriptedModel(ModelBusy("throttled")), breakers), time_budget_s=1))
    assert failures(store, MODEL) == 1


def test_a_probe_that_its_reader_closes_early_leaves_its_place(breakers, store, clock):
    outage(breakers, MODEL, ModelBusy("throttled"))
    clock.pass_s(5)
    model = ScriptedModel("one ", "two ", "three")
    pieces = stream(GuardedModel(model, breakers))
    next(pieces)
    assert store.breakers[MODEL].probe is not None
    pieces.close()
    assert model.closed_early == 1
    assert (store.breakers[MODEL].probe, store.breakers[MODEL].openings) == (None, 1)


def test_a_probe_that_is_whole_closes_the_breaker_though_its_reader_leaves_before_the_end(breakers, store, clock):
    outage(breakers, MODEL, ModelBusy("throttled"))
    clock.pass_s(5)
    pieces = stream(GuardedModel(ScriptedModel("all"), breakers))
    while not isinstance(next(pieces), Finished):
        pass
    pieces.close()
    assert store.breakers[MODEL].open_since_ms is None


def test_a_stream_that_nobody_reads_claims_nothing(breakers, store, clock):
    outage(breakers, MODEL, ModelBusy("throttled"))
    clock.pass_s(5)
    stream(GuardedModel(ScriptedModel("all"), breakers)).close()
    assert store.breakers[MODEL].probe is None


def test_the_last_resort_is_called_where_another_would_be_refused(breakers, store):
    outage(breakers, MODEL, ModelBusy("throttled"))
    with pytest.raises(DependencyDown):
        list(stream(GuardedModel(ScriptedModel("Hello"), breakers)))
    assert TextDelta("Hello") in stream(GuardedModel(ScriptedModel("Hello"), breakers, last_resort=True))


# --- agents ---

AGENT = "agent:classic"


def run(breakers, *steps, limits=UNLIMITED, name=AGENT):
    box = ToolRunner(
        [],
        actor=Actor("me", "r", "Who?", 0, readable=EVERYTHING),
        registry=NumberedSources(),
        limits=UNLIMITED,
        caps=AgentCaps(),
    )
    return GuardedAgent(ScriptedAgent(list(steps)), breakers, name).run(AgentTask("", "Who?"), box, limits)


@pytest.mark.parametrize("error", [AgentUnavailable("gone"), ModelBusy("throttled"), StreamBroken("cut")])
def test_agents_whose_service_keeps_failing_are_left_alone(breakers, error):
    for _ in range(5):
        with pytest.raises(type(error)):
            list(run(breakers, error))
    with pytest.raises(DependencyDown):
        list(run(breakers, "Hello"))


@pytest.mark.parametrize("error", [AgentCapReached("loop"), AnswerIncomplete("max_tokens"), BudgetSpent("no call")])
def test_a_run_that_ends_for_its_own_reasons_says_nothing_bad_of_the_service(breakers, store, error):
    for _ in range(6):
        with pytest.raises(type(error)):
            list(run(breakers, error))
    assert failures(store, AGENT) == 0


def test_a_run_whose_time_is_over_says_nothing_good_of_the_service_either(breakers, store, clock):
    outage(breakers, AGENT, AgentUnavailable("gone"))
    clock.pass_s(5)
    left_s = [45.0]
    steps = run(breakers, "Well, ", AgentCapReached("time"), limits=TimeLimit(lambda: left_s[0]))
    next(steps)
    left_s[0] = 0.0
    with pytest.raises(AgentCapReached):
        list(steps)
    assert store.breakers[AGENT].open_since_ms is not None
    assert store.breakers[AGENT].probe is None


def test_a_run_that_reaches_another_cap_has_heard_of_its_service(breakers, store, clock):
    outage(breakers, AGENT, AgentUnavailable("gone"))
    clock.pass_s(5)
    with pytest.raises(AgentCapReached):
        list(run(breakers, AgentCapReached("loop"), limits=TimeLimit(lambda: 20.0)))
    assert store.breakers[AGENT].open_since_ms is None


def test_a_run_that_is_whole_closes_the_breaker(breakers, store, clock):
    outage(breakers, AGENT, AgentUnavailable("gone"))
    clock.pass_s(5)
    assert isinstance(list(run(breakers, "Hello"))[-1], AgentFinished)
    assert store.breakers[AGENT].open_since_ms is None


def test_where_our_own_loop_runs_the_agents_it_is_their_model_that_is_left_alone(breakers):
    outage(breakers, MODEL, ModelBusy("throttled"))
    with pytest.raises(DependencyDown):
        list(run(breakers, "Hello", name=MODEL))


# --- the index ---


def test_an_index_that_keeps_failing_is_not_searched(breakers, store):
    retriever = FixedRetriever(error=IndexUnavailable("no answer"))
    guarded = GuardedRetriever(retriever, breakers)
    for _ in range(5):
        with pytest.raises(IndexUnavailable):
            guarded.search(SearchQuery("Who?", readable=EVERYTHING))
    with pytest.raises(DependencyDown):
        guarded.search(SearchQuery("Who?", readable=EVERYTHING))
    assert len(retriever.queries) == 5


def test_a_question_that_cannot_be_embedded_says_nothing_of_the_index(breakers, store):
    guarded = GuardedRetriever(FixedRetriever(error=ModelUnavailable("no answer")), breakers)
    for _ in range(6):
        with pytest.raises(ModelUnavailable):
            guarded.search(SearchQuery("Who?", readable=EVERYTHING))
    assert store.breakers == {}


def test_a_search_that_goes_well_closes_the_breaker(breakers, store, clock):
    outage(breakers, "index", IndexUnavailable("no answer"))
    clock.pass_s(5)
    guarded = GuardedRetriever(FixedRetriever(passage(1, "Ten.")), breakers)
    assert guarded.search(SearchQuery("Who?", readable=EVERYTHING)).index_version == "v1"
    assert store.breakers["index"].open_since_ms is None


def test_a_version_that_cannot_be_had_counts_against_the_index(breakers, store):
    guarded = GuardedRetriever(FixedRetriever(error=IndexUnavailable("no answer")), breakers)
    for _ in range(5):
        with pytest.raises(IndexUnavailable):
            guarded.version()
    with pytest.raises(DependencyDown):
        guarded.version()


@pytest.mark.parametrize(
    "ask", [lambda guarded: guarded.version(), lambda guarded: guarded.search(SearchQuery("Who?", readable=EVERYTHING))]
)
def test_while_the_index_is_down_its_version_is_the_one_that_was_seen_last(breakers, ask):
    guarded = GuardedRetriever(FixedRetriever(passage(1, "Ten.")), breakers)
    ask(guarded)
    outage(breakers, "index", IndexUnavailable("no answer"))
    assert guarded.version() == "v1"


def test_a_version_that_is_known_is_no_proof_that_the_index_works(breakers, store, clock):
    outage(breakers, "index", IndexUnavailable("no answer"))
    clock.pass_s(5)
    GuardedRetriever(FixedRetriever(passage(1, "Ten.")), breakers).version()
    assert store.breakers["index"].open_since_ms is not None
    assert store.breakers["index"].probe is None


# --- embedders ---


class Embeds:
    model_id = "e"
    dimensions = 2

    def __init__(self, error=None):
        self.error = error
        self.texts = []

    def embed(self, texts, *, time_budget_s):
        self.texts.extend(texts)
        if self.error is not None:
            raise self.error
        return [[1.0, 0.0] for _ in texts]


def test_a_guarded_embedder_is_the_embedder(breakers, store):
    guarded = GuardedEmbedder(Embeds(), breakers)
    assert guarded.embed(["a", "b"], time_budget_s=1) == [[1.0, 0.0], [1.0, 0.0]]
    assert (guarded.model_id, guarded.dimensions) == ("e", 2)
    assert store.breakers == {}


def test_an_embedder_that_keeps_failing_is_unavailable_without_a_call(breakers):
    embedder = Embeds(ModelBusy("throttled"))
    guarded = GuardedEmbedder(embedder, breakers)
    for _ in range(5):
        with pytest.raises(ModelBusy):
            guarded.embed(["a"], time_budget_s=1)
    with pytest.raises(ModelUnavailable, match="embedder:e keeps failing"):  # a search goes by words then
        guarded.embed(["a"], time_budget_s=1)
    assert len(embedder.texts) == 5


def test_an_embedder_that_had_hardly_any_time_is_not_blamed(breakers, store):
    guarded = GuardedEmbedder(Embeds(ModelUnavailable("too slow")), breakers)
    for budget_s, counted in ((FAIR_EMBED_BUDGET_S / 2, 0), (FAIR_EMBED_BUDGET_S, 1)):
        with pytest.raises(ModelUnavailable):
            guarded.embed(["a"], time_budget_s=budget_s)
        assert failures(store, "embedder:e") == counted


# --- the cache ---


def test_a_cache_that_keeps_failing_is_not_asked(breakers, asked):
    cache = FixedCache(UNUSED, error=CacheUnavailable("throttled"))
    guarded = GuardedCache(cache, breakers)
    for _ in range(5):
        with pytest.raises(CacheUnavailable):
            guarded.look_up(asked, "v1", Unlimited(), time_budget_s=1)
    with pytest.raises(DependencyDown):
        guarded.look_up(asked, "v1", Unlimited(), time_budget_s=1)
    assert len(cache.asked) == 5


def test_a_cache_that_answers_closes_its_breaker(breakers, store, clock, asked):
    outage(breakers, "cache", CacheUnavailable("throttled"))
    clock.pass_s(5)
    found = looked("miss")
    cache = FixedCache(found)
    guarded = GuardedCache(cache, breakers)
    assert guarded.look_up(asked, "v1", Unlimited(), time_budget_s=1) is found
    assert store.breakers["cache"].open_since_ms is None


@pytest.fixture
def asked():
    return object()
