"""Lets a question in: creates its request, unless the asker's access was revoked or a limit on use is reached.

A search without an answer is let in by the same limits, and counts nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from cicada.delivery.ports import Conflict, NotReserved, RequestLog, StoreFault
from cicada.delivery.record import RequestHead, RequestKey
from cicada.dynamodb import Item, read_items
from cicada.errors import LimitReached, LimitsUnavailable, RequestUnknown
from cicada.identity import Caller
from cicada.revocation import marker_place, not_before_of, refuse_issued_up_to
from cicada.settings import MessageProcessorSettings
from cicada.usage.accounts import HOLD_S, ItemKey, Window
from cicada.usage.limits import MICRO, UNLIMITED, LimitName, UsageLimits
from cicada.usage.reservations import Amount, Asker, Bound, bounds, limit_keys, reserve, use_keys

TRIES = 8
"""How often a question is tried that meets others at the same accounts."""
BUSY_S = 0.05
"""About how long to wait after that, times the number of the try."""
OPEN_PATIENCE_S = 0.4
"""How long a question waits, once, for the place of an open one: an answer's last event can reach its client a moment
before its place is given back."""

Items = dict[ItemKey, Item]


@dataclass
class SharedItems:
    """The items that all questions read: limits of the deployment and of groups, and what counts their use.

    What is held decides nothing by itself: a reservation lands only if the stored item has the room, and a question is
    refused only after a read.
    """

    hold_s: float = 0.0
    """How long an item is held."""
    _items: dict[ItemKey, tuple[float, Item | None]] = field(default_factory=dict)

    def known(self, keys: Sequence[ItemKey], now_s: float) -> dict[ItemKey, Item | None]:
        """Those of these items that are held."""
        held = {key: self._items[key] for key in keys if key in self._items}
        return {key: item for key, (read_at_s, item) in held.items() if 0 <= now_s - read_at_s < self.hold_s}

    def keep(self, keys: Iterable[ItemKey], items: Mapping[ItemKey, Item], now_s: float) -> None:
        """Hold what was read of these keys, also that there is no item."""
        if self.hold_s:
            self._items |= {key: (now_s, items.get(key)) for key in keys if not _is_of_a_user(key)}


def _is_of_a_user(key: ItemKey) -> bool:
    return not (key[0].startswith(("usage#group#", "usage#deployment#")) or key[1].startswith(("group#", "deployment")))


@dataclass(frozen=True)
class QuestionGate:
    """Creates requests. ``read`` reads items of the requests' table consistently, and raises StoreFault."""

    log: RequestLog
    read: Callable[[Sequence[ItemKey]], Items]
    _: KW_ONLY
    most: Amount
    """What one request may use at most."""
    limits: UsageLimits = UNLIMITED
    revocable: bool = True
    """Whether there are tokens that can have been revoked."""
    on_reached: Callable[[str], None] = lambda _limit: None
    now_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    shared: SharedItems = field(default_factory=SharedItems)

    def create(self, head: RequestHead, accepted: str, caller: Caller) -> None:
        """Create a request whose log holds one event, and reserve what it may use at most.

        Raises:
            Conflict: it exists; whatever a limit says, a repeated question is not asked anew.
            Unauthorized: the caller's tokens were revoked.
            LimitReached: nothing was reserved.
            LimitsUnavailable: too many others write to the accounts.
            StoreFault: it may have been created.
        """
        asker, window = Asker(caller.owner, caller.groups), Window.at(self.now_s())
        try:
            several, items = self._look(asker, window, caller)
            self._create(head, accepted, several, items, window)
        except LimitReached as reached:
            self._raise_if_exists(head.key)
            self.on_reached(reached.limit.limit)
            raise

    def _look(self, asker: Asker, window: Window, caller: Caller) -> tuple[tuple[Bound, ...], Items]:
        """Everybody whose limits hold for the question, and the items that count their use; usually by one call."""
        return _looked(self._read, self.limits, asker, window, caller if self.revocable else None)

    def _read(self, keys: Sequence[ItemKey]) -> Items:
        """Items, of which some may be held."""
        now_s = self.now_s()
        known = self.shared.known(keys, now_s)
        found = self._read_now([key for key in keys if key not in known])
        return found | {key: item for key, item in known.items() if item is not None}

    def _read_now(self, keys: Sequence[ItemKey]) -> Items:
        if not keys:
            return {}
        now_s, items = self.now_s(), self.read(keys)
        self.shared.keep(keys, items, now_s)
        return items

    def _create(
        self, head: RequestHead, accepted: str, several: tuple[Bound, ...], items: Items, window: Window
    ) -> None:
        patient, certain = True, not self.shared.hold_s
        for number in range(1, TRIES + 1):
            if not several:
                self.log.create(head, accepted)
                return
            try:
                reservation, claims = reserve(several, items, window, self.most, self.random)
            except LimitReached as reached:
                if certain:
                    if reached.limit.limit != "requestsOpen" or not patient:
                        raise
                    patient = False
                    self.sleep(OPEN_PATIENCE_S)
                items, certain = self._read_now(use_keys(several, window)), True
                continue
            try:
                self.log.create(replace(head, reservation=reservation), accepted, claims)
            except NotReserved as changed:
                items |= changed.items
                self.shared.keep(changed.items, changed.items, self.now_s())
                if not changed.items:
                    self.sleep(number * BUSY_S * (0.5 + self.random()))
            else:
                return
        raise LimitsUnavailable("too many concurrent changes of the accounts")

    def _raise_if_exists(self, key: RequestKey) -> None:
        try:
            stored = self.log.head(key)
        except RequestUnknown:
            return
        raise Conflict(stored, ())


