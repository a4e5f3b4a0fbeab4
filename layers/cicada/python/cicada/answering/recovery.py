"""Taking up requests that nobody works on: started again once, then ended.

``resume`` does it for the request that a client asks after, the scheduled sweep for all others.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cicada.answering.workflow import WorkflowStarter
from cicada.attempts.budgets import RequestBudget
from cicada.attempts.chain import entry_strategy
from cicada.delivery.decide import MAX_TAKEOVERS, START_GRACE_S, Orphan, orphaned, tried
from cicada.delivery.ports import Conflict, Connections, RequestLog, StoreFault
from cicada.delivery.posting import end_request
from cicada.delivery.record import RequestHead
from cicada.errors import CicadaError, DeliveryUnavailable, RequestUnknown, WorkerLost, WorkflowUnavailable
from cicada.protocol.events import Accepted, Failed, StrategyName, load_event
from cicada.request_trace import log_event, log_fault

logger = logging.getLogger(__name__)

SWEEP_RESERVE_S = 25.0
"""With less time than this left, a sweep leaves the rest to the next: between taking a request up and starting its
workflow it must not be killed. The store takes 9 s at most, the start 12 s."""
TAKE_UP_S = 21.0
"""The same for a resume, which has no other request to look after."""

By = Literal["resume", "sweep"]
Action = Literal["restarted", "ended"]


@dataclass(frozen=True)
class Swept:
    """What one sweep did."""

    looked_at: int = 0
    restarted: int = 0
    ended: int = 0
    failed: int = 0
    """Requests that could not be taken up now; the next sweep tries again."""


class Recovery:
    """Starts the workflow, and takes up requests whose workflow or worker is lost."""

    def __init__(
        self,
        log: RequestLog,
        connections: Connections,
        workflow: WorkflowStarter,
        *,
        budget: RequestBudget | None = None,
        on_recovered: Callable[[Action], None] = lambda _action: None,
        time_left_s: Callable[[], float] = lambda: math.inf,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Wire it.

        Args:
            time_left_s: of the invocation: a resume with less than :data:`TAKE_UP_S` leaves a request to the next.
        """
        self._log = log
        self._connections = connections
        self._workflow = workflow
        self._budget = budget or RequestBudget()
        self._on_recovered = on_recovered
        self._time_left_s = time_left_s
        self._now_s = now_s

    def start(self, head: RequestHead, strategy: StrategyName) -> None:
        """Start the workflow of a request; one that cannot be started is ended at once, and says so.

        Raises:
            StoreFault, DeliveryUnavailable: it could not be ended either; it is an orphan then.
        """
        try:
            self._workflow.start(head.key, strategy, head.failed)
        except WorkflowUnavailable as error:
            message = "the workflow could not be started"
            log_fault(logger, message, error, level=logging.ERROR, request_id=head.key.request_id)
            # It may have started all the same: then its worker's claim stands, and the answer comes.
            self._end(head, error, still=lambda head: head.execution is None)
        else:
            log_event(logger, "started", "workflow started", request_id=head.key.request_id, strategy=strategy)

    def recover(self, head: RequestHead, by: By) -> RequestHead:
        """Take up a request if nobody works on it. Returns its head as it is then.

        Raises:
            StoreFault, RequestUnknown, DeliveryUnavailable.
        """
        if orphaned(head, self._now_s()) is None or self._time_left_s() < TAKE_UP_S:
            return head
        self._take_up(head, by)
        return self._log.head(head.key)

    def _take_up(self, head: RequestHead, by: By) -> Action | None:
        orphan = orphaned(head, self._now_s())
        if orphan is None:
            return None
        done = self._end_orphan(head, orphan) if self._given_up(head) else self._restart(head)
        if done is not None:
            self._on_recovered(done)
            log_event(
                logger,
                "recovered",
                "an orphaned request was taken up",
                level=logging.WARNING,
                request_id=head.key.request_id,
                why=orphan,
                action=done,
                by=by,
                attempt=head.attempt,
            )
        return done

    def sweep(self, remaining_s: Callable[[], float]) -> Swept:
        """Take up every orphaned request, as far as the time reaches.

        Raises:
            StoreFault: the open requests cannot be listed.
        """
        looked_at = restarted = ended = failed = 0
        for key in self._log.open_requests(int((self._now_s() - START_GRACE_S) * 1000)):
            if remaining_s() < SWEEP_RESERVE_S:
                break
            looked_at += 1
            try:
                done = self._take_up(self._log.head(key), "sweep")
            except RequestUnknown:
                continue
            except Exception as error:  # whatever is wrong with one request, the others are taken up
                log_event(
                    logger,
                    "fault",
                    "a request was not taken up",
                    level=logging.ERROR,
                    request_id=key.request_id,
                    code=_code_of(error),
                    why=str(error) if isinstance(error, StoreFault | CicadaError) else type(error).__name__,
                )
                failed += 1
                continue
            restarted += done == "restarted"
            ended += done == "ended"
        return Swept(looked_at, restarted, ended, failed)

    def _given_up(self, head: RequestHead) -> bool:
        late = self._now_s() > head.accepted_at_ms / 1000 + self._budget.time_s
        return late or head.takeovers >= MAX_TAKEOVERS

    def _end_orphan(self, head: RequestHead, orphan: Orphan) -> Action | None:
        error = WorkerLost() if orphan == "worker_lost" or head.attempt else WorkflowUnavailable()
        ended = self._end(head, error, still=lambda head: orphaned(head, self._now_s()) is not None)
        return "ended" if ended else None

    def _restart(self, head: RequestHead) -> Action | None:
        """Start a request again, unless another just does: at the strategy that was lost, or where it first entered."""
        strategy = head.strategy or self._entered_at(head)
        taken = self._taken(head, int(self._now_s()) + START_GRACE_S)
        if taken is None:
            return None
        self.start(taken, strategy)
        return "restarted"

    def _taken(self, head: RequestHead, lease_until: int) -> RequestHead | None:
        """Take a request up. Returns its head then, or None if it is another's.

        A write whose acknowledgement was lost shows what it wrote. So would another's of the same second: then the
        workflow is started twice, which does no harm; not to start it at all would use up the request's take-over.
        """
        try:
            return self._log.take_up(head, lease_until)
        except Conflict as conflict:
            stands = conflict.head
        except StoreFault:
            stands = self._log.head(head.key)
        wanted = ("open", None, lease_until, head.takeovers + 1)
        mine = (stands.state, stands.execution, stands.lease_until, stands.takeovers) == wanted
        return stands if mine else None

    def _entered_at(self, head: RequestHead) -> StrategyName:
        _, entries = self._log.read(head.key)
        accepted = load_event(entries[0].body)
        return accepted.strategy if isinstance(accepted, Accepted) else entry_strategy("rag")

    def _end(self, head: RequestHead, error: CicadaError, *, still: Callable[[RequestHead], bool]) -> bool:
        terminal = Failed.of(error, tried(head, ()))
        return end_request(self._log, self._connections, head, terminal, still=still, now_s=self._now_s)


def _code_of(error: Exception) -> str:
    if isinstance(error, StoreFault):
        return DeliveryUnavailable.code
    return error.code if isinstance(error, CicadaError) else CicadaError.code
