"""The process in which documents are read: it forks once a document, and the fork reads it.

Started by :mod:`.sandbox` with a socket. Each order brings three things: what to read (JSON), a descriptor of the open
file, and one of a pipe for the result. This process loads the libraries, once; the fork has them at once, binds itself
by :mod:`.bounds`, reads, writes its result and ends, so that nothing of one document outlives it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from cicada.corpus.documents import Document
from cicada.corpus.readers.bounds import LIBRARY_MISSING, bind
from cicada.corpus.readers.frames import Order, written_document, written_refusal
from cicada.errors import DocumentBroken, DocumentRefused, DocumentTooLarge

MAX_ORDER_BYTES = 8_192
READY = b"ready"
_OUT_OF_MEMORY = written_refusal(DocumentTooLarge("takes more memory than it may (memory_bytes)"))
"""Made beforehand: there may be no memory left to make it."""
_PRELOADED = {
    ".pdf": ("pypdf",),
    ".md": ("markdown_it",),
    ".markdown": ("markdown_it",),
    ".txt": ("charset_normalizer",),
    ".csv": ("charset_normalizer",),
    ".yaml": ("yaml",),
    ".yml": ("yaml",),
}
"""Heavy libraries by the endings of the names that will need them. Others are loaded by each fork that wants them."""
_READ_BYTES = 2**20

Reader = Callable[..., Document]


def main(socket_number: int, reader_name: str) -> None:
    """Serve orders until the parent is gone.

    Args:
        socket_number: the descriptor of a connected ``SOCK_SEQPACKET`` or ``SOCK_DGRAM`` socket.
        reader_name: ``module:function`` of what reads a document, as
            :func:`cicada.corpus.readers.reading.read_document` does.
    """
    parent = socket.socket(fileno=socket_number)
    module, _, function = reader_name.partition(":")
    reader: Reader = getattr(importlib.import_module(module), function)
    gc.freeze()  # what is loaded is never looked at again, so the forks share it with this process
    parent.send(READY)
    while True:
        data, descriptors, _, _ = socket.recv_fds(parent, MAX_ORDER_BYTES, 2)
        if not data:
            return
        order = Order.read(data)
        _preload(order.source)
        status = _fork(parent, reader, order, *descriptors)
        if status is None:
            return
        parent.send(json.dumps(status).encode())


def _preload(source: str) -> None:
    for name in _PRELOADED.get(os.path.splitext(source)[1].lower(), ()):  # noqa: PTH122 - one call less to import
        if name not in sys.modules:
            with contextlib.suppress(ImportError):  # the fork will meet it, too, and say so
                importlib.import_module(name)
                gc.freeze()


def _fork(parent: socket.socket, reader: Reader, order: Order, file: int, result: int) -> dict[str, Any] | None:
    """Let a fork read; how it ended: its wait status, and whether its time was up. None: the parent left."""
    alive, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        parent.close()
        os.close(alive)
        _read(reader, order, file, result)
    for descriptor in (held, file, result):
        os.close(descriptor)
    waiting: list[Any] = [alive, parent]
    readable, _, _ = select.select(waiting, [], [], order.limits.wall_s)
    if alive not in readable:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os.close(alive)
    _, status = os.waitpid(pid, 0)
    return None if parent in readable else {"status": status, "late": not readable}


def _read(reader: Reader, order: Order, file: int, result: int) -> None:
    """Read, write what came of it, and end this process."""
    try:
        gc.disable()  # what one document leaves behind goes with the process
        bind(order.limits)
        answer = _answer(reader, order, file)
        while answer:
            answer = answer[os.write(result, answer) :]
    finally:
        os._exit(0)


def _answer(reader: Reader, order: Order, file: int) -> bytes:
    try:
        data = _content(file, order.limits.max_bytes)
        document = reader(order.source, data, title=order.title, limits=order.limits)
        del data
        return written_document(document)
    except MemoryError:
        return _OUT_OF_MEMORY
    except DocumentRefused as error:
        return written_refusal(error)
    except ModuleNotFoundError:
        os._exit(LIBRARY_MISSING)
    except Exception as error:  # a bug of a reader costs this document, not the load
        return written_refusal(DocumentBroken(f"cannot be read: {type(error).__name__}"))


def _content(file: int, max_bytes: int) -> bytes:
    """The file's bytes, one more than may be at most."""
    parts: list[bytes] = []
    left = max_bytes + 1
    while left and (part := os.read(file, min(left, _READ_BYTES))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
