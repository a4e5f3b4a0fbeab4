"""Multinomial logistic regression over hashed features, fitted the same to the last bit on every run.

Nothing here uses BLAS, whose sums depend on the processor: products are SciPy's sparse loops, the rest is elementwise,
and the number of steps is fixed.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from cicada.text.features import features_of
from cicada.text.linear import LinearClassifier

STEPS = 300
"""Steps of accelerated gradient descent: the loss changes in its seventh digit by then."""
_LARGEST = 127
_TEMPERATURES = tuple(round(0.3 + 0.05 * step, 2) for step in range(40))


def matrix_of(texts: Sequence[str], buckets: int, beside: Sequence[Sequence[str]] | None = None) -> csr_matrix:
    """The texts' features, each row of length 1: shape ``(len(texts), buckets)``."""
    given = beside if beside is not None else [()] * len(texts)
    found = (features_of(text, buckets, names).features for text, names in zip(texts, given, strict=True))
    rows = [sorted(feature.bucket for feature in features) for features in found]
    values = np.concatenate([np.full(len(row), 1.0 / math.sqrt(len(row))) for row in rows])
    starts = np.cumsum([0, *(len(row) for row in rows)])
    return csr_matrix((values, np.concatenate([np.array(row) for row in rows]), starts), shape=(len(texts), buckets))


def fitted(
    features: csr_matrix,
    labels: Sequence[str],
    names: Sequence[str],
    *,
    decay: float,
    weights: Sequence[float] | None = None,
) -> NDArray[np.float64]:
    """The weights that minimise the mean cross-entropy plus ``decay / 2`` times their squared length.

    Args:
        features: shape ``(n, buckets)``, rows of length 1 at most.
        labels: of each row.
        names: the labels in the order of the result's columns.
        decay: of the weights.
        weights: of each row; equal if none are given.

    Returns:
        shape ``(buckets, len(names))``.

    Source: Nesterov, Introductory Lectures on Convex Optimization, section 2.2 (constant step, strongly convex).
    """
    share = np.asarray(weights if weights is not None else np.ones(len(labels)), dtype=np.float64)
    share = share / math.fsum(share.tolist())
    wanted = np.zeros((len(labels), len(names)))
    wanted[np.arange(len(labels)), [names.index(label) for label in labels]] = 1.0
    steepest = float(share.max()) * len(labels) * _largest_eigenvalue(features) / len(labels) / 2 + decay
    slow = math.sqrt(decay / steepest)
    momentum = (1 - slow) / (1 + slow)
    transposed = features.T.tocsr()
    at = before = np.zeros((features.shape[1], len(names)))
    for _ in range(STEPS):
        ahead = at + momentum * (at - before)
        missing = (_softmax(features @ ahead) - wanted) * share[:, None]
        before, at = at, ahead - (transposed @ missing + decay * ahead) / steepest
    return at


def quantised(weights: NDArray[np.float64]) -> tuple[float, array[int]]:
    """The weights as signed bytes, row by row, and what a weight of 1 stands for."""
    scale = float(np.abs(weights).max()) / _LARGEST
    return scale, array("b", np.rint(weights / scale).astype(np.int8).ravel().tolist())


def tempered(
    names: Sequence[str],
    buckets: int,
    scale: float,
    packed: array[int],
    texts: Sequence[str],
    labels: Sequence[str],
    beside: Sequence[Sequence[str]],
) -> float:
    """The temperature under which the classifier's probabilities of the true labels are likeliest.

    Source: Guo et al., On Calibration of Modern Neural Networks, 2017, section 4.2.
    """

    def loss(temperature: float) -> float:
        model = LinearClassifier(names, buckets, scale, temperature, packed)
        return -math.fsum(
            math.log(max(model.decide(text, beside=given).probabilities[label], 1e-12))
            for text, label, given in zip(texts, labels, beside, strict=True)
        )

    return min(_TEMPERATURES, key=loss)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row by row, by the C library's exponential: numpy's own differs in its last bit between processors."""
    raised = np.array([math.exp(score) for score in (scores - scores.max(axis=1)[:, None]).ravel().tolist()])
    raised = raised.reshape(scores.shape)
    total = raised[:, 0].copy()
    for column in range(1, raised.shape[1]):
        total += raised[:, column]
    return raised / total[:, None]


def _largest_eigenvalue(features: csr_matrix) -> float:
    """An upper estimate of that of ``features.T @ features``, by 30 steps of the power method and a margin."""
    transposed = features.T.tocsr()
    vector = np.ones(features.shape[1])
    value = 1.0
    for _ in range(30):
        vector = transposed @ (features @ vector)
        value = math.sqrt(math.fsum((vector * vector).tolist()))
        vector = vector / value
    return 1.1 * value
