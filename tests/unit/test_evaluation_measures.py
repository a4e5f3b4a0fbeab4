"""The measures, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from cicada_evaluation.measures import measure, measure_names

pytest.importorskip("ir_measures")

DISCOUNT = [1 / math.log2(rank + 1) for rank in range(1, 11)]


def of(gains: dict[str, int], ranking: list[str], recall: tuple[int, ...] = (2, 10)) -> dict[str, float]:
    values = measure({"q": gains}, {"q": ranking}, recall)
    return {name: by_query["q"] for name, by_query in values.items()}


def test_graded_gains_are_discounted_by_rank_and_held_against_the_ideal_order() -> None:
    # found: gain 1 at rank 1, gain 3 at rank 3; ideal: 3, 2, 1
    found = of({"a": 3, "b": 2, "c": 1}, ["c", "x", "a"])
    ideal = 3 * DISCOUNT[0] + 2 * DISCOUNT[1] + 1 * DISCOUNT[2]
    assert found["ndcg@10"] == pytest.approx((1 * DISCOUNT[0] + 3 * DISCOUNT[2]) / ideal)
    assert found["ndcg@10"] == pytest.approx(0.5250, abs=1e-4)


def test_recall_is_the_share_of_all_relevant_documents() -> None:
    found = of({"a": 1, "b": 1, "c": 1}, ["a", "x", "b"])
    assert found["recall@2"] == pytest.approx(1 / 3)
    assert found["recall@10"] == pytest.approx(2 / 3)


def test_mrr_is_one_over_the_first_relevant_rank_up_to_ten() -> None:
    others = [f"x{number}" for number in range(10)]
    assert of({"a": 1}, [*others[:3], "a"])["mrr@10"] == pytest.approx(1 / 4)
    assert of({"a": 1}, [*others[:9], "a"])["mrr@10"] == pytest.approx(1 / 10)
    assert of({"a": 1}, [*others, "a"])["mrr@10"] == 0


def test_what_was_judged_not_to_be_relevant_counts_as_not_judged() -> None:
    assert of({"a": 1, "x": 0}, ["x", "a"]) == of({"a": 1}, ["y", "a"])


def test_the_order_of_a_ranking_holds_whatever_the_names_are() -> None:
    assert of({"a": 1}, ["z", "a"])["mrr@10"] == of({"z": 1}, ["a", "z"])["mrr@10"] == 0.5


def test_a_query_that_found_nothing_is_measured_as_zero() -> None:
    values = measure({"p": {"a": 1}, "q": {"a": 1}}, {"p": ["a"], "q": []}, (10,))
    assert values["ndcg@10"] == {"p": 1.0, "q": 0.0}
    assert values["mrr@10"] == {"p": 1.0, "q": 0.0}
    assert values["recall@10"] == {"p": 1.0, "q": 0.0}


def test_every_measure_that_is_named_is_measured_in_that_order() -> None:
    assert (
        tuple(of({"a": 1}, ["a"], (100, 5)))
        == measure_names((100, 5))
        == (
            "ndcg@10",
            "recall@5",
            "recall@100",
            "mrr@10",
        )
    )
