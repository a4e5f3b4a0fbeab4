"""Which questions are the same question: equal but for case, courtesies, end marks and accents left out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import semantic_cache
from cicada.breakers.dependencies import model_breaker
from cicada.errors import ModelUnavailable
from cicada.models.ports import Filled, Usage
from cicada.retrieval.ports import Unlimited
from cicada.semantic_cache.decision import SameQuestion, confirming, thresholds_of
from cicada.settings import AnswerSettings
from cicada.text.sameness import may_be_same, same_question
from tests.support.breakers import Clock, InMemoryBreakers, board
from tests.unit.test_agents_wiring import ENVIRONMENT


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who rang the bell?", "who rang the bell"),
        ("Who rang the bell?", "WHO RANG THE BELL??"),
        ("Who rang the bell?", "Hi there, could you tell me who rang the bell, please? Many thanks!"),
        ("¿Cuál es la clave?", "hola, cual es la clave? gracias"),
        ("Où est la clé ?", "bonjour, ou est la cle svp"),
        ("In welchem Kapitel brennt die Mühle?", "hallo, in welchem kapitel brennt die mühle bitte"),
        ("非常停止ボタンはどこですか?", "すみません、非常停止ボタンはどこですか？"),
        ("急停按钮在哪?", "请问急停按钮在哪？谢谢"),
        ("Who is “Mara”?", 'Who is "Mara"?'),
        ("Is 5% enough?", "is 5 % enough"),
        ("ボールはどこですか?", "ﾎﾞｰﾙはどこですか"),
    ],
)
def test_the_same(one, other):
    assert same_question(one, other)
    assert same_question(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who betrayed Mara?", "Whom did Mara betray?"),
        ("Who rang the bell in episode 3?", "Who rang the bell in episode 4?"),
        ("Is the bell rung?", "Is the bell not rung?"),
        ("What is 2^30?", "What is 230?"),
        ("What is 10² m?", "What is 102 m?"),
        ("What is H₂O?", "What is H 20?"),
        ("What happens at -5 °C?", "What happens at 5 °C?"),
        ("Does it cost $6?", "Does it cost €6?"),
        ("¿Cuántos años tiene, señor?", "¿Cuántos anos tiene, señor?"),
        ("Who walked to the mill?", "Who walked from the mill?"),
        ("What is 5 + 3?", "What is 5 - 3?"),
        ("What is 2 × 3?", "What is 2 ÷ 3?"),
        ("Does it freeze at –5 °C?", "Does it freeze at 5 °C?"),
        ("May it be ≤ 18?", "May it be ≥ 18?"),
        ("Is x != 3?", "Is x = 3?"),
        ("How long is a 6' plank?", 'How long is a 6" plank?'),
        ("How large is １０² m?", "How large is 102 m?"),
        ("What is π²?", "What is π2?"),
        ("ホールは何時に開きますか?", "ボールは何時に開きますか?"),
        ("Где мой дом?", "Где мои дом?"),
        ("मेल कब आया?", "मल कब आया?"),
        ("ใครมา", "ใครม้า"),
        ("Wer ist schon da?", "Wer ist schön da?"),
        ("Well depth?", "Depth?"),
        ("Please Mara", "Mara and Please"),
        ("", ""),
        ("???", "!!!"),
    ],
)
def test_not_the_same(one, other):
    assert not same_question(one, other)


def test_courtesies_alone_are_themselves():
    assert same_question("thanks", "Thanks!")
    assert not same_question("thanks", "hello")


@given(st.text(max_size=80), st.text(max_size=80))
@settings(max_examples=200)
def test_sameness_is_symmetric_for_any_text_and_a_text_with_words_is_itself(one, other):
    assert same_question(one, other) == same_question(other, one)
    assert may_be_same(one, other) == may_be_same(other, one)
    if any(map(str.isalnum, one)) and one.isascii():
        assert same_question(one, one)


class Answers:
    """A structured model with a scripted answer."""

    model_id = "m"
    max_tokens = 64

    def __init__(self, answer):
        self.answer = answer
        self.prompts = []

    def fill(self, prompt, form, *, time_budget_s, call_scope):
        self.prompts.append(prompt)
        call_scope.call()
        if isinstance(self.answer, Exception):
            raise self.answer
        return Filled(self.answer, Usage(30, 3), 1)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (SameQuestion(same=True), True),
        (SameQuestion(same=False), False),
        (ModelUnavailable("down"), False),
    ],
)
def test_a_model_decides_and_its_failure_is_a_no(answer, told):
    model = Answers(answer)
    assert confirming(model)("Who </asked> rang?", "Who rang?", Unlimited()) is told
    assert "</asked> rang" not in model.prompts[0].user


@pytest.fixture
def wiring(monkeypatch):
    """The answer worker's module."""
    monkeypatch.setitem(sys.modules, "agents", SimpleNamespace(build_agents=None))
    path = Path(__file__).parents[2] / "lambdas" / "answer" / "wiring.py"
    spec = importlib.util.spec_from_file_location("answer_wiring", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_answer_is_given_again_only_where_it_would_be_checked_alike(wiring):
    sync = {"GUARDRAIL_ID": "g", "GUARDRAIL_VERSION": "1"}
    checks = [
        {},
        sync,
        {**sync, "GUARDRAIL_VERSION": "2"},
        {**sync, "GUARDRAIL_STREAM": "async"},  # in which personal data is not masked
        {**sync, "GUARDRAIL_GROUNDING": "true"},
    ]
    versions = [wiring._version_of_answers(AnswerSettings.read({**ENVIRONMENT, **one})) for one in checks]
    assert len(set(versions)) == len(checks)


def test_a_model_that_keeps_failing_is_left_alone(wiring):
    model = Answers(SameQuestion(same=True))
    models = SimpleNamespace(structured=lambda *_, **__: model)
    settings = AnswerSettings.read({**ENVIRONMENT, "CACHE_CONFIRM": "model"})
    breakers = board(InMemoryBreakers(), Clock())
    confirm = wiring._confirm(settings, models, breakers)
    assert confirm("Who rang?", "Who rang it?", Unlimited())
    for _ in range(5):
        breakers.failed(model_breaker(model.model_id), ModelUnavailable("down"))
    assert not confirm("Who rang?", "Who rang it?", Unlimited())
    assert len(model.prompts) == 1


def test_the_benchmark_measures_a_model_that_confirms_near_pairs():
    asked = []

    def model(question, earlier, _limits):
        asked.append((question, earlier))
        return True

    thresholds = thresholds_of(semantic_cache.MODEL_ID)
    alone, confirmed = (
        semantic_cache.judge(["brahms"], thresholds, semantic_cache.VECTORS, 40, confirm) for confirm in (None, model)
    )
    more = [with_model for without, with_model in zip(alone, confirmed, strict=True) if without.use != with_model.use]
    assert asked
    assert len(asked) == len(more) == sum(one.asked for one in confirmed)
    assert {one.use for one in more} == {"answer"}
    assert min(one.cosine for one in more) >= thresholds.replay


def test_the_benchmark_counts_an_author(capsys):
    assert semantic_cache.main(["--authors", "brahms", "--most", "40"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("all")
