"""Holds what every asker saw against what the table holds: nothing lost, doubled or out of order, nothing left open."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import RequestKey
from cicada.errors import RequestUnknown
from cicada_local.testing import LocalCloud
from tests.chaos.record import Frame
from tests.chaos.verdict import judge_delivery
from tests.load.record import Request, compact

Promise = Literal["lost", "chunks", "terminal", "mixed", "shown", "given up", "left open"]
PROMISES: dict[Promise, str] = {
    "lost": "questions whose events were not all seen, or have no log",
    "chunks": "logs or screens with a doubled, missing or misplaced event",
    "terminal": "requests without exactly one terminal event",
    "mixed": "texts of two attempts mixed",
    "shown": "screens that differ from the log",
    "given up": "questions that their client gave up although the request exists",
    "left open": "items of the table that stand for work still to be done",
}


@dataclass(frozen=True)
class Breach:
    """A promise that did not hold."""

    promise: Promise
    request_id: str
    why: str


class Logs:
    """The requests' logs, as the table holds them."""

    def __init__(self, cloud: LocalCloud) -> None:
        """The table is the only one of the cloud."""
        client = cloud.client("dynamodb", config=STORE_CONFIG)
        (table,) = client.list_tables()["TableNames"]
        self._log = DynamoDbLog(client, table)

    def read(self, subject: str, request_id: str) -> tuple[Frame, ...] | None:
        """A request's events as frames, compact; None if there is no such request. Blocks."""
        try:
            _, entries = self._log.read(RequestKey(subject, request_id))
        except RequestUnknown:
            return None
        return tuple(compact(json.loads(entry.frame(request_id))) for entry in entries)

    def left_open(self, before_ms: int) -> list[str]:
        """The requests that stand in the table's index of open ones, or whose reservation does. Blocks."""
        return [key.request_id for key in self._log.open_requests(before_ms)]


@dataclass(frozen=True)
class Verdict:
    """What the check has shown."""

    requests: int
    unread: int
    """Requests whose log was not read for want of time."""
    outcomes: Counter[str]
    answered_by: Counter[str]
    index_versions: int
    """Versions that answers rest on."""
    breaches: tuple[Breach, ...]

    @property
    def holds(self) -> bool:
        """Whether every promise held, of every request."""
        return not self.breaches and not self.unread

    def counts(self) -> dict[Promise, int]:
        """For each promise, the requests that broke it."""
        broken = Counter(promise for promise, _ in {(one.promise, one.request_id) for one in self.breaches})
        return {promise: broken[promise] for promise in PROMISES}


def judge(request: Request) -> Iterator[Breach]:
    """Every breach of a promise to the asker of one question, whose log has been read."""
    followed = request.followed
    if followed.log is None and request.refused and followed.latest is None:
        return  # the client told its asker that the question was not taken, and it was not
    if followed.log is not None and request.screen.failure is not None:
        yield Breach("given up", followed.request_id, request.screen.failure)
    for promise, why in dict.fromkeys(judge_delivery(followed)):
        assert promise in PROMISES
        yield Breach(promise, followed.request_id, why)


def _outcome(request: Request) -> str:
    return "refused" if request.refused and request.followed.log is None else request.followed.outcome


def conclude(requests: Sequence[Request], left_open: Collection[str], unread: Collection[str] = ()) -> Verdict:
    """Judge a run.

    Args:
        requests: every question, with its log as far as that was read.
        left_open: what the table's index of open requests held when all was over.
        unread: the requests whose log was not read.
    """
    read = [one for one in requests if one.followed.request_id not in unread]
    breaches = [breach for one in read for breach in judge(one)]
    breaches += [Breach("left open", one, "stands in the index of open requests") for one in left_open]
    logs = [one.followed.log or () for one in read]
    versions = {frame["indexVersion"] for log in logs for frame in log if frame.get("indexVersion")}
    return Verdict(
        requests=len(requests),
        unread=len(unread),
        outcomes=Counter(_outcome(one) for one in read),
        answered_by=Counter(one.followed.answered_by or "" for one in read if one.followed.outcome == "complete"),
        index_versions=len(versions),
        breaches=tuple(breaches),
    )
