"""Multinomial logistic regression over hashed features, fitted the same to the last bit on every run.

Nothing here uses BLAS, whose sums depend on the processor: products are SciPy's sparse loops, the rest is elementwise,
and the number of steps is fixed.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from cicada.text.features import Featuring, features_of

STEPS = 120
"""Steps of accelerated gradient descent. More of them come nearer to the minimum, and do no better on other authors."""
SEEN_BEFORE = 1.0
"""Sentences that each feature counts as having been seen in, with and without each label, before any is read."""
LEAST_SENTENCES = 2
"""Sentences that must share a feature for it to have a weight: the features of one sentence alone tell nothing."""
BARE_SHARE = 0.3
"""How much the bare form of a sentence counts beside the sentence itself."""
_PUNCTUATION = re.compile(r"[?.!,;:¿¡。？！、，：；]")
_LARGEST = 127
_TEMPERATURES = tuple(round(0.3 + 0.05 * step, 2) for step in range(40))


def bare(text: str) -> str:
    """A text as it is typed in haste: without capitals and punctuation."""
    return " ".join(_PUNCTUATION.sub(" ", text.lower()).split())


def matrix_of(
    texts: Sequence[str], buckets: int, beside: Sequence[Sequence[str]], featuring: Featuring = features_of
) -> csr_matrix:
    """The texts' features, each row of length 1: shape ``(len(texts), buckets)``."""
    found = (featuring(text, buckets, given).features for text, given in zip(texts, beside, strict=True))
    rows = [sorted(feature.bucket for feature in features) for features in found]
    values = np.concatenate([np.full(len(row), 1.0 / math.sqrt(len(row))) for row in rows])
    starts = np.cumsum([0, *(len(row) for row in rows)])
    return csr_matrix((values, np.concatenate([np.array(row) for row in rows]), starts), shape=(len(texts), buckets))


def sentences_of(
    texts: Sequence[str],
    buckets: int,
    beside: Sequence[Sequence[str]],
    weights: Sequence[float],
    featuring: Featuring = features_of,
    in_haste: Callable[[str], str] = bare,
) -> tuple[list[int], csr_matrix, list[float]]:
    """What a classifier is fitted to: each text as it stands and, counting less, in its bare form.

    Args:
        texts: the sentences.
        buckets: features are hashed into this many.
        beside: of each text, further features.
        weights: of each text.
        featuring: makes a text's features.
        in_haste: gives the bare form of a text.

    Returns:
        the buckets that enough texts share, in ascending order; the features in these buckets, shape
        ``(2 * len(texts), len(buckets))``; the weights of its rows.
    """
    plain = matrix_of(texts, buckets, beside, featuring)
    stripped = matrix_of([in_haste(text) for text in texts], buckets, beside, featuring)
    seen = np.asarray(((plain + stripped) > 0).sum(axis=0)).ravel()
    shared = np.flatnonzero(seen >= LEAST_SENTENCES)
    matrix = vstack([plain, stripped]).tocsr()[:, shared]
    return shared.tolist(), matrix, [*weights, *(BARE_SHARE * weight for weight in weights)]


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

    Source: Nesterov's accelerated gradients, restarted where they overshoot: O'Donoghue and Candès, Adaptive Restart
    for Accelerated Gradient Schemes, 2015, section 3.2.
    """
    share = np.asarray(weights if weights is not None else np.ones(len(labels)), dtype=np.float64)
    share = share / math.fsum(share.tolist())
    wanted = np.zeros((len(labels), len(names)))
    wanted[np.arange(len(labels)), [names.index(label) for label in labels]] = 1.0
    steepest = _largest_eigenvalue(features.multiply(np.sqrt(share)[:, None]).tocsr()) / 2 + decay
    transposed = features.T.tocsr()
    at = ahead = np.zeros((features.shape[1], len(names)))
    inertia = 1.0
    for _ in range(STEPS):
        missing = (_softmax(features @ ahead) - wanted) * share[:, None]
        slope = transposed @ missing + decay * ahead
        before, at = at, ahead - slope / steepest
        if math.fsum((slope * (at - before)).ravel().tolist()) > 0:
            inertia, ahead = 1.0, at
            continue
        following = (1 + math.sqrt(1 + 4 * inertia * inertia)) / 2
        ahead = at + (inertia - 1) / following * (at - before)
        inertia = following
    return at


def tellings(features: csr_matrix, labels: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
    """How much each feature tells of a label: the square root of its largest log-odds, scaled to a mean square of 1.

    Features that tell more are multiplied by more before the weights are fitted, so that their weights are held less.

    Args:
        features: shape ``(n, buckets)``.
        labels: of each row.
        names: the labels.

    Returns:
        shape ``(buckets,)``.

    Source: Wang and Manning, Baselines and Bigrams: Simple, Good Sentiment and Topic Classification, 2012 (they
    multiply by the log-odds themselves).
    """
    seen = (features > 0).astype(np.float64).tocsr()
    everywhere = np.asarray(seen.sum(axis=0)).ravel()
    best = np.zeros(features.shape[1])
    for name in names:
        mine = np.array([label == name for label in labels])
        inside = np.asarray(seen[mine].sum(axis=0)).ravel()
        share, others = int(mine.sum()), len(labels) - int(mine.sum())
        odds = (inside + SEEN_BEFORE) / share / ((everywhere - inside + SEEN_BEFORE) / others)
        best = np.maximum(best, np.array([abs(math.log(one)) for one in odds.tolist()]))
    scale = np.sqrt(best)
    return scale / math.sqrt(math.fsum((scale[features.indices] ** 2).tolist()) / len(features.indices))


def quantised(weights: NDArray[np.float64], most: int) -> tuple[list[int], float, array[int]]:
    """The rows with the largest weights, at most so many, as signed bytes.

    Returns:
        the rows that are kept, in ascending order; what a weight of 1 stands for; their weights, row by row.
    """
    scale = float(np.abs(weights).max()) / _LARGEST
    packed = np.rint(weights / scale).astype(np.int8)
    largest = np.abs(weights).max(axis=1)
    order = [row for row in np.argsort(-largest, kind="stable").tolist() if packed[row].any()]
    kept = sorted(order[:most])
    return kept, scale, array("b", packed[kept].ravel().tolist())


def tempered(probabilities: Sequence[Mapping[str, float]], labels: Sequence[str]) -> float:
    """The temperature under which probabilities that were computed at temperature 1 are likeliest for the true labels.

    Source: Guo et al., On Calibration of Modern Neural Networks, 2017, section 4.2.
    """
    scores = [{name: math.log(max(share, 1e-300)) for name, share in one.items()} for one in probabilities]

    def loss(temperature: float) -> float:
        return math.fsum(
            math.log(math.fsum(math.exp((score - one[label]) / temperature) for score in one.values()))
            for one, label in zip(scores, labels, strict=True)
        )

    return min(_TEMPERATURES, key=loss)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row by row, by the C library's exponential: numpy's own differs in its last bit between processors."""
    shifted = (scores - scores.max(axis=1)[:, None]).ravel().tolist()
    raised: NDArray[np.float64] = np.array([math.exp(score) for score in shifted]).reshape(scores.shape)
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
