"""Decides whether a question may be asked, and what is reserved for it: without I/O.

A question reserves the most that it may use, in every account that has a limit. An account is an item, and a
reservation lands only if the item still has the room, so that no number of questions at once passes a limit. A group's
or the deployment's use is spread over several items: each holds a part of every limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import NamedTuple

from cicada.dynamodb import Item
from cicada.errors import LimitReached, SpendingStopped
from cicada.usage.accounts import POOL_SHARDS, Account, ItemKey, Use, Window, pool, user
from cicada.usage.limits import MICRO, AccountKind, LimitName, Limits, LimitState, UsageLimits

RESERVATIONS_A_SHARD = 10
"""A pool is spread over fewer items if each could not hold so many reservations: at the end of a day or month each item
can have less left than one question may need, so that a tenth of the limit at most is left unused."""


class Amount(NamedTuple):
    """What text models use: tokens, read and written, and millionths of a US dollar."""

    tokens: int
    microusd: int


NOTHING = Amount(0, 0)


class Left(NamedTuple):
    """What was left of a limit when a question was asked, before anything was reserved for it."""

    kind: AccountKind
    name: str
    limit: LimitName
    most: int
    left: int


@dataclass(frozen=True)
class Reservation:
    """What is reserved for a request until it is settled. It counts in the day and month of the question."""

    month: str
    day: int
    most: Amount
    accounts: tuple[Account, ...]
    left: tuple[Left, ...] = ()
    """Of the asker's limits by day and month, as far as the asker may know them."""


@dataclass(frozen=True)
class Claim:
    """One account's part of a reservation, and the condition on which it lands."""

    account: Account
    at_most: Mapping[LimitName, int]
    """What the item may count before."""
    minute: int | None = None
    """The minute that the question counts in; None where no limit needs it."""
    first_of_minute: bool = False
    """The item has counted no question of that minute yet."""
    open_beside: tuple[str, int] | None = None
    """The month beside, and how many questions the account may have open there; None where it does not matter."""


@dataclass(frozen=True)
class Bound:
    """A user, a group or the deployment, and the limits that a question must keep to."""

    kind: AccountKind
    name: str
    limits: Mapping[LimitName, int]
    shards: int = POOL_SHARDS
    """Of a pool: over how many items its use is spread at most."""

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The accounts that count its use."""
        return (user(self.name),) if self.kind == "user" else pool(self.kind, self.name, self.shards)


@dataclass(frozen=True)
class Asker:
    """Who asks."""

    owner: str
    groups: tuple[str, ...] = ()


def limit_keys(settings: UsageLimits, asker: Asker) -> tuple[ItemKey, ...]:
    """The keys of the items that :func:`bounds` needs."""
    return tuple(Account(kind, name).override for kind, name, _ in _stated(settings, asker))


def bounds(settings: UsageLimits, asker: Asker, items: Mapping[ItemKey, Item]) -> tuple[Bound, ...]:
    """Everybody whose limits the asker's question must keep to. Raises SpendingStopped."""
    deployment = items.get(Account("deployment").override, {})
    if deployment.get("stopped", {}).get("BOOL"):
        raise SpendingStopped(LimitState(account="deployment", limit="stopped"))
    found = []
    for kind, name, limits in _stated(settings, asker):
        override = items.get(Account(kind, name).override, {}).get("limits")
        if override is not None:
            limits = limits.overridden_by(Limits.model_validate_json(override["S"]))
        if limits.stated:
            found.append(Bound(kind, name, limits.stated, settings.pool_shards))
    return tuple(found)


def _stated(settings: UsageLimits, asker: Asker) -> list[tuple[AccountKind, str, Limits]]:
    groups = [group for group in settings.groups if group in asker.groups]
    return [
        ("user", asker.owner, settings.of_user(asker.groups)),
        *(("group", group, settings.groups[group]) for group in groups),
        ("deployment", "", settings.deployment),
    ]


def use_keys(several: Sequence[Bound], window: Window) -> tuple[ItemKey, ...]:
    """The keys of the items that :func:`reserve` needs."""
    return tuple(
        account.item(month)
        for bound in several
        for account in bound.accounts
        for month in (window.month, window.beside if "requestsOpen" in bound.limits else None)
        if month is not None
    )


def reserve(
    several: Sequence[Bound],
    items: Mapping[ItemKey, Item],
    window: Window,
    most: Amount,
    random: Callable[[], float],
) -> tuple[Reservation, tuple[Claim, ...]]:
    """What to reserve for a question, by what is known of the accounts. Raises LimitReached."""
    needs: dict[LimitName, int] = {
        "requestsMinute": 1,
        "requestsOpen": 1,
        "tokensDay": most.tokens,
        "tokensMonth": most.tokens,
        "usdDay": most.microusd,
        "usdMonth": most.microusd,
    }
    claims, left = [], list[Left]()
    for bound in several:
        room = _Room(bound, items, window, needs)
        claims.append(room.claim(random()))
        left += room.left()
    return Reservation(window.month, window.day, most, tuple(claim.account for claim in claims), tuple(left)), tuple(
        claims
    )


