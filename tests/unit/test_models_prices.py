"""Model ids, prices, sampling parameters and retries: data and formulas."""

from __future__ import annotations

import datetime

import pytest

from cicada.models.model_ids import ModelName, Sampling, read_model_id
from cicada.models.ports import Usage
from cicada.models.prices import cost, queries
from cicada.models.retries import INTERACTIVE, PATIENT, RetryPolicy

ANSWER = Usage(input_tokens=3000, output_tokens=400)


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("amazon.nova-lite-v1:0", ModelName("amazon.nova-lite-v1:0")),
        ("us.amazon.nova-lite-v1:0", ModelName("amazon.nova-lite-v1:0", "us")),
        ("us-gov.anthropic.claude-sonnet-5", ModelName("anthropic.claude-sonnet-5", "us-gov")),
        ("global.anthropic.claude-opus-5", ModelName("anthropic.claude-opus-5", "global")),
        ("minimax.minimax-m2.1", ModelName("minimax.minimax-m2.1")),
        ("local.extractive", ModelName("local.extractive")),
        (
            "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0",
            ModelName("amazon.titan-embed-text-v2:0"),
        ),
        (
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-micro-v1:0",
            ModelName("amazon.nova-micro-v1:0", "eu"),
        ),
        (
            "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6",
            ModelName("a1b2c3d4e5f6"),
        ),
    ],
)
def test_a_model_id_is_taken_apart(model_id, name):
    assert read_model_id(model_id) == name


@pytest.mark.parametrize(
    ("model_id", "usage", "usd"),
    [
        ("amazon.nova-micro-v1:0", ANSWER, (3000 * 0.035 + 400 * 0.14) / 1e6),
        ("us.amazon.nova-micro-v1:0", ANSWER, (3000 * 0.035 + 400 * 0.14) / 1e6),
        ("eu.amazon.nova-micro-v1:0", ANSWER, (3000 * 0.046 + 400 * 0.184) / 1e6),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", ANSWER, (3000 * 1.1 + 400 * 5.5) / 1e6),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", ANSWER, (3000 * 1.0 + 400 * 5.0) / 1e6),
        ("us-gov.anthropic.claude-sonnet-5-5", ANSWER, (3000 * 2.4 + 400 * 12.0) / 1e6),
        ("global.anthropic.claude-haiku-5-5", ANSWER, (3000 * 0.1 + 400 * 0.5) / 1e6),
        ("global.anthropic.claude-haiku-5-5", Usage(100_000, 400), (100_000 * 0.1 + 400 * 0.5) / 1e6),
        ("global.anthropic.claude-haiku-5-5", Usage(100_001, 400), (100_001 * 0.5 + 400 * 2.5) / 1e6),
        ("amazon.nova-lite-v1:0", Usage(1000, 100, 5000), (1000 * 0.06 + 5000 * 0.015 + 100 * 0.24) / 1e6),
        ("amazon.titan-embed-text-v2:0", Usage(8000), 8000 * 0.02 / 1e6),
        ("local.extractive", ANSWER, 0.0),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", ANSWER, (3000 * 0.8 + 400 * 3.2) / 1e6),
    ],
)
def test_what_a_call_costs(model_id, usage, usd):
    found = cost(model_id, usage)
    assert found is not None
    assert found.usd == pytest.approx(usd, abs=1e-12)


