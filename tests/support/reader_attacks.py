"""Attacks by code that runs where a document is read, and a program that carries all of them out.

    python -m tests.support.reader_attacks sandboxed      in the process in which documents are read
    python -m tests.support.reader_attacks unconfined     in a plain fork, to see that the attacks work
    python -m tests.support.reader_attacks lambda-like    sandboxed, where no process may call prctl or seccomp
    python -m tests.support.reader_attacks without-call   sandboxed, where no process may call seccomp
    python -m tests.support.reader_attacks without-filter sandboxed, where prctl installs no filter either

It prints what came of each attack, as JSON: ``done`` or why not; and what the sandbox says is refused.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import platform
import resource
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cicada.corpus.documents import Document, DocumentBlock
from cicada.corpus.readers.limits import MIB, ReadLimits
from cicada.corpus.readers.sandbox import Sandbox
from cicada.errors import DocumentRefused

CANARY = "canary-1f4e"
DONE = "done"
_LIMITS = ReadLimits(memory_bytes=400 * MIB, cpu_s=10, wall_s=20)
_REPLACED_STATUS = 42
_PTRACE_SEIZE = 0x4206
_PR_SET_SECCOMP = 22
_IO_URING_SETUP = 425
"""The same number on every architecture."""
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Target:
    """What an attack is aimed at."""

    host: int
    """The process that wants the document."""
    secret_address: int
    folder: str
    port: int

    @property
    def inside(self) -> Path:
        return Path(self.folder)


class _Memory(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def _fork(target: Target) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _thread(target: Target) -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def _spawn(target: Target) -> None:
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 0"], {}), 0)


def _exec(target: Target) -> None:
    os.execv("/bin/sh", ["sh", "-c", f"exit {_REPLACED_STATUS}"])


def _tcp(target: Target) -> None:
    socket.create_connection(("127.0.0.1", target.port), timeout=5).close()


def _udp(target: Target) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"x", ("127.0.0.1", target.port))


def _unix(target: Target) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix:
        unix.connect(str(target.inside / "socket"))


def _read_environment_of_host(target: Target) -> None:
    _expect(CANARY in Path(f"/proc/{target.host}/environ").read_text())


def _read_memory_of_host_as_a_file(target: Target) -> None:
    with Path(f"/proc/{target.host}/mem").open("rb", buffering=0) as memory:
        memory.seek(target.secret_address)
        _expect(memory.read(len(CANARY)) == CANARY.encode())


def _read_memory_of_host_by_a_call(target: Target) -> None:
    into = ctypes.create_string_buffer(len(CANARY))
    here = _Memory(ctypes.addressof(into), len(CANARY))
    there = _Memory(target.secret_address, len(CANARY))
    _checked(_libc.process_vm_readv(target.host, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    _expect(into.raw == CANARY.encode())


def _trace_host(target: Target) -> None:
    _checked(_libc.ptrace(_PTRACE_SEIZE, target.host, None, None))


def _signal_host(target: Target) -> None:
    os.kill(target.host, 0)


def _read_own_environment(target: Target) -> None:
    Path("/proc/self/environ").read_bytes()


def _read_file(target: Target) -> None:
    _expect((target.inside / "credentials").read_text() == CANARY)


def _list_folder(target: Target) -> None:
    os.listdir(target.folder)  # noqa: PTH208


def _write_file(target: Target) -> None:
    (target.inside / "written").write_text("x")


def _make_anonymous_file(target: Target) -> None:
    os.close(os.memfd_create("x"))


def _use_io_uring(target: Target) -> None:
    os.close(_checked(_libc.syscall(_IO_URING_SETUP, 8, ctypes.create_string_buffer(120))))


def _remove_file(target: Target) -> None:
    (target.inside / "removable").unlink()


def _make_folder(target: Target) -> None:
    (target.inside / "made").mkdir()


def _look_at_file(target: Target) -> None:
    (target.inside / "credentials").stat()


def _empty_file(target: Target) -> None:
    os.truncate(target.inside / "emptied", 0)


def _rename_file(target: Target) -> None:
    (target.inside / "renamed").rename(target.inside / "another name")


def _make_link(target: Target) -> None:
    (target.inside / "link").symlink_to("any text")


def _change_rights(target: Target) -> None:
    (target.inside / "emptied").chmod(0o666)


def _read_memory_of_child(target: Target) -> None:
    """Of the process that this one was forked from: what it holds is at the same place."""
    witness = ctypes.create_string_buffer(1)
    place = _Memory(ctypes.addressof(witness), 1)
    _checked(_libc.process_vm_readv(os.getppid(), ctypes.byref(place), 1, ctypes.byref(place), 1, 0))


def _lower_a_limit_of_host(target: Target) -> None:
    if sys.platform == "linux":
        resource.prlimit(target.host, resource.RLIMIT_CORE, (0, 0))


def _slow_host_down(target: Target) -> None:
    now = os.getpriority(os.PRIO_PROCESS, target.host)  # of a nice process it cannot be raised
    os.setpriority(os.PRIO_PROCESS, target.host, min(now + 1, 19))


def _leave_the_session(target: Target) -> None:
    os.setsid()


def _raise_a_limit(target: Target) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def _import_a_module(target: Target) -> None:
    importlib.import_module("colorsys")


ATTACKS: dict[str, Callable[[Target], None]] = {
    "fork": _fork,
    "thread": _thread,
    "spawn": _spawn,
    "exec": _exec,
    "tcp": _tcp,
    "udp": _udp,
    "unix socket": _unix,
    "host environment": _read_environment_of_host,
    "host memory file": _read_memory_of_host_as_a_file,
    "host memory call": _read_memory_of_host_by_a_call,
    "trace host": _trace_host,
    "signal host": _signal_host,
    "own environment": _read_own_environment,
    "read file": _read_file,
    "list folder": _list_folder,
    "write file": _write_file,
    "anonymous file": _make_anonymous_file,
    "io_uring": _use_io_uring,
    "remove file": _remove_file,
    "make folder": _make_folder,
    "look at file": _look_at_file,
    "empty file": _empty_file,
    "rename file": _rename_file,
    "make link": _make_link,
    "change rights": _change_rights,
    "child memory call": _read_memory_of_child,
    "limit host": _lower_a_limit_of_host,
    "slow host": _slow_host_down,
    "leave session": _leave_the_session,
    "raise limit": _raise_a_limit,
    "import module": _import_a_module,
}


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _expect(found: bool) -> None:
    if not found:
        raise LookupError("nothing found")


def outcome(name: str, target: Target) -> str:
    """Carry out one attack here; ``done``, or what it met."""
    try:
        ATTACKS[name](target)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except Exception as error:
        return type(error).__name__
    return DONE


def attack(source: str, data: bytes, *, title: str | None = None, limits: ReadLimits) -> Document:
    """A reader whose documents name an attack."""
    order = json.loads(data)
    came = outcome(order["attack"], Target(**order["target"]))
    return Document(source, "t", "text", "d", (DocumentBlock("paragraph", came),))


def _sandboxed(name: str, target: Target, sandbox: Sandbox) -> str:
    path = target.inside / "order.txt"
    path.write_text(json.dumps({"attack": name, "target": asdict(target)}))
    try:
        return sandbox.read("order.txt", path, _LIMITS).blocks[0].text
    except DocumentRefused as error:
        return f"{type(error).__name__}: {error}"


def _unconfined(name: str, target: Target) -> str:
    result, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(result)
        os.write(theirs, outcome(name, target).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(result) as pipe:
        came = pipe.read()
    _, status = os.waitpid(pid, 0)
    return DONE if os.waitstatus_to_exitcode(status) == _REPLACED_STATUS else came


def _forbid(how: str) -> None:
    """Have ``seccomp`` answer EPERM in this process and all that it starts, and of ``prctl`` what ``how`` names.

    Lambda is reported to refuse all of ``prctl``.
    """
    prctl, seccomp = {"x86_64": (157, 317), "aarch64": (167, 277)}[platform.machine()]
    from_prctl = {"lambda-like": 3, "without-call": 2, "without-filter": 0}[how]
    refuse, allow = 0x0005_0000 | errno.EPERM, 0x7FFF_0000
    steps = [
        (0x20, 0, 0, 0),  # the call's number
        (0x15, 4, 0, seccomp),
        (0x15, from_prctl, 2, prctl),
        (0x20, 0, 0, 16),  # its first argument
        (0x15, 1, 0, _PR_SET_SECCOMP),
        (0x06, 0, 0, allow),
        (0x06, 0, 0, refuse),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
    _checked(_libc.prctl(38, 1, 0, 0, 0))
    _checked(_libc.prctl(_PR_SET_SECCOMP, 2, program))


def main(how: str) -> None:
    """Carry out every attack and print what came of each."""
    secret = ctypes.create_string_buffer(CANARY.encode())
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket() as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        Sandbox(reader="tests.support.reader_attacks:attack") as sandbox,
    ):
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(8)
        unix.bind(f"{folder}/socket")
        unix.listen(8)
        target = Target(os.getpid(), ctypes.addressof(secret), folder, tcp.getsockname()[1])
        for name in ("credentials", "removable", "renamed", "emptied"):
            (target.inside / name).write_text(CANARY)
        if how not in ("sandboxed", "unconfined"):
            _forbid(how)
        if how == "unconfined":
            refused: Mapping[str, bool] = {}
            came = {name: _unconfined(name, target) for name in ATTACKS}
        else:
            refused = sandbox.refused()
            came = {name: _sandboxed(name, target, sandbox) for name in ATTACKS}
    print(json.dumps({"came": came, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1])