class _Room:
    """What is left in the accounts of one bound."""

    def __init__(
        self, bound: Bound, items: Mapping[ItemKey, Item], window: Window, needs: Mapping[LimitName, int]
    ) -> None:
        self._bound = bound
        self._window = window
        self._needs = needs
        self._uses = [Use.of(items.get(account.item(window.month), {}), window.day) for account in bound.accounts]
        month = window.beside
        self._beside = [
            Use.of(items.get(account.item(month), {}), 1).open if month else 0 for account in bound.accounts
        ]
        self._counts = {limit: [use.counted(limit, window.minute) for use in self._uses] for limit in bound.limits}
        if "requestsOpen" in bound.limits:
            self._counts["requestsOpen"] = list(map(add, self._counts["requestsOpen"], self._beside))
        active = 1 if bound.kind == "user" else _active_shards(bound, needs)
        self._parts = {limit: parts(self._counts[limit], most, active) for limit, most in bound.limits.items()}

    def _fits(self, limit: LimitName, shard: int) -> bool:
        return self._counts[limit][shard] + self._needs[limit] <= self._parts[limit][shard]

    def claim(self, draw: float) -> Claim:
        """A claim on one of the accounts that have room, by a random number in [0, 1). Raises LimitReached."""
        shards = range(len(self._uses))
        free = [shard for shard in shards if all(self._fits(limit, shard) for limit in self._bound.limits)]
        if not free:
            full = [limit for limit in self._bound.limits if not any(self._fits(limit, shard) for shard in shards)]
            raise LimitReached(self._state(max(full or self._bound.limits, key=self._resets_at_ms)))
        shard = free[int(draw * len(free))]
        at_most = {limit: self._parts[limit][shard] - self._needs[limit] for limit in self._bound.limits}
        claim = Claim(self._bound.accounts[shard], at_most)
        if self._window.beside is not None and "requestsOpen" in at_most:
            at_most["requestsOpen"] -= self._beside[shard]
            claim = replace(claim, open_beside=(self._window.beside, self._beside[shard]))
        if "requestsMinute" not in at_most:
            return claim
        # A clock that is ahead of ours has begun a later minute: the question counts in that one.
        last = self._uses[shard].minute
        return replace(claim, minute=max(last, self._window.minute), first_of_minute=last < self._window.minute)

    def left(self) -> list[Left]:
        """What is left by day and month. Of the deployment's limits nothing is told."""
        if self._bound.kind == "deployment":
            return []
        return [
            Left(self._bound.kind, self._bound.name, limit, most, self._left(limit))
            for limit, most in self._bound.limits.items()
            if limit.endswith(("Day", "Month"))
        ]

    def _left(self, limit: LimitName) -> int:
        return max(0, self._bound.limits[limit] - sum(self._counts[limit]))

    def _resets_at_ms(self, limit: LimitName) -> int:
        return self._window.ends_at_ms(limit) or 0

    def _state(self, limit: LimitName) -> LimitState:
        return _told(
            Left(self._bound.kind, self._bound.name, limit, self._bound.limits[limit], self._left(limit)),
            self._window.ends_at_ms(limit),
        )


def _active_shards(bound: Bound, needs: Mapping[LimitName, int]) -> int:
    """Over how many items a pool is spread: over fewer where a limit is small."""
    each = {limit: need if need == 1 else RESERVATIONS_A_SHARD * need for limit, need in needs.items()}
    return max(1, min(bound.shards, *(most // each[limit] for limit, most in bound.limits.items())))


def parts(counts: Sequence[int], most: int, active: int) -> list[int]:
    """The part of a limit that each item may count: equal parts for the first ``active``.

    What the others count, and what an item counts beyond its part, is taken from the rest: when a limit was lowered
    meanwhile. An item that is beyond its part gets no more.
    """
    shared = list(range(active))
    left = most - sum(counts[active:])
    while True:
        part, more = divmod(max(0, left), max(1, len(shared)))
        beyond = [shard for shard in shared if counts[shard] > part + (shared.index(shard) < more)]
        if not beyond:
            break
        left -= sum(counts[shard] for shard in beyond)
        shared = [shard for shard in shared if shard not in beyond]
    return [part + (shared.index(shard) < more) if shard in shared else 0 for shard in range(len(counts))]


def left_after(reservation: Reservation, used: Amount) -> tuple[LimitState, ...]:
    """What is left of the asker's limits after an answer, as far as was known when it was asked."""
    window = Window(0, reservation.day, reservation.month)
    return tuple(
        _told(
            one._replace(left=max(0, one.left - (used.tokens if one.limit.startswith("tokens") else used.microusd))),
            window.ends_at_ms(one.limit),
        )
        for one in reservation.left
    )


def _told(one: Left, resets_at_ms: int | None) -> LimitState:
    """A limit's state as a client is told of it: of the deployment's no amounts."""
    unit = MICRO if one.limit.startswith("usd") else 1
    amounts = {} if one.kind == "deployment" else {"most": one.most / unit, "left": one.left / unit}
    group = {"group": one.name} if one.kind == "group" else {}
    return LimitState(account=one.kind, limit=one.limit, resets_at_ms=resets_at_ms, **amounts, **group)