@pytest.mark.parametrize(
    "model_id",
    ["acme.unheard-of-v1:0", "", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6"],
)
def test_an_unknown_price_is_none_and_not_zero(model_id):
    assert cost(model_id, ANSWER) is None


def test_a_cost_carries_the_day_of_its_prices():
    found = cost("amazon.nova-micro-v1:0", ANSWER)
    assert found is not None
    assert datetime.date.fromisoformat(found.price_date) == datetime.date(2026, 11, 20)


def test_sampling_parameters_go_to_a_model_that_is_not_known_to_refuse_them():
    wanted = {"temperature": 0.5, "topP": 0.9}
    assert Sampling().accepted("amazon.nova-lite-v1:0", wanted) == wanted


@pytest.mark.parametrize(
    "model_id",
    [
        "us.anthropic.claude-opus-4-7",
        "anthropic.claude-sonnet-5",
        "eu.anthropic.claude-haiku-5-5",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/global.anthropic.claude-fable-5-1",
    ],
)
def test_newer_models_get_no_sampling_parameter(model_id):
    assert Sampling().accepted(model_id, {"temperature": 0.5, "topP": 0.9}) == {}


def test_a_model_that_takes_one_parameter_gets_top_p_when_it_alone_is_wanted():
    assert Sampling().accepted("anthropic.claude-sonnet-4-6", {"topP": 0.9}) == {"topP": 0.9}
    assert Sampling().accepted("anthropic.claude-sonnet-4-6", {"topP": 0.9, "temperature": 0}) == {"temperature": 0}


def test_what_one_model_refuses_another_may_take():
    sampling = Sampling()
    assert sampling.learn("a.model", {"temperature": 0.5}, "`temperature` is deprecated for this model.")
    assert sampling.accepted("a.model", {"temperature": 0.5}) == {}
    assert sampling.accepted("b.model", {"temperature": 0.5}) == {"temperature": 0.5}


def test_a_refusal_that_names_nothing_that_was_sent_teaches_nothing():
    assert not Sampling().learn("a.model", {"topP": 0.5}, "`temperature` is deprecated for this model.")
    assert not Sampling().learn("a.model", {"temperature": 0.5}, "Input is too long for requested model.")


def test_waits_double_up_to_their_cap_and_are_a_random_share():
    policy = RetryPolicy(max_attempts=None, base_s=1, cap_s=5)
    assert [policy.pause_s(n, left_s=100, share=1) for n in range(1, 6)] == [1, 2, 4, 5, 5]
    assert policy.pause_s(3, left_s=100, share=0.25) == 1
    assert policy.pause_s(100_000, left_s=100, share=1) == 5


def test_a_wait_that_would_use_up_the_budget_is_not_begun():
    policy = RetryPolicy(base_s=2)
    assert policy.pause_s(1, left_s=2.1, share=1) == 2
    assert policy.pause_s(1, left_s=2.0, share=1) is None
    assert policy.pause_s(1, left_s=-1, share=0) is None


def test_a_service_that_asks_to_be_left_alone_is_for_as_long_as_anybody_waits():
    assert PATIENT.pause_s(1, left_s=100, share=0.0, asked_s=30.0) == 30.0
    longer_s = PATIENT.pause_s(1, left_s=100, share=1.0, asked_s=30.0)
    assert longer_s is not None
    assert longer_s > 30.0
    assert PATIENT.pause_s(1, left_s=30, share=0.0, asked_s=30.0) is None
    assert INTERACTIVE.pause_s(1, left_s=100, share=0.0, asked_s=5.0) == 5.0
    assert INTERACTIVE.pause_s(1, left_s=100, share=0.0, asked_s=30.0) is None


def test_an_interactive_call_gives_up_after_a_few_attempts_and_a_load_does_not():
    assert INTERACTIVE.pause_s(5, left_s=1000, share=0.5) is None
    assert PATIENT.pause_s(500, left_s=1000, share=0.5) is not None


def test_a_re_ranking_is_paid_by_the_query_and_a_long_text_counts_as_several():
    assert queries("pump", []) == 0
    assert queries("pump", ["short"] * 100) == 1
    assert queries("pump", ["short"] * 101) == 2
    assert queries("pump", ["word " * 700] * 50) == 2
    price = cost("cohere.rerank-v3-5:0", Usage(queries=3))
    assert price is not None
    assert price.usd == pytest.approx(0.006)
    assert cost("nobody.reranks", Usage(queries=3)) is None
