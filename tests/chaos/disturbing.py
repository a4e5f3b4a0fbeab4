"""What disturbs a run: kills, faults, deployments, publications, cuts; and the sweep that mends."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError, URLError

from botocore.exceptions import BotoCoreError, ClientError

from cicada_local.loading import LoadFailed
from cicada_local.testing import LocalCloud
from tests.chaos.faults import Faults
from tests.chaos.house import ANSWER, EXHAUSTED, MESSAGES, SWEEP, House
from tests.chaos.tally import Tally

if TYPE_CHECKING:
    from tests.chaos.run import Extent

KILL_EVERY_S = 0.6
FAULT_EVERY_S = 0.4
UPHEAVAL_EVERY_S = 9.0
CUT_EVERY_S = 4.0
SWEEP_EVERY_S = 5.0
"""The means of random pauses, and of the sweep's fixed one (a deployment sweeps every few minutes)."""
KILLS_A_QUESTION = 0.7
FAULTS_A_QUESTION = 1.0
"""At most, on average: on a busy machine the faults wait for the answers, most of which are to be given."""
SELDOM = 0.2
"""The share of upheavals that still happen when there have been enough: a published version empties the cache."""

T = TypeVar("T")


class Disturber:
    """Does everything at random moments, by seeded generators of its own."""

    def __init__(self, cloud: LocalCloud, house: House, extent: Extent, tally: Tally) -> None:
        self._cloud = cloud
        self._house = house
        self._extent = extent
        self._tally = tally
        self._faults = Faults(random.Random(f"{tally.seed} faults"), extent.faults)
        self._killing = random.Random(f"{tally.seed} kills")
        self._upheaving = random.Random(f"{tally.seed} upheavals")
        self._cutting = random.Random(f"{tally.seed} cuts")
        self._killed_before = Counter(house.killed())

    @property
    def done(self) -> bool:
        """Whether everything has been done as often as was wanted."""
        wanted, tally = self._extent, self._tally
        return (
            tally.kills >= wanted.kills
            and self._faults.due == 0
            and tally.redeployed >= wanted.redeployments
            and tally.published >= wanted.publications
        )

    def works(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on side by side until it is cancelled."""
        rounds = (
            (self._killing, KILL_EVERY_S, self._kill),
            (random.Random(f"{self._tally.seed} pauses"), FAULT_EVERY_S, self._arm),
            (self._upheaving, UPHEAVAL_EVERY_S, self._upheave),
            (self._cutting, CUT_EVERY_S, self._cut),
        )
        return [self._now_and_then(rng, mean_s, do) for rng, mean_s, do in rounds]

    async def sweep(self) -> None:
        """Run the sweep as its schedule would, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            for outcome in await self._try(asyncio.to_thread(self._house.sweep)) or ():
                self._tally.sweeps += 1
                result = outcome.get("result")
                counts = result if isinstance(result, dict) else {"failed": 1}
                self._tally.swept.update({name: n for name, n in counts.items() if isinstance(n, int) and n})

    async def count_kills(self) -> None:
        """Bring the tally of kills up to date."""
        seen = Counter(await asyncio.to_thread(self._house.killed))
        self._tally.kills_by = Counter({_short(name): n for name, n in (seen - self._killed_before).items()})

    async def _now_and_then(self, rng: random.Random, mean_s: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(min(rng.expovariate(1 / mean_s), 4 * mean_s))
            await self._try(do())

    async def _try(self, work: Awaitable[T]) -> T | None:
        """Do something to a cloud under faults: what does not succeed is noted, and the run goes on."""
        try:
            return await work
        except (URLError, OSError, ClientError, BotoCoreError, LoadFailed) as error:
            self._tally.trouble.append(f"{type(error).__name__}: {error}")
            return None

    async def _kill(self) -> None:
        tally = self._tally
        if tally.kills >= min(self._extent.kills, KILLS_A_QUESTION * tally.asked):
            return
        rng = self._killing
        part = rng.choices((ANSWER, MESSAGES, EXHAUSTED, SWEEP), (86, 8, 3, 3))[0]
        if part == ANSWER:
            await asyncio.to_thread(self._house.kill, part, rng)
        else:  # its invocations are short: the next one is killed on its way
            name = self._house.name_of(part)
            after_ms = rng.uniform(0, 80)
            await asyncio.to_thread(self._cloud.arm, "functions.kill", function=name, after_ms=after_ms, times=1)
        await self.count_kills()

    async def _arm(self) -> None:
        if sum(self._tally.faults.values()) >= FAULTS_A_QUESTION * self._tally.asked:
            return
        fault = next(self._faults)
        await asyncio.to_thread(self._cloud.arm, fault.name, **fault.params)
        self._tally.faults[fault.told] += 1

    async def _upheave(self) -> None:
        wanted, tally, rng = self._extent, self._tally, self._upheaving
        enough = tally.redeployed >= wanted.redeployments and tally.published >= wanted.publications
        if enough and rng.random() > SELDOM:
            return
        deploys = rng.random() * (wanted.redeployments + wanted.publications) < wanted.redeployments
        if deploys:
            part = rng.choice((ANSWER, ANSWER, MESSAGES))
            await asyncio.to_thread(self._house.redeploy, part, str(rng.random()))
            tally.redeployed += 1
        else:
            await self._house.publish()
            tally.published += 1

    async def _cut(self) -> None:
        """Cut a connection on the server's side, without a close frame."""
        found = await asyncio.to_thread(self._cloud.connections)
        if found:
            victim = self._cutting.choice(found)["connection_id"]
            with suppress(HTTPError):  # it has closed meanwhile
                await asyncio.to_thread(self._cloud.drop, victim)
                self._tally.faults["connection cut"] += 1


def _short(name: str) -> str:
    """A function's construct, out of its name: ``Cicada-Answering-AnswerFunction1A2B-X7`` is ``Answer``."""
    return name.split("-")[2].partition("Function")[0]
