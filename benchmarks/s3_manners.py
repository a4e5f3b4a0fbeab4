"""An object store with S3's manners on this machine: what a cold start over a network costs, without a network.

It speaks the part of S3's HTTP interface that an index needs (path-style GET with Range and conditions, HEAD, PUT with
``If-Match`` and ``If-None-Match``, DELETE, ListObjectsV2) over the files of a folder, whose first level is the buckets.
Every response waits for its first byte and then comes at a pace: so much a connection, so much in all. No credentials
are looked at, and there is no TLS.

It counts what it served. A *round* begins when a request arrives while no other is being served: what a client
cannot ask for before it has seen an earlier response. The *chain* is the longest row of requests of which each arrived
after the one before it had been served whole: it exceeds the rounds where requests overlap by chance, or where there
are more of them than connections.

    python -m benchmarks.s3_manners --root folder --port 9000
    curl http://127.0.0.1:9000/-/counts
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

SLICE_BYTES = 128 * 2**10
"""Sent at a time: 1.5 ms of a connection at 90 MB/s."""
SLACK_S = 0.005
"""How far a connection that was woken late may catch up, in seconds."""
SEND_BUFFER_BYTES = 4 * SLICE_BYTES
"""What may lie unread in a connection."""
PAGE_KEYS = 1000
"""Keys of one page of a list, as S3 has it."""


@dataclass(frozen=True)
class Manners:
    """How the store behaves. A megabyte has 10^6 bytes."""

    first_byte_ms: float = 25.0
    connection_mb_s: float = 90.0
    total_mb_s: float = 300.0
    max_connections: int = 256
    """Further ones wait until one of them is closed."""


PRESETS = {"usual": Manners(), "slow": Manners(first_byte_ms=60.0, total_mb_s=80.0)}


@dataclass(frozen=True)
class Counts:
    """What the store has served since it was last asked to count anew."""

    gets: int
    heads: int
    lists: int
    writes: int
    bytes: int
    """Of the bodies of GETs."""
    rounds: int
    chain: int
    connections: int
    """That carried a request."""


# --- pacing and counting ---


@dataclass
class Pace:
    """A stream of bytes at a rate: says when the next ones are due. Late ones may catch up by :data:`SLACK_S`."""

    bytes_a_second: float
    _free_at: float = 0.0

    def due(self, count: int, now: float) -> float:
        """The time at which ``count`` further bytes have come through."""
        self._free_at = max(self._free_at, now - SLACK_S) + count / self.bytes_a_second
        return self._free_at

    def rest(self, now: float) -> None:
        """Nothing was under way until now, so there is nothing to catch up with."""
        self._free_at = max(self._free_at, now)


@dataclass
class Served:
    """One request; times by the monotonic clock, which all processes of a machine share."""

    kind: str
    connection: int
    begun_at: float
    ended_at: float = math.inf
    bytes: int = 0
    """Of a GET's body, once it is sent."""


@dataclass
class Tally:
    """The requests since counting began, in the order in which they arrived."""

    requests: list[Served] = field(default_factory=list)

    def counts(self, until: float = math.inf) -> Counts:
        """Count what arrived before a time; what had not ended by then has moved no bytes."""
        seen = [request for request in self.requests if request.begun_at < until]
        kinds = [request.kind for request in seen]
        rounds, all_ended = 0, -math.inf
        for request in seen:
            rounds += request.begun_at > all_ended
            all_ended = max(all_ended, request.ended_at)
        return Counts(
            gets=kinds.count("gets"),
            heads=kinds.count("heads"),
            lists=kinds.count("lists"),
            writes=kinds.count("writes"),
            bytes=sum(request.bytes for request in seen if request.ended_at < until),
            rounds=rounds,
            chain=_longest_chain(seen),
            connections=len({request.connection for request in seen}),
        )


