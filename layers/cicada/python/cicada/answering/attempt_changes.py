"""The profile changes that an attempt's tools make for the user: their receipts, and their undoing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from cicada.agents.ports import ProfileWritten, ToConfirm
from cicada.agents.receipts import change_words, confirm_of
from cicada.attempts.chain import AGENTS
from cicada.delivery.driver import DeliveryDriver
from cicada.delivery.ports import RequestLog, StoreFault
from cicada.delivery.record import LogEntry, RequestHead
from cicada.errors import CicadaError
from cicada.protocol.events import ProfileChanged, Receipt
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

EarlierChanges = Callable[[RequestHead], Iterable[ProfileChanged]]
"""Returns the profile changes of earlier attempts at a request, from the profiles' records."""


class AttemptChanges:
    """The changes of one attempt."""

    def __init__(self, log: RequestLog, head: RequestHead, driver: DeliveryDriver, earlier: EarlierChanges) -> None:
        """``head``: after the attempt's begin."""
        self._log = log
        self._head = head
        self._driver = driver
        self._earlier = earlier
        self._made: list[ProfileWritten] = []

    def deliver(self, change: ProfileWritten | ToConfirm) -> None:
        """Deliver a change that a tool made for the user, or asks them to confirm."""
        if isinstance(change, ProfileWritten):
            self._made.append(change)
            self._deliver_receipt(change.change)
        else:
            self._driver.event(confirm_of(self._head.attempt, change))

    def deliver_lost_receipts(self) -> None:
        """Deliver the receipts of changes whose worker was lost between the change and its receipt."""
        if not any(one.strategy in AGENTS for one in self._head.failed):
            return
        try:
            changes = [*self._earlier(self._head)]
            _, entries = self._log.read(self._head.key)
        except (CicadaError, StoreFault) as error:
            log_event(logger, "fault", "changes could not be looked up", level=logging.WARNING, why=str(error))
            return
        delivered = _receipts(entries)
        for change in changes:
            if (change.id, change.version) not in delivered:
                self._deliver_receipt(change)

    def undo(self) -> None:
        """Undo changes without a receipt in the log, if the request has ended: its user may have cancelled it.

        If it is still open, the next attempt delivers the receipts.
        """
        if not self._made:
            return
        try:
            stored, entries = self._log.read(self._head.key)
            delivered = _receipts(entries)
            for one in reversed(self._made if stored.state != "open" else ()):
                if (one.change.id, one.change.version) not in delivered:
                    one.take_back()
        except (CicadaError, StoreFault) as error:
            log_event(logger, "fault", "profile change not undone", level=logging.WARNING, why=type(error).__name__)

    def _deliver_receipt(self, change: ProfileChanged) -> None:
        self._driver.event(Receipt(attempt=self._head.attempt, change=change))
        self._driver.changed(change_words(change))


def _receipts(entries: Iterable[LogEntry]) -> set[tuple[str, int]]:
    """The id and version of each change that has a receipt in the log."""
    return {
        (event.change.id, event.change.version)
        for event in (entry.event() for entry in entries)
        if isinstance(event, Receipt)
    }
