"""The chain of strategies: where a route enters it, and what is tried after a failure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cicada.protocol.events import Route, StrategyName

FALLS_TO: Mapping[StrategyName, tuple[StrategyName, ...]] = {
    "hybrid": ("rag",),
    "rag": ("cag", "direct"),
    "cag": ("rag", "direct"),
    "direct": (),
    "profile_agent": ("rag",),
    "theory_agent": ("rag",),
}
"""After a failure, the first of these that has not failed yet; where there is none, every way has been tried.

Hybrid → RAG → CAG → Direct; a policy question enters at CAG and falls to RAG before Direct. An agent's question falls
to RAG, too: what the text says can be told without the agent.
"""

SEARCHING: frozenset[Route] = frozenset({"hybrid", "rag", "cag"})
"""The routes whose questions are answered by a search."""

MAX_MODEL_CALLS = 4
"""Calls to text models that one request may make, over all attempts, retries and take-overs."""
MAX_CALLS_AN_ATTEMPT = 2
"""Of those, how many one attempt may make: to complete a question and answer it, or to try again."""
AGENTS: tuple[StrategyName, ...] = ("profile_agent", "theory_agent")
"""The strategies that a deployment may be without."""
LAST_RESORT: StrategyName = "direct"
"""One call is kept for it while any other strategy is tried."""


def entry_strategy(route: Route, *, knowledge: bool = False, agents: bool = True) -> StrategyName:
    """The strategy that a route enters at: its own where there is one, else ``rag``.

    Without ``agents``, what is theirs enters where they fall to. With ``knowledge``, the search by what collections
    declare is hybrid's: routes that search enter there, and ``rag`` is the plain search that they fall to.
    """
    if not agents and route in AGENTS:
        route = "rag"
    if knowledge and route in SEARCHING:
        return "hybrid"
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
