"""Reservations in the requests' table: what lands, what is refused, what is settled, and races of many questions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from cicada.answering.question_gate import QuestionGate, SharedItems
from cicada.delivery.decide import append
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.ports import Conflict, NotReserved, StoreFault
from cicada.delivery.record import RequestHead, RequestKey, RequestSpend
from cicada.dynamodb import read_items
from cicada.errors import Cancelled, LimitReached, LimitsUnavailable, SpendingStopped, Unauthorized
from cicada.identity import Caller
from cicada.protocol.events import Failed
from cicada.revocation import DynamoDbRevocations
from cicada.usage.accounts import HOLD_S, Use, Window, user
from cicada.usage.limits import Limits, UsageLimits
from cicada.usage.records import DynamoDbUsageRecords
from cicada.usage.reservations import Amount, Asker, bounds, reserve
from tests.support.dynamodb import TABLE, requests_table
from tests.support.gates import MOST
from tests.support.questions import ACCEPTED, NOW_S, new_head

MONTH = Window.at(NOW_S).month
DAY = Window.at(NOW_S).day


class OneCallAtATime:
    """moto's transactions are not safe from each other in threads: calls of many race here, and not their parts."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**given: Any) -> Any:
            with self._lock:
                return method(**given)

        return call


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield OneCallAtATime(client)


class House:
    """The gate and the log of a deployment."""

    def __init__(self, client: Any, limits: UsageLimits, **settings: Any) -> None:
        self.client = client
        self.log = DynamoDbLog(client, TABLE, sleep=lambda _s: None)
        self.reached: list[str] = []
        given: dict[str, Any] = {"revocable": False, "now_s": lambda: NOW_S, "sleep": lambda _s: None} | settings
        self.gate = QuestionGate(
            self.log, self._read, most=MOST, limits=limits, on_reached=self.reached.append, **given
        )

    def _read(self, keys: Any) -> Any:
        return read_items(self.client, StoreFault, TABLE, keys, sleep=lambda _s: None)

    def ask(self, subject: str = "mara", *, groups: tuple[str, ...] = (), request_id: str | None = None) -> RequestHead:
        key = RequestKey(subject, request_id or str(uuid4()))
        head = new_head("c1", key=key)
        self.gate.create(head, ACCEPTED, Caller(subject, "c1", "frame-1", groups=groups, issued_at=5))
        return self.log.head(key)

    def end(self, head: RequestHead, spent: RequestSpend = RequestSpend()) -> RequestHead:  # noqa: B008 - immutable
        commit = append(head, [Failed.of(Cancelled())])
        return self.log.commit(head, replace(commit, spent=spent))

    def use(self, subject: str = "mara") -> Use:
        return Use.of(self.client.get_item(TableName=TABLE, Key=user(subject).key(MONTH)).get("Item", {}), DAY)


def limited(client: Any, user: Limits | None = None, **others: Any) -> House:
    return House(client, UsageLimits(user=user or Limits(), **others))


def test_a_question_reserves_the_most_that_it_may_use_and_is_settled_once_by_what_it_used(client: Any) -> None:
    house = limited(client, Limits(tokens_day=1_000_000, usd_month=5))
    head = house.ask()
    assert house.use() == Use(
        open=1,
        tokens=MOST.tokens,
        microusd=MOST.microusd,
        reserved_tokens=MOST.tokens,
        reserved_microusd=MOST.microusd,
        day_tokens=MOST.tokens,
        day_microusd=MOST.microusd,
    )
    ended = house.end(head, RequestSpend(2, 900, 100, 0.01, 0.01))
    assert (house.log.settle(ended), house.log.settle(ended)) == (True, False)
    assert house.use() == Use(requests=1, tokens=1_000, microusd=10_000, day_tokens=1_000, day_microusd=10_000)


def test_a_request_is_listed_until_it_is_settled(client: Any) -> None:
    house = limited(client, Limits(requests_open=1))
    head = house.ask()
    later = NOW_S * 1000 + 1
    assert list(house.log.open_requests(later)) == [head.key]
    ended = house.end(head)
    assert list(house.log.open_requests(later)) == [head.key]
    house.log.settle(ended)
    assert list(house.log.open_requests(later)) == []
    assert house.log.read(head.key)[0].state == "failed"


