"""The time left of a long command, and the wait until what was loaded is served."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cicada.index.reader import REFRESH_INTERVAL_S
from cicada_cli import serving
from cicada_cli.progress import HALF_LIFE_S, SmoothedRate, progress_on


def test_the_time_left_of_a_steady_stage_is_exact_from_the_second_step() -> None:
    rate = SmoothedRate()
    rate.update(0, 100.0)
    assert rate.remaining_s(50, 100.0) is None
    for second in range(1, 30):
        rate.update(second, 100.0 + second)
        assert rate.remaining_s(50, 100.0 + second) == pytest.approx(50 - second)


def test_batches_that_end_together_do_not_make_it_swing() -> None:
    """Ten documents at once, every ten seconds: a rate of the last moment would tell from no time to all of it."""
    rate = SmoothedRate()
    left: list[float] = []
    for second in range(200):
        rate.update(second // 10 * 10, float(second))
        told = rate.remaining_s(400, float(second))
        if second > 4 * HALF_LIFE_S:
            assert told is not None
            left.append(told + second)
    ends = [round(end) for end in left]
    assert min(ends) > 0.85 * 400
    assert max(ends) < 1.15 * 400


def test_a_slower_pace_is_believed_after_some_half_lives() -> None:
    rate = SmoothedRate()
    for second in range(60):
        rate.update(10 * second, float(second))
    for second in range(60, 60 + round(5 * HALF_LIFE_S)):
        rate.update(590 + second - 59, float(second))
    left = 10_000 - (590 + 5 * HALF_LIFE_S)
    assert rate.remaining_s(10_000, 60 + 5 * HALF_LIFE_S) == pytest.approx(left, rel=0.3)


def test_steps_in_one_moment_count_together() -> None:
    rate = SmoothedRate()
    for done in range(5):
        rate.update(done, 10.0 + done / 100)
    assert rate.remaining_s(10, 10.1) is None
    rate.update(5, 11.0)
    assert rate.remaining_s(10, 11.0) == pytest.approx(1.0)


def test_a_bar_shows_the_time_left() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with progress_on(console, {"load": "documents"}) as progress:
        for done in range(4):
            progress("load", done, 3)
    assert "3/3" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_load_waits_for_as_long_as_a_function_may_not_know_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(serving, "pause", waited.append)
    console = Console(file=io.StringIO())
    serving.wait_until_served(console)
    assert waited == [REFRESH_INTERVAL_S]
    assert "--no-wait" in console.file.getvalue()  # type: ignore[attr-defined]

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "pause", interrupted)
    serving.wait_until_served(console)  # what was published stays so
