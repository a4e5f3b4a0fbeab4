"""Posts to sockets, outside an attempt's own delivery too: to all subscribers, and the end of a request."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cicada.delivery.decide import append, has_landed, without_subscriber
from cicada.delivery.outbox import Post, PostOutcome
from cicada.delivery.ports import Conflict, ConnectionBusy, ConnectionGone, Connections, RequestLog, StoreFault
from cicada.delivery.record import Commit, RequestHead
from cicada.errors import DeliveryUnavailable, Unauthorized
from cicada.protocol.events import Failed, Refused, reply_frame
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

EXPIRED = reply_frame(Refused.of(Unauthorized()))
"""The last frame for a subscriber whose token has expired: what its own frames would be answered by."""
CONTENTION_TRIES = 5
"""How often a change is decided anew when another writer got in between."""


def post_frames(connections: Connections, post: Post, now_s: Callable[[], float]) -> PostOutcome:
    """Post frames in order; stop at the first that does not go out.

    Once the subscriber's token has expired, it is sent a refusal in place of the next frame.

    Args:
        connections: the sockets.
        post: what goes to whom.
        now_s: epoch seconds; asked before each frame.
    """
    connection_id = post.subscriber.connection_id
    try:
        for frame in post.frames:
            if post.subscriber.expired(now_s()):
                connections.post(connection_id, EXPIRED)
                logger.info("a subscriber's token has expired", extra={"connection_id": connection_id})
                return "expired"
            connections.post(connection_id, frame)
    except ConnectionGone:
        return "gone"
    except ConnectionBusy as error:
        logger.info("a subscriber takes no frames", extra={"connection_id": connection_id, "why": str(error)})
        return "busy"
    return "delivered"


def forget_subscriber(log: RequestLog, head: RequestHead, connection_id: str) -> None:
    """Take a connection that is closed, or whose token has expired, off a request; where that fails, the next post to
    it finds the same once more."""
    try:
        log.set_subscribers(head, without_subscriber(head.subscribers, connection_id))
    except (Conflict, StoreFault) as error:
        logger.info("a subscriber stays listed", extra={"connection_id": connection_id, "why": str(error)})


def broadcast(
    log: RequestLog,
    connections: Connections,
    head: RequestHead,
    commit: Commit,
    *,
    now_s: Callable[[], float],
    spare: str | None = None,
) -> None:
    """Post a commit's events to every subscriber of ``head`` but ``spare``; closed and expired ones are forgotten."""
    frames = tuple(entry.frame(head.key.request_id) for entry in commit.entries())
    for subscriber in head.subscribers:
        if subscriber.connection_id == spare:
            continue
        if post_frames(connections, Post(subscriber, frames), now_s) in ("gone", "expired"):
            forget_subscriber(log, head, subscriber.connection_id)


def end_request(
    log: RequestLog,
    connections: Connections,
    head: RequestHead,
    terminal: Failed,
    *,
    still: Callable[[RequestHead], bool],
    now_s: Callable[[], float],
    spare: str | None = None,
) -> bool:
    """Append a terminal ``error`` under the fence that stands, and post it. Returns whether it ended the request.

    After it, a worker's next write finds the request closed. A request that has ended already is left as it is, and so
    is one for which ``still`` no longer holds: it is asked of every head that turns out to stand.

    Raises:
        StoreFault, RequestUnknown: as the log does.
        DeliveryUnavailable: other writers kept getting in between.
    """
    for _ in range(CONTENTION_TRIES):
        if head.state != "open" or not still(head):
            return False
        commit = append(head, [terminal])
        try:
            head = log.commit(head, commit)
        except Conflict as conflict:
            head = conflict.head
            if not has_landed(commit, head, conflict.entries):
                continue
        log_event(
            logger,
            "ended",
            "request ended with an error",
            request_id=head.key.request_id,
            code=terminal.code,
            attempt=head.attempt,
            failed=[f"{one.strategy}: {one.code}" for one in terminal.failed],
        )
        broadcast(log, connections, head, commit, now_s=now_s, spare=spare)
        return True
    raise DeliveryUnavailable("the log keeps changing")
