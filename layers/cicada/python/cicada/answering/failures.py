"""From what the workflow caught to what a client is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cicada.answering.chain import entry_strategy, longest_path
from cicada.errors import CicadaError, WorkerLost
from cicada.protocol.events import StrategyFailure, StrategyName

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
        strategy: which failed.
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
        caught: by strategy.
        entry: the strategy that the execution entered at; what was tried before it, by another, comes first.
    """
    order = {strategy: place for place, strategy in enumerate(longest_path(entry or entry_strategy("rag")))}
    tried = sorted(caught, key=lambda strategy: order.get(strategy, -1))
    return tuple(strategy_failure(strategy, caught[strategy]) for strategy in tried)
