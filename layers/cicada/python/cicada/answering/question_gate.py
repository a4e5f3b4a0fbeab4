"""Lets a question in: creates its request, unless the asker's access was revoked or a limit on use is reached."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from cicada.delivery.ports import Conflict, NotReserved, RequestLog, StoreFault
from cicada.delivery.record import RequestHead, RequestKey
from cicada.dynamodb import Item, read_items
from cicada.errors import LimitReached, LimitsUnavailable, RequestUnknown
from cicada.identity import Caller
from cicada.revocation import marker_place, not_before_of, refuse_issued_up_to
from cicada.settings import MessageProcessorSettings
from cicada.usage.accounts import ItemKey, Window
from cicada.usage.limits import MICRO, UNLIMITED, UsageLimits
from cicada.usage.reservations import Amount, Asker, Bound, bounds, limit_keys, reserve, use_keys

TRIES = 8
"""How often a question is tried that meets others at the same accounts."""
BUSY_S = 0.05
"""About how long to wait after that, times the number of the try."""
OPEN_PATIENCE_S = 0.4
"""How long a question waits, once, for the place of an open one: an answer's last event can reach its client a moment
before its place is given back."""

Items = dict[ItemKey, Item]


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
        marker = [marker_place(caller.subject)] if self.revocable else []
        expected = use_keys(bounds(self.limits, asker, {}), window)
        asked = [*marker, *limit_keys(self.limits, asker), *expected]
        items = self.read(asked)
        if marker:
            refuse_issued_up_to(not_before_of(items.get(marker[0])), caller)
        several = bounds(self.limits, asker, items)
        if more := [key for key in use_keys(several, window) if key not in asked]:
            items |= self.read(more)  # an override sets a limit where the settings have none
        return several, items

    def _create(
        self, head: RequestHead, accepted: str, several: tuple[Bound, ...], items: Items, window: Window
    ) -> None:
        patient = True
        for number in range(1, TRIES + 1):
            if not several:
                self.log.create(head, accepted)
                return
            try:
                reservation, claims = reserve(several, items, window, self.most, self.random)
            except LimitReached as reached:
                if reached.limit.limit != "requestsOpen" or not patient:
                    raise
                patient = False
                self.sleep(OPEN_PATIENCE_S)
                items = self.read(use_keys(several, window))
                continue
            try:
                self.log.create(replace(head, reservation=reservation), accepted, claims)
            except NotReserved as changed:
                items |= changed.items
                if not changed.items:
                    self.sleep(number * BUSY_S * (0.5 + self.random()))
            else:
                return
        raise LimitsUnavailable("the accounts keep changing")

    def _raise_if_exists(self, key: RequestKey) -> None:
        try:
            stored = self.log.head(key)
        except RequestUnknown:
            return
        raise Conflict(stored, ())


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
    )
