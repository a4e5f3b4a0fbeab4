"""Posts frames to subscribers, and ends a request with an error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from cicada.delivery.decide import end, has_landed, withdraws, without_subscriber
from cicada.delivery.outbox import Post, PostOutcome
from cicada.delivery.ports import Conflict, ConnectionBusy, ConnectionGone, Connections, RequestLog, StoreFault
from cicada.delivery.record import Commit, LogEntry, RequestHead, RequestSpend
from cicada.errors import Cancelled, DeliveryUnavailable, RequestUnknown, Unauthorized
from cicada.protocol.events import Failed, Refused, reply_frame
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

EXPIRED = reply_frame(Refused.of(Unauthorized()))
"""The last frame for a subscriber whose token has expired."""
CONTENTION_TRIES = 5
"""How often a change is retried after a conflict with another writer."""


def post_frames(connections: Connections, post: Post, now_s: Callable[[], float]) -> PostOutcome:
    """Post frames in order; stop at the first that fails.

    A subscriber whose token has expired gets a refusal instead of the next frame.
    """
    connection_id = post.subscriber.connection_id
    try:
        for frame in post.frames:
            if post.subscriber.expired(now_s()):
                connections.post(connection_id, EXPIRED)
                logger.info("subscriber's token expired", extra={"connection_id": connection_id})
                return "expired"
            connections.post(connection_id, frame)
    except ConnectionGone:
        return "gone"
    except ConnectionBusy as error:
        logger.info("subscriber busy", extra={"connection_id": connection_id, "why": str(error)})
        return "busy"
    return "delivered"


def forget_subscriber(log: RequestLog, head: RequestHead, connection_id: str) -> None:
    """Remove a closed or expired connection from a request. If that fails, the next post to it tries again."""
    try:
        log.set_subscribers(head, without_subscriber(head.subscribers, connection_id))
    except (Conflict, StoreFault) as error:
        logger.info("subscriber not removed", extra={"connection_id": connection_id, "why": str(error)})


def _post_end(
    log: RequestLog,
    connections: Connections,
    head: RequestHead,
    commit: Commit,
    spare: str | None,
    now_s: Callable[[], float],
) -> None:
    """Post a commit's events to every subscriber but ``spare``."""
    frames = tuple(entry.frame(head.key.request_id) for entry in commit.entries())
    for subscriber in head.subscribers:
        if subscriber.connection_id == spare:
            continue
        if post_frames(connections, Post(subscriber, frames), now_s) in ("gone", "expired"):
            forget_subscriber(log, head, subscriber.connection_id)


def _purge(log: RequestLog, head: RequestHead) -> None:
    """Delete the items of withdrawn events. If that fails, the sweep does."""
    try:
        log.purge(head, done=False)
    except (StoreFault, RequestUnknown) as error:
        message = "withdrawn events not deleted yet"
        log_event(logger, "fault", message, level=logging.WARNING, dependency="log", why=str(error))


def end_request(
    log: RequestLog,
    connections: Connections,
    head: RequestHead,
    terminal: Failed,
    *,
    still: Callable[[RequestHead], bool],
    now_s: Callable[[], float],
    spare: str | None = None,
    spent: RequestSpend | None = None,
    settles: Callable[[RequestHead], bool] = lambda _: True,
) -> bool:
    """Append a terminal ``error`` and post it to every subscriber but ``spare``. Returns whether it ended the request.

    A worker's next write then finds the request closed. Nothing happens if the request has ended already, or if
    ``still`` does not hold for the stored head. The end of a blocked answer withdraws its text from the log. Then the
    request is settled, if ``settles`` holds for its head. ``spent`` is what it has spent, where more is known than its
    head holds.

    Raises:
        StoreFault, RequestUnknown.
        DeliveryUnavailable: every try met a conflict.
    """
    entries: tuple[LogEntry, ...] = ()
    if withdraws(terminal):
        head, entries = log.read(head.key)
    for _ in range(CONTENTION_TRIES):
        if head.state != "open" or not still(head):
            return False
        commit = replace(end(head, terminal, entries), spent=spent)
        try:
            head = log.commit(head, commit)
        except Conflict as conflict:
            head, entries = conflict.head, conflict.entries
            if not has_landed(commit, head, entries):
                continue
        _log_ended(head, terminal)
        _post_end(log, connections, head, commit, spare, now_s)
        if settles(head):
            settle(log, head)
        if withdraws(terminal):
            _purge(log, head)
        return True
    raise DeliveryUnavailable("too many concurrent changes of the log")


def _log_ended(head: RequestHead, terminal: Failed) -> None:
    log_event(
        logger,
        "ended",
        "request ended with an error",
        level=logging.INFO if terminal.code == Cancelled.code else logging.WARNING,
        request_id=head.key.request_id,
        code=terminal.code,
        attempt=head.attempt,
        failed=[f"{one.strategy}: {one.code}" for one in terminal.failed],
    )


def settle(log: RequestLog, head: RequestHead) -> bool:
    """Count what an ended request has used. Returns whether this settled it. If that fails, the sweep does it."""
    try:
        return log.settle(head)
    except StoreFault as error:
        why, request_id = str(error), head.key.request_id
        log_event(
            logger, "fault", "use not settled", level=logging.WARNING, dependency="log", request_id=request_id, why=why
        )
        return False
