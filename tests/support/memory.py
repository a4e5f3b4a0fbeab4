"""In-memory twins of delivery's ports. The contract tests run over them and over the AWS adapters alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cicada.delivery.ports import Conflict, ConnectionGone
from cicada.delivery.record import Commit, LogEntry, RequestHead, RequestKey, Subscriber
from cicada.errors import RequestUnknown
from cicada.usage.reservations import Amount, Claim


class InMemoryLog:
    """A :class:`cicada.delivery.ports.RequestLog`. ``before`` and ``after`` may raise, to cause faults."""

    def __init__(self) -> None:
        self.requests: dict[RequestKey, tuple[RequestHead, tuple[LogEntry, ...]]] = {}
        self.before: Callable[[str], None] = lambda operation: None
        self.after: Callable[[str], None] = lambda operation: None
        self.calls: list[str] = []
        self.claims: list[Claim] = []
        self.settled: dict[RequestKey, Amount] = {}

    def create(self, head: RequestHead, accepted: str, claims: Sequence[Claim] = ()) -> None:
        self._enter("create")
        self.claims += claims
        if head.key in self.requests:
            raise Conflict(self.requests[head.key][0], ())
        stored = replace(head, last_seq=1, log_bytes=len(accepted.encode()))
        self.requests[head.key] = (stored, (LogEntry(1, 0, accepted),))
        self.after("create")

    def head(self, key: RequestKey) -> RequestHead:
        self._enter("head")
        return self._stored(key)[0]

    def read(self, key: RequestKey) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        self._enter("read")
        return self._stored(key)

    def settle(self, head: RequestHead) -> bool:
        self._enter("settle")
        if head.reservation is not None and head.key in self.settled:
            return False
        self.settled[head.key] = head.used
        self.after("settle")
        return True

    def commit(self, head: RequestHead, commit: Commit) -> RequestHead:
        self._enter("commit")
        stored, entries = self._stored(head.key)
        if stored.state != "open" or stored.fence != commit.fence:
            raise Conflict(stored, entries)
        changed = replace(
            stored,
            state=commit.state,
            last_seq=commit.last_seq,
            log_bytes=stored.log_bytes + commit.added_bytes,
        )
        if commit.claim is not None:
            claim = commit.claim
            changed = replace(
                changed,
                attempt=claim.attempt,
                strategy=claim.strategy,
                execution=claim.execution,
                worker=claim.worker,
                failed=claim.failed,
                reserved_calls=claim.reserved_calls,
            )
        if commit.lease_until is not None:
            changed = replace(changed, lease_until=commit.lease_until)
        if commit.spent is not None:
            changed = replace(changed, spent=commit.spent)
        if commit.changed is not None:
            changed = replace(changed, changed=commit.changed)
        if commit.standalone is not None:
            changed = replace(changed, standalone=commit.standalone)
        if commit.log:
            changed, entries = replace(changed, withdrawn=True), commit.log
        self.requests[head.key] = (changed, entries + commit.entries())
        self.after("commit")
        return changed

    def take_up(self, head: RequestHead, lease_until: int) -> RequestHead:
        self._enter("take_up")
        stored, entries = self._stored(head.key)
        seen = (head.lease_until, head.execution, head.attempt)
        if stored.state != "open" or (stored.lease_until, stored.execution, stored.attempt) != seen:
            raise Conflict(stored, entries)
        changed = replace(stored, lease_until=lease_until, execution=None, takeovers=head.takeovers + 1)
        self.requests[head.key] = (changed, entries)
        self.after("take_up")
        return changed

    def purge(self, head: RequestHead, *, done: bool) -> None:
        self._enter("purge")
        stored, entries = self._stored(head.key)
        self.requests[head.key] = (replace(stored, withdrawn=stored.withdrawn and not done), entries)

    def open_requests(self, accepted_before_ms: int) -> Iterator[RequestKey]:
        self._enter("open_requests")
        heads = sorted((head for head, _ in self.requests.values()), key=lambda head: head.accepted_at_ms)
        for head in heads:
            unsettled = head.reservation is not None and head.key not in self.settled
            if (head.state == "open" or head.withdrawn or unsettled) and head.accepted_at_ms < accepted_before_ms:
                yield head.key

    def set_subscribers(self, head: RequestHead, subscribers: tuple[Subscriber, ...]) -> RequestHead:
        self._enter("set_subscribers")
        stored, entries = self._stored(head.key)
        if stored.subscribers != head.subscribers:
            raise Conflict(stored, entries)
        changed = replace(stored, subscribers=subscribers)
        self.requests[head.key] = (changed, entries)
        self.after("set_subscribers")
        return changed

    def _enter(self, operation: str) -> None:
        self.calls.append(operation)
        self.before(operation)

    def _stored(self, key: RequestKey) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        if key not in self.requests:
            raise RequestUnknown(key.request_id)
        return self.requests[key]


class InMemoryConnections:
    """A :class:`cicada.delivery.ports.Connections` with the named connections open."""

    def __init__(self, *names: str) -> None:
        self.frames: dict[str, list[str]] = {name: [] for name in names}
        self.before: Callable[[str], object] = lambda connection_id: None

    def post(self, connection_id: str, frame: str) -> None:
        self.before(connection_id)
        if connection_id not in self.frames:
            raise ConnectionGone(connection_id)
        self.frames[connection_id].append(frame)
