"""Readers that fail in ways no file is sure to bring about. The sandbox's tests let a child use them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
import threading

from cicada.corpus.documents import Document, DocumentBlock
from cicada.corpus.readers import confinement
from cicada.corpus.readers.limits import ReadLimits

_CHILD = os.getpid()
"""The process that loads this module, and forks."""


def behave(source: str, data: bytes, *, title: str | None = None, limits: ReadLimits) -> Document:
    """Do what the file says."""
    match data.decode():
        case "crash":
            ctypes.string_at(0)
        case "wait":
            threading.Event().wait(60)
        case "hang up":
            os.closerange(3, 256)
            threading.Event().wait(60)
        case "spin":
            while True:
                pass
        case "ignore the time":
            with contextlib.suppress(PermissionError):  # refused where system calls are filtered
                signal.signal(signal.SIGPROF, signal.SIG_IGN)
            while True:
                pass
        case "eat":
            held = [bytearray(2**20) for _ in range(100_000)]
            del held
        case "find itself too large":
            os._exit(confinement.OUT_OF_MEMORY)
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
    shown = {"environment": repr(dict(os.environ)), "files": str(sum(map(_is_open, range(256))))}
    return Document(source, "t", "text", "d", (DocumentBlock("paragraph", f"{os.getpid()} {_CHILD}"),), metadata=shown)


def _is_open(descriptor: int) -> bool:
    """Reading or writing nothing is all that a reader can do to find out."""
    for nothing in (lambda: os.read(descriptor, 0), lambda: os.write(descriptor, b"")):
        with contextlib.suppress(OSError):
            nothing()
            return True
    return False