def _longest_chain(requests: Sequence[Served]) -> int:
    """The most requests of which none overlaps another: taken by their ends, whichever still fits is the next."""
    length, ended = 0, -math.inf
    for request in sorted(requests, key=lambda request: request.ended_at):
        if request.begun_at > ended:
            length, ended = length + 1, request.ended_at
    return length


# --- requests and responses ---


@dataclass(frozen=True)
class Request:
    """One request, its body read."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes


@dataclass
class Response:
    """A response: ``content``, or ``length`` bytes of a file from ``start``."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    file: Path | None = None
    start: int = 0
    length: int = 0

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return self.length if self.file is not None else len(self.content)


def refusal(status: int, code: str) -> Response:
    """An error as S3 tells it."""
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return Response(status, {"Content-Type": "application/xml"}, body.encode())


class Objects:
    """The folder's objects by S3's rules; nothing here waits."""

    def __init__(self, root: Path) -> None:
        """Take the folder whose subfolders are the buckets."""
        self._root = root.resolve()
        self._written: dict[Path, str] = {}

    def answer(self, request: Request) -> tuple[str, Response]:
        """What kind of request it is, for the count, and its response."""
        bucket, _, key = request.path.lstrip("/").partition("/")
        folder = self._root / bucket
        path = (folder / key).resolve()
        if not folder.is_dir() or not bucket or not path.is_relative_to(folder):
            return "gets", refusal(404, "NoSuchBucket")
        match request.method:
            case "GET" if not key:
                return "lists", self._list(folder, bucket, request.query)
            case "GET":
                return "gets", self._read(path, request.headers)
            case "HEAD" if not key:
                return "heads", Response(200)
            case "HEAD":
                response = self._read(path, request.headers)
                response.headers["Content-Length"] = str(response.size)
                response.content, response.file = b"", None
                return "heads", response
            case "PUT" if key:
                return "writes", self._write(path, request)
            case "DELETE" if key:
                path.unlink(missing_ok=True)
                self._written.pop(path, None)
                return "writes", Response(204)
            case _:
                return "gets", refusal(405, "MethodNotAllowed")

    def _etag(self, path: Path) -> str | None:
        if not path.is_file():
            return None
        found = path.stat()
        return self._written.get(path) or f'"{found.st_mtime_ns:x}-{found.st_size:x}"'

    def _read(self, path: Path, headers: Mapping[str, str]) -> Response:
        etag = self._etag(path)
        if etag is None:
            return refusal(404, "NoSuchKey")
        size = path.stat().st_size
        told = {"ETag": etag, "Last-Modified": formatdate(path.stat().st_mtime, usegmt=True), "Accept-Ranges": "bytes"}
        if headers.get("if-none-match") in (etag, "*"):
            return Response(304, told)
        if headers.get("if-match", etag) not in (etag, "*"):
            return refusal(412, "PreconditionFailed")
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", headers.get("range", ""))
        if asked is None or asked.groups() == ("", ""):
            return Response(200, told, file=path, length=size)
        first, last = asked.groups()
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if start >= end:
            return refusal(416, "InvalidRange")
        told["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return Response(206, told, file=path, start=start, length=end - start)

    def _write(self, path: Path, request: Request) -> Response:
        etag = self._etag(path)
        if "if-none-match" in request.headers and etag is not None:
            return refusal(412, "PreconditionFailed")
        if "if-match" in request.headers and etag is None:
            return refusal(404, "NoSuchKey")
        if request.headers.get("if-match", etag) != etag:
            return refusal(412, "PreconditionFailed")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._root, delete=False) as file:
            file.write(request.body)
        Path(file.name).replace(path)
        self._written[path] = f'"{hashlib.md5(request.body, usedforsecurity=False).hexdigest()}"'
        return Response(200, {"ETag": self._written[path]})

    def _list(self, folder: Path, bucket: str, query: Mapping[str, str]) -> Response:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        limit = min(PAGE_KEYS, int(query.get("max-keys", PAGE_KEYS)))
        entries: dict[str, Path | None] = {}  # None: a common prefix
        for key, path in self._keys(folder):
            if key.startswith(prefix):
                head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                entries[prefix + head + cut if cut else key] = None if cut else path
        names = [name for name in sorted(entries, key=str.encode) if name.encode() > after.encode()]
        page = names[:limit]
        coded = (lambda text: quote(text, safe="/")) if query.get("encoding-type") == "url" else (lambda text: text)
        told = [f"<Name>{bucket}</Name><Prefix>{escape(coded(prefix))}</Prefix><KeyCount>{len(page)}</KeyCount>"]
        told.append(f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{str(len(page) < len(names)).lower()}</IsTruncated>")
        if len(page) < len(names):
            told.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
        if query.get("encoding-type") == "url":
            told.append("<EncodingType>url</EncodingType>")
        for name in page:
            found = entries[name]
            if found is None:
                told.append(f"<CommonPrefixes><Prefix>{escape(coded(name))}</Prefix></CommonPrefixes>")
                continue
            changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.stat().st_mtime))
            told.append(
                f"<Contents><Key>{escape(coded(name))}</Key><LastModified>{changed}</LastModified>"
                f"<ETag>{escape(self._etag(found) or '')}</ETag><Size>{found.stat().st_size}</Size></Contents>"
            )
        body = f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{"".join(told)}</ListBucketResult>'
        return Response(200, {"Content-Type": "application/xml"}, body.encode())

    @staticmethod
    def _keys(folder: Path) -> Iterator[tuple[str, Path]]:
        for path in folder.rglob("*"):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path


