"""Read untrusted documents in a process that may crash.

    this process                    child.py, started once          a fork a document
    open the file, check it  ──►    loads pypdf and the like  ──►   confines itself, reads, writes, ends
    check what comes back    ◄───────────────── a pipe ──────────── memory, processor and clock run out there

The child's environment holds no credentials. A fork can open and start nothing, see :mod:`.confinement`. It needs no
``/dev/shm`` and no writable file, so it works in Lambda as on a laptop.
"""

from __future__ import annotations

import atexit
import errno
import functools
import json
import logging
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

import cicada
from cicada.corpus.documents import Document
from cicada.corpus.readers.child import MAX_ORDER_BYTES
from cicada.corpus.readers.confinement import FILTER, LIBRARY_MISSING, OUT_OF_MEMORY, hide_memory
from cicada.corpus.readers.frames import MalformedResultError, Order, max_result_bytes, read_result
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.naming import checked_source
from cicada.errors import (
    DocumentBroken,
    DocumentRefused,
    DocumentTooLarge,
    DocumentTooSlow,
    DocumentUnsafe,
    DocumentUnsupported,
)

logger = logging.getLogger(__name__)

READER = "cicada.corpus.readers.dispatch:read_document"
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""What Python may need to start; the child gets nothing else of the environment."""
_START = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from cicada.corpus.readers.child import main; main(int(sys.argv[1]), sys.argv[2])"
)
_START_S = 60.0
_GRACE_S = 10.0  # seconds that a child may take beyond the document's own time
_READ_BYTES = 2**20
_TIME_IS_UP = frozenset({signal.SIGPROF, signal.SIGXCPU, signal.SIGALRM})
_LIMITS = ReadLimits()


class ReaderUnavailable(RuntimeError):
    """The child does not start: a library is missing. Not a document's fault."""


class _Gone(Exception):
    """The child was killed, or is late."""


class Sandbox:
    """One child, which reads one document at a time, for one thread at a time. To be closed."""

    def __init__(self, *, reader: str = READER, environ: Mapping[str, str] = os.environ) -> None:
        """The child starts on first use. ``reader``: the ``module:function`` that reads in it."""
        self._reader = reader
        self._environ = {name: environ[name] for name in _PASSED_ON if name in environ}
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._refused: Mapping[str, bool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def read(self, source: str, path: Path, limits: ReadLimits = _LIMITS, *, title: str | None = None) -> Document:
        """Read one file; as :func:`read_safely`."""
        checked_source(source)
        with _opened(path, limits) as file:
            result, theirs = os.pipe()
            try:
                self._send(Order(source, title, limits).write(), file, theirs)
                return self._result(result, limits)
            except DocumentRefused:
                raise
            except BaseException:  # a late result must not be taken for the next document's
                self.close()
                raise
            finally:
                os.close(result)

    def refused(self) -> Mapping[str, bool]:
        """As :func:`what_is_refused`."""
        self._started()
        return self._refused

    def close(self) -> None:
        """Kill the child."""
        if self._socket:
            self._socket.close()
        if self._child:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._child = self._socket = None

    def _send(self, order: bytes, file: int, result: int) -> None:
        try:
            socket.send_fds(self._started(), [order], [file, result])
        except OSError:  # the child was killed while idle: not this document's fault
            self.close()
            socket.send_fds(self._started(), [order], [file, result])
        finally:
            os.close(result)

    def _started(self) -> socket.socket:
        if self._socket:
            return self._socket
        # A kind that keeps messages apart and tells when the other end is gone; macOS has none that does both.
        kind = socket.SOCK_STREAM if sys.platform == "darwin" else socket.SOCK_SEQPACKET
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        library = str(Path(cicada.__file__).parents[1])
        paths = [library, *(os.path.abspath(place) for place in sys.path if place)]  # noqa: PTH100 - links are kept
        with theirs:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                [sys.executable, "-I", "-S", "-B", "-c", _START, str(theirs.fileno()), self._reader, *paths],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=self._environ,
                cwd="/",
                start_new_session=True,
            )
        self._socket = ours
        told = self._told(time.monotonic() + _START_S)
        if not told:
            self.close()
            raise ReaderUnavailable(f"cannot start the document reader process: {self._reader}")
        self._refused = _logged(told)
        if not self._refused[FILTER]:
            hide_memory()
        return ours

    def _told(self, deadline: float) -> bytes:
        """The child's next message; empty if it is gone or late."""
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN | select.POLLHUP)
        try:
            return self._socket.recv(MAX_ORDER_BYTES) if poll.poll(_ms_until(deadline)) else b""
        except OSError:
            return b""

    def _result(self, pipe: int, limits: ReadLimits) -> Document:
        deadline = time.monotonic() + limits.wall_s + _GRACE_S
        try:
            assert self._socket is not None
            data = _all_of(pipe, self._socket.fileno(), max_result_bytes(limits), deadline)
            told = self._told(deadline)
            if not told:
                raise _Gone
        except _Gone:
            late = time.monotonic() >= deadline
            self.close()
            raise (_too_slow(limits) if late else _killed()) from None
        except DocumentTooLarge:
            self.close()
            raise
        try:
            return read_result(data)
        except MalformedResultError:
            ended = json.loads(told)
            if os.waitstatus_to_exitcode(ended["status"]) == LIBRARY_MISSING:
                raise ReaderUnavailable("a document parsing library is not installed") from None
            raise _why(ended, limits) from None


