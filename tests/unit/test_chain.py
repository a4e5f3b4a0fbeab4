"""The order in which strategies are tried, and how many calls each may make."""

from __future__ import annotations

import pytest

from cicada.attempts.chain import (
    AGENTS,
    FALLS_TO,
    MAX_MODEL_CALLS,
    allotted_calls,
    entry_strategy,
    longest_path,
    next_strategy,
)


@pytest.mark.parametrize(
    ("route", "path"),
    [
        ("hybrid", ("hybrid", "rag", "cag", "direct")),
        ("rag", ("rag", "cag", "direct")),
        ("cag", ("cag", "rag", "direct")),
        ("direct", ("direct",)),
        ("profile_agent", ("profile_agent", "rag", "cag", "direct")),
        ("theory_agent", ("theory_agent", "rag", "cag", "direct")),
    ],
)
def test_every_route_has_its_way_through_the_chain(route, path):
    assert longest_path(entry_strategy(route)) == path


@pytest.mark.parametrize("route", AGENTS)
def test_without_agents_their_questions_are_answered_by_a_search(route):
    assert entry_strategy(route, agents=False) == "rag"
    assert entry_strategy(route, agents=False, knowledge=True) == "hybrid"
    assert entry_strategy(route, knowledge=True) == route


def test_a_strategy_that_has_failed_is_not_tried_again():
    assert next_strategy("rag", {"rag", "cag"}) == "direct"
    assert next_strategy("cag", {"hybrid", "rag", "cag"}) == "direct"
    assert next_strategy("direct", {"direct"}) is None


@pytest.mark.parametrize("entry", FALLS_TO)
def test_no_way_through_the_chain_allots_more_calls_than_a_request_may_make(entry):
    """Even with one take-over at any point, which begins the interrupted strategy once more."""
    path = longest_path(entry)
    for lost in range(len(path)):
        reserved = 0
        for strategy in (*path[: lost + 1], *path[lost:]):
            reserved += allotted_calls(strategy, reserved)
        assert reserved <= MAX_MODEL_CALLS


@pytest.mark.parametrize("entry", FALLS_TO)
def test_one_call_is_kept_for_the_last_resort(entry):
    reserved = 0
    for strategy in longest_path(entry)[:-1]:
        reserved += allotted_calls(strategy, reserved)
    assert allotted_calls("direct", reserved) >= 1
