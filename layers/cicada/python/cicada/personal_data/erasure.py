"""Erases what the table holds of one owner, so that no worker that is still running brings anything back.

1. Tokens issued up to now are refused.
2. Open requests are cancelled, and parts of limits that requests hold are given back. A worker's next write to a
   request that is closed or gone fails.
3. Everything is deleted.
4. What could still write in between is waited for: a message processor that had read no revocation yet, and workers,
   which write long events, conversations and cached answers without looking at the request first.
5. The table is read again until nothing is found by a reading that began after that.

Each step can be repeated, and the progress is an item of its own: an erasure that was interrupted goes on where it was
when it is run again, and its receipt counts all runs.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import get_args

from pydantic import Field

from cicada.corpus.passages import CorpusModel
from cicada.delivery.decide import answering
from cicada.delivery.ports import Connections, RequestLog, StoreFault
from cicada.delivery.posting import end_request
from cicada.delivery.record import RequestKey
from cicada.errors import Cancelled, DeliveryUnavailable, RequestUnknown
from cicada.identity import asker_of
from cicada.personal_data.instants import instant
from cicada.personal_data.items import OF_A_REQUEST, Kind, OwnedItem, OwnedItems, PersonalDataFault
from cicada.protocol.events import Failed

PROCESSOR_S = 30
"""After so long no message processor runs that began before: longer than its time-out."""
WORKER_S = 75
"""After so long no worker runs that began before: longer than its time-out."""
MAX_SWEEPS = 6
"""Readings of the table before an erasure gives up, because its owner keeps asking."""


class ErasureIncomplete(Exception):
    """New items of the owner kept appearing."""


class ErasureReceipt(CorpusModel):
    """What an erasure has done, over all its runs."""

    erasure_id: str
    asker: str = Field(description="the pseudonym by which logs name the user")
    begun_at: str = Field(description="when its first run began, ISO 8601, UTC")
    ended_at: str
    runs: int = Field(description="1 unless it was interrupted")
    deleted: dict[Kind, int] = Field(description="items by kind")
    nameless_items: int = Field(
        description="conversations and cached answers, of anybody, that release 0.1.0 stored without their owner"
    )
    nameless_until: str | None = Field(None, description="when the last of them expires")


@dataclass(frozen=True)
class Erasure:
    """The erasure of one owner's data."""

    items: OwnedItems
    log: RequestLog
    connections: Connections
    refuse_tokens: Callable[[], None]
    """Refuses the tokens that were issued up to now. Idempotent."""
    _: KW_ONLY
    on_step: Callable[[str], None] = lambda _told: None
    """Called with a description of each step."""
    now_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    new_id: Callable[[], str] = lambda: secrets.token_hex(8)

    def run(self) -> ErasureReceipt:
        """Erase everything, or finish what an earlier run began.

        Raises:
            PersonalDataFault: the table could not be read or written. Run it again.
            ErasureIncomplete: new items kept appearing. Run it again.
        """
        progress = self.items.begin(self.new_id())
        self.refuse_tokens()
        quiet_at_s = max(progress.quiet_at_s, int(self.now_s()) + PROCESSOR_S)
        for _ in range(MAX_SWEEPS):
            reading_at_s = self.now_s()
            owned = tuple(self.items.find())
            if not owned and reading_at_s >= quiet_at_s:
                return self._ended()
            if owned:
                held = self._end(owned)
                quiet_at_s = max(quiet_at_s, *map(_workers_gone_at_s, owned))
                if any(map(_was_open, owned)):  # a worker can have begun since the request was read
                    quiet_at_s = max(quiet_at_s, math.ceil(self.now_s()) + WORKER_S)
                self.items.quiet_from(quiet_at_s)
                due = _deletable(owned, held)
                self.items.delete(due)
                self.on_step(f"deleted {len(due)} items")
            self._wait(quiet_at_s)
        raise ErasureIncomplete(f"items of this user were still being added after {MAX_SWEEPS} passes")

    def _end(self, owned: Sequence[OwnedItem]) -> frozenset[str]:
        """End open requests, and settle those that hold a part of the limits.

        Returns the ids of requests whose worker may still be answering: it knows what was used, and settles them.
        """
        reserved = {one.request_id for one in owned if one.kind == "reservations"}
        due = [one for one in owned if one.kind == "requests"]
        due = [one for one in due if _was_open(one) or one.request_id in reserved]
        return frozenset(one.request_id for one in due if not self._ended_one(one, one.request_id in reserved))

    def _ended_one(self, one: OwnedItem, reserved: bool) -> bool:
        """End a request. Returns whether it may be deleted."""
        key = RequestKey(self.items.owner, one.request_id)
        try:
            head = self.log.head(key)
            if end_request(
                self.log,
                self.connections,
                head,
                Failed.of(Cancelled(), head.failed),
                still=lambda _head: True,
                now_s=self.now_s,
                settles=lambda _head: False,
            ):
                self.on_step(f"cancelled the open request {key.request_id}")
            head = self.log.head(key)
            if reserved and not answering(head, self.now_s()):
                self.log.settle(head)
                reserved = False
        except RequestUnknown:
            return True
        except (StoreFault, DeliveryUnavailable) as error:
            raise PersonalDataFault(f"could not end request {key.request_id}: {error}") from error
        return not reserved

    def _wait(self, quiet_at_s: float) -> None:
        if (left_s := quiet_at_s - self.now_s()) > 0:
            self.on_step(f"waiting {left_s:.0f} s until no function that began before can write")
            self.sleep(left_s)

    def _ended(self) -> ErasureReceipt:
        progress, nameless = self.items.progress(), self.items.nameless
        return ErasureReceipt(
            erasure_id=progress.erasure_id,
            asker=asker_of(self.items.owner),
            begun_at=instant(progress.begun_at_s),
            ended_at=instant(self.now_s()),
            runs=progress.runs,
            deleted={kind: progress.deleted[kind] for kind in get_args(Kind) if kind in progress.deleted},
            nameless_items=nameless.items,
            nameless_until=instant(nameless.expires_at) if nameless.items else None,
        )


def _deletable(owned: Sequence[OwnedItem], held: Collection[str]) -> Sequence[OwnedItem]:
    """The items without those of held requests, and without what was settled: that deletes a reservation's item."""
    settled = {one.request_id for one in owned if one.kind == "requests"}
    return [
        one
        for one in owned
        if one.kind not in OF_A_REQUEST
        or (one.request_id not in held and not (one.kind == "reservations" and one.request_id in settled))
    ]


def _was_open(owned: OwnedItem) -> bool:
    return owned.kind == "requests" and owned.item["state"]["S"] == "open"


def _workers_gone_at_s(owned: OwnedItem) -> int:
    """When no worker of a request can be left: each begins by writing its lease, or finds the request closed."""
    return owned.number("lease_until") + WORKER_S if owned.kind == "requests" else 0
