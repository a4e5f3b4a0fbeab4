"""Listening on this machine alone."""

from __future__ import annotations

import contextlib
import socket


class PortTaken(Exception):
    """Another program listens on the port."""


def listen(port: int) -> list[socket.socket]:
    """Listen on a port of this machine alone, under both its addresses; port 0 takes a free one.

    Raises:
        PortTaken: it is not free.
    """
    first = _bound(socket.AF_INET, "127.0.0.1", port)
    sockets = [first]
    if socket.has_ipv6:
        with contextlib.suppress(PortTaken):  # no IPv6 on this machine
            sockets.append(_bound(socket.AF_INET6, "::1", first.getsockname()[1]))
    return sockets


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        found.bind((host, port))
        found.listen(256)
    except OSError as error:
        found.close()
        raise PortTaken(port) from error
    found.setblocking(False)
    return found
