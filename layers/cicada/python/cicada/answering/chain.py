"""The chain of strategies: where a route enters it, and what is tried after a failure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cicada.protocol.events import Route, StrategyName

FALLS_TO: Mapping[StrategyName, tuple[StrategyName, ...]] = {
    "hybrid": ("rag",),
    "rag": ("cag", "direct"),
    "cag": ("rag", "direct"),
    "direct": (),
}
"""After a failure, the first of these that has not failed yet; where there is none, every way has been tried.

Hybrid → RAG → CAG → Direct; a policy question enters at CAG and falls to RAG before Direct.
"""

MAX_MODEL_CALLS = 4
"""Calls to text models that one request may make, over all attempts, retries and take-overs."""
MAX_CALLS_AN_ATTEMPT = 2
"""Of those, how many one attempt may make: to complete a question and answer it, or to try again."""
LAST_RESORT: StrategyName = "direct"
"""One call is kept for it while any other strategy is tried."""


def entry_strategy(route: Route) -> StrategyName:
    """The strategy that a route enters at: its own where there is one, else ``rag``."""
    return route if route in FALLS_TO else "rag"


def next_strategy(strategy: StrategyName, failed: Collection[StrategyName]) -> StrategyName | None:
    """What is tried after ``strategy``, given all that have failed; None when nothing is left."""
    return next((other for other in FALLS_TO.get(strategy, ()) if other not in failed), None)


def longest_path(strategy: StrategyName, failed: frozenset[StrategyName] = frozenset()) -> tuple[StrategyName, ...]:
    """Every strategy that one execution goes through if each fails, from ``strategy`` on."""
    failed |= {strategy}
    following = next_strategy(strategy, failed)
    return (strategy, *(longest_path(following, failed) if following else ()))


def allotted_calls(strategy: StrategyName, reserved: int) -> int:
    """How many calls to text models an attempt gets, when ``reserved`` were allotted to those before it."""
    kept = 0 if strategy == LAST_RESORT else 1
    return max(0, min(MAX_CALLS_AN_ATTEMPT, MAX_MODEL_CALLS - reserved - kept))
