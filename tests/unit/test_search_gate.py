"""Which searches are let in by the limits on use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cicada.answering.question_gate import Items, SearchGate
from cicada.delivery.ports import StoreFault
from cicada.errors import LimitReached, LimitsUnavailable, SpendingStopped, Unauthorized
from cicada.identity import Caller
from cicada.revocation import marker_place
from cicada.usage.accounts import Account, ItemKey, Window, stored_name, user
from cicada.usage.limits import Limits, UsageLimits

NOW_S = 1_795_600_830.0
WINDOW = Window.at(NOW_S)
CALLER = Caller("mara", "c1", "f1", groups=("readers",), issued_at=int(NOW_S))
USE = user("mara").item(WINDOW.month)


def gate(items: dict[ItemKey, Any], reached: list[str] | None = None, **limits: Limits) -> SearchGate:
    def read(keys: Sequence[ItemKey]) -> Items:
        return {key: items[key] for key in keys if key in items}

    told: Callable[[str], None] = (reached if reached is not None else []).append
    return SearchGate(read, limits=UsageLimits(**limits), on_reached=told, now_s=lambda: NOW_S)


def used(**counted: int) -> dict[str, Any]:
    return {stored_name(name, WINDOW.day): {"N": str(count)} for name, count in counted.items()}


def test_a_search_is_let_in_while_anything_is_left_and_counts_nothing() -> None:
    mine = Limits(tokens_day=100, requests_minute=1, requests_open=1)
    gate({}, user=mine).admit(CALLER)
    gate({USE: used(day_tokens=99, open=1, minute=WINDOW.minute, minute_requests=1)}, user=mine).admit(CALLER)
    gate({USE: used(day_tokens=10**9)}).admit(CALLER)


@pytest.mark.parametrize(
    ("limits", "counted", "limit"),
    [
        (Limits(tokens_day=100), {"day_tokens": 100}, "tokensDay"),
        (Limits(tokens_month=100), {"tokens": 100}, "tokensMonth"),
        (Limits(usd_month=0.5), {"microusd": 500_000}, "usdMonth"),
    ],
)
def test_a_search_is_refused_once_tokens_or_cost_are_used_up(
    limits: Limits, counted: dict[str, int], limit: str
) -> None:
    reached: list[str] = []
    with pytest.raises(LimitReached) as refusal:
        gate({USE: used(**counted)}, reached, user=limits).admit(CALLER)
    assert (refusal.value.limit.limit, reached) == (limit, [limit])


def test_the_switch_stops_searches_too() -> None:
    with pytest.raises(SpendingStopped):
        gate({Account("deployment").override: {"stopped": {"BOOL": True}}}).admit(CALLER)


def test_a_revoked_token_and_an_unreadable_table_let_nothing_in() -> None:
    with pytest.raises(Unauthorized):
        gate({marker_place("mara"): {"not_before": {"N": str(int(NOW_S))}}}).admit(CALLER)

    def fail(keys: Sequence[ItemKey]) -> Items:
        raise StoreFault("slow")

    with pytest.raises(LimitsUnavailable):
        SearchGate(fail).admit(CALLER)
