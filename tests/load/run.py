"""A run: people ask at their pace while the deployment is renewed and the index published anew; then the check."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cicada.delivery.ports import StoreFault
from cicada_client import CicadaClient, ClientError, RequestRefused
from cicada_client.errors import ConnectionLost
from cicada_local.loading import LoadFailed, load
from cicada_local.places import aws_environment
from cicada_local.testing import LocalCloud
from tests.chaos.house import ANSWER, MESSAGES, House, Untold
from tests.chaos.questions import SAMPLES
from tests.chaos.record import Followed, Frame
from tests.e2e import command
from tests.load.checker import Logs, Verdict, conclude
from tests.load.machine import Machine, Reading
from tests.load.people import CAMPAIGN, Person, Question
from tests.load.record import Request, Tally, compact
from tests.load.sockets import Sockets

LAST_END_S = 330.0
"""How long after the last question every request must have ended: an execution's five minutes, and some seconds."""
CHECK_S = 60.0
"""What the check of the logs may take at the end of a bounded run."""
READ_EVERY_S = 2.0
ASKED_AGAIN, PAUSE_S = 3, 20.0
"""How often a person asks a question anew that the server would not take, and after how many seconds."""
DEPLOYED_AT, PUBLISHED_AT = 0.4, 0.6
"""After which share of the questions the new code is deployed, and the new version of the index published."""

TokenOf = Callable[[str], str | None]
"""A subject's token."""


@dataclass(frozen=True)
class Extent:
    """How much of what."""

    sockets: int = 300
    questions: int = 5_000
    pace: float = 1.0
    """By which all pauses are multiplied."""
    seconds: float = 1_800.0
    """From its begin until all of the run must be over."""
    most_each: int | None = None
    """Questions of one person; None lets the quick ones ask more than the others."""
    upheavals: bool = True
    """Whether code is deployed and an index published in the middle."""


@dataclass
class Outcome:
    """What a run has shown."""

    extent: Extent
    seed: int
    requests: list[Request]
    tally: Tally
    readings: list[Reading]
    began: float
    complete: bool = False
    """Whether it came to its end: False of what is written down on the way."""
    verdict: Verdict | None = None
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)


def script_files() -> list[Path]:
    """The script's episodes."""
    return sorted((SAMPLES / "script").glob("episode-*.json*"))


async def fill(cloud: LocalCloud) -> None:
    """Load all that is asked about, but for the last episode, which the version published in the middle brings.

    Raises:
        LoadFailed: it could not be loaded.
    """
    folders = [*(SAMPLES / "campaign" / name for name in CAMPAIGN)]
    await load(script_files()[:-1], cloud.outputs, cloud.endpoint_url, Untold(), folders=folders)
    words = ("load", str(SAMPLES / "shelf"), "--collection", "shelf", "--yes", "--no-wait")
    done = await asyncio.to_thread(command.cicada, words, aws_environment(os.environ, cloud.endpoint_url))
    if done.returncode != 0:
        raise LoadFailed(done.stderr)


