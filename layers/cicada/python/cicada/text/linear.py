"""Linear classifiers over hashed features, scored without numpy: multinomial logistic regression with 8-bit weights.

The file of a model is one line of JSON (its labels, buckets, scales, biases and temperature), then one signed byte a
label and bucket, the labels of one bucket side by side.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from cicada.text.features import Featured, features_of

FORMAT = 1
"""Of the file."""


@dataclass(frozen=True)
class Decision:
    """What a classifier makes of a text."""

    label: str
    """The most probable."""
    probabilities: Mapping[str, float]
    """Of every label; they add up to 1."""
    telling: tuple[str, ...]
    """Words of the text that speak most for ``label`` against the second most probable, the strongest first."""


class LinearClassifier:
    """A trained classifier. Immutable, and so safe to share between threads."""

    def __init__(
        self, labels: Sequence[str], buckets: int, scale: float, temperature: float, weights: array[int]
    ) -> None:
        """See :func:`dumped` for how a file is made.

        Args:
            labels: in the order of their weights.
            buckets: how many features are told apart.
            scale: what a weight of 1 stands for.
            temperature: what the scores are divided by, so that probabilities are calibrated.
            weights: signed bytes, shape ``(buckets, labels)``, row by row.

        Raises:
            ValueError: the weights are not of that shape.
        """
        if len(weights) != buckets * len(labels):
            raise ValueError(f"{len(weights)} weights for {buckets} buckets and {len(labels)} labels")
        self.labels = tuple(labels)
        self.buckets = buckets
        self._scale = scale / temperature
        self._weights = weights

    @classmethod
    def read(cls, file: Traversable) -> LinearClassifier:
        """Read a model's file. Raises ValueError where it is not one."""
        head, _, body = file.read_bytes().partition(b"\n")
        told = json.loads(head)
        if told.get("format") != FORMAT:
            raise ValueError(f"{file.name}: format {told.get('format')}, not {FORMAT}")
        weights = array("b")
        weights.frombytes(body)
        return cls(told["labels"], told["buckets"], told["scale"], told["temperature"], weights)

    def decide(self, text: str, *, beside: Iterable[str] = (), most_telling: int = 3) -> Decision:
        """Classify a text: deterministic and total, in time that is bounded whatever the text's length.

        Args:
            text: any text.
            beside: further features, see :func:`cicada.text.features.features_of`.
            most_telling: how many words are told at most.
        """
        featured = features_of(text, self.buckets, beside)
        scores = self._scores(featured)
        most = max(scores)
        exponentials = [math.exp(score - most) for score in scores]
        total = math.fsum(exponentials)
        order = sorted(range(len(scores)), key=lambda at: -scores[at])
        telling = self._telling(featured, order[0], order[1], most_telling)
        shares = {label: value / total for label, value in zip(self.labels, exponentials, strict=True)}
        return Decision(self.labels[order[0]], shares, telling)

    def _scores(self, featured: Featured) -> list[float]:
        count = len(self.labels)
        sums = [0] * count
        weights = self._weights
        for bucket, _ in featured.features:
            at = bucket * count
            for label in range(count):
                sums[label] += weights[at + label]
        factor = self._scale / math.sqrt(len(featured.features))
        return [value * factor for value in sums]

    def _telling(self, featured: Featured, first: int, second: int, most: int) -> tuple[str, ...]:
        count = len(self.labels)
        by_word: defaultdict[int, int] = defaultdict(int)
        for bucket, word in featured.features:
            if word >= 0:
                at = bucket * count
                by_word[word] += self._weights[at + first] - self._weights[at + second]
        best = sorted((at for at in by_word if by_word[at] > 0), key=lambda at: -by_word[at])
        shown = (featured.words[at] for at in best if any(map(str.isalnum, featured.words[at])))
        return tuple(dict.fromkeys(shown))[:most]


def dumped(labels: Sequence[str], buckets: int, scale: float, temperature: float, weights: array[int]) -> bytes:
    """The file of a model."""
    head = {"format": FORMAT, "labels": list(labels), "buckets": buckets, "scale": scale, "temperature": temperature}
    return json.dumps(head, sort_keys=True).encode() + b"\n" + weights.tobytes()
