"""How near two questions must lie to each other, by embedding model.

A cosine means something else with every model. Those of all-MiniLM-L6-v2 are measured on labelled pairs of questions
(``benchmarks/semantic_cache.py``); any other model gets conservative values that nobody has measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Cosines in [-1, 1]."""

    replay: float
    """From here on an earlier answer is given again, if no guard objects."""
    near: float
    """From here on its passages are of use, if it is about the same people and things."""
    measured: bool = False
    """Whether they come from labelled pairs, embedded with this very model."""

    def __post_init__(self) -> None:
        """Refuse what no decision can be made by.

        Raises:
            ValueError: ``near`` is above ``replay``, or one of them is no cosine.
        """
        if not -1 <= self.near <= self.replay <= 1:
            raise ValueError(
                f"replay is {self.replay} and near {self.near}: near may not be above, and both are cosines"
            )


DEFAULT_THRESHOLDS = Thresholds(replay=0.94, near=0.86)
"""For a model that was not measured."""

THRESHOLDS: Mapping[str, Thresholds] = {
    "local.all-minilm-l6-v2": Thresholds(replay=0.80, near=0.70, measured=True),
    "amazon.titan-embed-text-v2:0": Thresholds(replay=0.90, near=0.80),
    "cohere.embed-english-v3": Thresholds(replay=0.94, near=0.86),
    "cohere.embed-multilingual-v3": Thresholds(replay=0.94, near=0.86),
    "cohere.embed-v4:0": Thresholds(replay=0.94, near=0.86),
}
"""By the service's model id. Only the first are measured: unrelated texts lie near 0.1 with Titan, above 0.3 with
Cohere."""


def thresholds_of(model_id: str) -> Thresholds:
    """The model's thresholds; an id may have the prefix of a region, or of an ARN."""
    return next((found for name, found in THRESHOLDS.items() if model_id.endswith(name)), DEFAULT_THRESHOLDS)
