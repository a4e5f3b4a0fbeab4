"""A Linux seccomp filter that leaves a process the system calls of computing, and no others.

What is not on the list fails with ``EPERM``: opening anything, sockets, processes and threads, signals, ``ptrace``, and
calls that later kernels add. So does every call of the x32 ABI, since its numbers are not on the list either. A call
made for another architecture kills the process. The filter cannot be removed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import NamedTuple


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
"""Memory, what is open already, the clock, locks, random bytes, and the end."""
_SECCOMP = _Numbers(317, 277)
_AUDIT_ARCH = _Numbers(0xC000_003E, 0xC000_00B7)

_LOAD = 0x20
_JUMP_IF_EQUAL = 0x15
_RETURN = 0x06
_CALL_AT, _ARCH_AT = 0, 4
"""Where ``struct seccomp_data`` has them."""
_ALLOW = 0x7FFF_0000
_REFUSE = 0x0005_0000 | errno.EPERM
_KILL = 0x8000_0000

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1


def restrict() -> bool:
    """Install the filter in this process for good; whether the kernel took it."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _Numbers._fields:
        return False
    code = filter_code(machine)
    held = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(held)))
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # where this is refused it may be set already: the next call tells
    return bool(libc.syscall(getattr(_SECCOMP, machine), _SET_MODE_FILTER, 0, program) == 0)


def filter_code(machine: str) -> bytes:
    """The filter as classic BPF, eight bytes an instruction, for ``x86_64`` or ``aarch64``."""
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
    """One instruction; a jump that is not taken goes on to the next."""
    return struct.pack("HBBI", code, if_so, 0, value)
