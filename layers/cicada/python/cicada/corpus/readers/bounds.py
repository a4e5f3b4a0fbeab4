"""What the operating system holds the child to. Where it cannot, the child watches itself."""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
from types import FrameType

from cicada.corpus.readers.limits import ReadLimits

OUT_OF_MEMORY = 71
"""The exit status of a child that found itself to be too large."""
LIBRARY_MISSING = 72
"""The exit status of a child that lacks a library."""
_WATCH_S = 0.05
_GRACE_S = 5


def bind(limits: ReadLimits) -> None:
    """Bound this process for good: memory, processor time, time by the clock, nothing to open, no process to start.

    What is open stays usable. Without a descriptor to be had there is no file, no socket and no pipe to open, whatever
    the system call. The bound on processes does not hold for root, who may also raise every limit again.

    Address space is bounded by the kernel where it does that (Linux). Where it does not (macOS), the process looks at
    its own resident size 20 times a second while Python code runs: weaker, since one long call into a library is seen
    only when it ends, and time bounds it until then.
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
    if not address_space_bounded(limits.memory_bytes):
        watch_resident_size(limits.memory_bytes)


def address_space_bounded(memory_bytes: int) -> bool:
    """Bound the address space; whether the kernel does that."""
    if sys.platform == "darwin":  # accepts the limit, and does not keep to it
        return False
    return _lower(resource.RLIMIT_AS, memory_bytes)


def watch_resident_size(memory_bytes: int) -> None:
    """End this process when it has grown larger, at the next step of Python code."""
    unit = 1 if sys.platform == "darwin" else 1024

    def look(_signal: int, _frame: FrameType | None) -> None:
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > memory_bytes:
            os._exit(OUT_OF_MEMORY)

    signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, _WATCH_S, _WATCH_S)


def _lower(kind: int, soft: int, hard: int | None = None) -> bool:
    """Lower a limit; whether it holds now."""
    hard = soft if hard is None else hard
    _, held = resource.getrlimit(kind)
    if held != resource.RLIM_INFINITY:
        soft, hard = min(soft, held), min(hard, held)
    try:
        resource.setrlimit(kind, (soft, hard))
    except (ValueError, OSError):
        return False
    return True
