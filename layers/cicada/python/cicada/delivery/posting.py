"""Posts to sockets, outside an attempt's own delivery too: to all subscribers, and the end of a request."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cicada.delivery.decide import append, has_landed, without_subscriber
from cicada.delivery.outbox import Post, PostOutcome
from cicada.delivery.ports import Conflict, ConnectionBusy, ConnectionGone, Connections, RequestLog, StoreFault
from cicada.delivery.record import Commit, Head
from cicada.errors import DeliveryUnavailable
from cicada.protocol.events import Failed
from cicada.story import tell

logger = logging.getLogger(__name__)

CONTENTION_TRIES = 5
"""How often a change is decided anew when another writer got in between."""


def post_frames(connections: Connections, post: Post) -> PostOutcome:
    """Post frames in order; stop at the first that does not go out."""
    try:
        for frame in post.frames:
            connections.post(post.connection_id, frame)
    except ConnectionGone:
        return "gone"
    except ConnectionBusy as error:
        logger.info("a subscriber takes no frames", extra={"connection_id": post.connection_id, "why": str(error)})
        return "busy"
    return "delivered"


def forget_subscriber(log: RequestLog, head: Head, connection_id: str) -> None:
    """Take a closed connection off a request; where that fails, its next post is answered *gone* once more."""
    try:
        log.set_subscribers(head, without_subscriber(head.subscribers, connection_id))
    except (Conflict, StoreFault) as error:
        logger.info("a subscriber stays listed", extra={"connection_id": connection_id, "why": str(error)})


def broadcast(
    log: RequestLog, connections: Connections, head: Head, commit: Commit, *, spare: str | None = None
) -> None:
    """Post a commit's events to every subscriber of ``head`` but ``spare``; closed ones are forgotten."""
    frames = tuple(entry.frame(head.key.request_id) for entry in commit.entries())
    for connection_id in head.subscribers:
        if connection_id == spare:
            continue
        if post_frames(connections, Post(connection_id, frames)) == "gone":
            forget_subscriber(log, head, connection_id)


def end_request(
    log: RequestLog,
    connections: Connections,
    head: Head,
    terminal: Failed,
    *,
    still: Callable[[Head], bool],
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
        tell(
            logger,
            "ended",
            "request ended with an error",
            request_id=head.key.request_id,
            code=terminal.code,
            attempt=head.attempt,
            failed=[f"{one.strategy}: {one.code}" for one in terminal.failed],
        )
        broadcast(log, connections, head, commit, spare=spare)
        return True
    raise DeliveryUnavailable("the log keeps changing")
