"""The chain of strategies: where a route enters, what follows a failure, and how failures are shown to the client."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from cicada.errors import AllStrategiesFailed, CicadaError, WorkerLost
from cicada.protocol.events import Route, StrategyFailure, StrategyName

FALLS_TO: Mapping[StrategyName, tuple[StrategyName, ...]] = {
    "hybrid": ("rag",),
    "rag": ("cag", "direct"),
    "cag": ("rag", "direct"),
    "direct": (),
    "profile_agent": ("rag",),
    "theory_agent": ("rag",),
}
"""The fallbacks of each strategy: the first that has not failed yet is next; the chain ends where there is none.

Hybrid → RAG → CAG → Direct. A policy question enters at CAG and falls back to RAG before Direct. An agent's question
also falls back to RAG: what the text says can be answered without the agent.
"""

SEARCHING: frozenset[Route] = frozenset({"hybrid", "rag", "cag"})
"""The routes whose questions are answered by a search."""

MAX_MODEL_CALLS = 4
"""Calls to text models that one request may make, over all attempts, retries and take-overs."""
MAX_CALLS_AN_ATTEMPT = 2
"""The most of those that one attempt may make: to complete a question and answer it, or to retry."""
AGENTS: tuple[StrategyName, ...] = ("profile_agent", "theory_agent")
"""The strategies that can change a user's profiles; optional in a deployment."""
LAST_RESORT: StrategyName = "direct"
"""One call is reserved for it while other strategies are tried."""


def entry_strategy(route: Route, *, knowledge: bool = False, agents: bool = True) -> StrategyName:
    """The strategy that a route enters at: the one of its name, else ``rag``.

    Without ``agents``, their routes enter at ``rag``. With ``knowledge``, routes that search enter at ``hybrid``, which
    searches by what collections declare, and ``rag`` is the plain search that they fall back to.
    """
    if not agents and route in AGENTS:
        route = "rag"
    if knowledge and route in SEARCHING:
        return "hybrid"
    return route if route in FALLS_TO else "rag"


def next_strategy(strategy: StrategyName, failed: Collection[StrategyName]) -> StrategyName | None:
    """The strategy after ``strategy``, given those that have failed; None when nothing is left."""
    return next((other for other in FALLS_TO.get(strategy, ()) if other not in failed), None)


def longest_path(strategy: StrategyName, failed: frozenset[StrategyName] = frozenset()) -> tuple[StrategyName, ...]:
    """The strategies that one execution tries if each fails, from ``strategy`` on."""
    failed |= {strategy}
    following = next_strategy(strategy, failed)
    return (strategy, *(longest_path(following, failed) if following else ()))


def allotted_calls(strategy: StrategyName, reserved: int) -> int:
    """How many model calls an attempt gets when earlier attempts were allotted ``reserved``."""
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
"""What Lambda and Step Functions call failures of the worker itself."""
WORKER_LOSSES = frozenset({"worker_timeout", "worker_died", WorkerLost.code})
"""Codes of attempts whose worker ended before it could report."""
_BY_CODE = {code: (code, reason) for code, reason in _WORKFLOW_ERRORS.values()}


def _family(root: type[CicadaError]) -> Iterator[type[CicadaError]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)


def ending_errors() -> tuple[type[CicadaError], ...]:
    """The errors of a strategy that end its request."""
    return tuple(kind for kind in _family(CicadaError) if kind.final)


def closing_error(failed: Sequence[StrategyFailure]) -> CicadaError:
    """What a request ends with when no strategy is left: the failure that ended the chain, if one did."""
    codes = {one.code for one in failed}
    return next((kind() for kind in ending_errors() if kind.code in codes), AllStrategiesFailed())


def strategy_failure(strategy: StrategyName, caught: Mapping[str, Any]) -> StrategyFailure:
    """One strategy's failure as the client sees it.

    ``caught`` is the ``Error`` and ``Cause`` of a state's ``Catch``. ``Error`` is the class or code of one of our
    exceptions, or a name of Lambda's or Step Functions'. ``Cause`` may hold internals, so it only goes to the log.
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
    """Every failure so far, in the order of the workflow's attempts (a JSON object has no order).

    ``entry`` is the strategy that the execution entered at; failures of an earlier execution come first.
    """
    order = {strategy: place for place, strategy in enumerate(longest_path(entry or entry_strategy("rag")))}
    tried = sorted(caught, key=lambda strategy: order.get(strategy, -1))
    return tuple(strategy_failure(strategy, caught[strategy]) for strategy in tried)