def test_without_limits_nothing_is_reserved_and_use_is_counted_all_the_same(client: Any) -> None:
    house = limited(client)
    head = house.ask()
    assert (head.reservation, house.use()) == (None, Use())
    assert house.log.settle(house.end(head, RequestSpend(1, 10, 5, None, 0.0, Amount(30, 7))))
    assert house.use() == Use(requests=1, tokens=45, microusd=7, day_tokens=45, day_microusd=7)


def test_a_users_use_is_counted_where_only_the_deployment_has_a_limit(client: Any) -> None:
    house = limited(client, deployment=Limits(requests_open=2))
    house.log.settle(house.end(house.ask(), RequestSpend(1, 10, 5)))
    assert house.use() == Use(requests=1, tokens=15, day_tokens=15)


def test_a_refused_question_says_which_limit_and_leaves_nothing(client: Any) -> None:
    house = limited(client, Limits(tokens_day=2 * MOST.tokens))
    house.ask()
    before = house.use()
    house.ask()
    with pytest.raises(LimitReached) as refused:
        house.ask(request_id="6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
    state = refused.value.limit
    assert (state.account, state.limit, state.most, state.left) == ("user", "tokensDay", 240_000, 0)
    assert state.resets_at_ms == Window.at(NOW_S).ends_at_ms("tokensDay")
    assert house.use().tokens == 2 * before.tokens
    assert house.reached == ["tokensDay"]
    house.ask("tess")  # another user has limits of her own
    assert len(list(house.log.open_requests(NOW_S * 1000 + 1))) == 3


def test_a_repeated_question_is_no_new_one_whatever_the_limits_say(client: Any) -> None:
    house = limited(client, Limits(requests_open=1))
    head = house.ask()
    with pytest.raises(Conflict) as conflict:
        house.ask(request_id=head.key.request_id)
    assert conflict.value.head == head
    DynamoDbUsageRecords(client, TABLE).stop(True)
    with pytest.raises(Conflict):
        house.ask(request_id=head.key.request_id)
    with pytest.raises(SpendingStopped):
        house.ask()


def test_a_process_holds_what_all_questions_read(client: Any) -> None:
    now = [float(NOW_S)]
    given: dict[str, Any] = {"now_s": lambda: now[0], "shared": SharedItems(HOLD_S), "random": lambda: 0.0}
    house = House(client, UsageLimits(deployment=Limits(requests_open=3)), **given)
    reads: list[Any] = []

    def read(keys: Any) -> Any:
        reads.append(keys)
        return house._read(keys)

    object.__setattr__(house.gate, "read", read)
    first, *_ = [house.ask(f"reader-{n}") for n in range(3)]
    shared = [key for keys in reads for key in keys if key[0].startswith("usage#deployment") or key[1] == "deployment"]
    assert len(shared) == len(set(shared)) == 9
    with pytest.raises(LimitReached):  # of the stored items, not of those that are held
        house.ask("one-more")
    house.log.settle(house.end(first))
    house.ask("one-more")
    DynamoDbUsageRecords(client, TABLE).stop(True)
    now[0] += HOLD_S
    with pytest.raises(SpendingStopped):
        house.ask("late")


def test_an_override_holds_for_the_next_question(client: Any) -> None:
    house, records = limited(client), DynamoDbUsageRecords(client, TABLE)
    house.ask()
    records.set_limits(user("mara"), Limits(requests_open=1))
    house.ask()  # the first one reserved nothing
    with pytest.raises(LimitReached):
        house.ask()
    records.set_limits(user("mara"), Limits(requests_open=None))
    house.ask()


def test_a_group_of_several_shards_never_counts_more_than_its_limit(client: Any) -> None:
    house = limited(client, groups={"readers": Limits(requests_open=5)})
    heads = [house.ask(f"reader-{n}", groups=("readers",)) for n in range(5)]
    with pytest.raises(LimitReached) as refused:
        house.ask("one-more", groups=("readers",))
    assert (refused.value.limit.account, refused.value.limit.group) == ("group", "readers")
    house.ask("stranger")
    house.log.settle(house.end(heads[3]))
    house.ask("one-more", groups=("readers",))


def test_revoked_tokens_are_refused_by_the_same_read(client: Any) -> None:
    house = House(client, UsageLimits(), revocable=True)
    house.ask()
    DynamoDbRevocations(client, TABLE).revoke("mara", up_to=5)
    with pytest.raises(Unauthorized):
        house.ask()


def test_a_claim_that_does_not_hold_tells_what_the_account_counts(client: Any) -> None:
    house = limited(client, Limits(requests_open=1, requests_minute=9))
    house.ask()
    several = bounds(house.gate.limits, Asker("mara"), {})
    reservation, claims = reserve(several, {}, Window.at(NOW_S), MOST, lambda: 0.0)  # by what was true before
    head = replace(new_head("c1", key=RequestKey("mara", str(uuid4()))), reservation=reservation)
    with pytest.raises(NotReserved) as refused:
        house.log.create(head, ACCEPTED, claims)
    (item,) = refused.value.items.values()
    assert (set(refused.value.items), Use.of(item, DAY)) == ({user("mara").item(MONTH)}, house.use())


@pytest.mark.parametrize(
    "limits",
    [
        UsageLimits(user=Limits(requests_open=3)),
        UsageLimits(user=Limits(requests_minute=3)),
        UsageLimits(user=Limits(tokens_day=3 * MOST.tokens + 5)),
        UsageLimits(deployment=Limits(usd_month=1.3)),
        UsageLimits(deployment=Limits(requests_minute=3)),
    ],
)
def test_of_many_questions_at_once_as_many_are_let_in_as_the_limit_has_room_for(
    client: Any, limits: UsageLimits
) -> None:
    house, together = House(client, limits), threading.Barrier(12)

    def ask(_: int) -> str:
        together.wait()
        try:
            house.ask()
        except LimitReached:
            return "refused"
        except LimitsUnavailable:
            return "busy"
        return "in"

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(ask, range(12)))
    assert (outcomes.count("in"), outcomes.count("busy")) == (3, 0)


