"""The index in an S3 bucket, read by self-signed requests over kept-alive connections.

Importing and calling the SDK takes most of a cold function's time. Writing, listing and deleting use the SDK.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 (looking up a host's name imports it, in the middle of the first read)
import os
import random
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TypeVar

from cicada.errors import IndexUnavailable
from cicada.index.ports import ObjectMissing, ObjectStore, StoredEntry, StoredObject
from cicada.index.s3_signing import BucketEndpoint, Credentials, CredentialSource, Signer, endpoint_of, region_of

IDLE_S = 5.0  # wall-clock seconds to reuse a connection: S3 closes it soon after, unnoticed by a frozen function


class ConnectionPool:
    """Opens connections, and reuses idle ones. Thread-safe; a forked process opens its own."""

    def __init__(self, endpoint: BucketEndpoint, *, connect_timeout_s: float, environ: Mapping[str, str]) -> None:
        """Take the endpoint. ``AWS_CA_BUNDLE`` names the certificates to trust, as for the SDK."""
        self._endpoint = endpoint
        self._connect_timeout_s = connect_timeout_s
        self._bundle = environ.get("AWS_CA_BUNDLE")
        self._idle: list[tuple[HTTPConnection, float]] = []
        self._tls: ssl.SSLContext | None = None
        self._making_tls = threading.Lock()
        self._process = os.getpid()

    def idle(self) -> HTTPConnection | None:
        """A returned connection that the host has not visibly closed, or None."""
        while True:
            if self._process != os.getpid():  # after a fork the parent keeps using them
                self._process, self._idle = os.getpid(), []
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return None
            if 0 <= time.time() - since < IDLE_S and not _readable(connection.sock):
                return connection
            connection.close()

    def new(self) -> HTTPConnection:
        """A new connection. Raises OSError if the host cannot be reached."""
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
        """Keep a connection whose last response was read to its end."""
        self._idle.append((connection, time.time()))

    def _context(self) -> ssl.SSLContext:
        with self._making_tls:
            if self._tls is None:
                self._tls = ssl.create_default_context(cafile=self._bundle)
            return self._tls


def _readable(sock: socket.socket | None) -> bool:
    """Whether an idle connection is readable, which means that S3 closed it."""
    if sock is None:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


ATTEMPTS = 4  # requests for one read, not counting those on connections that S3 had closed
BACKOFF_S = 0.05  # the longest random wait before the second attempt; it doubles with each attempt
STEP_BYTES = 2**20  # read at a time; the time budget is checked between reads
PROXY_NAMES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
ERROR_BYTES = 64 * 2**10  # read of an error's body

_TRANSIENT = frozenset((429, 500, 502, 503, 504))
_THROTTLED = frozenset(("SlowDown",))
_EXPIRED = frozenset(("ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"))
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_CODE = re.compile(rb"<Code>([^<]*)</Code>")

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ReadTimeouts:
    """Timeouts in seconds. They are short because a user waits, and another strategy may still answer."""

    connect_s: float = 1.0
    read_s: float = 4.0  # without a byte
    budget_s: float = 8.0  # for one read with all its attempts


class DirectS3Store:
    """:class:`~cicada.index.ports.ObjectStore` over one bucket, whose reads cost a tenth of the SDK's CPU time.

    Reads also go straight into buffers, see :class:`~cicada.index.fetch.ReadsInto`. Proxies are not supported.
    """

    def __init__(
        self,
        bucket: str,
        *,
        patience: ReadTimeouts = ReadTimeouts(),
        environ: Mapping[str, str] = os.environ,
        sdk: Callable[[], ObjectStore] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the bucket. Nothing is imported, connected or read yet.

        ``environ`` has the region, the credentials and an optional endpoint, as for the SDK. ``sdk`` makes the store
        that writes, lists and deletes, on first use. Raises SettingsInvalid for a missing region or invalid endpoint.
        """
        region = region_of(environ)
        self._bucket = bucket
        self._patience = patience
        self._endpoint = endpoint_of(bucket, region, environ)
        self._connections = ConnectionPool(self._endpoint, connect_timeout_s=patience.connect_s, environ=environ)
        self._credentials = CredentialSource(environ)
        self._signer = Signer(region)
        self._sdk = cache(sdk or (lambda: _sdk_store(bucket)))
        self._sleep = sleep

    def read(self, key: str) -> StoredObject:  # noqa: D102 (the port's contract)
        found = self._get(key, {}, _whole)
        if found is None:
            raise self._unavailable(key, "it answered an unconditional read with 304 Not Modified")
        return found

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:  # noqa: D102
        return self._get(key, {"if-none-match": etag}, _whole)

    def read_range(self, key: str, start: int, length: int) -> bytes:  # noqa: D102
        buffer = bytearray(length)
        return bytes(buffer[: self.read_range_into(key, start, memoryview(buffer))])

    def read_range_into(self, key: str, start: int, buffer: memoryview) -> int:
        """See :class:`~cicada.index.fetch.ReadsInto`."""
        asked = {"range": f"bytes={start}-{start + len(buffer) - 1}"}

        def take(response: HTTPResponse, deadline: float) -> int:
            if response.status == 416:
                response.read(ERROR_BYTES)
                return 0
            return _range(response, start, buffer, deadline)

        found = self._get(key, asked, take)
        if found is None:
            raise self._unavailable(key, "it answered an unconditional read with 304 Not Modified")
        return found

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:  # noqa: D102
        return self._sdk().write(key, data, replaces=replaces)

    def entries(self, prefix: str) -> Iterator[StoredEntry]:  # noqa: D102
        return self._sdk().entries(prefix)

    def delete(self, key: str) -> None:  # noqa: D102
        self._sdk().delete(key)

    def _get(
        self, key: str, headers: Mapping[str, str], take: Callable[[HTTPResponse, float], _Result]
    ) -> _Result | None:
        """The result of ``take`` for a successful response; None if S3 answers that the object has not changed."""
        deadline = time.monotonic() + self._patience.budget_s
        credentials = self._credentials.current()
        for attempt in range(ATTEMPTS):
            try:
                return self._attempt(key, headers, credentials, take, deadline)
            except _ExpiredError as error:
                failure: Exception = error
                renewed = self._credentials.renewed(credentials)
                if renewed is None:
                    break
                credentials, wait_s = renewed, 0.0
            except (_TransientError, HTTPException, OSError) as error:
                failure = error
                wait_s = random.uniform(0, BACKOFF_S * 2**attempt)  # noqa: S311 (jitter, no secret)
            if attempt + 1 == ATTEMPTS or time.monotonic() + wait_s >= deadline:
                break
            self._sleep(wait_s)
        unavailable = self._unavailable(key, str(failure) or type(failure).__name__)
        unavailable.throttled = isinstance(failure, _ThrottledError)
        raise unavailable from failure

    def _attempt(
        self,
        key: str,
        headers: Mapping[str, str],
        credentials: Credentials,
        take: Callable[[HTTPResponse, float], _Result],
        deadline: float,
    ) -> _Result | None:
        connection, response = self._ask(key, headers, credentials, deadline)
        result: _Result | None
        try:
            match response.status:
                case 200 | 206 | 416:
                    result = take(response, deadline)
                case 304:
                    response.read()
                    result = None
                case _:
                    raise self._failure(key, response)
        except BaseException:
            connection.close()  # part of the response may be unread
            raise
        if response.isclosed() and not response.will_close:
            self._connections.give_back(connection)
        else:
            connection.close()
        return result

    def _ask(
        self, key: str, headers: Mapping[str, str], credentials: Credentials, deadline: float
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Send a request, on an idle connection if one still works, and wait for the start of the response."""
        path = self._endpoint.path(key)
        signed = self._signer.headers(self._endpoint.named, path, headers, credentials, datetime.now(UTC))
        while True:
            used = self._connections.idle()
            connection = used or self._connections.new()
            try:
                assert connection.sock is not None  # it is connected
                connection.sock.settimeout(min(self._patience.read_s, max(0.001, deadline - time.monotonic())))
                connection.request("GET", path, headers=signed)
                return connection, connection.getresponse()
            except (ConnectionError, HTTPException):
                connection.close()
                if used is None:  # else S3 closed it while it was idle: try the next one
                    raise
            except BaseException:
                connection.close()
                raise

    def _failure(self, key: str, response: HTTPResponse) -> Exception:
        """The error of an unsuccessful response."""
        found = _CODE.search(response.read(ERROR_BYTES))
        code = found[1].decode(errors="replace") if found else ""
        problem = f"{response.status} {code or response.reason}"
        if response.status == 404 and code != "NoSuchBucket":
            return ObjectMissing(key)
        if code in _EXPIRED:
            return _ExpiredError(problem)
        if code in _THROTTLED:
            return _ThrottledError(problem)
        if response.status in _TRANSIENT or code == "RequestTimeout":
            return _TransientError(problem)
        elsewhere = response.headers.get("x-amz-bucket-region")
        return self._unavailable(key, f"{problem} (the bucket lies in {elsewhere})" if elsewhere else problem)

    def _unavailable(self, key: str, why: str) -> IndexUnavailable:
        return IndexUnavailable(f"S3 could not read s3://{self._bucket}/{key}: {why}")


class _TransientError(Exception):
    """A failure worth a retry: a throttle, a truncated body, the response to another request."""


class _ThrottledError(_TransientError):
    """Too many requests for this part of the bucket."""


class _ExpiredError(Exception):
    """The credentials have expired."""


def _whole(response: HTTPResponse, deadline: float) -> StoredObject:
    if response.status != 200:
        raise _TransientError(f"status {response.status} for the read of a whole object")
    etag = response.headers["ETag"]
    if response.length is None or etag is None:
        raise _TransientError("a response without Content-Length or ETag")
    buffer = bytearray(response.length)
    _fill(response, memoryview(buffer), deadline)
    return StoredObject(bytes(buffer), etag)


def _range(response: HTTPResponse, start: int, buffer: memoryview, deadline: float) -> int:
    """Read the requested range, or as much of it as the object has."""
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status != 206 or match is None:
        raise _TransientError(f"status {response.status} without Content-Range for the read of a range")
    first, last, size = map(int, match.groups())
    if first != start or last + 1 != min(start + len(buffer), size) or response.length != last + 1 - first:
        raise _TransientError(f"unexpected range: {match[0]}")
    _fill(response, buffer[: response.length], deadline)
    return last + 1 - first


def _fill(response: HTTPResponse, buffer: memoryview, deadline: float) -> None:
    """Read a body of exactly the buffer's length."""
    read = 0
    while read < len(buffer):
        if time.monotonic() >= deadline:
            raise TimeoutError("the response is too slow")
        count = response.readinto(buffer[read : read + STEP_BYTES])
        if not count:
            raise _TransientError(f"the response was cut off after {read} of {len(buffer)} bytes")
        read += count


RULES_PATIENCE = ReadTimeouts(connect_s=0.5, read_s=1.0, budget_s=2.0)
"""For the rules of access, a small object that each attempt waits for: without them the last resort answers."""


def store_for_answers(
    bucket: str, environ: Mapping[str, str] = os.environ, *, patience: ReadTimeouts = ReadTimeouts()
) -> ObjectStore:
    """The direct store, or the SDK's if a proxy is configured, for functions whose user waits.

    Raises SettingsInvalid for a missing region or invalid endpoint.
    """
    if any(environ.get(name) for name in PROXY_NAMES):
        return _sdk_store(bucket, hurried=True)
    return DirectS3Store(bucket, patience=patience, environ=environ)


def _sdk_store(bucket: str, *, hurried: bool = False) -> ObjectStore:
    import boto3  # slow to import; reading never needs it

    from cicada.index.s3 import CLIENT_CONFIG, WORKER_CONFIG, S3Store

    return S3Store(boto3.client("s3", config=WORKER_CONFIG if hurried else CLIENT_CONFIG), bucket)
