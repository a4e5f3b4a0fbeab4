"""Readers that fail in ways no file is sure to bring about. The sandbox's tests let a child use them."""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
import time
from typing import Any

from cicada.corpus.documents import Block, Document
from cicada.corpus.readers import bounds
from cicada.corpus.readers.limits import ReadLimits


def behave(source: str, data: bytes, *, title: str | None = None, limits: ReadLimits) -> Document:
    """Do what the file says."""
    match data.decode():
        case "crash":
            ctypes.string_at(0)
        case "be killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill the parent":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "sleep":
            time.sleep(60)
        case "spin":
            while True:
                pass
        case "ignore the time":
            signal.signal(signal.SIGPROF, signal.SIG_IGN)
            while True:
                pass
        case "eat":
            held = [bytearray(2**20) for _ in range(100_000)]
            del held
        case "eat unbounded":
            bounds.watch_resident_size(limits.memory_bytes)
            unbounded: list[Any] = []
            while True:
                unbounded.append(bytearray(b"x") * 2**20)
        case "leave":
            os._exit(0)
        case "fail":
            raise KeyError("a secret of the document")
        case "lack":
            import no_such_library  # type: ignore[import-not-found]  # noqa: F401
        case "write a file":
            with tempfile.TemporaryFile() as file:
                file.write(b"x")
                file.flush()
    shown = {"environment": repr(dict(os.environ)), "files": str(len(os.listdir("/proc/self/fd")))}  # noqa: PTH208
    return Document(source, "t", "text", "d", (Block("paragraph", f"{os.getpid()} {os.getppid()}"),), metadata=shown)
