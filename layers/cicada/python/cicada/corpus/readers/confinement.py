"""Confine the process that reads a document by resource limits and a seccomp filter, and test what holds here.

System calls that are not allowed fail with ``EPERM``: opening anything, sockets, processes and threads, signals,
``ptrace``, calls of later kernels, and all of the x32 ABI. A call for another architecture kills the process.

The limits (:func:`bind`) hold everywhere, the filter (:func:`restrict`) where the kernel lets a process install one.
Neither can be removed. What holds is tested in a confined fork, not inferred from the system's name.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import FrameType
from typing import Any, NamedTuple

from cicada.corpus.readers.limits import ReadLimits

OUT_OF_MEMORY = 71  # exit status of a child that exceeded its memory
LIBRARY_MISSING = 72  # exit status of a child that lacks a library
_WATCH_S = 0.05
_GRACE_S = 5


def bind(limits: ReadLimits) -> None:
    """Limit this process for good: memory, processor and clock time, no descriptors, no processes.

    Open descriptors stay usable. Without new ones nothing can be opened, whatever the system call. Root is not bound by
    the limit on processes, and can raise all limits again.

    The kernel limits address space on Linux. On macOS the process checks its own resident size 20 times a second while
    Python code runs: weaker, since a long call into a library is checked only when it ends, and time limits it.
    """
    cpu_s = math.ceil(limits.cpu_s) + 1
    _lower(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)  # behind the timer: SIGXCPU, and a second later SIGKILL
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, 0)
    _lower(resource.RLIMIT_NPROC, 0)
    for name in (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(name, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
    signal.alarm(math.ceil(limits.wall_s) + _GRACE_S)
    if sys.platform == "darwin" or not _lower(resource.RLIMIT_AS, limits.memory_bytes):  # macOS ignores the limit
        watch_resident_size(limits.memory_bytes)


def watch_resident_size(memory_bytes: int) -> None:
    """End this process once it is larger, at the next Python instruction."""
    unit = 1 if sys.platform == "darwin" else 1024

    def look(_signal: int, _frame: FrameType | None) -> None:
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > memory_bytes:
            os._exit(OUT_OF_MEMORY)

    signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, _WATCH_S, _WATCH_S)


def _lower(kind: int, soft: int, hard: int | None = None) -> bool:
    """Lower a limit; False if the system refuses."""
    hard = soft if hard is None else hard
    _, held = resource.getrlimit(kind)
    if held != resource.RLIM_INFINITY:
        soft, hard = min(soft, held), min(hard, held)
    try:
        resource.setrlimit(kind, (soft, hard))
    except (ValueError, OSError):
        return False
    return True


class _Numbers(NamedTuple):
    """A system call's number on each architecture."""

    x86_64: int
    aarch64: int


_ALLOWED = {
    "read": _Numbers(0, 63),
    "write": _Numbers(1, 64),
    "close": _Numbers(3, 57),
    "mmap": _Numbers(9, 222),
    "mprotect": _Numbers(10, 226),
    "munmap": _Numbers(11, 215),
    "brk": _Numbers(12, 214),
    "rt_sigreturn": _Numbers(15, 139),
    "mremap": _Numbers(25, 216),
    "madvise": _Numbers(28, 233),
    "getpid": _Numbers(39, 172),
    "getrusage": _Numbers(98, 165),
    "futex": _Numbers(202, 98),
    "restart_syscall": _Numbers(219, 128),
    "clock_gettime": _Numbers(228, 113),
    "exit_group": _Numbers(231, 94),
    "getrandom": _Numbers(318, 278),
}
"""Memory, open descriptors, the clock, locks, random bytes, and exit."""
_SECCOMP = _Numbers(317, 277)
_AUDIT_ARCH = _Numbers(0xC000_003E, 0xC000_00B7)

_LOAD = 0x20
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
_CALL_AT, _ARCH_AT = 0, 4  # offsets in ``struct seccomp_data``
_ALLOW = 0x7FFF_0000
_REFUSE = 0x0005_0000 | errno.EPERM
_KILL = 0x8000_0000

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
_MODE_FILTER = 2


def restrict() -> bool:
    """Install the filter in this process for good; False if the kernel refuses."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _Numbers._fields:
        return False
    code = filter_code(machine)
    held = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(held)))
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # if refused it may already be set: the next call tells
    by_call = libc.syscall(getattr(_SECCOMP, machine), _SET_MODE_FILTER, 0, program) == 0
    return bool(by_call or libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, program) == 0)  # either may be blocked alone


def hide_memory() -> None:
    """Hide this process's memory from the user's other processes, on Linux: no core dumps, no debugger."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def filter_code(machine: str) -> bytes:
    """The filter as classic BPF, eight bytes an instruction; ``machine``: ``x86_64`` or ``aarch64``."""
    allowed = [getattr(numbers, machine) for numbers in _ALLOWED.values()]
    to_allow = len(allowed)
    return b"".join(
        [
            _instruction(_LOAD, _ARCH_AT),
            _instruction(_JUMP_IF_EQUAL, getattr(_AUDIT_ARCH, machine), if_so=1),
            _instruction(_RETURN, _KILL),
            _instruction(_LOAD, _CALL_AT),
            *(_instruction(_JUMP_IF_EQUAL, call, if_so=to_allow - place) for place, call in enumerate(allowed)),
            _instruction(_RETURN, _REFUSE),
            _instruction(_RETURN, _ALLOW),
        ]
    )


def _instruction(code: int, value: int, *, if_so: int = 0) -> bytes:
    """One instruction; a jump not taken continues with the next."""
    return struct.pack("HBBI", code, if_so, 0, value)


FILTER = "system_call_filter"  # the key of :func:`what_is_refused` for the filter itself
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.EMFILE, errno.EAGAIN})
_NOWHERE = "/-"  # a path that does not exist
_MAX_REPORT_BYTES = 4_096  # fits into a pipe's buffer on every system


def confine(limits: ReadLimits, *, filtered: bool) -> None:
    """Confine this process for good; ``filtered``: whether the kernel accepts a filter, see :func:`what_is_refused`.
    Raises PermissionError if it refuses it now."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder]  # no module can be opened
    bind(limits)
    if filtered and not restrict():
        raise PermissionError("the kernel does not support system call filters")


def what_is_refused() -> dict[str, bool]:
    """What a confined process is refused here, by name; under ``FILTER`` whether the kernel accepts the filter.

    If the system kills a process for an attempt, that one and the later ones are missing. Forks: for a process with one
    thread. Without a filter, this process hides its memory from its forks.
    """
    if refused := _tried_in_a_fork(filtered=True):
        return refused
    hide_memory()
    return _tried_in_a_fork(filtered=False) or {FILTER: False}


def _tried_in_a_fork(*, filtered: bool) -> dict[str, bool]:
    """Empty if the fork could not be confined."""
    ours, theirs = os.pipe()
    witness = ctypes.create_string_buffer(b"x")
    host = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            confine(ReadLimits(), filtered=filtered)
            os.write(theirs, f"{FILTER} {filtered:d}\n".encode())
            for name, attempt in _attempts(host, witness).items():
                os.write(theirs, f"{name} {_is_refused(attempt):d}\n".encode())
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    told = os.read(ours, _MAX_REPORT_BYTES).decode()
    os.close(ours)
    return {name: refused == "1" for name, refused in map(str.split, told.splitlines())}


def _attempts(host: int, witness: ctypes.Array[ctypes.c_char]) -> dict[str, Callable[[], object]]:
    """One harmless attempt at each thing; ``witness`` has the same address in the process that forked."""
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
