"""The arithmetic of capacity, and the limiters of its simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.capacity_facts import Habits, facts
from benchmarks.capacity_quotas import BEFORE, DEMANDS, PLACES, TODAY, Load, binds_at, money
from benchmarks.capacity_simulation import Environments, Limiter, Simulation, Table
from benchmarks.capacity_units import Units

UNIT = Units(
    seconds=2.0,
    input_tokens=1000.0,
    output_tokens=100.0,
    calls={"apigatewaymanagementapi.PostToConnection": 20.0, "bedrock-runtime.InvokeModel": 1.0, "s3.GetObject x": 2.0},
    units={"write request": 30.0, "read limits": 2.0, "write index of open requests": 2.0},
    invocations={"Answer": 1.0, "MessageProcessor": 1.0},
    billed_s={"Answer": 2.0, "MessageProcessor": 0.05},
    gb_s={"Answer": 3.5, "MessageProcessor": 0.05},
    log_bytes=10_000.0,
)
HABITS = Habits()
AT = Load(1_000, UNIT, HABITS)


def test_needs_follow_from_answers_a_second():
    assert AT.a_second == 500
    assert AT.sockets == 30_000
    needs = {name: demand(AT) for name, demand in DEMANDS.items()}
    assert needs == pytest.approx(
        {
            "concurrency": 1_025,
            "gateway": 500 * 21 + 50,
            "connections": 50,
            "starts": 500,
            "tokens": 60 * 500 * 1_100 + 1_000 * (2_048 - 100),
            "embeddings": 30_000,
            "tableWrites": 15_000,
            "tableReads": 1_000,
        }
    )
    assert DEMANDS.keys() == facts().quotas.keys()


def test_a_need_binds_where_it_meets_the_quota():
    assert binds_at(6_000, lambda answers: DEMANDS["starts"](replace(AT, answers=answers))) == pytest.approx(12_000)
    assert binds_at(1.0, lambda _answers: 0.5) == float("inf")


def test_places_cool_down_by_the_design():
    large = replace(AT, answers=100_000)
    for place in PLACES:
        demand = place.spared or place.demand
        assert demand(large, TODAY) <= demand(large, BEFORE)
    index = PLACES[0]
    assert index.demand(large, TODAY) == 100_000 / 4
    assert index.demand(large, replace(TODAY, open_partitions=256)) < facts().ceiling("partitionWrites")


def test_money_is_units_times_prices():
    costs = {name: usd for name, (_, usd) in money(UNIT, facts(), HABITS).items()}
    assert costs["DynamoDB"] == pytest.approx(32 * 6.25e-7 + 2 * 1.25e-7)
    assert costs["S3"] == pytest.approx(2 * 4e-7)
    assert costs["Lambda"] == pytest.approx(3.55 * 1.33334e-5 + 2 * 2e-7)


def test_every_fact_has_a_source():
    known = facts()
    assert all(quota.source and quota.ask for quota in known.quotas.values())
    assert all(limiter.source for limiter in known.limiters.values())
    assert all(price.source for price in known.prices.values())


def test_a_bucket_lets_through_its_burst_and_then_its_rate():
    bucket = Limiter(rate=10.0, burst=20.0)
    assert bucket.take(50, 0.0, again=False) == 20
    assert bucket.take(30, 1.0, again=True) == 10
    assert (bucket.asked, bucket.refused, bucket.peak) == (50, 50, 50)


def test_environments_come_at_a_rate_and_are_used_again():
    environments = Environments(most=1_500, new_in_10_s=1_000)
    assert environments.take(2_000, 0.0, again=False) == 1_000
    assert environments.take(2_000, 1.0, again=False) == 100
    environments.idle = 300
    assert environments.take(300, 1.0, again=False) == 300
    assert environments.take(2_000, 30.0, again=False) == 400  # the account has no more


def test_a_table_splits_where_it_stays_hot():
    table = Table(partition=1_000, at_first=4_000, most=40_000)
    for second in range(150):
        table.take(3_900, float(second), again=False)
    assert table.partitions == 8


def test_the_same_seed_is_the_same_run():
    quotas = {name: quota.default or 0.0 for name, quota in facts().quotas.items()}

    def run(seed: int):
        simulation = Simulation(50, UNIT, facts(), HABITS, TODAY, seed=seed, quotas=quotas, ramp_s=20.0)
        return simulation.run()

    first = run(1)
    assert first == run(1)
    assert first != run(2)
    assert {one.name: one.refused for one in first}["gateway"] == 0