class Run:
    """One run over a cloud that is already up, and filled."""

    def __init__(self, cloud: LocalCloud, token_of: TokenOf, extent: Extent, seed: int) -> None:
        """``token_of`` is asked once for each person."""
        self._cloud = cloud
        self._token_of = token_of
        self._extent = extent
        self._house = House(cloud)
        self._machine = Machine(cloud)
        self._logs = Logs(cloud)
        self._unread: dict[str, Request] = {}
        self._people = [Person(number, seed) for number in range(extent.sockets)]
        self._left = extent.questions
        self._stopping = asyncio.Event()
        self.tally = Tally()
        self.outcome = Outcome(extent, seed, [], self.tally, self._machine.readings, time.monotonic())

    async def run(self) -> Outcome:
        """Ask everything, and judge."""
        deadline = self.outcome.began + self._extent.seconds
        beside = [self._read_machine(), self._check_as_it_goes()]
        beside += [self._upheave()] if self._extent.upheavals else []
        works = [asyncio.create_task(work) for work in beside]
        people = [asyncio.create_task(self._live(person)) for person in self._people]
        try:
            await self._asked_out(people, deadline)
            await self._ended(people, deadline - CHECK_S)
        finally:
            for task in (*works, *people):
                task.cancel()
            results = await asyncio.gather(*works, *people, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                self.tally.happened.append((self._elapsed_s(), f"{type(result).__name__}: {result}"))
        with suppress(OSError):
            await asyncio.to_thread(self._machine.read)
        self.outcome.verdict = await self._check(deadline)
        self.outcome.complete = True
        return self.outcome

    # --- asking ---

    async def _live(self, person: Person) -> None:
        """One person's part of the run."""
        sockets = Sockets(person.network, is_slow=person.is_slow)
        token = self._token_of(person.subject)
        async with CicadaClient(
            self._cloud.websocket_url, token=token, connector=sockets.open, rng=person.network
        ) as client:
            for _ in itertools.count() if self._extent.most_each is None else range(self._extent.most_each):
                question = person.next()
                await self._pause(question.think_s * self._extent.pace)
                if self._stopping.is_set() or self._left <= 0:
                    return
                self._left -= 1
                await self._ask(person, question, client, sockets)

    async def _ask(self, person: Person, question: Question, client: CicadaClient, sockets: Sockets) -> None:
        tally = self.tally
        tally.asked += 1
        tally.open += 1
        tally.most_open = max(tally.most_open, tally.open)
        followed = Followed(tally.asked, question.request_id, question.asked.text, asked_at=time.monotonic())
        request = Request(person.number, question.kind, followed, tally.open, is_slow=person.is_slow)
        followed.screens.append(request.screen)
        self.outcome.requests.append(request)
        self._unread[followed.request_id] = request
        sockets.request, sockets.drop = request, question.drop
        try:
            for again in range(ASKED_AGAIN + 1):
                request.asked_again = again
                if await self._follow(client, question, request):
                    break
                await self._pause(PAUSE_S)
        finally:
            sockets.request = None
            tally.open -= 1
            tally.drops += request.drops
        followed.ended_at = time.monotonic()
        tally.ended += 1

    async def _follow(self, client: CicadaClient, question: Question, request: Request) -> bool:
        """Ask, and follow to the end; False if the client gave up and the question may be asked again."""
        screen = request.screen
        stream = client.ask(
            question.asked.text,
            collections=question.collections,
            episodes=question.asked.episodes,
            session_id=question.session_id,
            request_id=question.request_id,
        )
        displayed: list[Frame] = []
        screen.failure, request.refused = None, False
        try:
            async for frame in stream.frames():
                displayed.append(compact(frame.raw))
        except ClientError as error:
            screen.failure = f"{type(error).__name__}: {error}"
            request.refused = isinstance(error, RequestRefused | ConnectionLost)
            self.tally.refusals[getattr(error, "code", type(error).__name__)] += 1
        screen.displayed, screen.text = tuple(displayed), stream.answer.text
        return screen.failure is None

    async def _pause(self, seconds: float) -> None:
        """Wait, or until the run ends."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    # --- what happens meanwhile ---

    async def _upheave(self) -> None:
        """Deploy new code and a changed setting in the middle, and later publish a new version of the index."""
        await self._share_asked(DEPLOYED_AT)
        for part in (ANSWER, MESSAGES):
            await asyncio.to_thread(self._house.redeploy, part, f"load {part}")
        self._note("new code of the answer worker and the message processor deployed")
        await self._share_asked(PUBLISHED_AT)
        await load(script_files(), self._cloud.outputs, self._cloud.endpoint_url, Untold())
        self._note("a version of the index with one more episode published")

    async def _share_asked(self, share: float) -> None:
        while self.tally.asked < share * self._extent.questions:
            await asyncio.sleep(0.2)

    async def _read_machine(self) -> None:
        while True:
            with suppress(OSError):  # the cloud is too busy to tell
                await asyncio.to_thread(self._machine.read)
            await asyncio.sleep(READ_EVERY_S)

    def _note(self, told: str) -> None:
        self.tally.happened.append((self._elapsed_s(), told))

    def _elapsed_s(self) -> float:
        return time.monotonic() - self.outcome.began

    # --- the end ---

    async def _asked_out(self, people: Sequence[asyncio.Task[None]], deadline: float) -> None:
        """Wait until everything has been asked, or the time for asking is over."""
        last = deadline - min(LAST_END_S / 3, self._extent.seconds / 6) - CHECK_S
        while self._left > 0 and time.monotonic() < last and not all(task.done() for task in people):
            await asyncio.sleep(0.1)
        self._stopping.set()

    async def _ended(self, people: Sequence[asyncio.Task[None]], deadline: float) -> None:
        """Wait until everybody has their answer."""
        until = min(deadline, time.monotonic() + LAST_END_S)
        await asyncio.wait(people, timeout=max(0.0, until - time.monotonic()))

    async def _check_as_it_goes(self) -> None:
        """Read the logs of what has ended, one at a time, so that little is left to be read at the end."""
        while True:
            ended = [one for one in self._unread.values() if one.followed.ended_at is not None]
            seen = [one for one in ended if one.screen.failure is None]  # others may still be written
            await asyncio.to_thread(self._read_logs, seen, time.monotonic() + READ_EVERY_S)
            await asyncio.sleep(READ_EVERY_S)

    def _read_logs(self, requests: Sequence[Request], deadline: float) -> None:
        """Read logs, until a moment. What the store does not tell stays unread."""
        for request in requests:
            if time.monotonic() > deadline:
                return
            followed = request.followed
            with suppress(StoreFault):
                followed.log = self._logs.read(self._people[request.person].subject, followed.request_id)
                del self._unread[followed.request_id]

    def _left_open(self, deadline: float) -> list[str]:
        """What is open when nothing more is asked: looked at until there is nothing, or until a moment."""
        left = ["the store did not tell"]
        while left:
            with suppress(StoreFault):
                left = self._logs.left_open(int(time.time() * 1000) + 1)
            if time.monotonic() > deadline:
                break
            time.sleep(1.0 if left else 0.0)
        return left

    async def _check(self, deadline: float) -> Verdict:
        left = await asyncio.to_thread(self._left_open, deadline - CHECK_S / 2)
        while self._unread and time.monotonic() < deadline:
            await asyncio.to_thread(self._read_logs, list(self._unread.values()), deadline)
        return conclude(self.outcome.requests, left, self._unread)


Show = Callable[[Outcome], None]


async def shown(run: Run, show: Show, every_s: float) -> Outcome:
    """Run, and show it now and then."""
    running: Awaitable[Outcome] = asyncio.ensure_future(run.run())
    task = asyncio.ensure_future(running)
    while not task.done():
        await asyncio.wait({task}, timeout=every_s)
        if not task.done():
            show(run.outcome)
    return await running
