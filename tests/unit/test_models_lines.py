"""Lines: which call may close which connection, and when it is too late."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cicada.models.stopping import ConnectionHandle, track_connections


class Plain:
    """A connection, as far as lines look at one; its other end is ``far``."""

    def __init__(self) -> None:
        self.sock: socket.socket | None = None
        self.far: socket.socket | None = None
        self.requests: list[str] = []
        self.while_connecting: Callable[[], None] = lambda: None

    def connect(self) -> None:
        self.while_connecting()
        self.sock, self.far = socket.socketpair()
        self.far.settimeout(5)

    def request(self, path: str) -> None:
        if self.sock is None:
            self.connect()
        self.requests.append(path)

    def is_open(self) -> bool:
        assert self.sock is not None
        assert self.far is not None
        try:
            self.sock.send(b"x")
        except OSError:
            return False
        return self.far.recv(1) == b"x"


class Pool:
    ConnectionCls: type[Any] = Plain


class Session:
    def __init__(self) -> None:
        self._pool_classes_by_scheme: dict[str, type[Any]] = {"http": Pool, "https": Pool}
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def client() -> SimpleNamespace:
    return SimpleNamespace(_endpoint=SimpleNamespace(http_session=Session()))


@pytest.fixture
def connection() -> Iterator[Any]:
    boto = client()
    track_connections(boto)
    made = boto._endpoint.http_session._pool_classes_by_scheme["https"].ConnectionCls()
    yield made
    for end in (made.sock, made.far):
        if isinstance(end, socket.socket):
            end.close()


def test_a_cut_closes_the_connection_that_carries_the_call(connection):
    line = ConnectionHandle()
    with line.calling():
        connection.request("/converse")
    assert connection.is_open()
    line.cut()
    assert not connection.is_open()
    assert connection.far.recv(1) == b""  # the other side is told
    line.cut()


def test_a_call_whose_line_was_cut_before_is_not_made(connection):
    line = ConnectionHandle()
    line.cut()
    with line.calling(), pytest.raises(ConnectionAbortedError):
        connection.request("/converse")
    assert connection.sock is None
    assert connection.requests == []


def test_a_call_whose_line_is_cut_while_it_connects_is_not_made(connection):
    line = ConnectionHandle()
    connection.while_connecting = line.cut
    with line.calling(), pytest.raises(ConnectionAbortedError):
        connection.request("/converse")
    assert connection.requests == []


def test_a_connection_that_carries_another_call_by_now_is_left_alone(connection):
    earlier, later = ConnectionHandle(), ConnectionHandle()
    for line in (earlier, later):
        with line.calling():
            connection.request("/converse")
    earlier.cut()
    assert connection.is_open()
    later.cut()
    assert not connection.is_open()


def test_a_connection_that_carries_a_call_without_a_line_is_left_alone(connection):
    line = ConnectionHandle()
    with line.calling():
        connection.request("/converse")
    connection.request("/invoke")
    line.cut()
    assert connection.is_open()


def test_a_call_that_is_over_cuts_nothing(connection):
    line = ConnectionHandle()
    with line.calling():
        connection.request("/converse")
    line.end()
    line.cut()
    assert connection.is_open()


def test_a_socket_that_the_connection_has_let_go_of_is_closed_all_the_same(connection):
    line = ConnectionHandle()
    with line.calling():
        connection.request("/converse")
    kept, connection.sock = connection.sock, None  # as http.client does when the response is to end with its connection
    line.cut()
    connection.sock = kept
    assert not connection.is_open()


def test_a_connection_that_is_closed_already_is_no_matter(connection):
    line = ConnectionHandle()
    with line.calling():
        connection.request("/converse")
    connection.sock.close()
    line.cut()


def test_what_is_no_socket_of_pythons_is_left_to_its_time_out(connection):
    line = ConnectionHandle()
    connection.sock = SimpleNamespace(close=lambda: None)
    with line.calling():
        connection.request("/converse")
    line.cut()
    assert connection.requests == ["/converse"]


def test_a_client_is_changed_once():
    boto = client()
    session = boto._endpoint.http_session
    track_connections(boto)
    pools = dict(session._pool_classes_by_scheme)
    track_connections(boto)
    assert session._pool_classes_by_scheme == pools
    assert session.closed == 1  # for the connections that were open without knowing of lines
    assert all(issubclass(pool, Pool) and issubclass(pool.ConnectionCls, Plain) for pool in pools.values())


@pytest.mark.parametrize(
    "other",
    [object(), SimpleNamespace(_endpoint=None), SimpleNamespace(_endpoint=SimpleNamespace(http_session=object()))],
)
def test_a_client_that_is_built_otherwise_is_left_alone(other):
    track_connections(other)
    line = ConnectionHandle()
    with line.calling():
        pass
    line.cut()
