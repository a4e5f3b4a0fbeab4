"""Listening on this machine alone."""

from __future__ import annotations

import errno
import socket


class PortTaken(Exception):
    """Another program listens on the port."""


def listen(port: int) -> list[socket.socket]:
    """Listen on a port of this machine alone, under both its addresses; port 0 takes a free one.

    A browser may ask either address for ``localhost``: if another program had one of them, its page would have the
    origin of ours.

    Raises:
        PortTaken: it is not free under one of them.
    """
    try:
        first = _bound(socket.AF_INET, "127.0.0.1", port)
    except OSError as error:
        raise PortTaken(port) from error
    if not socket.has_ipv6:
        return [first]
    try:
        return [first, _bound(socket.AF_INET6, "::1", first.getsockname()[1])]
    except OSError as error:
        if error.errno != errno.EADDRINUSE:  # no IPv6 on this machine
            return [first]
        first.close()
        if port == 0:
            return listen(0)
        raise PortTaken(port) from error


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind((host, port))
        found.listen(256)
    except OSError:
        found.close()
        raise
    found.setblocking(False)
    return found