# --- the server ---


class Server:
    """Serves objects with manners; one thread, and the kernel does the copying."""

    def __init__(self, root: Path, manners: Manners) -> None:
        """Take the folder of buckets, and how to behave."""
        self._objects = Objects(root)
        self._manners = manners
        self._total = Pace(manners.total_mb_s * 1e6)
        self._tally = Tally()

    async def serve(self, listening: socket.socket) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        slots = asyncio.Semaphore(self._manners.max_connections)
        connections: set[asyncio.Task[None]] = set()
        for number in range(2**62):
            await slots.acquire()
            accepted, _ = await loop.sock_accept(listening)
            task = asyncio.create_task(self._connection(accepted, number))
            connections.add(task)
            task.add_done_callback(connections.discard)
            task.add_done_callback(lambda _: slots.release())

    async def _connection(self, sock: socket.socket, number: int) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        pace = Pace(self._manners.connection_mb_s * 1e6)
        with sock, contextlib.suppress(ConnectionError):
            received = bytearray()
            while (request := await self._request(sock, received)) is not None:
                if request.path.startswith("/-/"):
                    await self._send(sock, request, self._control(request), None)
                else:
                    await self._served(sock, request, number, pace)
                if request.headers.get("connection", "").lower() == "close":
                    return

    async def _served(self, sock: socket.socket, request: Request, number: int, pace: Pace) -> None:
        kind, response = self._objects.answer(request)
        served = Served(kind, number, time.monotonic())
        self._tally.requests.append(served)
        try:
            await asyncio.sleep(self._manners.first_byte_ms / 1000)
            pace.rest(time.monotonic())
            await self._send(sock, request, response, pace)
            served.bytes = response.size if kind == "gets" else 0
        finally:
            served.ended_at = time.monotonic()

    def _control(self, request: Request) -> Response:
        if request.method == "POST":
            self._tally = Tally()
        counts = self._tally.counts(float(request.query.get("until", "inf")))
        return Response(200, {"Content-Type": "application/json"}, json.dumps(asdict(counts)).encode())

    async def _request(self, sock: socket.socket, received: bytearray) -> Request | None:
        """The next request, or None at the connection's end; what follows it stays in ``received``."""
        loop = asyncio.get_running_loop()
        while (end := received.find(b"\r\n\r\n")) < 0:
            if not (more := await loop.sock_recv(sock, 2**16)):
                return None
            received += more
        first, *lines = received[:end].decode("latin-1").split("\r\n")
        del received[: end + 4]
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if headers.get("expect", "").lower() == "100-continue":
            await loop.sock_sendall(sock, b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(received) < length:
            if not (more := await loop.sock_recv(sock, 2**20)):
                return None
            received += more
        body = bytes(received[:length])
        del received[:length]
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return Request(method, unquote(parts.path), query, headers, body)

    async def _send(self, sock: socket.socket, request: Request, response: Response, pace: Pace | None) -> None:
        """Send a response; its body comes at a pace, if there is one."""
        loop = asyncio.get_running_loop()
        headers = {"Content-Length": str(response.size), "Server": "AmazonS3", **response.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        await loop.sock_sendall(sock, f"HTTP/1.1 {response.status} -\r\n{head}\r\n".encode("latin-1"))
        if request.method == "HEAD" or not response.size:
            return
        if response.file is None or pace is None:
            await loop.sock_sendall(sock, response.content)
            return
        with response.file.open("rb", buffering=0) as file:
            for start in range(response.start, response.start + response.length, SLICE_BYTES):
                count = min(SLICE_BYTES, response.start + response.length - start)
                now = time.monotonic()
                await asyncio.sleep(max(pace.due(count, now), self._total.due(count, now)) - now)
                await _send_file(sock, file.fileno(), start, count)


async def _send_file(sock: socket.socket, file: int, start: int, count: int) -> None:
    while count:
        try:
            sent = os.sendfile(sock.fileno(), file, start, count)
        except BlockingIOError:
            await _writable(sock)
            continue
        if not sent:
            raise ConnectionError("the file was cut while it was sent")
        start, count = start + sent, count - sent


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(sock)


# --- as a process of its own ---


class Store:
    """A running server, seen from outside."""

    def __init__(self, endpoint: str) -> None:
        """Take its address, ``http://host:port``."""
        self.endpoint = endpoint

    def counts(self, until: float = math.inf) -> Counts:
        """What it has served since :meth:`count_anew`, of what arrived before a time by :func:`time.monotonic`."""
        return self._control("GET", f"?until={until}")

    def count_anew(self) -> None:
        """Begin to count at zero."""
        self._control("POST")

    def _control(self, method: str, query: str = "") -> Counts:
        request = urllib.request.Request(f"{self.endpoint}/-/counts{query}", method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return Counts(**json.load(response))


@contextlib.contextmanager
def running(root: Path, manners: Manners) -> Iterator[Store]:
    """Serve a folder of buckets from a process of its own, for as long as the block runs."""
    command = [sys.executable, "-m", "benchmarks.s3_manners", "--root", str(root)]
    for name, value in asdict(manners).items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdout is not None
            if not (endpoint := process.stdout.readline().strip()):
                raise RuntimeError(f"the store did not start: exit code {process.wait()}")
            yield Store(endpoint)
        finally:
            process.terminate()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until interrupted; the endpoint is the first line of the output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--root", type=Path, required=True, help="the folder whose subfolders are the buckets")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--preset", choices=PRESETS, default="usual", help="what the others default to (%(default)s)")
    parser.add_argument("--first-byte-ms", type=float)
    parser.add_argument("--connection-mb-s", type=float, help="a connection's bandwidth, 10^6 bytes a second")
    parser.add_argument("--total-mb-s", type=float, help="the bandwidth of all connections together")
    parser.add_argument("--max-connections", type=int)
    args = parser.parse_args(argv)
    told = {name: value for name in asdict(Manners()) if (value := getattr(args, name)) is not None}
    manners = Manners(**(asdict(PRESETS[args.preset]) | told))
    with socket.create_server(("127.0.0.1", args.port), backlog=512) as listening:
        listening.setblocking(False)
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(Server(args.root, manners).serve(listening))
    return 0


if __name__ == "__main__":
    sys.exit(main())
