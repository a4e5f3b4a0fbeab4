"""Confidence intervals and p-values: known cases, and how they behave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada_evaluation.confidence import mean_interval, paired_difference

FEW = 2_000


def test_equal_values_leave_no_doubt() -> None:
    found = mean_interval([0.25] * 30, resamples=FEW)
    assert (found.mean, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25))


def test_an_interval_of_many_values_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(5).normal(0.5, 0.1, 400)
    found = mean_interval(values.tolist(), resamples=10_000)
    error = values.std() / 20
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=error / 10)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=error / 10)


def test_the_same_seed_gives_the_same_interval_and_another_one_not() -> None:
    values = [0.0, 0.3, 0.9, 1.0, 0.2]
    assert mean_interval(values, seed=3, resamples=FEW) == mean_interval(values, seed=3, resamples=FEW)
    many = np.random.default_rng(1).random(50).tolist()
    assert mean_interval(many, seed=3, resamples=FEW) != mean_interval(many, seed=4, resamples=FEW)


def test_a_difference_on_every_query_is_no_chance() -> None:
    found = paired_difference([0.1] * 20, resamples=FEW)
    assert found.p_value == pytest.approx(1 / (FEW + 1))  # 2 of 2**20 assignments of signs are as far from 0
    assert found.interval.low > 0


def test_p_is_the_share_of_signs_that_do_as_much() -> None:
    # of the 8 assignments of signs to three equal differences, 2 have a mean as far from 0
    assert paired_difference([0.2, 0.2, 0.2], resamples=20_000).p_value == pytest.approx(2 / 8, abs=0.02)


def test_no_difference_at_all_is_all_chance() -> None:
    found = paired_difference([0.0] * 10, resamples=FEW)
    assert found.p_value == 1
    assert (found.interval.low, found.interval.high) == (0, 0)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_its_mean_and_stays_within_the_values(values: list[float]) -> None:
    found = mean_interval(values, resamples=200)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert min(values) - 1e-9 <= found.mean <= max(values) + 1e-9


@settings(max_examples=25)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_swapping_the_systems_turns_the_difference_round(differences: list[float]) -> None:
    one = paired_difference(differences, resamples=200)
    other = paired_difference([-value for value in differences], resamples=200)
    assert one.p_value == other.p_value
    assert one.interval.mean == -other.interval.mean
