"""A run: askers ask side by side while faults are injected, until enough has happened; then the verdict."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.ports import StoreFault
from cicada.delivery.record import RequestKey
from cicada.errors import RequestUnknown
from cicada_local.testing import LocalCloud
from tests.chaos import faults as catalogue
from tests.chaos.asker import Asker
from tests.chaos.attribution import attribute
from tests.chaos.disturbing import Disturber
from tests.chaos.house import House
from tests.chaos.model_watch import ModelWatch
from tests.chaos.place import Place
from tests.chaos.plans import KINDS, Planner
from tests.chaos.questions import questions
from tests.chaos.record import Followed
from tests.chaos.replay import replay
from tests.chaos.tally import Tally
from tests.chaos.verdict import Verdict, conclude

LATEST_END_S = 180.0
"""How long after the last fault every request must have ended, by its workflow, a resume or the sweep."""
_SHOWN_ENDED = 6


@dataclass(frozen=True)
class Extent:
    """How much of what."""

    kills: int = 200
    at_once: int = 8
    """Questions in flight; two cores carry no more at a readable pace."""
    pace_ms: int = 40
    """Between two pieces of the model's text: slow enough that kills land in mid-answer."""
    faults: tuple[catalogue.Fault, ...] = catalogue.ALL
    drop_kinds: tuple[str, ...] = KINDS
    redeployments: int = 6
    publications: int = 4


@dataclass(frozen=True)
class Outcome:
    """What a run has shown."""

    verdict: Verdict
    tally: Tally
    unattributed_calls: int
    requests: tuple[Followed, ...]


Show = Callable[[Sequence[Followed], Sequence[Followed], Tally], None]


class Run:
    """One run over a cloud that is already up."""

    def __init__(self, cloud: LocalCloud, watch: ModelWatch, place: Place, extent: Extent, seed: int) -> None:
        """``watch`` must stand between the cloud's functions and its models."""
        self._cloud = cloud
        self._watch = watch
        self._place = place
        self._extent = extent
        self._house = House(cloud)
        self.tally = Tally(seed, extent.kills)
        self.requests: list[Followed] = []
        self._in_flight: dict[int, Followed] = {}
        self._ended: deque[Followed] = deque(maxlen=_SHOWN_ENDED)
        self._awaited: set[asyncio.Task[None]] = set()
        self._first_call = len(watch.calls)
        self._planner = Planner(random.Random(f"{seed} plans"), extent.drop_kinds)
        self._asked = questions(random.Random(f"{seed} questions"))
        self._rng = random.Random(f"{seed} askers")
        self._stopping = False
        client = cloud.client("dynamodb", config=STORE_CONFIG)
        self._log = DynamoDbLog(client, self._house.request_table())

    def in_flight(self) -> list[Followed]:
        """The questions that are open now."""
        return [self._in_flight[number] for number in sorted(self._in_flight)]

    def latest_ended(self) -> list[Followed]:
        """The questions that ended last."""
        return list(self._ended)

    async def run(self) -> Outcome:
        """Do everything, and judge."""
        disturber = Disturber(self._cloud, self._house, self._extent, self.tally)
        self._cloud.arm("bedrock.slow", delay_ms=self._extent.pace_ms)
        askers = [asyncio.create_task(self._ask_on()) for _ in range(self._extent.at_once)]
        sweeping = asyncio.create_task(disturber.sweep())
        async with asyncio.TaskGroup() as disturbing:
            tasks = [disturbing.create_task(work) for work in disturber.works()]
            while not (disturber.done and all(self.tally.drops[kind] for kind in self._extent.drop_kinds)):
                await asyncio.sleep(0.25)
            for task in tasks:
                task.cancel()
        self._stopping = True
        await asyncio.to_thread(self._cloud.disarm)
        await asyncio.wait(askers, timeout=LATEST_END_S)
        await self._all([*askers, *self._awaited])
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
        await disturber.count_kills()
        await self._replay_all()
        self.tally.finish()
        return self._judge()

    # --- asking ---

    async def _ask_on(self) -> None:
        """Ask one question after another."""
        while not self._stopping:
            number = self.tally.asked = self.tally.asked + 1
            asked, plan = next(self._asked), self._planner.draw()
            request_id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
            followed = Followed(number, request_id, asked.text)
            self.requests.append(followed)
            self._in_flight[number] = followed
            missed = [drop.kind for drop in plan.drops]

            def dropped(kind: str, missed: list[str] = missed) -> None:
                missed.remove(kind)
                self.tally.drops[kind] += 1

            await Asker(self._place, asked, plan, followed, rng=self._rng, dropped=dropped).run()
            self._planner.draw_next([kind for kind in missed if not self.tally.drops[kind]])
            if plan.leaves_at is None or all(screen.followed for screen in followed.screens):
                self._end(followed)
            else:
                self.tally.left += 1
                self._awaited.add(asyncio.create_task(self._await_end(followed)))

    async def _await_end(self, followed: Followed) -> None:
        """Watch a request that nobody reads, until it has ended by itself. No resume helps it on."""
        key = RequestKey(self._place.subject, followed.request_id)
        deadline = None
        followed.ended_alone = False
        while deadline is None or time.monotonic() < deadline:
            try:
                head = await asyncio.to_thread(self._log.head, key)
            except (StoreFault, RequestUnknown):
                head = None
            if head is not None and head.state != "open":
                followed.ended_alone = True
                break
            if self._stopping and deadline is None:
                deadline = time.monotonic() + LATEST_END_S
            await asyncio.sleep(1)
        self._end(followed)

    def _end(self, followed: Followed) -> None:
        followed.ended_at = time.monotonic()
        self._in_flight.pop(followed.number, None)
        self._ended.append(followed)
        self.tally.ended += 1

    # --- judging ---

    async def _all(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for tasks, for as long as a request may take to end; then they have failed."""
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LATEST_END_S)
            for task in late:
                task.cancel()
            for done in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(done, Exception):
                    raise done

    async def _replay_all(self) -> None:
        gate = asyncio.Semaphore(self._extent.at_once)

        async def one(followed: Followed) -> None:
            async with gate:
                followed.log = await replay(self._place, followed.request_id)

        await asyncio.gather(*(one(followed) for followed in self.requests))

    def _judge(self) -> Outcome:
        evidence, unknown = attribute(self._watch.calls[self._first_call :], self.requests)
        return Outcome(conclude(self.requests, evidence), self.tally, unknown, tuple(self.requests))


async def shown(run: Run, show: Show, every_s: float = 0.25) -> Outcome:
    """Run, and show it now and then."""
    running: Awaitable[Outcome] = asyncio.ensure_future(run.run())
    task = asyncio.ensure_future(running)
    while not task.done():
        show(run.in_flight(), run.latest_ended(), run.tally)
        await asyncio.wait({task}, timeout=every_s)
    return await running
