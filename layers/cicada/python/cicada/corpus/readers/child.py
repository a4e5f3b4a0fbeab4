"""The process that reads documents: it forks once per document, and the fork reads it.

Started by :mod:`.sandbox` with a socket, it first reports what a fork is refused on this system. Each order then has a
JSON message, a descriptor of the open file, and one of a pipe for the result. This process loads the libraries that the
document may need (:mod:`.preloading`). The fork confines itself (:mod:`.confinement`), reads, writes its result and
exits, so nothing of one document outlives it.
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
from collections.abc import Callable
from typing import Any

from cicada.corpus.documents import Document
from cicada.corpus.readers.confinement import FILTER, LIBRARY_MISSING, confine, what_is_refused
from cicada.corpus.readers.frames import Order, written_document, written_refusal
from cicada.corpus.readers.preloading import PDF_MARK, preload
from cicada.errors import DocumentBroken, DocumentRefused, DocumentTooLarge

MAX_ORDER_BYTES = 8_192
_OUT_OF_MEMORY = written_refusal(DocumentTooLarge("takes more memory than it may (memory_bytes)"))
"""Made in advance, since there may be no memory left then."""
_PDF_WITHIN_BYTES = 1_024
_READ_BYTES = 2**20

Reader = Callable[..., Document]


def main(socket_number: int, reader_name: str) -> None:
    """Serve orders over a connected ``SOCK_SEQPACKET`` or ``SOCK_DGRAM`` socket until the parent is gone;
    ``reader_name``: ``module:function`` with the signature of :func:`.dispatch.read_document`."""
    parent = socket.socket(fileno=socket_number)
    module, _, function = reader_name.partition(":")
    reader: Reader = getattr(importlib.import_module(module), function)
    gc.freeze()  # without collections of loaded objects, forks share their memory pages
    refused = what_is_refused()
    parent.send(json.dumps(refused).encode())
    while True:
        data, descriptors, _, _ = socket.recv_fds(parent, MAX_ORDER_BYTES, 2)
        if not data:
            return
        order = Order.read(data)
        if _loaded(order.source, descriptors[0]):
            status = _fork(parent, reader, order, *descriptors, filtered=refused[FILTER])
        else:
            status = {"status": LIBRARY_MISSING << 8, "late": False}
        for descriptor in descriptors:
            os.close(descriptor)
        if status is None:
            return
        parent.send(json.dumps(status).encode())


def _loaded(source: str, file: int) -> bool:
    """Load what the document may need; False if a library is missing."""
    is_pdf = False  # whatever the name; nothing else of a document is read in this process
    with contextlib.suppress(OSError):  # the fork will fail likewise, and report it
        is_pdf = PDF_MARK in os.pread(file, _PDF_WITHIN_BYTES, 0)
    try:
        preload(source, is_pdf=is_pdf)
    except ModuleNotFoundError:
        return False
    gc.freeze()
    return True


def _fork(
    parent: socket.socket, reader: Reader, order: Order, file: int, result: int, *, filtered: bool
) -> dict[str, Any] | None:
    """Read in a fork; its wait status, and whether it timed out. None if the parent is gone."""
    alive, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        parent.close()
        os.close(alive)
        _read(reader, order, file, result, filtered=filtered)
    os.close(held)
    waiting: list[Any] = [alive, parent]
    readable, _, _ = select.select(waiting, [], [], order.limits.wall_s)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # it has ended, timed out, or closed the pipe without ending
    os.close(alive)
    _, status = os.waitpid(pid, 0)
    return None if parent in readable else {"status": status, "late": not readable}


def _read(reader: Reader, order: Order, file: int, result: int, *, filtered: bool) -> None:
    """Read, write the result, and end this process."""
    try:
        gc.disable()  # what one document leaves behind goes with the process
        confine(order.limits, filtered=filtered)
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
    except Exception as error:  # a bug of a reader costs this document, not the load
        return written_refusal(DocumentBroken(f"cannot be read: {type(error).__name__}"))


def _content(file: int, max_bytes: int) -> bytes:
    """The file's bytes, up to one more than allowed."""
    parts: list[bytes] = []
    left = max_bytes + 1
    while left and (part := os.read(file, min(left, _READ_BYTES))):
        parts.append(part)
        left -= len(part)
    os.close(file)
    return b"".join(parts)
