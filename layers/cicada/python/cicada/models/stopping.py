"""Stop a call to a model from another thread, and end its connection.

Neither boto3 nor urllib3 offers that, and a thread that waits in a socket's ``recv`` notices nothing but its socket.
urllib3's ``HTTPResponse.shutdown`` could wake it once there is a response; the wait for the response itself, often the
longest, would stay out of reach. So the client's connections are told which call they carry.

A connection serves many calls, one after the other: only the call that it carries now may cut it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any


class Stoppable:
    """The part of a :class:`cicada.models.ports.CallScope` that stops what it holds. Thread-safe."""

    def __init__(self) -> None:
        self._stop_lock = threading.Lock()
        self._stopped = False
        self._wakes: list[Callable[[], None]] = []

    @property
    def stopped(self) -> bool:
        """Whether the stop was given."""
        return self._stopped

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        with self._stop_lock:
            if not self._stopped:
                self._wakes.append(wake)
                return lambda: self._forget(wake)
        wake()
        return lambda: None

    def stop(self) -> None:
        """Nobody wants the result any more: whatever is under way stops."""
        with self._stop_lock:
            self._stopped = True
            wakes, self._wakes = self._wakes, []
        for wake in wakes:
            wake()

    def _forget(self, wake: Callable[[], None]) -> None:
        with self._stop_lock:
            if wake in self._wakes:
                self._wakes.remove(wake)


if TYPE_CHECKING:
    from http.client import HTTPConnection as _Connection

    from urllib3 import PoolManager
else:
    _Connection = object  # it is mixed into urllib3's connection classes, or botocore's

_lock = threading.Lock()
_thread = threading.local()
"""``line``: what the thread's calls go over."""


class ConnectionHandle:
    """What carries one call: nothing until a connection is chosen for it, and nothing after its end.

    A call whose client was not given to :func:`carry_lines` or :func:`carry_lines_of`, or has no connections of
    urllib3's, is never carried: cutting its line does nothing, and it ends by itself, at its read time-out at the
    latest.
    """

    def __init__(self) -> None:
        self._carrier: _Carrier | None = None
        self._cut = False

    @contextmanager
    def calling(self) -> Iterator[None]:
        """The call that this thread makes in the block goes over this line."""
        _thread.line = self
        try:
            yield
        finally:
            _thread.line = None

    def cut(self) -> None:
        """Close the connection under the call, now or when it has one. Quick, from any thread, as often as one likes.

        A connection that is still being made is closed as soon as it stands, or with the client's connect time-out.
        """
        with _lock:
            self._cut = True
            if self._carrier is not None and self._carrier.line is self:
                self._carrier.shut_down()

    def end(self) -> None:
        """The call is over: its connection may carry others."""
        with _lock:
            self._carrier = None

    def carried_by(self, carrier: _Carrier) -> None:
        """Note the connection that carries the call. Raises ConnectionAbortedError if the line is cut."""
        if self._cut:
            raise ConnectionAbortedError("the call was given up")
        self._carrier = carrier


class _Carrier(_Connection):
    """Mixed into a connection class: knows the line of the call that it carries."""

    line: ConnectionHandle | None = None
    _open: socket.socket | None = None
    """The socket; http.client itself forgets it as soon as a response is to end with its connection."""

    def connect(self) -> None:
        self._carry()
        super().connect()
        self._carry()

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._carry()
        super().request(*args, **kwargs)

    def shut_down(self) -> None:
        """Wake whoever reads from the socket or writes to it, and tell the other side."""
        if isinstance(self._open, socket.socket):
            with suppress(OSError):  # closed already
                # Not SSLSocket's own shutdown, which takes the decryption away from the thread that reads.
                socket.socket.shutdown(self._open, socket.SHUT_RDWR)

    def _carry(self) -> None:
        with _lock:
            self.line = getattr(_thread, "line", None)
            self._open = self.sock
            if self.line is not None:
                self.line.carried_by(self)


def carry_lines(client: Any) -> None:
    """Make a boto3 client's connections know which call they carry. Doing it again changes nothing.

    It is meant for a client that is not in use yet: idle connections are closed.
    """
    session = getattr(getattr(client, "_endpoint", None), "http_session", None)
    pools = getattr(session, "_pool_classes_by_scheme", None)
    if session is None or not isinstance(pools, dict):
        return
    carrying = _carrying(pools)
    if carrying != pools:
        pools.update(carrying)
        session.close()


def carry_lines_of(manager: PoolManager) -> None:
    """The same for a pool manager of urllib3's that has no connections yet."""
    manager.pool_classes_by_scheme = _carrying(manager.pool_classes_by_scheme)


def _carrying(pools: Mapping[str, type[Any]]) -> dict[str, type[Any]]:
    """The pools' classes by scheme, with connections that know which call they carry."""
    carrying = dict(pools)
    for scheme, pool in pools.items():
        if not issubclass(pool.ConnectionCls, _Carrier):
            carrier = type("Carrying" + pool.ConnectionCls.__name__, (_Carrier, pool.ConnectionCls), {})
            carrying[scheme] = type("Carrying" + pool.__name__, (pool,), {"ConnectionCls": carrier})
    return carrying