@functools.cache
def _logged(told: bytes) -> Mapping[str, bool]:
    """What a child reports as refused, logged once."""
    refused: Mapping[str, bool] = json.loads(told)
    logger.info("document reader process started", extra={"refused": refused})
    return refused


@contextmanager
def _opened(path: Path, limits: ReadLimits) -> Iterator[int]:
    """An open descriptor of a regular file within the limit. Links are not followed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DocumentUnsafe("is a symbolic link") from None
        raise DocumentRefused(f"cannot be opened: {error.strerror}") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise DocumentUnsupported("is not a regular file")
        if found.st_size > limits.max_bytes:
            raise DocumentTooLarge(f"has {found.st_size:,} bytes, more than {limits.max_bytes:,} (max_bytes)")
        yield file
    finally:
        os.close(file)


def _all_of(pipe: int, child: int, max_bytes: int, deadline: float) -> bytes:
    """Everything until the pipe is closed. The child's socket shows when the child is gone."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN | select.POLLHUP)
    poll.register(child, 0)
    parts: list[bytes] = []
    size = 0
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_ms_until(deadline))}
        if pipe not in ready:  # late, or the child has hung up
            raise _Gone
        part = os.read(pipe, _READ_BYTES)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > max_bytes:
            raise DocumentTooLarge("its text exceeds the size limit (max_text_chars)")
        parts.append(part)


def _ms_until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic()) * 1000


def _why(ended: Mapping[str, int], limits: ReadLimits) -> DocumentRefused:
    """Why there is no result."""
    code = os.waitstatus_to_exitcode(ended["status"])
    if ended["late"]:
        return _too_slow(limits)
    if code == OUT_OF_MEMORY:
        return DocumentTooLarge("takes more memory than it may (memory_bytes)")
    if -code in _TIME_IS_UP:
        return DocumentTooSlow(f"takes more than {limits.cpu_s:g} s of a processor (cpu_s)")
    if -code == signal.SIGKILL:
        return _killed()
    if code < 0:
        return DocumentBroken(f"the process that read it crashed: {signal.Signals(-code).name}")
    return DocumentBroken("the process that read it left no result")


def _too_slow(limits: ReadLimits) -> DocumentTooSlow:
    return DocumentTooSlow(f"takes more than {limits.wall_s:g} s (wall_s)")


def _killed() -> DocumentTooLarge:
    return DocumentTooLarge("the process that read it was killed: most likely for its memory")


class _Pool:
    """As many children as threads that read at once; they are reused."""

    def __init__(self) -> None:
        self._idle: list[Sandbox] = []
        self._lock = Lock()

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        with self._lock:
            sandbox = self._idle.pop() if self._idle else Sandbox()
        try:
            yield sandbox
        finally:
            with self._lock:
                self._idle.append(sandbox)

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()


_POOL = _Pool()
atexit.register(_POOL.close)


def read_safely(source: str, path: Path, limits: ReadLimits = _LIMITS, *, title: str | None = None) -> Document:
    """Read one file in a child process, within the limits. Thread-safe.

    Arguments as :func:`.dispatch.read_document`; the file is opened here, so the child needs no access. Children are
    reused, and end with this process. Raises a subclass of DocumentRefused, whatever a document does to the child, and
    ReaderUnavailable if the child does not start.
    """
    with _POOL.sandbox() as sandbox:
        return sandbox.read(source, path, limits, title=title)


def what_is_refused() -> Mapping[str, bool]:
    """What a process that reads a document is refused on this system, by name: each was tried in a confined process.
    Under :data:`.confinement.FILTER`: whether the kernel filters system calls; without it, less is refused."""
    with _POOL.sandbox() as sandbox:
        return sandbox.refused()
