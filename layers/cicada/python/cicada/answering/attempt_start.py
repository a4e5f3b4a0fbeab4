"""Starts an attempt: claims its request, or finds out that it may not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cicada.answering.workflow import AttemptTask
from cicada.attempts.budgets import RequestBudget
from cicada.attempts.chain import allotted_calls, strategy_failures
from cicada.delivery.decide import NotYours, begin, has_landed
from cicada.delivery.ports import Conflict, RequestLog, StoreFault
from cicada.delivery.posting import CONTENTION_TRIES
from cicada.delivery.record import Commit, Question, RequestHead, RequestKey
from cicada.errors import DeliveryUnavailable, RequestUnknown
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

CLOSING_RESERVE_S = 8.0
"""Seconds at the end of a worker's time that are reserved for storing and posting the last events."""


@dataclass(frozen=True)
class Begun:
    """The attempt has claimed the request by a commit; ``head`` is the state after it."""

    head: RequestHead
    commit: Commit


@dataclass(frozen=True)
class Late:
    """The request's time was up before the attempt could begin."""

    head: RequestHead


@contextmanager
def store_required() -> Iterator[None]:
    """Raise DeliveryUnavailable in place of StoreFault, and log what the table said."""
    try:
        yield
    except StoreFault as fault:
        _log_fault(fault)
        raise DeliveryUnavailable(str(fault)) from fault


class AttemptStarter:
    """Begins attempts, and checks whether they still own their request."""

    def __init__(self, log: RequestLog, budget: RequestBudget, now_s: Callable[[], float]) -> None:
        self._log = log
        self._budget = budget
        self._now_s = now_s

    def left_s(self, head: RequestHead) -> float:
        """Seconds that a request's strategies have left."""
        return head.accepted_at_ms / 1000 + self._budget.time_s - self._now_s() - CLOSING_RESERVE_S

    @store_required()
    def is_answering(self, mine: RequestHead) -> bool:
        """Whether an attempt still owns its request."""
        try:
            head = self._log.head(mine.key)
        except RequestUnknown:
            return False
        ours = (head.attempt, head.worker) == (mine.attempt, mine.worker)
        return ours and head.state == "open" and not head.expired(self._now_s())

    @store_required()
    def begin(self, task: AttemptTask, worker: str) -> Begun | NotYours | Late:
        """Begin an attempt by one conditional write. Raises DeliveryUnavailable, RequestUnknown."""
        failed = strategy_failures(task.failures, task.entry)
        # A first attempt usually finds the log as it was created, so it writes without reading first.
        head = self._log.head(task.key) if failed else _as_created(task.key)
        for _ in range(CONTENTION_TRIES):
            commit = begin(
                head,
                task.strategy,
                failed,
                execution=task.execution,
                worker=worker,
                now_s=self._now_s(),
                allot=allotted_calls,
            )
            if isinstance(commit, NotYours):
                return commit
            if head.accepted_at_ms and self.left_s(head) <= 0:
                return Late(head)
            try:
                return Begun(self._log.commit(head, commit), commit)
            except Conflict as conflict:
                head, entries = conflict.head, conflict.entries
            except StoreFault as fault:
                _log_fault(fault)
                head, entries = self._log.read(task.key)
            if has_landed(commit, head, entries):
                return Begun(head, commit)
        raise DeliveryUnavailable("the attempt could not be started")


def _log_fault(fault: StoreFault) -> None:
    message = "the request could not be read or written"
    log_event(logger, "fault", message, level=logging.WARNING, dependency="log", why=str(fault))


def _as_created(key: RequestKey) -> RequestHead:
    """A new request's head, as far as the fence needs it; the write returns the stored one."""
    return RequestHead(key=key, question=Question(""), origin="", accepted_at_ms=0, expires_at=0)
