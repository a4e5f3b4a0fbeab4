"""Train the classifier that says whether a message to an agent asks for a change: ``python -m training.changes``."""

from __future__ import annotations

import sys

from training.models import Model, main

MODEL = Model(name="changes", package="cicada.routing", labels=("change", "read"), buckets=1 << 20, decay=4e-6)

if __name__ == "__main__":
    sys.exit(main(MODEL))
