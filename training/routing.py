"""Train the classifier that chooses a question's route: ``python -m training.routing``."""

from __future__ import annotations

import sys

from cicada.routing.classifier import ROUTES
from training.models import Model, main

MODEL = Model(name="routing", package="cicada.routing", labels=tuple(sorted(ROUTES)), buckets=1 << 22, decay=1e-6)

if __name__ == "__main__":
    sys.exit(main(MODEL))
