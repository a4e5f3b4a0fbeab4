"""The strategies, each over fakes of what it needs: RAG and Direct."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from cicada.answering.direct import MAX_OFFERED, DirectStrategy
from cicada.answering.prompt import (
    IN_PARTS,
    NOTHING_FOUND,
    RAG_SYSTEM,
    UNGROUNDED_NOTICE,
    direct_prompt,
    number_sources,
    rag_prompt,
)
from cicada.answering.rag import RagStrategy
from cicada.attempts.budgets import RequestBudget
from cicada.attempts.strategy import Answered, Retrieved
from cicada.delivery.record import Question
from cicada.errors import BudgetSpent, IndexUnavailable, ModelBusy
from cicada.models.ports import Stopped, TextDelta, Usage
from cicada.models.prices import cost
from cicada.protocol.actions import MAX_QUERY_CHARS
from cicada.protocol.events import StrategyFailure
from cicada.retrieval.ports import Degradation, Hit, SearchResult
from cicada.semantic_cache.cache import NoEarlierAnswers
from cicada.text.tokens import estimated_tokens
from tests.support.answers import asked, new_budget, parts, unsearched
from tests.support.questions import FixedRetriever, ScriptedModel, passage

BOATHOUSE = passage(7, "I locked the boathouse at ten.")
QUOTED = 'Mara says: "I locked the boathouse at ten." [1]'
RAG_FAILED = StrategyFailure(strategy="rag", code="index_unavailable", reason="Search is unavailable.")


def rag(retriever, model):
    return RagStrategy(retriever, NoEarlierAnswers(), model, top_k=20, min_score=0.5, prompt_passages=10)


# --- RAG ---


def test_rag_shows_what_it_found_writes_from_it_and_checks_the_citations():
    model = ScriptedModel(QUOTED[:10], QUOTED[10:])
    steps = list(rag(FixedRetriever(BOATHOUSE), model).answer(asked(), new_budget()))
    retrieved, text, answered = parts(steps)
    assert isinstance(steps[0], Retrieved)
    assert isinstance(steps[-1], Answered)
    assert ([source.n for source in retrieved.sources], retrieved.found, retrieved.index_version) == ([1], 1, "v1")
    assert (retrieved.cache_ms, retrieved.reused, retrieved.offered) == (0, None, False)
    assert text == QUOTED
    assert answered.grounded
    assert (answered.stop_reason, answered.model_id, answered.passages_cited) == ("end_turn", model.model_id, 1)
    assert model.prompts[0].system == RAG_SYSTEM


def test_rag_searches_for_the_question_as_it_was_completed_with_its_filters():
    retriever, model = FixedRetriever(BOATHOUSE), ScriptedModel(QUOTED)
    question = Question("And when did she?", collections=("script",), episodes=("ep1",), top_k=3)
    list(rag(retriever, model).answer(asked("When did Mara lock it?", question=question), new_budget()))
    (query,) = retriever.queries
    assert (query.text, query.top_k, query.min_score) == ("When did Mara lock it?", 3, 0.5)
    assert (query.filters.collections, query.filters.episodes) == (("script",), ("ep1",))
    assert "When did Mara lock it?" in model.prompts[0].user


def test_rag_needs_the_index_and_its_model():
    assert rag(FixedRetriever(), ScriptedModel()).needs == ("index", "model:local.extractive")


def test_where_nothing_is_found_code_says_so_and_no_model_is_asked():
    model = ScriptedModel("It was Mara, of course.")
    attempt_budget = new_budget()
    retrieved, text, answered = parts(rag(FixedRetriever(), model).answer(asked(), attempt_budget))
    assert (retrieved.sources, text) == ((), NOTHING_FOUND)
    assert (answered.stop_reason, answered.citations, answered.grounded) == ("nothing_found", (), False)
    assert (model.prompts, attempt_budget.made) == ([], [])


def test_passages_that_a_call_may_not_take_are_dropped_from_the_end():
    found = [passage(n, f"Line {n}. " + "word " * 300) for n in range(1, 11)]
    model = ScriptedModel("No.")
    attempt_budget = new_budget(tokens=4 * 3000)
    retrieved, _, _ = parts(rag(FixedRetriever(*found), model).answer(asked(), attempt_budget))
    kept = len(retrieved.sources)
    assert [source.passage_id for source in retrieved.sources] == [one.id for one in found[:kept]]
    assert (0 < kept < 10, retrieved.found) == (True, 10)
    numbered = number_sources([Hit(one, 0.9) for one in found])
    assert model.prompts == [rag_prompt(asked().query, numbered[:kept])]
    attempt_budget.admit(model.model_id, model.prompts[0], model.max_tokens)
    with pytest.raises(BudgetSpent):
        attempt_budget.admit(model.model_id, rag_prompt(asked().query, numbered[: kept + 1]), model.max_tokens)


def test_a_single_passage_that_is_too_much_fails_the_strategy():
    model = ScriptedModel("never")
    with pytest.raises(BudgetSpent):
        list(rag(FixedRetriever(BOATHOUSE), model).answer(asked(), new_budget(tokens=4 * 600)))
    assert model.prompts == []


def test_a_search_that_fails_fails_rag_before_any_step():
    model = ScriptedModel("never")
    answering = rag(FixedRetriever(error=IndexUnavailable("no answer")), model).answer(asked(), new_budget())
    with pytest.raises(IndexUnavailable):
        next(answering)
    assert model.prompts == []


def test_what_the_search_had_to_do_without_is_passed_on_and_told(caplog):
    caplog.set_level(logging.INFO, "cicada")

    class Degraded(FixedRetriever):
        def search(self, query):
            without = (Degradation("words_only", "By words alone."),)
            return SearchResult(self.hits, "v9", 41, engine="kendra", degraded=without)

    retrieved, _, _ = parts(rag(Degraded(BOATHOUSE), ScriptedModel(QUOTED)).answer(asked(), new_budget()))
    assert [(one.code, one.message) for one in retrieved.degraded] == [("words_only", "By words alone.")]
    told = [record.__dict__ for record in caplog.records if record.step == "retrieved"]
    assert [(one["found"], one["used"], one["searched"], one["engine"]) for one in told] == [(1, 1, 41, "kendra")]
    assert [(one["index_version"], one["degraded"]) for one in told] == [("v9", ["words_only"])]
    assert "boathouse" not in str(told)


@pytest.mark.parametrize("strategy", ["rag", "direct"])
def test_a_stop_ends_a_strategy(strategy):
    model = ScriptedModel("one ", "two ", "three")
    attempt_budget = new_budget()
    answering = {"rag": rag(FixedRetriever(BOATHOUSE), model), "direct": DirectStrategy(model)}[strategy].answer(
        asked(), attempt_budget
    )
    while not isinstance(next(answering), TextDelta):
        pass
    attempt_budget.stop()
    with pytest.raises(Stopped):
        next(answering)


# --- Direct ---


def test_small_talk_is_answered_without_a_notice_and_without_a_source():
    model = ScriptedModel("Hello!")
    strategy = DirectStrategy(model)
    text, answered = unsearched(strategy.answer(asked("Hi"), new_budget()))
    assert text == "Hello!"
    assert (answered.citations, answered.grounded, answered.model_id) == (None, False, model.model_id)
    assert strategy.needs == ()


def test_the_last_resort_says_that_the_script_could_not_be_consulted():
    text, answered = unsearched(
        DirectStrategy(ScriptedModel("I cannot check that.")).answer(asked(failed=(RAG_FAILED,)), new_budget())
    )
    assert text == UNGROUNDED_NOTICE + "I cannot check that."
    assert not answered.grounded


def test_small_talk_whose_first_worker_died_is_still_small_talk():
    lost = StrategyFailure(strategy="direct", code="worker_lost", reason="It was interrupted.")
    text, _ = unsearched(DirectStrategy(ScriptedModel("Hello!")).answer(asked("Hi", failed=(lost,)), new_budget()))
    assert text == "Hello!"


def test_the_last_resort_offers_the_best_passages_that_were_found_and_rests_on_none():
    hits = [Hit(passage(n, f"Line {n}."), n / 10) for n in range(1, 9)]
    model = ScriptedModel("I cannot check that [1].")
    answering = DirectStrategy(model).answer(asked(failed=(RAG_FAILED,), found=number_sources(hits)), new_budget())
    steps = list(answering)
    retrieved, text, answered = parts(steps)
    assert steps[0] is retrieved
    assert (retrieved.offered, retrieved.index_version, retrieved.found) == (True, "v7", 8)
    assert [source.passage_id for source in retrieved.sources] == [f"ep1-000{n}" for n in (8, 7, 6, 5, 4)]
    assert [source.n for source in retrieved.sources] == list(range(1, MAX_OFFERED + 1))
    assert text.startswith(UNGROUNDED_NOTICE)
    assert "sources [1]–[5]" in text
    assert "without reading them" in text
    assert (answered.citations, answered.grounded) == (None, False)
    assert "Line 8" not in model.prompts[0].user


def test_a_single_offered_passage_is_named_as_one():
    (source,) = number_sources([Hit(BOATHOUSE, 0.9)])
    steps = DirectStrategy(ScriptedModel("No.")).answer(asked(failed=(RAG_FAILED,), found=(source,)), new_budget())
    assert "source [1]." in parts(steps)[1]


def test_the_log_is_read_for_passages_only_where_something_failed():
    def found_before():
        raise AssertionError

    unsearched(DirectStrategy(ScriptedModel("Hello!")).answer(asked("Hi", found_before=found_before), new_budget()))


def test_a_direct_answer_by_the_default_settings_costs_less_than_a_tenth_of_a_cent():
    models = json.loads((Path(__file__).parents[2] / "cdk.json").read_text())["context"]["cicada"]["models"]
    prompt = direct_prompt("あ" * MAX_QUERY_CHARS)  # the longest question, a token a character
    tokens = estimated_tokens(prompt.system) + estimated_tokens(prompt.user)
    price = cost(models["directModelId"], Usage(tokens, models["directMaxTokens"]))
    assert price is not None
    assert 0 < price.usd < 0.001


# --- the prompt ---


def test_a_complex_question_is_answered_part_by_part_by_the_same_rules():
    simple, complex_question = rag_prompt("Who?", ()), rag_prompt("Who?", (), in_parts=True)
    assert complex_question.system == simple.system + IN_PARTS
    assert complex_question.user == simple.user


@pytest.mark.parametrize("wording", ["RAG_SYSTEM", "IN_PARTS", "NOTHING_FOUND", "MAX_SOURCE_CHARS"])
def test_the_prompts_version_changes_with_its_wording(monkeypatch, wording):
    from cicada.answering import prompt

    assert prompt._version() == prompt.PROMPT_VERSION
    changed = getattr(prompt, wording)
    monkeypatch.setattr(prompt, wording, changed + (" " if isinstance(changed, str) else 1))
    assert prompt._version() != prompt.PROMPT_VERSION


def test_the_prompts_version_changes_with_the_rendering_of_passages(monkeypatch):
    from cicada.answering import prompt

    monkeypatch.setattr(prompt, "escape", lambda text: text)
    assert prompt._version() != prompt.PROMPT_VERSION


def test_a_strategys_failure_is_the_models():
    with pytest.raises(ModelBusy):
        parts(rag(FixedRetriever(BOATHOUSE), ScriptedModel(ModelBusy("throttled"))).answer(asked(), new_budget()))


def test_the_default_budget_takes_a_full_prompt():
    found = [passage(n, "word " * 400) for n in range(1, 11)]
    retrieved, _, _ = parts(rag(FixedRetriever(*found), ScriptedModel("No.")).answer(asked(), new_budget()))
    assert len(retrieved.sources) == 10
    assert RequestBudget().tokens_a_call == 30_000
