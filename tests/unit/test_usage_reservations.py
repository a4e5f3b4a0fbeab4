"""Limits on use: which hold, what is reserved, and that no order of questions passes one."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import LimitReached, SpendingStopped
from cicada.usage.accounts import POOL_SHARDS, Account, ItemKey, Use, Window, expires_at, pool, user
from cicada.usage.dynamodb import dump_reservation, load_reservation, reserving, settling
from cicada.usage.limits import Limits, LimitState, UsageLimits
from cicada.usage.reservations import (
    NOTHING,
    Amount,
    Asker,
    Bound,
    Claim,
    Reservation,
    bounds,
    left_after,
    parts,
    reserve,
    use_keys,
)
from tests.simulation.expressions import Item, condition, updated

MOST = Amount(100, 1_000)
NOW_S = 1_795_600_830.0  # 2026-11-25, 10:00:30
WINDOW = Window.at(NOW_S)
TURN_S = 1_796_083_200.0  # 2026-12-01
MARA = Asker("mara", ("readers", "staff"))


class Table:
    """The items that count use, changed by the updates that go to DynamoDB."""

    def __init__(self) -> None:
        self.items: dict[ItemKey, Item] = {}

    def lands(self, reservation: Reservation, claims: tuple[Claim, ...]) -> bool:
        """A transaction: all or nothing."""
        parts = [part for claim in claims for part in reserving("t", reservation, claim).values()]
        if not all(self._holds(asked) for part in parts for asked in part.values()):
            return False
        for part in parts:
            if "Update" in part:
                self.apply(part["Update"])
        return True

    def apply(self, update: dict[str, Any]) -> None:
        key = (update["Key"]["pk"]["S"], update["Key"]["sk"]["S"])
        self.items[key] = updated(
            self.items.get(key) or dict(update["Key"]),
            update["UpdateExpression"],
            update["ExpressionAttributeNames"],
            update["ExpressionAttributeValues"],
        )

    def _holds(self, update: dict[str, Any]) -> bool:
        item = self.items.get((update["Key"]["pk"]["S"], update["Key"]["sk"]["S"]), {})
        text = update.get("ConditionExpression")
        named = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
        return text is None or condition(text)(item, *named)

    def sum(self, bound: Bound) -> Use:
        uses = [Use.of(self.items.get(one.item(WINDOW.month), {}), WINDOW.day) for one in bound.accounts]
        total = uses[0]
        for use in uses[1:]:
            total += use
        return total


def counts(use: Use) -> dict[str, int]:
    return {
        "requestsMinute": use.minute_requests,
        "requestsOpen": use.open,
        "tokensDay": use.day_tokens,
        "tokensMonth": use.tokens,
        "usdDay": use.day_microusd,
        "usdMonth": use.microusd,
    }


STATED = st.dictionaries(
    st.sampled_from(["requests_minute", "requests_open", "tokens_day", "tokens_month", "usd_day", "usd_month"]),
    st.integers(1, 30),
    min_size=1,
)


def limits_of(stated: dict[str, int]) -> Limits:
    unit = {"tokens": MOST.tokens, "usd": MOST.microusd / 1e6}
    return Limits(**{name: most * unit.get(name.split("_")[0], 1) for name, most in stated.items()})


@settings(max_examples=40)
@given(STATED, STATED, st.lists(st.tuples(st.sampled_from("snapshot ask settle".split()), st.floats(0, 0.999))))
def test_no_order_of_questions_passes_a_limit(of_user: Any, of_all: Any, steps: list[tuple[str, float]]) -> None:
    """Questions decide by what they saw once, however old it is."""
    several = bounds(UsageLimits(user=limits_of(of_user), deployment=limits_of(of_all)), MARA, {})
    table, seen, held = Table(), dict[ItemKey, Item](), list[Reservation]()
    for step, draw in [(one, draw) for one, draw in steps for _ in range(4)]:
        if step == "snapshot":
            seen = dict(table.items)
        elif step == "settle" and held:
            done = held.pop(int(draw * len(held)))
            for account in done.accounts:
                table.apply(settling("t", done, account, Amount(int(draw * MOST.tokens), int(draw * MOST.microusd))))
        elif step == "ask":
            try:
                reservation, claims = reserve(several, seen, WINDOW, MOST, partial(float, draw))
            except LimitReached:
                continue
            if table.lands(reservation, claims):
                held.append(reservation)
        for bound in several:
            counted = counts(table.sum(bound))
            assert all(counted[limit] <= most for limit, most in bound.limits.items())
            assert min(counted.values()) >= 0
    for reservation in held:
        for account in reservation.accounts:
            table.apply(settling("t", reservation, account, NOTHING))
    for bound in several:
        use = table.sum(bound)
        assert (use.open, use.reserved_tokens, use.reserved_microusd) == (0, 0, 0)


@settings(max_examples=20)
@given(st.integers(1, 12), st.lists(st.floats(0, 0.999), min_size=40, max_size=40))
def test_every_place_of_a_pool_is_found_before_it_refuses(most: int, draws: list[float]) -> None:
    several, table = bounds(UsageLimits(deployment=Limits(requests_open=most)), MARA, {}), Table()
    for draw in draws[:most]:
        assert table.lands(*reserve(several, table.items, WINDOW, MOST, partial(float, draw)))
    with pytest.raises(LimitReached):
        reserve(several, table.items, WINDOW, MOST, lambda: 0.0)


def test_a_setting_spreads_a_pool_over_more_items() -> None:
    limits = UsageLimits(deployment=Limits(requests_minute=1_000), pool_shards=32)
    (bound,) = bounds(limits, Asker("ann"), {})
    _, (claim,) = reserve([bound], {}, Window.at(0), Amount(1, 1), lambda: 0.999)
    assert (len(bound.accounts), claim.account.shard) == (32, 31)
    small = UsageLimits(deployment=Limits(requests_minute=5), pool_shards=32)
    _, (claim,) = reserve(bounds(small, Asker("ann"), {}), {}, Window.at(0), Amount(1, 1), lambda: 0.999)
    assert claim.account.shard == 4


@given(st.lists(st.integers(0, 50), min_size=POOL_SHARDS, max_size=POOL_SHARDS), st.integers(0, 100), st.integers(1, 8))
def test_parts_leave_room_for_what_is_counted_beyond_them(counted: list[int], most: int, active: int) -> None:
    given = parts(counted, most, active)
    taken = [max(count, part) for count, part in zip(counted, given, strict=True)]
    assert sum(taken) <= max(most, sum(counted))
    if not any(counted):
        assert sum(given) == most


def test_a_small_pool_is_kept_in_few_items() -> None:
    (bound,) = bounds(UsageLimits(deployment=Limits(usd_day=0.001 * 3)), MARA, {})
    table = Table()
    for _ in range(3):
        assert table.lands(*reserve([bound], table.items, WINDOW, MOST, lambda: 0.99))
    assert len(table.items) == 1


def test_the_most_generous_of_a_users_groups_holds_in_place_of_every_users_limits() -> None:
    settings_of = UsageLimits(
        user=Limits(requests_minute=5, tokens_day=100),
        members={
            "readers": Limits(requests_minute=2),
            "staff": Limits(requests_minute=3, usd_day=None),
            "else": Limits(requests_minute=9),
        },
    )
    assert settings_of.of_user(("readers", "staff")).stated == {"requestsMinute": 3, "tokensDay": 100}
    assert settings_of.of_user(()).stated == {"requestsMinute": 5, "tokensDay": 100}
    lifted = UsageLimits(user=Limits(tokens_day=1), members={"staff": Limits(tokens_day=None)})
    assert lifted.of_user(("staff",)).stated == {}


def test_an_override_replaces_and_lifts_limits_and_a_switch_stops_all() -> None:
    settings_of = UsageLimits(user=Limits(requests_minute=5, tokens_day=100), groups={"staff": Limits(requests_open=1)})
    overridden = {user("mara").override: {"limits": {"S": '{"tokensDay": null, "requestsOpen": 7}'}}}
    mine, staff = bounds(settings_of, MARA, overridden)
    assert mine.limits == {"requestsMinute": 5, "requestsOpen": 7}
    assert (staff.kind, staff.name, staff.limits) == ("group", "staff", {"requestsOpen": 1})
    assert [bound.kind for bound in bounds(settings_of, Asker("tess"), overridden)] == ["user"]
    with pytest.raises(SpendingStopped) as stopped:
        bounds(UsageLimits(), MARA, {Account("deployment").override: {"stopped": {"BOOL": True}}})
    assert stopped.value.limit == LimitState(account="deployment", limit="stopped")


@pytest.mark.parametrize(("minute", "in_it", "fits"), [(0, 9, True), (1, 0, True), (1, 1, False), (5, 1, False)])
def test_a_minute_counts_its_own_questions_and_that_of_a_fast_clock(minute: int, in_it: int, fits: bool) -> None:
    several = bounds(UsageLimits(user=Limits(requests_minute=1)), MARA, {})
    (key,) = use_keys(several, WINDOW)
    table = Table()
    last = WINDOW.minute + minute - 1
    table.items[key] = {"minute": {"N": str(last)}, "minute_requests": {"N": str(in_it)}}
    if not fits:
        with pytest.raises(LimitReached) as refused:
            reserve(several, table.items, WINDOW, MOST, lambda: 0.0)
        assert refused.value.limit.resets_at_ms == (WINDOW.minute + 1) * 60_000
        return
    assert table.lands(*reserve(several, table.items, WINDOW, MOST, lambda: 0.0))
    assert Use.of(table.items[key], WINDOW.day).minute == WINDOW.minute


@pytest.mark.parametrize(
    ("after_s", "month", "beside"),
    [
        (-901, "2026-11", None),
        (-900, "2026-11", "2026-12"),
        (-1, "2026-11", "2026-12"),
        (0, "2026-12", "2026-11"),
        (3_599, "2026-12", "2026-11"),
        (3_600, "2026-12", None),
    ],
)
def test_open_questions_of_two_months_are_counted_at_the_turn(after_s: int, month: str, beside: str | None) -> None:
    window = Window.at(TURN_S + after_s)
    assert (window.month, window.beside) == (month, beside)
    several = bounds(UsageLimits(user=Limits(requests_open=2)), MARA, {})
    assert set(use_keys(several, window)) == {user("mara").item(one) for one in (month, beside) if one}
    places = {} if beside is None else {user("mara").item(beside): {"open": {"N": "1"}}}
    reservation, (claim,) = reserve(several, places, window, MOST, lambda: 0.0)
    assert claim.at_most == {"requestsOpen": 1 if beside is None else 0}
    kinds = [kind for part in reserving("t", reservation, claim).values() for kind in part]
    assert kinds == ["Update", *["ConditionCheck" for _ in places]]
    if beside is not None:
        with pytest.raises(LimitReached):
            reserve(several, {user("mara").item(beside): {"open": {"N": "2"}}}, window, MOST, lambda: 0.0)


def test_the_month_beside_matters_where_open_questions_are_limited_alone() -> None:
    window = Window.at(TURN_S)
    several = bounds(UsageLimits(user=Limits(requests_minute=2, usd_month=5)), MARA, {})
    assert use_keys(several, window) == (user("mara").item("2026-12"),)
    reservation, (claim,) = reserve(several, {}, window, MOST, lambda: 0.0)
    assert [list(part) for part in reserving("t", reservation, claim).values()] == [["Update"]]


@settings(max_examples=60)
@given(
    st.integers(1, 4),
    st.integers(1, 12),
    st.lists(st.tuples(st.sampled_from("snapshot ask settle".split()), st.floats(0, 0.999), st.integers(-600, 600))),
)
def test_no_clocks_pass_what_may_be_open_at_the_turn_of_a_month(
    of_user: int, of_all: int, steps: list[tuple[str, float, int]]
) -> None:
    """Each question has a clock of its own, and decides by what was seen once, however old it is."""
    limits = UsageLimits(user=Limits(requests_open=of_user), deployment=Limits(requests_open=of_all))
    table, seen, held = Table(), dict[ItemKey, Item](), list[Reservation]()
    several = bounds(limits, MARA, {})
    for step, draw, after_s in [(one, draw, sign * s) for one, draw, s in steps for sign in (1, -1, 1, -1)]:
        if step == "snapshot":
            seen = dict(table.items)
        elif step == "settle" and held:
            done = held.pop(int(draw * len(held)))
            for account in done.accounts:
                table.apply(settling("t", done, account, NOTHING))
        elif step == "ask":
            try:
                asked = reserve(several, seen, Window.at(TURN_S + after_s), MOST, partial(float, draw))
            except LimitReached:
                continue
            if table.lands(*asked):
                held.append(asked[0])
        assert len(held) <= min(of_user, of_all)


def test_what_is_left_is_told_of_the_askers_limits_and_of_no_others() -> None:
    limits = UsageLimits(
        user=Limits(tokens_day=1_000, usd_month=0.01, requests_open=3),
        groups={"staff": Limits(tokens_month=5_000)},
        deployment=Limits(tokens_day=10**9),
    )
    reservation, _ = reserve(bounds(limits, MARA, {}), {}, WINDOW, MOST, lambda: 0.0)
    states = left_after(load_reservation(dump_reservation(reservation)), Amount(400, 7_000))
    day, month = WINDOW.ends_at_ms("tokensDay"), WINDOW.ends_at_ms("usdMonth")
    assert states == (
        LimitState(account="user", limit="tokensDay", most=1_000, left=600, resets_at_ms=day),
        LimitState(account="user", limit="usdMonth", most=0.01, left=0.003, resets_at_ms=month),
        LimitState(account="group", group="staff", limit="tokensMonth", most=5_000, left=4_600, resets_at_ms=month),
    )


def test_the_deployments_amounts_are_told_to_nobody() -> None:
    several = bounds(UsageLimits(deployment=Limits(tokens_day=1)), MARA, {})
    with pytest.raises(LimitReached) as refused:
        reserve(several, {}, WINDOW, MOST, lambda: 0.0)
    told = refused.value.limit.model_dump(by_alias=True)
    assert told == {"account": "deployment", "limit": "tokensDay", "resetsAtMs": WINDOW.ends_at_ms("tokensDay")}


def test_days_and_months_end_at_midnight_utc() -> None:
    assert (WINDOW.month, WINDOW.day) == ("2026-11", 25)
    assert WINDOW.ends_at_ms("tokensDay") == 1_795_651_200_000
    assert WINDOW.ends_at_ms("usdMonth") == 1_796_083_200_000
    assert WINDOW.ends_at_ms("requestsOpen") is None
    assert expires_at("2026-11") == 1_796_083_200 + 400 * 24 * 3600


def test_a_users_items_name_the_owner() -> None:
    assert user("acme/mara").key("2026-11") == {"pk": {"S": "usage#user#acme/mara"}, "sk": {"S": "2026-11"}}
    assert user("acme/mara").limits_key == {"pk": {"S": "limits"}, "sk": {"S": "user#acme/mara"}}
    assert len({one.item("2026-11") for one in (*pool("group", "a#b"), *pool("group", "a"), *pool("deployment"))}) == 24