@pytest.mark.parametrize(
    "limits", [UsageLimits(user=Limits(requests_open=3)), UsageLimits(deployment=Limits(requests_open=3))]
)
def test_at_the_turn_of_a_month_as_many_are_let_in_by_any_clock(client: Any, limits: UsageLimits) -> None:
    turn_s = 1_796_083_200.0  # 2026-12-01
    slow, fast = (House(client, limits, now_s=partial(float, turn_s + off_s)) for off_s in (-300, 300))
    together = threading.Barrier(12)

    def ask(number: int) -> str | None:
        together.wait()
        try:
            head = (slow, fast)[number % 2].ask()
        except LimitReached:
            return None
        assert head.reservation is not None
        return head.reservation.month

    with ThreadPoolExecutor(12) as pool:
        months = [month for month in pool.map(ask, range(12)) if month is not None]
    assert len(months) == 3
    assert set(months) <= {"2026-11", "2026-12"}


def test_what_is_open_in_the_month_beside_is_told_by_the_claim_that_does_not_hold(client: Any) -> None:
    turn_s = 1_796_083_200.0  # 2026-12-01
    limits = UsageLimits(user=Limits(requests_open=1))
    slow, fast = (House(client, limits, now_s=partial(float, turn_s + off_s)) for off_s in (-300, 300))
    for first, second, off_s in ((slow, fast, 300), (fast, slow, -300)):
        reservation, claims = reserve(bounds(limits, Asker("mara"), {}), {}, Window.at(turn_s + off_s), MOST, float)
        opened = first.ask()
        head = replace(new_head("c1", key=RequestKey("mara", str(uuid4()))), reservation=reservation)
        with pytest.raises(NotReserved) as refused:
            second.log.create(head, ACCEPTED, claims)
        assert opened.reservation is not None
        (place,) = refused.value.items
        assert place == user("mara").item(opened.reservation.month)
        with pytest.raises(LimitReached):
            second.ask()
        first.log.settle(first.end(opened))


def test_of_many_who_settle_one_request_one_does(client: Any) -> None:
    house = limited(client, Limits(requests_open=1), deployment=Limits(tokens_day=10**7))
    ended = house.end(house.ask(), RequestSpend(1, 7, 0))
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: house.log.settle(ended), range(8))) == 1
    assert house.use() == Use(requests=1, tokens=7, day_tokens=7)