def _looked(
    read: Callable[[Sequence[ItemKey]], Items],
    limits: UsageLimits,
    asker: Asker,
    window: Window,
    revocable: Caller | None,
) -> tuple[tuple[Bound, ...], Items]:
    """Everybody whose limits hold, and the items that count their use; also whether tokens of a caller were revoked."""
    marker = [] if revocable is None else [marker_place(revocable.subject)]
    expected = use_keys(bounds(limits, asker, {}), window)
    asked = [*marker, *limit_keys(limits, asker), *expected]
    items = read(asked)
    if revocable is not None:
        refuse_issued_up_to(not_before_of(items.get(marker[0])), revocable)
    several = bounds(limits, asker, items)
    if more := [key for key in use_keys(several, window) if key not in asked]:
        items |= read(more)  # an override sets a limit where the settings have none
    return several, items


COUNTED_BY_QUESTIONS: tuple[LimitName, ...] = ("requestsMinute", "requestsOpen")
"""Limits that count questions alone: a search is none."""


@dataclass(frozen=True)
class SearchGate:
    """Lets a search in, which reserves and counts nothing: it costs an embedding, a fraction of a cent's hundredth.

    ``read`` reads items of the requests' table consistently, and raises StoreFault.
    """

    read: Callable[[Sequence[ItemKey]], Items]
    _: KW_ONLY
    limits: UsageLimits = UNLIMITED
    revocable: bool = True
    """Whether there are tokens that can have been revoked."""
    on_reached: Callable[[str], None] = lambda _limit: None
    now_s: Callable[[], float] = time.time

    def admit(self, caller: Caller) -> None:
        """Refuse a search of somebody whose tokens or cost of a day or month are used up.

        Raises:
            Unauthorized: the caller's tokens were revoked.
            LimitReached: nothing is left, or an administrator has stopped all spending.
            LimitsUnavailable: the limits could not be read.
        """
        asker, window = Asker(caller.owner, caller.groups), Window.at(self.now_s())
        try:
            several, items = _looked(self.read, self.limits, asker, window, caller if self.revocable else None)
            reserve(tuple(filter(None, map(_spending, several))), items, window, LEAST, random=lambda: 0.0)
        except StoreFault as error:
            raise LimitsUnavailable(str(error)) from error
        except LimitReached as reached:
            self.on_reached(reached.limit.limit)
            raise


LEAST = Amount(1, 1)


def _spending(bound: Bound) -> Bound | None:
    """A bound's limits on tokens and cost, if it has any."""
    left = {name: most for name, most in bound.limits.items() if name not in COUNTED_BY_QUESTIONS}
    return replace(bound, limits=left) if left else None


def question_gate(
    log: RequestLog, client: Any, settings: MessageProcessorSettings, *, on_reached: Callable[[str], None]
) -> QuestionGate:
    """The gate of a deployment. ``client``: of DynamoDB, with short time-outs."""
    return QuestionGate(
        log,
        lambda keys: read_items(client, StoreFault, settings.requests_table, keys, sleep=time.sleep),
        most=Amount(settings.request_tokens, round(settings.request_cost_usd * MICRO)),
        limits=settings.usage_limits,
        revocable=settings.auth != "none",
        on_reached=on_reached,
        shared=SharedItems(HOLD_S),
    )
