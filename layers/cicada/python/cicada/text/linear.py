"""Linear classifiers over hashed features, scored without numpy: multinomial logistic regression with 8-bit weights.

The file of a model is one line of JSON (its labels, buckets, scale, temperature and number of rows), then its rows: the
buckets that have weights, in ascending order. First the distance of each row's bucket from the one before (a byte each;
rows of zeros bridge what is longer), then the weights, a signed byte a label, row by row.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import accumulate

from cicada.text.characters import HIRAGANA
from cicada.text.features import Featured, Featuring, features_of

FORMAT = 2  # of the file
_LONGEST_STEP = 255


@dataclass(frozen=True)
class Decision:
    """The classification of a text."""

    label: str  # the most probable
    probabilities: Mapping[str, float]  # of every label; they add up to 1
    telling: tuple[str, ...]
    """Words of the text that speak most for ``label`` against the second most probable, the strongest first."""


class LinearClassifier:
    """A trained classifier. Immutable, and so safe to share between threads."""

    def __init__(
        self,
        labels: Sequence[str],
        buckets: int,
        scale: float,
        temperature: float,
        rows: Sequence[int],
        weights: array[int],
        featuring: Featuring = features_of,
    ) -> None:
        """``scale``: of a weight of 1; ``temperature``: divides the scores, to calibrate probabilities; ``rows``: the
        buckets with weights; ``weights``: signed bytes, shape ``(len(rows), len(labels))``, row by row; ``featuring``:
        as in training. Raises ValueError if the weights have another shape."""
        if len(weights) != len(rows) * len(labels):
            raise ValueError(f"{len(weights)} weights for {len(rows)} rows and {len(labels)} labels")
        self.labels = tuple(labels)
        self.buckets = buckets
        self._scale = scale / temperature
        self._weights = weights
        self._featuring = featuring
        self._starts = dict(zip(rows, range(0, len(weights), len(labels)), strict=True))

    @classmethod
    @cache
    def of(cls, package: str, name: str, featuring: Featuring = features_of) -> LinearClassifier:
        """A trained model in a package, read once."""
        return cls.read(files(package) / f"{name}.bin", featuring)

    @classmethod
    def read(cls, file: Traversable, featuring: Featuring = features_of) -> LinearClassifier:
        """Read a model's file. Raises ValueError for another format."""
        head, _, body = file.read_bytes().partition(b"\n")
        told = json.loads(head)
        if told.get("format") != FORMAT:
            raise ValueError(f"{file.name}: format {told.get('format')}, not {FORMAT}")
        rows = list(accumulate(body[: told["rows"]]))
        weights = array("b")
        weights.frombytes(body[told["rows"] :])
        return cls(told["labels"], told["buckets"], told["scale"], told["temperature"], rows, weights, featuring)

    def decide(self, text: str, *, beside: Iterable[str] = (), most_telling: int = 3) -> Decision:
        """Classify any text, deterministically and in bounded time; ``beside``: more features, see
        :mod:`cicada.text.features`; ``most_telling``: at most so many telling words."""
        featured = self._featuring(text, self.buckets, beside)
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
        weights, starts = self._weights, self._starts
        for bucket, _ in featured.features:
            start = starts.get(bucket)
            if start is not None:
                for label in range(count):
                    sums[label] += weights[start + label]
        factor = self._scale / math.sqrt(len(featured.features))
        return [value * factor for value in sums]

    def _telling(self, featured: Featured, first: int, second: int, most: int) -> tuple[str, ...]:
        by_word: defaultdict[int, int] = defaultdict(int)
        for bucket, word in featured.features:
            start = self._starts.get(bucket)
            if word >= 0 and start is not None:
                by_word[word] += self._weights[start + first] - self._weights[start + second]
        best = sorted((at for at in by_word if by_word[at] > 0), key=lambda at: -by_word[at])
        words = (featured.words[at] for at in best)
        shown = (word for word in words if any(map(str.isalnum, word)) and not HIRAGANA.fullmatch(word))
        return tuple(dict.fromkeys(shown))[:most]


def dumped(
    labels: Sequence[str],
    buckets: int,
    scale: float,
    temperature: float,
    rows: Sequence[int],
    weights: array[int],
) -> bytes:
    """The file of a model; ``rows`` ascend."""
    count = len(labels)
    steps, body = bytearray(), bytearray()
    before = 0
    for at, bucket in enumerate(rows):
        bridges, step = divmod(bucket - before, _LONGEST_STEP)
        if bridges and not step:
            bridges, step = bridges - 1, _LONGEST_STEP
        steps += bytes([_LONGEST_STEP] * bridges + [step])
        body += bytes(bridges * count) + weights[at * count : (at + 1) * count].tobytes()
        before = bucket
    head = {"format": FORMAT, "labels": list(labels), "buckets": buckets, "scale": scale, "temperature": temperature}
    head["rows"] = len(steps)
    return json.dumps(head, sort_keys=True).encode() + b"\n" + bytes(steps + body)
