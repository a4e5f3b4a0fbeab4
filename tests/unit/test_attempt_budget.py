"""What an attempt may spend."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.attempts.budgets import AttemptBudget, ModelCall, RequestBudget, SubBudget
from cicada.delivery.record import RequestSpend
from cicada.errors import BudgetSpent
from cicada.models.ports import Prompt, Usage
from cicada.models.prices import cost
from cicada.text.tokens import estimated_tokens

SMALL = "us.amazon.nova-micro-v1:0"


def attempt_budget(**options):
    given: dict[str, Any] = {"calls": 2, "deadline": 10.0, "monotonic": lambda: 4.0}
    return AttemptBudget("rag", **(given | options))


def call(model_id=SMALL, calls=1, usage=None):
    return ModelCall("answer", model_id, calls, usage or Usage(100, 10), took_ms=5, first_piece_ms=1)


def usd(usage):
    """What the small model costs."""
    told = cost(SMALL, usage)
    assert told is not None
    return told.usd


def test_no_more_calls_go_out_than_were_allotted():
    new_budget = attempt_budget(calls=2)
    new_budget.call()
    new_budget.call()
    assert new_budget.calls_left == 0
    with pytest.raises(BudgetSpent):
        new_budget.call()


def test_the_time_left_is_counted_from_the_clock():
    assert attempt_budget().time_left_s() == 6.0


def test_a_call_may_take_its_share_of_the_requests_tokens_and_no_more():
    new_budget = attempt_budget(budget=RequestBudget(tokens=4_000))
    new_budget.admit(SMALL, Prompt("", "x" * 1_400), 600)
    with pytest.raises(BudgetSpent, match=r"1001 tokens; (the limit is )?1000"):
        new_budget.admit(SMALL, Prompt("", "x" * 1_400), 601)


def test_a_call_may_cost_its_share_of_the_requests_money_and_no_more():
    new_budget = attempt_budget(budget=RequestBudget(cost_usd=0.0004))
    new_budget.admit(SMALL, Prompt("", "x" * 3_500), 100)
    with pytest.raises(BudgetSpent, match="USD"):
        new_budget.admit(SMALL, Prompt("", "x" * 3_500), 2_000)


def test_a_model_without_a_price_is_held_by_its_tokens_alone():
    attempt_budget(budget=RequestBudget(cost_usd=0.0)).admit("somebody.unknown-v1", Prompt("", "x"), 100)


def test_tokens_and_cost_are_summed_over_all_calls():
    new_budget = attempt_budget()
    new_budget.note(call(calls=2))
    new_budget.note(call(usage=Usage(50, 5)))
    assert (new_budget.spent.calls, new_budget.spent.input_tokens, new_budget.spent.output_tokens) == (3, 150, 15)
    one = attempt_budget()
    one.note(call(usage=Usage(150, 15)))
    assert new_budget.spent.usd == pytest.approx(one.spent.usd)
    assert new_budget.spent.usd > 0


def test_an_attempt_that_called_no_model_cost_nothing():
    assert attempt_budget().spent == RequestSpend(0, 0, 0, 0.0)


@pytest.mark.parametrize("unknown", [call("somebody.unknown-v1"), call(usage=Usage(reported=False))])
def test_what_is_not_known_is_not_guessed(unknown):
    new_budget = attempt_budget()
    new_budget.note(call())
    new_budget.note(unknown)
    assert (new_budget.spent.usd, new_budget.spent.calls) == (None, 2)


def test_a_call_that_never_went_out_cost_nothing():
    new_budget = attempt_budget()
    new_budget.note(call(calls=0, usage=Usage(reported=False)))
    assert new_budget.spent.usd == 0


def test_a_stop_wakes_everybody_who_waits_and_everybody_who_comes_later():
    new_budget = attempt_budget()
    woken = []
    new_budget.on_stop(lambda: woken.append("first"))
    forget = new_budget.on_stop(lambda: woken.append("gone"))
    forget()
    forget()
    new_budget.stop()
    new_budget.stop()
    new_budget.on_stop(lambda: woken.append("late"))()
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
    new_budget = SubBudget("retrieval", calls=3, tokens=1_000, cost_usd=1.0)
    most = Usage(900, 100)
    new_budget.allow("local.m", most)
    with pytest.raises(BudgetSpent):
        new_budget.allow("local.m", Usage(1))
    new_budget.settle("local.m", most, Usage(250, 50))
    new_budget.allow("local.m", Usage(700))
    with pytest.raises(BudgetSpent):
        new_budget.allow("local.m", Usage(1))


def test_what_a_call_did_not_cost_is_there_again_and_no_more():
    new_budget = SubBudget("retrieval", calls=3, tokens=10**9, cost_usd=usd(Usage(100_000)))
    new_budget.allow(SMALL, Usage(100_000))
    with pytest.raises(BudgetSpent, match="USD"):
        new_budget.allow(SMALL, Usage(100))
    new_budget.settle(SMALL, Usage(100_000), Usage(40_000))
    with pytest.raises(BudgetSpent, match="USD"):
        new_budget.allow(SMALL, Usage(60_100))
    new_budget.allow(SMALL, Usage(59_900))


def test_what_a_call_took_beyond_what_it_was_allowed_is_taken_from_the_rest():
    new_budget = SubBudget("agent", calls=3, tokens=1_000, cost_usd=usd(Usage(1_000)))
    new_budget.allow(SMALL, Usage(100))
    new_budget.settle(SMALL, Usage(100), Usage(400))
    with pytest.raises(BudgetSpent, match=r"601 tokens; (the limit is )?600"):
        new_budget.allow(SMALL, Usage(601))
    new_budget.settle("local.m", Usage(10_000), Usage())  # gives back tokens alone
    with pytest.raises(BudgetSpent, match="USD"):
        new_budget.allow(SMALL, Usage(610))
    new_budget.allow(SMALL, Usage(590))


@pytest.mark.parametrize("unknown", [call(usage=Usage(reported=False)), call("somebody.unknown-v1")])
def test_of_what_is_not_known_an_agent_is_charged_a_whole_share(unknown):
    allotted = attempt_budget(calls=2, budget=RequestBudget(tokens=10**9, cost_usd=4 * usd(Usage(100_000))))
    allotted.note(unknown)
    agents = allotted.agent_sub_budget()
    with pytest.raises(BudgetSpent, match="USD"):
        agents.allow(SMALL, Usage(100_100))
    agents.allow(SMALL, Usage(99_900))
