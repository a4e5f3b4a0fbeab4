"""The ports of delivery: the store of request logs, and the open connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from cicada.delivery.record import Commit, LogEntry, RequestHead, RequestKey, Subscriber
from cicada.dynamodb import Item
from cicada.usage.accounts import ItemKey
from cicada.usage.reservations import Claim


class Conflict(Exception):
    """A conditional write did not land; ``head`` and ``entries`` are what is stored."""

    def __init__(self, head: RequestHead, entries: Sequence[LogEntry]) -> None:
        super().__init__(f"request is {head.state}, attempt {head.attempt}, seq {head.last_seq}")
        self.head = head
        self.entries = tuple(entries)


class StoreFault(Exception):
    """The store did not respond or throttled the call: a write may or may not have landed."""


class NotReserved(Exception):
    """A new request did not land because its accounts have changed; ``items`` are those that are stored.

    ``items`` is empty if others were writing to the accounts at the same moment.
    """

    def __init__(self, items: Mapping[ItemKey, Item]) -> None:
        super().__init__(f"{len(items)} accounts have changed")
        self.items = items


class ConnectionGone(Exception):
    """The connection is closed."""


class ConnectionBusy(Exception):
    """The connection or the gateway does not accept the frame now: throttled, full, or timed out."""


class RequestLog(Protocol):
    """The store of requests. Every method raises :class:`StoreFault` when the store fails."""

    def create(self, head: RequestHead, accepted: str, claims: Sequence[Claim] = ()) -> None:
        """Store a new request whose log holds one event, and its reservation in all accounts, or nothing.

        Args:
            head: with the reservation that ``claims`` belong to.
            accepted: the event's body.
            claims: the accounts' parts.

        Raises:
            Conflict: its key exists; with no entries.
            NotReserved: a claim's condition does not hold, or others are writing to its account.
        """
        ...

    def settle(self, head: RequestHead) -> bool:
        """Count what an ended request has used (``head.used``), and give back what was reserved for it.

        Returns whether this settled it: a reservation is settled once. What a request without one has used is counted
        at each call, so only whoever ended it may settle it.
        """
        ...

    def head(self, key: RequestKey) -> RequestHead:
        """A consistent read of the head. Raises RequestUnknown."""
        ...

    def read(self, key: RequestKey) -> tuple[RequestHead, tuple[LogEntry, ...]]:
        """A consistent read of the head and every event, in order. Raises RequestUnknown."""
        ...

    def commit(self, head: RequestHead, commit: Commit) -> RequestHead:
        """Apply a commit to the request of ``head``; return the head after it, with the subscribers of that instant.

        A request whose log it replaces stays among :meth:`open_requests` until :meth:`purge` is done with it.

        Raises:
            Conflict: the fence does not hold, or the request is not open.
            RequestUnknown.
        """
        ...

    def take_up(self, head: RequestHead, lease_until: int) -> RequestHead:
        """Release a request for another execution of the workflow, which must claim it before ``lease_until``.

        Clears its execution and counts the take-over; its attempt stays until the next begins.

        Raises:
            Conflict: it has ended, or its lease, execution or attempt has changed since ``head``.
        """
        ...

    def purge(self, head: RequestHead, *, done: bool) -> None:
        """Delete what a withdrawn log does not refer to any more: large events have items of their own.

        ``done``: no more can be left, and the request leaves :meth:`open_requests`.
        """
        ...

    def open_requests(self, accepted_before_ms: int) -> Iterator[RequestKey]:
        """The requests accepted before then that are open, hold a reservation, or are to be purged, in no order.

        The list may lag by seconds, so the caller must read the head before acting on a request.
        """
        ...

    def set_subscribers(self, head: RequestHead, subscribers: tuple[Subscriber, ...]) -> RequestHead:
        """Replace the subscribers of ``head``. Raises Conflict if they have changed since."""
        ...


class Connections(Protocol):
    """The open sockets."""

    def post(self, connection_id: str, frame: str) -> None:
        """Hand one frame to the gateway, in call order.

        Raises ConnectionGone, or ConnectionBusy: then the frame may or may not have been delivered.
        """
        ...
