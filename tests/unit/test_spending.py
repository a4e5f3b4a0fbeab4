"""What an attempt may spend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.answering.spending import Allowance, ModelCall, RequestBudget, Spending
from cicada.delivery.record import Spent
from cicada.errors import BudgetSpent
from cicada.models.ports import Prompt, Usage
from cicada.text.token_estimates import estimated_tokens

SMALL = "us.amazon.nova-micro-v1:0"


def spending(**options):
    return Spending("rag", **({"calls": 2, "deadline": 10.0, "monotonic": lambda: 4.0} | options))


def call(model_id=SMALL, calls=1, usage=None):
    return ModelCall("answer", model_id, calls, usage or Usage(100, 10), took_ms=5, first_piece_ms=1)


def test_no_more_calls_go_out_than_were_allotted():
    allowance = spending(calls=2)
    allowance.call()
    allowance.call()
    assert allowance.calls_left == 0
    with pytest.raises(BudgetSpent):
        allowance.call()


def test_the_time_left_is_counted_from_the_clock():
    assert spending().time_left_s() == 6.0


def test_a_call_may_take_its_share_of_the_requests_tokens_and_no_more():
    allowance = spending(budget=RequestBudget(tokens=4_000))
    allowance.admit(SMALL, Prompt("", "x" * 1_400), 600)
    with pytest.raises(BudgetSpent, match="1001 tokens of 1000"):
        allowance.admit(SMALL, Prompt("", "x" * 1_400), 601)


def test_a_call_may_cost_its_share_of_the_requests_money_and_no_more():
    allowance = spending(budget=RequestBudget(cost_usd=0.0004))
    allowance.admit(SMALL, Prompt("", "x" * 3_500), 100)
    with pytest.raises(BudgetSpent, match="USD"):
        allowance.admit(SMALL, Prompt("", "x" * 3_500), 2_000)


def test_a_model_without_a_price_is_held_by_its_tokens_alone():
    spending(budget=RequestBudget(cost_usd=0.0)).admit("somebody.unknown-v1", Prompt("", "x"), 100)


def test_tokens_and_cost_are_summed_over_all_calls():
    allowance = spending()
    allowance.note(call(calls=2))
    allowance.note(call(usage=Usage(50, 5)))
    assert (allowance.spent.calls, allowance.spent.input_tokens, allowance.spent.output_tokens) == (3, 150, 15)
    one = spending()
    one.note(call(usage=Usage(150, 15)))
    assert allowance.spent.usd == pytest.approx(one.spent.usd)
    assert allowance.spent.usd > 0


def test_an_attempt_that_called_no_model_cost_nothing():
    assert spending().spent == Spent(0, 0, 0, 0.0)


@pytest.mark.parametrize("unknown", [call("somebody.unknown-v1"), call(usage=Usage(reported=False))])
def test_what_is_not_known_is_not_guessed(unknown):
    allowance = spending()
    allowance.note(call())
    allowance.note(unknown)
    assert (allowance.spent.usd, allowance.spent.calls) == (None, 2)


def test_a_call_that_never_went_out_cost_nothing():
    allowance = spending()
    allowance.note(call(calls=0, usage=Usage(reported=False)))
    assert allowance.spent.usd == 0


def test_a_stop_wakes_everybody_who_waits_and_everybody_who_comes_later():
    allowance = spending()
    woken = []
    allowance.on_stop(lambda: woken.append("first"))
    forget = allowance.on_stop(lambda: woken.append("gone"))
    forget()
    forget()
    allowance.stop()
    allowance.stop()
    allowance.on_stop(lambda: woken.append("late"))()
    assert woken == ["first", "late"]


@given(st.text())
def test_the_estimate_of_a_text_is_between_nothing_and_a_token_a_character(text):
    assert 0 <= estimated_tokens(text) <= len(text)


def test_text_beyond_ascii_counts_a_token_a_character():
    assert estimated_tokens("ボート小屋") == 5
    assert estimated_tokens("x" * 350) == 100


def test_digits_and_signs_count_a_token_each():
    assert estimated_tokens("1 234,56") == 7


def test_what_a_call_did_not_take_is_there_again_and_no_more():
    allowance = Allowance("retrieval", calls=3, tokens=1_000, cost_usd=1.0)
    most = Usage(900, 100)
    allowance.allow("local.m", most)
    with pytest.raises(BudgetSpent):
        allowance.allow("local.m", Usage(1))
    allowance.settle("local.m", most, Usage(250, 50))
    allowance.allow("local.m", Usage(700))
    with pytest.raises(BudgetSpent):
        allowance.allow("local.m", Usage(1))
