"""Stop a call to a model from another thread by closing its connection.

boto3 and urllib3 cannot do that, and a thread waiting in a socket's ``recv`` notices only its socket. urllib3's
``HTTPResponse.shutdown`` works once there is a response, but the wait for the response is often the longest. So each of
the client's connections knows the call that it carries. A connection serves many calls, one after the other: only the
current one may cut it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cicada.models.ports import Stopped


class Stoppable:
    """The stopping part of a :class:`cicada.models.ports.CallScope`. Thread-safe."""

    def __init__(self) -> None:
        self._stop_lock = threading.Lock()
        self._stopped = False
        self._wakes: list[Callable[[], None]] = []

    @property
    def stopped(self) -> bool:
        """Whether :meth:`stop` was called."""
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
        """Stop everything under way."""
        with self._stop_lock:
            self._stopped = True
            wakes, self._wakes = self._wakes, []
        for wake in wakes:
            wake()

    def _forget(self, wake: Callable[[], None]) -> None:
        with self._stop_lock:
            if wake in self._wakes:
                self._wakes.remove(wake)


class StopSignal:
    """Passes a call scope's stop on to the call under way. Thread-safe."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._stop_call: Callable[[], None] = lambda: None

    def forward_to(self, stop_call: Callable[[], None]) -> None:
        """Stop the next call by ``stop_call``."""
        self._stop_call = stop_call
        if self.stopped.is_set():  # since the last check
            stop_call()

    def stop(self) -> None:
        """Stop the call under way, if any."""
        self.stopped.set()
        self._stop_call()

    def check(self) -> None:
        """Raise Stopped after a stop."""
        if self.stopped.is_set():
            raise Stopped


if TYPE_CHECKING:
    from http.client import HTTPConnection as _Connection

    from urllib3 import PoolManager
else:
    _Connection = object  # mixed into urllib3's or botocore's connection classes

_lock = threading.Lock()
_thread = threading.local()
"""``handle``: that of the call which the thread makes."""


class ConnectionHandle:
    """The connection of one call, from when it is chosen until the call ends.

    Without :func:`track_connections` or :func:`track_pool` for the client, cutting does nothing, and the call ends by
    its read time-out.
    """

    def __init__(self) -> None:
        self._connection: _TrackedConnection | None = None
        self._cut = False

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Track the call that this thread makes in the block."""
        _thread.handle = self
        try:
            yield
        finally:
            _thread.handle = None

    def cut(self) -> None:
        """Close the call's connection, now or as soon as it is made. Quick, idempotent, from any thread."""
        with _lock:
            self._cut = True
            # The connection may carry a later call by now.
            if self._connection is not None and self._connection.handle is self:
                self._connection.shut_down()

    def end(self) -> None:
        """The call is over: its connection may carry others."""
        with _lock:
            self._connection = None

    def carried_by(self, connection: _TrackedConnection) -> None:
        """Note the call's connection. Raises ConnectionAbortedError after a cut."""
        if self._cut:
            raise ConnectionAbortedError("the call was cancelled")
        self._connection = connection


class _TrackedConnection(_Connection):
    """Mixed into a connection class: knows the call that it carries."""

    handle: ConnectionHandle | None = None
    _open: socket.socket | None = None
    """The socket; http.client drops its own reference when a response ends with its connection."""

    def connect(self) -> None:
        self._track()
        super().connect()
        self._track()

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._track()
        super().request(*args, **kwargs)

    def shut_down(self) -> None:
        """Wake the threads that use the socket, and end the connection for the other side."""
        if isinstance(self._open, socket.socket):
            with suppress(OSError):  # closed already
                # Not SSLSocket's own shutdown, which takes the decryption away from the thread that reads.
                socket.socket.shutdown(self._open, socket.SHUT_RDWR)

    def _track(self) -> None:
        with _lock:
            self.handle = getattr(_thread, "handle", None)
            self._open = self.sock
            if self.handle is not None:
                self.handle.carried_by(self)


def track_connections(client: Any) -> None:
    """Make a boto3 client's connections know their calls; idempotent. Idle connections are closed."""
    session = getattr(getattr(client, "_endpoint", None), "http_session", None)
    pools = getattr(session, "_pool_classes_by_scheme", None)
    if session is None or not isinstance(pools, dict):
        return
    tracked = _tracked(pools)
    if tracked != pools:
        pools.update(tracked)
        session.close()


def track_pool(manager: PoolManager) -> None:
    """The same for a urllib3 pool manager that has no connections yet."""
    manager.pool_classes_by_scheme = _tracked(manager.pool_classes_by_scheme)


def _tracked(pools: Mapping[str, type[Any]]) -> dict[str, type[Any]]:
    """The pool classes by scheme, with connections that know their calls."""
    tracked = dict(pools)
    for scheme, pool in pools.items():
        if not issubclass(pool.ConnectionCls, _TrackedConnection):
            connection = type("Tracked" + pool.ConnectionCls.__name__, (_TrackedConnection, pool.ConnectionCls), {})
            tracked[scheme] = type("Tracked" + pool.__name__, (pool,), {"ConnectionCls": connection})
    return tracked
