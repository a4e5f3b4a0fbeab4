"""Doing several things at once."""

from __future__ import annotations

import threading

import pytest

from cicada.concurrency import THREADS


def test_things_are_done_at_the_same_time_and_their_results_keep_their_order():
    together = threading.Barrier(3)

    def do(item):
        together.wait(10)
        return item * 10

    assert THREADS.each(do, [1, 2, 3]) == [10, 20, 30]


def test_one_thing_is_done_by_the_caller_itself():
    assert THREADS.each(lambda _: threading.current_thread(), ["one"]) == [threading.current_thread()]
    assert THREADS.each(lambda _: threading.current_thread(), []) == []


@pytest.mark.parametrize("failing", [0, 1])
def test_the_error_of_one_is_raised_once_all_have_ended(failing):
    ended = []

    def do(item):
        if item == failing:
            raise ValueError(f"{item} failed")
        ended.append(item)

    with pytest.raises(ValueError, match=f"{failing} failed"):
        THREADS.each(do, [0, 1, 2])
    assert set(ended) == {0, 1, 2} - {failing}


def test_what_is_started_beside_the_caller_can_wait_for_a_word_of_it():
    changed = THREADS.condition()
    said = []

    def wait():
        with changed:
            changed.wait_for(lambda: "go" in said, 10)
            said.append("went")

    running = THREADS.spawn(wait, "waiting")
    with changed:
        said.append("go")
        changed.notify_all()
    running.join()
    assert said == ["go", "went"]
