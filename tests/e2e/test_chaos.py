"""A small edition of ``make chaos``: askers side by side, workers killed, sockets dropped at every kind of event."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos import faults
from tests.chaos.place import Place
from tests.chaos.run import Extent, Run

SEED = 4
STRUCK = ("bedrock.cut", "stepfunctions.duplicate_start")
SMALL = Extent(
    kills=10,
    at_once=4,
    pace_ms=30,
    faults=(*faults.POSTS, *(fault for fault in faults.ALL if fault.name in STRUCK)),
    redeployments=1,
    publications=0,
)


@pytest.mark.timeout(900)
def test_nothing_is_lost_doubled_or_left_open_while_workers_die(cloud, issuer, watch, user):
    place = Place(cloud.websocket_url, issuer.token(user), user)
    outcome = asyncio.run(Run(cloud, watch, place, SMALL, SEED).run())
    assert outcome.verdict.breaches == ()
    assert outcome.tally.kills >= SMALL.kills
    assert all(outcome.tally.drops[kind] for kind in SMALL.drop_kinds)
    assert outcome.verdict.outcomes["complete"] > 0
