"""Decisions about a request, without I/O.

Each function takes what is known and returns the commit to make, or says why there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from cicada.errors import AnswerBlocked, AnswerTooLong, WorkerLost
from cicada.protocol.events import (
    TERMINAL,
    Attempt,
    Complete,
    Failed,
    Fallback,
    LogEvent,
    StrategyFailure,
    StrategyName,
    Withdrawn,
    dump_event,
)

START_GRACE_S = 30
"""How long a started request may have no worker before it is taken over: longer than the workflow waits for one."""
LEASE_S = 30
"""How long a worker's claim holds after each of its writes. A worker with nothing to write renews it in time."""
LEASE_GRACE_S = 15
"""How long after the end of its lease a request is taken over: time for the workflow's steps between attempts."""
MAX_TAKEOVERS = 1
"""How often a request is restarted; then it is ended."""


_WITHOUT_ANSWER = frozenset({"accepted", "attempt", "sources", "fallback", "receipt", "confirm", "withdrawn"})
"""Types of events without text of the answer. An event of any other type, such as a newer release's, counts as text."""


@dataclass(frozen=True)
class NotYours:
    """Nothing may be written: the request has ended, or another execution drives it."""

    why: Literal["ended", "claimed"]


def append(head: RequestHead, events: Sequence[LogEvent], *, claim: AttemptClaim | None = None) -> Commit:
    """The commit that appends events to an open request; a terminal event, which must come last, ends it.

    Raises:
        AnswerTooLong: the log would exceed its limit. A single terminal event is always accepted.
    """
    last = events[-1]
    state: Literal["open", "complete", "failed"] = "open"
    if isinstance(last, TERMINAL):
        state = "complete" if isinstance(last, Complete) else "failed"
    commit = Commit(head.fence, tuple(map(dump_event, events)), state, claim)
    size = head.log_bytes + commit.added_bytes
    if size > MAX_LOG_BYTES and not (len(events) == 1 and isinstance(last, TERMINAL)):
        raise AnswerTooLong(f"the log would have {size} bytes; the limit is {MAX_LOG_BYTES}")
    return commit


def withdraws(terminal: Failed) -> bool:
    """Whether a terminal event takes back the text that was delivered before it."""
    return terminal.code == AnswerBlocked.code


def end(head: RequestHead, terminal: Failed, entries: Sequence[LogEntry] = ()) -> Commit:
    """The commit that ends an open request with an error.

    ``entries``: the whole log at ``head``, where the terminal event :func:`withdraws` text: of every attempt, since
    what an earlier one said to the same question was not let through either.
    """
    commit = append(head, [terminal])
    return replace(commit, log=tuple(map(_withdrawn, entries))) if withdraws(terminal) else commit


def _withdrawn(entry: LogEntry) -> LogEntry:
    if json.loads(entry.body)["type"] in _WITHOUT_ANSWER:
        return entry
    return replace(entry, body=dump_event(Withdrawn(attempt=entry.attempt)))


def may_drive(head: RequestHead, execution: str, now_s: float) -> NotYours | None:
    """Whether an execution of the workflow may act on a request.

    Express workflows run at least once, so a request can have two executions: the first to claim it drives it as long
    as its lease is renewed.
    """
    if head.state != "open":
        return NotYours("ended")
    if head.execution not in (None, execution) and now_s < head.lease_until:
        return NotYours("claimed")
    return None


def tried(head: RequestHead, failed: Sequence[StrategyFailure]) -> tuple[StrategyFailure, ...]:
    """Every strategy that was tried for a request, in order, and why it failed.

    The head holds the failures of all attempts but the last. The workflow knows (``failed``) why the last one failed,
    and which strategies failed before an attempt could begin. A last attempt that is not in ``failed`` lost its worker.
    """
    path = list(head.failed)
    if head.strategy is not None:
        lost = StrategyFailure(strategy=head.strategy, code=WorkerLost.code, reason=WorkerLost.told)
        path.append(_with_changes(head, next((one for one in failed if one.strategy == head.strategy), lost)))
    known = {one.strategy for one in path}
    return (*path, *(one for one in failed if one.strategy not in known))


def _with_changes(head: RequestHead, failure: StrategyFailure) -> StrategyFailure:
    """The failure of the head's attempt, with the changes that it made: those are kept."""
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
    """The commit that begins the next attempt and fences every earlier one.

    After an earlier attempt or failure it starts with a ``fallback`` event, at which the client drops the earlier text.
    ``allot`` says how many model calls a strategy gets, given how many are reserved already.
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
    """When a claim that is renewed now ends, in epoch seconds."""
    return int(now_s) + LEASE_S


def has_landed(commit: Commit, head: RequestHead, entries: Sequence[LogEntry]) -> bool:
    """Whether a commit that met a conflict had landed before and only its acknowledgement was lost.

    Then the log holds its events in their places under its attempt. Only one worker can hold an attempt, so equal
    events are its own. Two workers could write the same begin of an attempt, so that one also compares the worker. A
    heartbeat does not move the fence and can be repeated, so a conflict means that it came too late.
    """
    if not commit.bodies or head.last_seq < commit.last_seq:
        return False
    if commit.claim is not None and (head.attempt, head.worker) != (commit.claim.attempt, commit.claim.worker):
        return False
    by_seq = {entry.seq: entry for entry in entries}
    return all(by_seq.get(entry.seq) == entry for entry in (*commit.log, *commit.entries()))


def with_subscriber(subscribers: tuple[Subscriber, ...], subscriber: Subscriber) -> tuple[Subscriber, ...]:
    """The subscribers with one more, the newest last; beyond the limit the oldest is dropped."""
    return (*without_subscriber(subscribers, subscriber.connection_id), subscriber)[-MAX_SUBSCRIBERS:]


def without_subscriber(subscribers: tuple[Subscriber, ...], connection_id: str) -> tuple[Subscriber, ...]:
    """The subscribers without one."""
    return tuple(known for known in subscribers if known.connection_id != connection_id)


def may_purge(head: RequestHead, now_s: float) -> bool:
    """Whether the rest of a withdrawn log can be deleted for good: no late write of its workers can follow."""
    return head.withdrawn and now_s > head.lease_until + LEASE_GRACE_S


def answering(head: RequestHead, now_s: float) -> bool:
    """Whether a worker may be answering a request, or may not have noticed yet that it has ended."""
    return head.execution is not None and now_s <= head.lease_until + LEASE_GRACE_S


def unsettled(head: RequestHead, now_s: float) -> bool:
    """Whether an ended request still has a reservation that its worker can no longer settle."""
    return head.state != "open" and head.reservation is not None and not answering(head, now_s)


Orphan = Literal["never_started", "worker_lost"]


def orphaned(head: RequestHead, now_s: float) -> Orphan | None:
    """Why no worker handles an open request; None if one does."""
    if head.state != "open":
        return None
    if head.execution is None:
        return "never_started" if now_s > head.lease_until else None
    return "worker_lost" if now_s > head.lease_until + LEASE_GRACE_S else None
