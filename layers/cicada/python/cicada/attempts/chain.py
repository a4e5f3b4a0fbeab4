"""The chain of strategies: where a route enters it, what follows a failure, and what a client is told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from cicada.errors import CicadaError, WorkerLost
from cicada.protocol.events import Route, StrategyFailure, StrategyName

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


_WORKFLOW_ERRORS = {
    "Lambda.TooManyRequestsException": ("capacity", "There was no free capacity."),
    "Sandbox.Timedout": ("worker_timeout", "It took too long."),
    "States.Timeout": ("worker_timeout", "It took too long."),
    "Lambda.Unknown": ("worker_died", "Its worker was interrupted."),
    "Runtime.ExitError": ("worker_died", "Its worker was interrupted."),
    "Runtime.OutOfMemory": ("worker_died", "Its worker was interrupted."),
}
"""Names that Lambda and Step Functions give to failures of the worker itself."""
WORKER_LOSSES = frozenset({"worker_timeout", "worker_died", WorkerLost.code})
"""Codes of attempts whose worker ended without a word."""
_BY_CODE = {code: (code, reason) for code, reason in _WORKFLOW_ERRORS.values()}


def _family(root: type[CicadaError]) -> Iterator[type[CicadaError]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)


def strategy_failure(strategy: StrategyName, caught: Mapping[str, Any]) -> StrategyFailure:
    """One strategy's failure in words for people.

    Args:
        caught: the ``Error`` and ``Cause`` of a state's ``Catch``. ``Error`` is the class of our own exceptions, or its
            code, or a name of Lambda's or Step Functions'. ``Cause`` is for the log alone: it may hold internals.
    """
    name = str(caught.get("Error", ""))
    for kind in _family(CicadaError):
        if name in (kind.__name__, kind.code):
            return StrategyFailure(strategy=strategy, code=kind.code, reason=kind.told)
    code, reason = _WORKFLOW_ERRORS.get(name) or _BY_CODE.get(name) or (CicadaError.code, CicadaError.told)
    return StrategyFailure(strategy=strategy, code=code, reason=reason)


def strategy_failures(
    caught: Mapping[StrategyName, Mapping[str, Any]], entry: StrategyName | None
) -> tuple[StrategyFailure, ...]:
    """Every failure so far, in the order in which the workflow tried (a JSON object promises none).

    Args:
        entry: the strategy that the execution entered at; what was tried before it, by another, comes first.
    """
    order = {strategy: place for place, strategy in enumerate(longest_path(entry or entry_strategy("rag")))}
    tried = sorted(caught, key=lambda strategy: order.get(strategy, -1))
    return tuple(strategy_failure(strategy, caught[strategy]) for strategy in tried)
