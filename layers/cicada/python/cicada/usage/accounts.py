"""The items of the table that count use, that override limits, and that stop all spending.

=========================== ====================================== ===================================================
partition key               sort key                               what it holds
=========================== ====================================== ===================================================
``usage#user#<owner>``      ``2026-11``                            what a user has used in a month of UTC
``usage#group#<shard>#<g>`` ``2026-11``                            a part of what a group's members have used
``usage#deployment#<s>``    ``2026-11``                            a part of what everybody has used
``limits``                  ``user#<owner>``, ``group#<group>``    limits that differ from the settings': ``limits``
``limits``                  ``deployment``                         the deployment's, and the switch ``stopped``
=========================== ====================================== ===================================================

A month's item counts ``tokens`` and ``microusd`` of the month, and those of its days as ``t25`` and ``m25``: what was
used, and what is reserved for open requests (``reserved_tokens``, ``reserved_microusd``). ``requests`` are those that
have ended, ``open`` those that have a reservation. ``minute`` is the minute of the last question in minutes since the
epoch, ``minute_requests`` how many questions it has seen. All are whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cicada.dynamodb import Item, attributes
from cicada.usage.limits import MICRO, AccountKind, LimitName

ItemKey = tuple[str, str]
"""Partition key and sort key."""
POOL_SHARDS = 8
"""Items over which a group's or the deployment's use is spread unless a setting says otherwise: one item takes some
hundred writes a second only."""
HOLD_S = 3.0
"""How long a process uses what it read of the items that all questions read, such as the deployment's limits: one item
takes 3,000 reads a second."""
KEPT_S = 400 * 24 * 3600
"""How long a month's use is kept."""
CARRIED_S = 3600
"""How long into a month open questions of the month before are counted: longer than any question stays open."""
AHEAD_S = 900
"""How long before a month's end open questions of the next are counted: longer than an ask takes by a clock that is
five minutes slow, after one by a clock that is as fast."""


@dataclass(frozen=True)
class Window:
    """A moment's minute, day and month."""

    minute: int
    """Minutes since the epoch."""
    day: int
    """Of the month."""
    month: str
    """Such as 2026-11."""
    beside: str | None = None
    """The month before, while its questions can still be open; the month after, once a fast clock can have begun it."""

    @classmethod
    def at(cls, now_s: float) -> Window:
        """The window of a moment in epoch seconds."""
        moments = (now_s, now_s - CARRIED_S, now_s + AHEAD_S)
        now, *others = (datetime.fromtimestamp(moment, UTC) for moment in moments)
        month = f"{now:%Y-%m}"
        beside = (other for one in others if (other := f"{one:%Y-%m}") != month)
        return cls(int(now_s // 60), now.day, month, next(beside, None))

    def ends_at_ms(self, limit: LimitName) -> int | None:
        """When the window of a limit ends, in epoch milliseconds; None for a limit without one."""
        if limit == "requestsOpen":
            return None
        if limit == "requestsMinute":
            return (self.minute + 1) * 60_000
        if limit.endswith("Month"):
            return _end_s(self.month) * 1000
        begins = datetime.fromisoformat(f"{self.month}-{self.day:02}").replace(tzinfo=UTC)
        return int((begins + timedelta(days=1)).timestamp()) * 1000


def _end_s(month: str) -> int:
    """When a month ends, in epoch seconds."""
    in_the_next = datetime.fromisoformat(f"{month}-28").replace(tzinfo=UTC) + timedelta(days=4)
    return int(in_the_next.replace(day=1).timestamp())


def expires_at(month: str) -> int:
    """When the item of a month is deleted, in epoch seconds."""
    return _end_s(month) + KEPT_S


class Account(NamedTuple):
    """Whose use an item counts."""

    kind: AccountKind
    name: str = ""
    """The user's, who is the owner of requests, or the group's."""
    shard: int | None = None
    """Of a pool."""

    def item(self, month: str) -> ItemKey:
        """The place of the item of a month."""
        match self.kind:
            case "user":
                return f"usage#user#{self.name}", month
            case "group":
                return f"usage#group#{self.shard}#{self.name}", month
            case "deployment":
                return f"usage#deployment#{self.shard}", month

    @property
    def override(self) -> ItemKey:
        """The place of the item that overrides its limits."""
        return "limits", f"{self.kind}#{self.name}" if self.name else self.kind

    def key(self, month: str) -> dict[str, Any]:
        """The key of the item of a month, as DynamoDB takes it."""
        pk, sk = self.item(month)
        return attributes(pk=pk, sk=sk)

    @property
    def limits_key(self) -> dict[str, Any]:
        """The key of the item that overrides its limits, as DynamoDB takes it."""
        pk, sk = self.override
        return attributes(pk=pk, sk=sk)


def user(owner: str) -> Account:
    """The account of a user."""
    return Account("user", owner)


def pool(kind: AccountKind, name: str = "", shards: int = POOL_SHARDS) -> tuple[Account, ...]:
    """The accounts over which the use of a group, or of the deployment, is spread."""
    return tuple(Account(kind, name, shard) for shard in range(shards))


COUNTERS: Mapping[LimitName, str] = {
    "requestsMinute": "minute_requests",
    "requestsOpen": "open",
    "tokensDay": "day_tokens",
    "tokensMonth": "tokens",
    "usdDay": "day_microusd",
    "usdMonth": "microusd",
}
"""The field of :class:`Use` that each limit bounds."""


@dataclass(frozen=True)
class Use:
    """What an account has used in a month and in one of its days, with what is reserved for open requests."""

    requests: int = 0
    open: int = 0
    minute: int = 0
    minute_requests: int = 0
    tokens: int = 0
    microusd: int = 0
    reserved_tokens: int = 0
    reserved_microusd: int = 0
    day_tokens: int = 0
    day_microusd: int = 0

    @classmethod
    def of(cls, item: Item, day: int) -> Use:
        """What an item counts; nothing where it is empty."""
        return cls(
            **{
                name: int(item[stored]["N"])
                for name in cls.__dataclass_fields__
                if (stored := stored_name(name, day)) in item
            }
        )

    def __add__(self, other: Use) -> Use:
        """The sum over the shards of a pool; its minute is the latest."""
        minute = max(self.minute, other.minute)
        summed = {
            name: getattr(self, name) + getattr(other, name)
            for name in self.__dataclass_fields__
            if name not in ("minute", "minute_requests")
        }
        last = sum(use.minute_requests for use in (self, other) if use.minute == minute)
        return Use(**summed, minute=minute, minute_requests=last)

    def counted(self, limit: LimitName, minute: int) -> int:
        """What counts towards a limit in a minute, with what is reserved."""
        if limit == "requestsMinute" and self.minute < minute:
            return 0
        count: int = getattr(self, COUNTERS[limit])
        return count

    @property
    def used_tokens(self) -> int:
        """Of the month, without what is reserved."""
        return self.tokens - self.reserved_tokens

    @property
    def used_usd(self) -> float:
        """Of the month, without what is reserved."""
        return (self.microusd - self.reserved_microusd) / MICRO


def stored_name(name: str, day: int) -> str:
    """The attribute that holds a field of :class:`Use`."""
    return f"{name[len('day_')]}{day:02}" if name.startswith("day_") else name
