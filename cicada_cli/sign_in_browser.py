"""Receives the authorization code of a sign-in: on a local port, or pasted by the user."""

from __future__ import annotations

import errno
import http.server
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cicada_client.oauth import Attempt, IssuerRefused

PORTS = (8741, 8742, 8743)
"""Ports of the redirect address. Issuers compare it exactly, so deployments register these three."""
PATH = "/callback"
WAIT_S = 300.0
"""How long to wait for a sign-in; an authorization code is valid for about as long."""

_POLL_S = 0.25
_REQUEST_TIMEOUT_S = 5.0
_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class NoPort(Exception):
    """All ports are in use."""


class NoAnswer(Exception):
    """The browser did not return."""


def redirect_uri(port: int) -> str:
    """The address that the browser returns to."""
    return f"http://localhost:{port}{PATH}"


def code_of(fields: Mapping[str, str], attempt: Attempt) -> str:
    """The code in the issuer's response.

    Raises:
        IssuerRefused: the response is an error, or belongs to another sign-in.
    """
    if "error" in fields:
        raise IssuerRefused(fields["error"], fields.get("error_description", ""))
    if fields.get("state") != attempt.state:
        raise IssuerRefused("state mismatch", "the response belongs to another sign-in; close other tabs and try again")
    if not fields.get("code"):
        raise IssuerRefused("the issuer returned no code")
    return fields["code"]


def pasted(text: str, attempt: Attempt) -> str:
    """The code in a pasted text: the address that the browser shows, or the code alone.

    Raises:
        IssuerRefused: as :func:`code_of`; or the text is neither.
    """
    text = text.strip()
    if "?" in text or "://" in text:
        return code_of(_fields(urlsplit(text).query), attempt)
    if not text or any(character.isspace() for character in text):
        raise IssuerRefused("the pasted text is neither a code nor the address that the browser shows")
    return text


class Callback:
    """Listens on the first free port of the loopback interface for the browser to return."""

    def __init__(self, ports: Sequence[int] = PORTS) -> None:
        """Listen.

        Raises:
            NoPort: all are in use.
        """
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._finish: Callable[[dict[str, str]], str | None] | None = None
        self._state = ""
        self._serving = self._finished = False
        for port in ports:
            try:
                self._servers = self._listen(port)
            except OSError:
                continue
            self.redirect_uri = redirect_uri(port)
            return
        raise NoPort(f"ports {', '.join(map(str, ports))} are in use")

    def serve(self, state: str, finish: Callable[[dict[str, str]], str | None]) -> None:
        """Start to serve the browser: finish the sign-in with the fields of its request, and show the result there.

        Args:
            state: of the sign-in; requests with another state are ignored, because any page can send a browser here.
            finish: takes the fields and returns an error message or None. Called once, in a thread.
        """
        self._state, self._finish = state, finish
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True).start()
        self._serving = True

    def wait(self, wait_s: float = WAIT_S) -> None:
        """Wait until the sign-in is finished.

        Raises:
            NoAnswer: timed out.
        """
        if not self._over.wait(wait_s):
            raise NoAnswer(f"the browser did not return within {wait_s / 60:.0f} minutes")

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            if self._serving:
                server.shutdown()
            server.server_close()

    def arrived(self, fields: dict[str, str]) -> str | None:
        """Handle a request's fields; returns an error message or None."""
        with self._lock:
            if self._finish is None:
                return "this sign-in has already ended."
            if fields.get("state") != self._state:
                return "state mismatch: this is the response to another sign-in. Continue with the newest one."
            finish, self._finish = self._finish, None
            try:
                return finish(fields)
            finally:
                self._finished = True

    def answered(self) -> None:
        """The browser was served. The wait ends if the sign-in is finished."""
        if self._finished:
            self._over.set()

    def _listen(self, port: int) -> list[_Server]:
        """Servers on both loopback addresses: a browser may resolve ``localhost`` to either."""
        handler = _handler(self)
        servers = [_Server(("127.0.0.1", port), handler)]
        try:
            servers.append(_ServerV6(("::1", port), handler))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                servers[0].server_close()
                raise  # the browser could send the code to the program there
        return servers


class _Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET
    allow_reuse_address = sys.platform != "win32"  # there, two programs could listen on one port
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """Ignore browsers that disconnect."""


class _ServerV6(_Server):
    address_family = socket.AF_INET6


def _handler(callback: Callback) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = _REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            host = self.headers.get("Host", "").rpartition(":")[0]
            if parts.path != PATH or host not in _HOSTS:
                self._say(404, "Not found.")
                return
            problem = callback.arrived(_fields(parts.query))
            try:
                if problem is None:
                    self._say(200, "You are signed in. You can close this page.")
                else:
                    self._say(400, f"You are not signed in: {problem}")
            finally:
                callback.answered()

        def _say(self, status: int, text: str) -> None:
            page = f'<!doctype html><meta charset="utf-8"><title>Cicada</title><p>{escape(text)}</p>'.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", "default-src 'none'")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: Any) -> None:
            """Log nothing: the path has the code."""

    return Handler


def _fields(query: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(query).items()}
