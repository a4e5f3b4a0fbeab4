"""The WebSocket subprotocols that a client offers on connecting: the protocol's name and, from browsers, the token.

A browser cannot set headers on a WebSocket. It can offer subprotocols, which travel in the header
``Sec-WebSocket-Protocol`` and not in the URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROTOCOL = "cicada.v1"
"""The protocol's name: chosen wherever it is offered."""
BEARER = "cicada.bearer."
"""Before the token."""
HEADER = "Sec-WebSocket-Protocol"


def offered(event: Mapping[str, Any]) -> list[str]:
    """The subprotocols that the client of a ``$connect`` event offers, in its order."""
    repeated = _lines(event.get("multiValueHeaders") or {})
    lines = [line for lines in repeated for line in lines] or _lines(event.get("headers") or {})
    return [one.strip() for line in lines for one in str(line).split(",") if one.strip()]


def _lines(headers: Mapping[str, Any]) -> list[Any]:
    return [value for name, value in headers.items() if name.lower() == HEADER.lower()]


def offered_token(event: Mapping[str, Any]) -> str:
    """The token among them; empty if there is none."""
    return next((one.removeprefix(BEARER) for one in offered(event) if one.startswith(BEARER)), "")


def chosen(event: Mapping[str, Any]) -> dict[str, str]:
    """The header that answers the client: it must name one of the offered, and a client that offered none gets none."""
    return {HEADER: PROTOCOL} if PROTOCOL in offered(event) else {}
