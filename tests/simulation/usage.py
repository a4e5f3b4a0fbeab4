"""The limits of one world, and what is checked of them: L1 to L3."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from cicada.usage.accounts import Use
from cicada.usage.limits import MICRO, UNLIMITED, LimitName, Limits, UsageLimits
from cicada.usage.reservations import Amount
from tests.simulation.expressions import Item
from tests.simulation.records import Key, Record

MOST = Amount(120_000, 400_000)
"""What one request may use: the budget of a request by default."""
LIMITED_SHARE = 0.3
"""How many worlds have limits."""


def drawn_limits(random: Random) -> UsageLimits:
    """The limits of a world, as tight as its few questions need."""
    if random.random() >= LIMITED_SHARE:
        return UNLIMITED

    def limits(*, of_all: int) -> Limits:
        chosen: dict[str, float] = {
            "requests_minute": random.randint(1, 3 * of_all),
            "requests_open": random.randint(1, 2 * of_all),
            "tokens_day": MOST.tokens * random.randint(1, 3 * of_all),
            "tokens_month": MOST.tokens * random.choice((2, 3, 25, 40)),
            "usd_day": MOST.microusd * random.randint(1, 3 * of_all) / MICRO,
            "usd_month": MOST.microusd * random.randint(2, 4 * of_all) / MICRO,
        }
        return Limits(**{name: most for name, most in chosen.items() if random.random() < 0.35})

    return UsageLimits(user=limits(of_all=1), deployment=limits(of_all=2))


class UsageJudge:
    """Watches the items that count use."""

    def __init__(self, limits: UsageLimits, fails: Callable[[str], None]) -> None:
        self.limited = bool(limits.user.stated or limits.deployment.stated)
        self.held: set[str] = set()
        """Partition keys of the requests whose reservation stands."""
        self._limits = {"user": limits.user.stated, "deployment": limits.deployment.stated}
        self._fails = fails
        self._months: dict[tuple[str, str], Item] = {}
        self._heads: dict[str, Item] = {}
        self._settled: set[str] = set()

    def wrote(self, pk: str, sk: str, after: Item | None) -> None:
        """A change of the table."""
        if pk.startswith("usage#") and after is not None:
            self._months[pk, sk] = after
            self._within(pk)
        elif sk == "head" and after is not None:
            self._heads[pk] = after
            if self.limited and "reservation" not in after:
                self._fails("L3: a question is let in without a reservation")
        elif sk == "reservation" and after is not None:
            self.held.add(pk)
        elif sk == "reservation":
            self.held.discard(pk)
            if pk in self._settled:
                self._fails("L2: a request is settled twice")
            if self._heads[pk]["state"]["S"] == "open":
                self._fails("L2: a request is settled that has not ended")
            self._settled.add(pk)

    def _within(self, pk: str) -> None:
        """L1: what is used and reserved is never above a limit, of an account and of a pool's shards together."""
        kind = pk.split("#")[1]
        prefix = f"usage#{kind}#" if kind == "deployment" else pk
        mine = [(sk, item) for (name, sk), item in self._months.items() if name.startswith(prefix)]
        for sk, item in mine:
            negative = [name for name, value in item.items() if "N" in value and int(value["N"]) < 0]
            if negative:
                self._fails(f"L1: {pk} {sk} counts less than nothing: {negative}")
        for limit, most in self._limits[kind].items():
            worst = max(counts, default=0) if (counts := self._counts(limit, mine)) else 0
            if worst > most:
                self._fails(f"L1: {pk} counts {worst} for {limit}, which is {most} at most")

    def _counts(self, limit: LimitName, items: list[tuple[str, Item]]) -> list[int]:
        """What counts for a limit, in each of its windows."""
        by_window: dict[Any, int] = {}
        for month, item in items:
            for day in range(1, 32):
                use = Use.of(item, day)
                window, count = {
                    "requestsMinute": (use.minute, use.minute_requests),
                    "requestsOpen": ("now", use.open),
                    "tokensDay": ((month, day), use.day_tokens),
                    "tokensMonth": (month, use.tokens),
                    "usdDay": ((month, day), use.day_microusd),
                    "usdMonth": (month, use.microusd),
                }[limit]
                if day == 1 or limit.endswith("Day"):
                    by_window[window] = by_window.get(window, 0) + count
        return list(by_window.values())

    def at_rest(self, records: dict[Key, Record]) -> None:
        """L2, L3: nothing is reserved any more, and what was used is what the requests tell of."""
        if not self.limited:
            return
        if self.held:
            self._fails(f"L2: {len(self.held)} reservations still stand")
        for pk in {pk for pk, _ in self._months}:
            uses = [Use.of(item, 1) for (name, _), item in self._months.items() if name == pk]
            if any(use.open or use.reserved_tokens or use.reserved_microusd for use in uses):
                self._fails(f"L2: {pk} still counts something as reserved")
        for owner in {key[0] for key in records}:
            mine = [record for record in records.values() if record.key[0] == owner]
            uses = [Use.of(item, 1) for (pk, _), item in self._months.items() if pk == f"usage#user#{owner}"]
            requests, tokens = sum(use.requests for use in uses), sum(use.tokens for use in uses)
            if requests != len(mine):
                self._fails(f"L3: {requests} requests of {owner} are counted, {len(mine)} were let in")
            least, most = (sum(bounds) for bounds in zip(*map(_tokens, mine), strict=True))
            if not least <= tokens <= most:
                self._fails(f"L2: {tokens} tokens of {owner} are counted, {least} to {most} were used")


def _tokens(record: Record) -> tuple[int, int]:
    """The least and the most tokens that a request can have used: of an answer exactly those that it tells of."""
    item, terminal = record.item, record.terminal
    spent = json.loads(item["spent"]["S"]) if "spent" in item else {"input_tokens": 0, "output_tokens": 0}
    counted = json.loads(item["counted"]["S"]) if "counted" in item else {"unreported": [0, 0]}
    known = spent["input_tokens"] + spent["output_tokens"]
    if terminal is None or terminal["type"] != "complete":
        return known, MOST.tokens  # a worker whose request was cancelled tells what it spent as it settles it
    told = terminal["metrics"]["inputTokens"] + terminal["metrics"]["outputTokens"]
    exact = max(told, min(told + counted["unreported"][0], MOST.tokens))
    return exact, exact
