"""Train what tells sentences that say that nothing was found: ``python -m training.abstentions``.

Beside the labelled sentences, the answers of conversations train it, each of which claims something.
"""

from __future__ import annotations

import json
import sys

from cicada.citations.sentences import ABSTAINS
from training.models import DATA, Labelled, Model, main

CLAIMS = "claims"


class Abstentions(Model):
    """Its sentences are those of its folder, and answers of ``followups`` that no label says to abstain."""

    def sentences(self) -> list[Labelled]:
        """See :class:`Model`."""
        found = {one.query: one for one in super().sentences()}
        aside = self.split()["held_aside"]  # last: an answer that two authors wrote trains
        for path in sorted((DATA / "followups").glob("*.jsonl"), key=lambda path: (path.stem in aside, path.stem)):
            for told in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                if told["answer"]:
                    found.setdefault(told["answer"], Labelled(told["answer"], CLAIMS, told["language"], path.stem))
        return list(found.values())


MODEL = Abstentions(
    name="abstentions",
    package="cicada.citations",
    labels=(ABSTAINS, CLAIMS),
    buckets=1 << 20,
    decay=1e-5,
    weights={ABSTAINS: 2.0},
    by_telling=False,
)

if __name__ == "__main__":
    sys.exit(main(MODEL))
