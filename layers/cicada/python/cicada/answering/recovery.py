"""Recovers requests without a worker: restarts them once, then ends them.

A ``resume`` recovers the request that it asks for, the scheduled sweep all others.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from cicada.answering.workflow import WorkflowStarter
from cicada.attempts.budgets import RequestBudget
from cicada.attempts.chain import entry_strategy
from cicada.delivery.decide import MAX_TAKEOVERS, START_GRACE_S, Orphan, may_purge, orphaned, tried, unsettled
from cicada.delivery.ports import Conflict, Connections, RequestLog, StoreFault
from cicada.delivery.posting import end_request, settle
from cicada.delivery.record import RequestHead
from cicada.errors import (
    CicadaError,
    DeliveryUnavailable,
    NewerRelease,
    RequestUnknown,
    WorkerLost,
    WorkflowUnavailable,
)
from cicada.protocol.events import Accepted, Failed, StrategyName
from cicada.request_trace import log_event, log_fault

logger = logging.getLogger(__name__)

SWEEP_RESERVE_S = 25.0
"""With less time left, a sweep leaves the rest to the next: it must not be killed between taking a request over and
starting its workflow. The store takes 9 s at most, the start 12 s."""
TAKE_UP_S = 21.0
"""The same for a resume, which handles one request only."""

By = Literal["resume", "sweep"]
Action = Literal["restarted", "ended"]


@dataclass(frozen=True)
class Swept:
    """The result of a sweep, as counts of requests."""

    looked_at: int = 0
    restarted: int = 0
    ended: int = 0
    settled: int = 0
    """Had ended, and only their use was not counted yet."""
    failed: int = 0
    """Could not be recovered now; the next sweep tries again."""


@dataclass(frozen=True)
class Recovery:
    """Starts the workflow of requests, and recovers those whose workflow or worker is lost."""

    log: RequestLog
    connections: Connections
    workflow: WorkflowStarter
    _: KW_ONLY
    budget: RequestBudget = field(default_factory=RequestBudget)
    on_recovered: Callable[[Action], None] = lambda _action: None
    on_failed: Callable[[], None] = lambda: None
    """Is called for each request that this ends without an answer."""
    time_left_s: Callable[[], float] = lambda: math.inf
    """Of the invocation: with less than :data:`TAKE_UP_S` left, a resume does not recover its request."""
    now_s: Callable[[], float] = time.time

    def start(self, head: RequestHead, strategy: StrategyName) -> None:
        """Start the workflow of a request. If that fails, the request is ended with an error.

        Raises:
            StoreFault, DeliveryUnavailable: it could not be ended either; a later recovery does.
        """
        try:
            self.workflow.start(head.key, strategy, head.failed)
        except WorkflowUnavailable as error:
            message = "the workflow could not be started"
            log_fault(logger, message, error, level=logging.ERROR, request_id=head.key.request_id)
            # It may have started all the same: then its worker has claimed the request, and the answer comes.
            self._end(head, error, still=lambda head: head.execution is None)
        else:
            log_event(logger, "started", "workflow started", request_id=head.key.request_id, strategy=strategy)

    def recover(self, head: RequestHead, by: By) -> RequestHead:
        """Recover a request if it has no worker. Returns its head as it is then.

        Raises:
            StoreFault, RequestUnknown, DeliveryUnavailable.
        """
        if orphaned(head, self.now_s()) is None or self.time_left_s() < TAKE_UP_S:
            return head
        self._take_up(head, by)
        return self.log.head(head.key)

    def _take_up(self, head: RequestHead, by: By) -> Action | None:
        orphan = orphaned(head, self.now_s())
        if orphan is None:
            return None
        done = self._end_orphan(head, orphan) if self._given_up(head) else self._restart(head)
        if done is not None:
            self.on_recovered(done)
            log_event(
                logger,
                "recovered",
                "request recovered",
                level=logging.WARNING,
                request_id=head.key.request_id,
                why=orphan,
                action=done,
                by=by,
                attempt=head.attempt,
            )
        return done

    def sweep(self, remaining_s: Callable[[], float]) -> Swept:
        """Recover every request without a worker, as far as the time reaches. Raises StoreFault if listing fails."""
        looked_at = restarted = ended = settled = failed = 0
        for key in self.log.open_requests(int((self.now_s() - START_GRACE_S) * 1000)):
            if remaining_s() < SWEEP_RESERVE_S:
                break
            looked_at += 1
            try:
                head = self.log.head(key)
                if may_purge(head, self.now_s()):
                    self.log.purge(head, done=True)
                done = self._take_up(head, "sweep")
                settled += unsettled(head, self.now_s()) and settle(self.log, head)
            except RequestUnknown:
                continue
            except Exception as error:  # one request's failure must not keep the others from being recovered
                log_event(
                    logger,
                    "fault",
                    "request not recovered",
                    level=logging.ERROR,
                    request_id=key.request_id,
                    code=_code_of(error),
                    why=str(error) if isinstance(error, StoreFault | CicadaError) else type(error).__name__,
                )
                failed += 1
                continue
            restarted += done == "restarted"
            ended += done == "ended"
        return Swept(looked_at, restarted, ended, settled, failed)

    def _given_up(self, head: RequestHead) -> bool:
        late = self.now_s() > head.accepted_at_ms / 1000 + self.budget.time_s
        return late or head.takeovers >= MAX_TAKEOVERS

    def _end_orphan(self, head: RequestHead, orphan: Orphan) -> Action | None:
        error = WorkerLost() if orphan == "worker_lost" or head.attempt else WorkflowUnavailable()
        ended = self._end(head, error, still=lambda head: orphaned(head, self.now_s()) is not None)
        return "ended" if ended else None

    def _restart(self, head: RequestHead) -> Action | None:
        """Restart a request at the lost strategy, or where it first entered, unless another process does so."""
        strategy = head.strategy or self._entered_at(head)
        taken = self._taken(head, int(self.now_s()) + START_GRACE_S)
        if taken is None:
            return None
        self.start(taken, strategy)
        return "restarted"

    def _taken(self, head: RequestHead, lease_until: int) -> RequestHead | None:
        """Take a request over. Returns its head then, or None if another process did.

        After a lost acknowledgement the stored head shows our own write. Another process's write in the same second
        looks the same: then the workflow is started twice, which is harmless. Not starting it would waste the request's
        only take-over.
        """
        try:
            return self.log.take_up(head, lease_until)
        except Conflict as conflict:
            stored = conflict.head
        except StoreFault:
            stored = self.log.head(head.key)
        wanted = ("open", None, lease_until, head.takeovers + 1)
        mine = (stored.state, stored.execution, stored.lease_until, stored.takeovers) == wanted
        return stored if mine else None

    def _entered_at(self, head: RequestHead) -> StrategyName:
        _, entries = self.log.read(head.key)
        accepted = entries[0].event()
        if accepted is None:
            raise NewerRelease("cannot parse the accepted event")
        return accepted.strategy if isinstance(accepted, Accepted) else entry_strategy("rag")

    def _end(self, head: RequestHead, error: CicadaError, *, still: Callable[[RequestHead], bool]) -> bool:
        terminal = Failed.of(error, tried(head, ()))
        ended = end_request(self.log, self.connections, head, terminal, still=still, now_s=self.now_s)
        if ended:
            self.on_failed()
        return ended


def _code_of(error: Exception) -> str:
    if isinstance(error, StoreFault):
        return DeliveryUnavailable.code
    return error.code if isinstance(error, CicadaError) else CicadaError.code
