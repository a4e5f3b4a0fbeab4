"""The action ``feedback``: a user's rating of an answer of their own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from cicada.delivery.ports import RequestLog
from cicada.delivery.record import RequestKey
from cicada.errors import RequestExpired
from cicada.feedback.record import record_of
from cicada.feedback.store import FeedbackStore
from cicada.protocol.actions import GiveFeedback, Rating
from cicada.protocol.conversations import FeedbackGiven

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FeedbackApi:
    """Serves the action ``feedback``."""

    log: RequestLog
    store: FeedbackStore
    _: KW_ONLY
    retention_s: int
    """How long feedback is kept."""
    on_rated: Callable[[Rating], None] = lambda _rating: None
    """Is called for each rating that changes what was stored."""
    now_s: Callable[[], float] = time.time

    def handle(self, action: GiveFeedback, owner: str) -> FeedbackGiven:
        """Store, replace or take back the rating of a request.

        Raises:
            RequestUnknown: the owner has no such request.
            RequestExpired, StoreFault.
        """
        now_s = self.now_s()
        head, entries = self.log.read(RequestKey(owner, action.request_id))
        if head.expired(now_s):
            raise RequestExpired(action.request_id)
        if action.rating == "none":
            self.store.delete(head)
        else:
            record = record_of(action, action.rating, head, entries, now_s=now_s)
            before = self.store.put(head, record, expires_at=int(now_s) + self.retention_s)
            if before is None or before.rating != record.rating:
                self.on_rated(record.rating)
        logger.info("answer rated", extra={"rating": action.rating, "reason": action.reason})
        return FeedbackGiven(
            request_id=action.request_id, rating=action.rating, reason=action.reason, comment=action.comment
        )
