"""How sure a mean over queries is: bootstrap intervals, and a randomisation test for the difference of two systems.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993 (percentile intervals); Smucker, Allan and
Carterette, "A comparison of statistical significance tests for information retrieval evaluation", 2007 (Fisher's
randomisation test on paired differences).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 10_000
CONFIDENCE = 0.95
_BLOCK_VALUES = 2_000_000
"""Random numbers held at once: 16 MB, whatever the number of queries."""
_ROUNDING = 1e-12
"""Two means that differ by less are the same: their sums were only added up in another order."""


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, its 95 % confidence interval, and what chance alone would do."""

    interval: Interval
    p_value: float  # how often differences of random sign have a mean as far from 0, in (0, 1]; two-sided


def mean_interval(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The mean of at least one value, and its percentile bootstrap interval over queries.

    Args:
        values: one a query.
        seed: of the random numbers: the same values and seed give the same interval.
        resamples: bootstrap samples.
    """
    sample = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    count = len(sample)
    means = np.concatenate(
        [sample[rng.integers(0, count, (block, count))].mean(axis=1) for block in _blocks(count, resamples)]
    )
    low, high = np.quantile(means, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Interval(float(sample.mean()), float(low), float(high))


def paired_difference(differences: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Difference:
    """Test at least one paired difference (a query's value in one system less that in the other).

    Args:
        differences: one a query.
        seed: of the random numbers.
        resamples: bootstrap samples, and random assignments of signs.
    """
    sample = np.asarray(differences, dtype=np.float64)
    observed = abs(float(sample.mean())) - _ROUNDING
    rng = np.random.default_rng(seed)
    count = len(sample)
    as_far = 0
    for block in _blocks(count, resamples):
        signs = rng.integers(0, 2, (block, count)) * 2 - 1
        as_far += int((np.abs((signs * sample).mean(axis=1)) >= observed).sum())
    p_value = (as_far + 1) / (resamples + 1)  # the observed assignment is one of those that could have been drawn
    return Difference(mean_interval(differences, seed=seed, resamples=resamples), p_value)


def _blocks(count: int, resamples: int) -> Iterator[int]:
    """The resamples, in pieces that fit into memory."""
    size = max(1, _BLOCK_VALUES // count)
    for start in range(0, resamples, size):
        yield min(size, resamples - start)
