"""A small edition of ``make load``: askers side by side, some of whose sockets are cut, and nothing lost."""

from __future__ import annotations

import asyncio

from tests.load.run import Extent, Run

SEED = 32
"""Under which two of the sockets are cut."""
SMALL = Extent(sockets=5, questions=15, pace=0.002, seconds=300, most_each=3, upheavals=False)


def test_nothing_is_lost_doubled_or_left_open_while_many_ask(cloud, issuer):
    outcome = asyncio.run(Run(cloud, issuer.token, SMALL, SEED).run())
    assert outcome.verdict is not None
    assert (outcome.verdict.breaches, outcome.verdict.unread) == ((), 0)
    assert (outcome.tally.asked, outcome.tally.ended) == (SMALL.questions, SMALL.questions)
    assert outcome.tally.drops == 2
    assert outcome.verdict.outcomes["complete"] > 0
