"""Kept-alive HTTP connections to one host."""

from __future__ import annotations

import encodings.idna  # noqa: F401 (looking up a host's name imports it, in the middle of the first read)
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPSConnection

from cicada.index.s3direct.endpoint import Endpoint

IDLE_S = 5.0
"""An idle connection is used again for this long, in seconds by the wall clock: S3 closes it soon after, and a frozen
function does not hear of that."""


class Connections:
    """Opens connections, and hands out idle ones again. Safe for several threads; a forked process opens its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connect_timeout_s: float,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take where to; ``AWS_CA_BUNDLE`` in the environment names the certificates to trust, as for the SDK."""
        self._endpoint = endpoint
        self._connect_timeout_s = connect_timeout_s
        self._bundle = environ.get("AWS_CA_BUNDLE")
        self._clock = clock
        self._idle: list[tuple[HTTPConnection, float]] = []
        self._tls: ssl.SSLContext | None = None
        self._making_tls = threading.Lock()
        self._process = os.getpid()

    def idle(self) -> HTTPConnection | None:
        """A connection that was given back, and that the host has not closed as far as is known; None if none is."""
        while True:
            if self._process != os.getpid():  # the parent goes on using them
                self._process, self._idle = os.getpid(), []
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return None
            if 0 <= self._clock() - since < IDLE_S and not _readable(connection.sock):
                return connection
            connection.close()

    def new(self) -> HTTPConnection:
        """A new connection.

        Raises:
            OSError: there is no way to the host.
        """
        to = self._endpoint
        if to.secure:
            connection: HTTPConnection = HTTPSConnection(
                to.host, to.port, timeout=self._connect_timeout_s, context=self._context()
            )
        else:
            connection = HTTPConnection(to.host, to.port, timeout=self._connect_timeout_s)
        connection.connect()
        return connection

    def give_back(self, connection: HTTPConnection) -> None:
        """Keep a connection, whose last response was read to its end."""
        self._idle.append((connection, self._clock()))

    def _context(self) -> ssl.SSLContext:
        with self._making_tls:
            if self._tls is None:
                self._tls = ssl.create_default_context(cafile=self._bundle)
            return self._tls


def _readable(sock: socket.socket | None) -> bool:
    """Whether an idle connection has something to say: that it is closed."""
    if sock is None:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
