"""From a model's cosine to a score that means the same for every model.

Embedding models spread their cosines differently: a passage that answers a question may stand at 0.3 with one model
and at 0.8 with another, so that one ``min_score`` over raw cosines would fit none. A logistic function of the cosine
maps them to [0, 1], monotonically: ranking is untouched. It is fitted between two classes, the passages that answer a
question and the best that a corpus has for a question it knows nothing of; at 0.5 a passage is as likely of either,
when a lost one counts half as much again as one too many.

Source: J. Platt, "Probabilistic Outputs for Support Vector Machines", 1999. The numbers are fitted by
``benchmarks/retrieval_calibration.py``, which does it for any model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Calibration:
    """A logistic function: 0.5 at ``midpoint``, and the steeper the larger ``slope``."""

    midpoint: float
    slope: float

    def score(self, cosine: float) -> float:
        """The relevance in [0, 1] of a cosine in [-1, 1]."""
        return 1 / (1 + math.exp(-self.slope * (cosine - self.midpoint)))


DEFAULT_CALIBRATION = Calibration(midpoint=0.25, slope=9.0)
"""For a model that was not measured, such as Titan Text v2: a little below what was fitted for another one."""

CALIBRATIONS: Mapping[str, Calibration] = {
    "local.all-minilm-l6-v2": Calibration(midpoint=0.277, slope=9.32),
}
"""By the service's model id."""


def calibration_of(model_id: str) -> Calibration:
    """The model's calibration, or the default's if it was not measured."""
    return CALIBRATIONS.get(model_id, DEFAULT_CALIBRATION)
