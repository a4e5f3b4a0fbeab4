"""Train the classifier that says whether a question can be understood by itself: ``python -m training.followups``.

Beside the follow-ups, the questions that were written to be routed train it: each is whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from cicada.conversation.leaning import shape_of
from training.models import DATA, Labelled, Model, main

LEANS, WHOLE = "leans", "whole"
HOUSE = "house"
"""Whose questions to be routed are phrasings more than questions that were asked."""


class FollowUps(Model):
    """Its files have a field ``needs`` in place of ``label``."""

    def sentences(self) -> list[Labelled]:
        """See :class:`Model`."""
        found = [one for path in sorted((DATA / self.name).glob("*.jsonl")) for one in _follow_ups(path)]
        aside = {*self.split()["tuning"], *self.split()["held_aside"], HOUSE}
        for path in sorted((DATA / "routing").glob("*.jsonl")):
            if path.stem not in aside:
                found += _whole(path)
        return found


def _follow_ups(path: Path) -> Iterator[Labelled]:
    for told in _lines(path):
        yield _labelled(told, LEANS if told["needs"] else WHOLE, path.stem)


def _whole(path: Path) -> Iterator[Labelled]:
    for told in _lines(path):
        yield _labelled(told, WHOLE, path.stem)


def _labelled(told: Mapping[str, str], label: str, author: str) -> Labelled:
    return Labelled(told["query"], label, told["language"], author)


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


MODEL = FollowUps(
    name="followups",
    package="cicada.conversation",
    labels=(LEANS, WHOLE),
    buckets=1 << 20,
    decay=1e-5,
    weights={LEANS: 2.0},
    beside=shape_of,
)

if __name__ == "__main__":
    sys.exit(main(MODEL))
