"""What the process that reads a document is kept from, and what of that holds on this system.

The limits of :mod:`.bounds` hold everywhere, the filter of :mod:`.system_calls` where the kernel lets a process install
one. Both are beyond recall. What holds is not concluded from the system's name: a fork is confined, and tries.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any

from cicada.corpus.readers.bounds import bind
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.system_calls import restrict

FILTER = "system_call_filter"
"""The name in what :func:`what_is_refused` gives that stands for the filter itself."""
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.EMFILE, errno.EAGAIN})
_NOWHERE = "/-"
"""A path at which nothing is."""
_MAX_REPORT_BYTES = 4_096
"""A pipe of any system holds as many."""


def confine(limits: ReadLimits, *, filtered: bool) -> None:
    """Confine this process for good: to the limits, to what is open and loaded, and to computing.

    Args:
        limits: the bounds of reading one document.
        filtered: whether the kernel takes a filter here, see :func:`what_is_refused`.

    Raises:
        PermissionError: it does not take it now.
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder]  # no module can be opened
    bind(limits)
    if filtered and not restrict():
        raise PermissionError("the kernel takes no system call filter")


def what_is_refused() -> dict[str, bool]:
    """What a confined process is refused here, by name; under ``FILTER`` whether the kernel takes the filter.

    Where the system kills a process for an attempt, that attempt and those after it are left out. Only for a process
    with one thread: it forks.
    """
    return _tried_in_a_fork(filtered=True) or _tried_in_a_fork(filtered=False) or {FILTER: False}


def _tried_in_a_fork(*, filtered: bool) -> dict[str, bool]:
    """Empty if the fork could not be confined so."""
    ours, theirs = os.pipe()
    witness = ctypes.create_string_buffer(b"x")
    host = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            confine(ReadLimits(), filtered=filtered)
            os.write(theirs, _line(FILTER, filtered))
            for name, attempt in _attempts(host, witness).items():
                os.write(theirs, _line(name, _is_refused(attempt)))
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    told = os.read(ours, _MAX_REPORT_BYTES).decode()
    os.close(ours)
    return {name: refused == "1" for name, refused in map(str.split, told.splitlines())}


def _line(name: str, refused: bool) -> bytes:
    return f"{name} {refused:d}\n".encode()


def _attempts(host: int, witness: ctypes.Array[ctypes.c_char]) -> dict[str, Callable[[], object]]:
    """One harmless attempt at each thing. ``witness`` lies at the same place in the process that forked."""
    attempts: dict[str, Callable[[], object]] = {
        "open_files": lambda: os.close(os.open("/", os.O_RDONLY)),
        "open_connections": lambda: socket.socket().close(),
        "start_processes": _start_a_process,
        "run_programs": lambda: os.execv(_NOWHERE, ["-"]),  # noqa: S606 - there is no such program
        "remove_files": lambda: os.unlink(_NOWHERE),  # noqa: PTH108 - pathlib is not loaded here
        "signal_processes": lambda: os.kill(host, 0),
    }
    if sys.platform == "linux":
        attempts["read_memory_of_processes"] = lambda: _read_memory(host, witness)
    return attempts


def _is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError as error:
        return error.errno in _REFUSALS
    return False


def _start_a_process() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


class _Memory(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _read_memory(pid: int, witness: ctypes.Array[ctypes.c_char]) -> None:
    here = there = _Memory(ctypes.addressof(witness), 1)
    libc: Any = ctypes.CDLL(None, use_errno=True)
    if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
