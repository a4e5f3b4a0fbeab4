"""What is allowed to happen to a request: decisions without I/O.

Each function takes what is known and returns the commit to be made, or says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cicada.delivery.record import (
    MAX_LOG_BYTES,
    MAX_SUBSCRIBERS,
    AttemptClaim,
    Commit,
    LogEntry,
    RequestHead,
    Subscriber,
)
from cicada.errors import AnswerTooLong, WorkerLost
from cicada.protocol.events import (
    TERMINAL,
    Attempt,
    Complete,
    Fallback,
    LogEvent,
    StrategyFailure,
    StrategyName,
    dump_event,
)

START_GRACE_S = 30
"""How long after its start was asked for a request may stand without a worker before it is taken up: longer than the
workflow waits for a free worker."""
LEASE_S = 30
"""How long a worker's claim holds after each of its writes. A worker that has nothing to write renews it in time."""
LEASE_GRACE_S = 15
"""How long past its lease a request may stand before it is taken up: for the workflow's own steps between attempts."""
MAX_TAKEOVERS = 1
"""How often a request is started again by itself; then it is ended."""


@dataclass(frozen=True)
class NotYours:
    """Nothing is to be written: the request has ended, or another execution drives it."""

    why: Literal["ended", "claimed"]


def serialise(events: Iterable[LogEvent]) -> tuple[str, ...]:
    """Events as they are stored."""
    return tuple(dump_event(event) for event in events)


def append(head: RequestHead, events: Sequence[LogEvent], *, claim: AttemptClaim | None = None) -> Commit:
    """The commit that appends events to an open request; a terminal event, which must be the last, ends it.

    Raises:
        AnswerTooLong: the log would outgrow its bound. A terminal event alone always fits.
    """
    last = events[-1]
    state: Literal["open", "complete", "failed"] = "open"
    if isinstance(last, TERMINAL):
        state = "complete" if isinstance(last, Complete) else "failed"
    commit = Commit(head.fence, serialise(events), state, claim)
    size = head.log_bytes + commit.added_bytes
    if size > MAX_LOG_BYTES and not (len(events) == 1 and isinstance(last, TERMINAL)):
        raise AnswerTooLong(f"the log would hold {size} bytes; its bound is {MAX_LOG_BYTES}")
    return commit


def may_drive(head: RequestHead, execution: str, now_s: float) -> NotYours | None:
    """Whether an execution of the workflow may act on a request.

    A workflow can be executed twice for one request: the first to claim it drives it while its lease is renewed.
    """
    if head.state != "open":
        return NotYours("ended")
    if head.execution not in (None, execution) and now_s < head.lease_until:
        return NotYours("claimed")
    return None


def tried(head: RequestHead, failed: Sequence[StrategyFailure]) -> tuple[StrategyFailure, ...]:
    """Everything that was tried for a request, in order, and why each failed.

    The head knows of every attempt but its last, and of that one what it has changed. That one's failure, and those of
    strategies that failed before they could begin an attempt, are known to the workflow. An attempt that it did not see
    fail has lost its worker.

    Args:
        head: the request.
        failed: what the workflow saw fail in its execution, in order.
    """
    path = list(head.failed)
    if head.strategy is not None:
        lost = StrategyFailure(strategy=head.strategy, code=WorkerLost.code, reason=WorkerLost.told)
        path.append(_with_changes(head, next((one for one in failed if one.strategy == head.strategy), lost)))
    known = {one.strategy for one in path}
    return (*path, *(one for one in failed if one.strategy not in known))


def _with_changes(head: RequestHead, failure: StrategyFailure) -> StrategyFailure:
    """The failure of the head's attempt, with word of what it has changed: that is not undone."""
    changed = head.changed
    if changed is None or changed.attempt != head.attempt:
        return failure
    kept = f"What it had changed by then is kept: {'; '.join(changed.told)}."
    return failure.model_copy(update={"reason": f"{failure.reason} {kept}"})


def begin(
    head: RequestHead,
    strategy: StrategyName,
    failed: Sequence[StrategyFailure],
    *,
    execution: str,
    worker: str,
    now_s: float,
    allot: Callable[[StrategyName, int], int] = lambda _strategy, _reserved: 0,
) -> Commit | NotYours:
    """The commit that begins the next attempt and so fences every earlier one.

    After any attempt or failure before it, it begins with a ``fallback`` event, at which the client drops the earlier
    text.

    Args:
        head: the request.
        strategy: of the attempt.
        failed: what the workflow saw fail, in order.
        execution: the workflow's.
        worker: the invocation that begins it.
        now_s: epoch seconds.
        allot: how many calls to text models a strategy gets, when so many are reserved already.
    """
    refusal = may_drive(head, execution, now_s)
    if refusal is not None:
        return refusal
    path = tried(head, failed)
    number = head.attempt + 1
    events: list[LogEvent] = [Attempt(attempt=number, strategy=strategy)]
    if path:
        before = path[-1]
        events.insert(0, Fallback(from_=before.strategy, to=strategy, code=before.code, reason=before.reason))
    calls = allot(strategy, head.reserved_calls)
    claim = AttemptClaim(number, strategy, execution, worker, path, calls, head.reserved_calls + calls)
    return replace(append(head, events, claim=claim), lease_until=lease_from(now_s))


def lease_from(now_s: float) -> int:
    """Until when a claim holds that is renewed now, in epoch seconds."""
    return int(now_s) + LEASE_S


def has_landed(commit: Commit, head: RequestHead, entries: Sequence[LogEntry]) -> bool:
    """Whether a commit that met a conflict had in fact landed before, its acknowledgement lost.

    Its events then stand in their places under its attempt. Only one worker can hold an attempt, so equal events are
    its own; the begin of an attempt, which two workers could write alike, is told by the worker. A heartbeat moves no
    fence: it lands when it is repeated, so one that meets a conflict is late.
    """
    if not commit.bodies or head.last_seq < commit.last_seq:
        return False
    if commit.claim is not None and (head.attempt, head.worker) != (commit.claim.attempt, commit.claim.worker):
        return False
    by_seq = {entry.seq: entry for entry in entries}
    return all(by_seq.get(entry.seq) == entry for entry in commit.entries())


def with_subscriber(subscribers: tuple[Subscriber, ...], subscriber: Subscriber) -> tuple[Subscriber, ...]:
    """The subscribers with one more, the newest last; the oldest gives way past the limit."""
    return (*without_subscriber(subscribers, subscriber.connection_id), subscriber)[-MAX_SUBSCRIBERS:]


def without_subscriber(subscribers: tuple[Subscriber, ...], connection_id: str) -> tuple[Subscriber, ...]:
    """The subscribers without one."""
    return tuple(known for known in subscribers if known.connection_id != connection_id)


Orphan = Literal["never_started", "worker_lost"]


def orphaned(head: RequestHead, now_s: float) -> Orphan | None:
    """Whether an open request has nobody who works on it, and why."""
    if head.state != "open":
        return None
    if head.execution is None:
        return "never_started" if now_s > head.lease_until else None
    return "worker_lost" if now_s > head.lease_until + LEASE_GRACE_S else None
