"""The benchmarks over the local cloud, at a tiny size: each answer comes by the strategy that is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks import aws_calls, capacity_units, first_chunk
from benchmarks.dynamodb_units import VARIABLE, UnitMeter
from benchmarks.local_cloud import plain_cloud
from cicada_local.places import REGION
from cicada_local.testing import LocalCloud


@pytest.fixture(scope="module")
def meter() -> Iterator[UnitMeter]:
    meter = UnitMeter()
    yield meter
    meter.close()


@pytest.fixture(scope="module")
def cloud(meter: UnitMeter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with plain_cloud(tmp_path_factory.mktemp("cloud"), {VARIABLE: meter.url}) as started:
        meter.forward_to(started.endpoint_url, REGION)
        yield started


def test_calls_are_counted_for_each_case(
    cloud: LocalCloud, meter: UnitMeter, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [replace(case, questions=case.questions[:1]) for case in aws_calls.CASES]
    aws_calls.over_the_cloud(cloud, meter, 1, cases)
    told = capsys.readouterr().out
    assert all(f"\n{case.told}   (medians of" in told for case in aws_calls.CASES)
    assert told.count("USD for 1,000 answers") == len(aws_calls.CASES)


def test_an_answer_takes_what_the_capacity_table_reckons_with(cloud: LocalCloud, meter: UnitMeter) -> None:
    """If this fails, run ``python -m benchmarks.capacity --write``. Figures that follow the clock are not compared."""
    kept = capacity_units.load()
    now = capacity_units.measured(cloud, meter, 1, warming=1)
    cloud.disarm()
    for route in capacity_units.ROUTES:
        for place in ("write index of open requests", "write usage#user"):
            assert now[route].units[place] == pytest.approx(kept[route].units[place], abs=0.6), (route, place)
        assert now[route].invocations == kept[route].invocations
        assert now[route].calls["s3.GetObject access.json"] == 1
        assert now[route].input_tokens == pytest.approx(kept[route].input_tokens, rel=0.05)
        # An answer that takes longer on a busy machine is written in more pieces.
        assert now[route].posts < 2 * kept[route].posts + 5
        assert now[route].of_table("write") < 2 * kept[route].of_table("write") + 10
        assert now[route].log_bytes == pytest.approx(kept[route].log_bytes, rel=0.3)


def test_the_first_chunk_is_timed_for_each_strategy(cloud: LocalCloud, capsys: pytest.CaptureFixture[str]) -> None:
    first_chunk.over_the_cloud(cloud, 1, 1.0)
    rows = capsys.readouterr().out.splitlines()
    assert all(any(row.startswith(f"  {strategy} ") for row in rows) for strategy in first_chunk.QUESTIONS)
