"""One execution environment: a process that runs one invocation at a time, and is stopped in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cicada_local.functions import system_logs
from cicada_local.functions.config import FunctionConfig
from cicada_local.functions.log_levels import passes
from cicada_local.functions.logs import TAIL_BYTES, new_stream
from cicada_local.functions.packages import Packages
from cicada_local.functions.runtime_api import InitFailed, Invocation, Ready, Responded, RuntimeApi, RuntimeEvent

_WORKER = Path(__file__).with_name("worker.py")
BOOTSTRAP = "/var/runtime/bootstrap.py"
"""Lambda's Python client."""
WRAPPER_VARIABLE, TASK_ROOT = "AWS_LAMBDA_EXEC_WRAPPER", "/var/task"
"""Names a script that starts in place of the client, by its path where Lambda unpacks the code."""
_MEMORY_POLL_S = 0.1
_READ_BYTES = 65_536
_READS_AT_ONCE = 16
_MAX_LINE_BYTES = 256 * 1024
"""CloudWatch's largest log event."""


@dataclass(frozen=True)
class Exited:
    """The process ended by itself or by a signal."""

    returncode: int

    @property
    def reason(self) -> str:
        """In Lambda's words, such as ``signal: killed`` or ``exit status 1``."""
        if self.returncode < 0:
            described = signal.strsignal(-self.returncode) or f"signal {-self.returncode}"
            return f"signal: {described.split(':')[0].lower()}"
        return f"exit status {self.returncode}"


class TimedOut:
    """Nothing more came within the time."""


class OutOfMemory:
    """The process outgrew the function's memory."""


InitOutcome = Ready | InitFailed | Exited | TimedOut
RunOutcome = Responded | Exited | TimedOut | OutOfMemory


class Environment:
    """A process, its Runtime API, its folder for temporary files and its log stream.

    The process leads a process group of its own, so that whatever it starts is stopped and killed with it. Between
    invocations the group is stopped (SIGSTOP), as Lambda freezes an environment: background threads do not run on.
    """

    def __init__(
        self,
        config: FunctionConfig,
        packages: Packages,
        root: Path,
        log: Callable[[str, str], None],
        native_client: bool,
    ) -> None:
        """``root`` is the folder for environments' files; ``log`` gets a log stream and a message."""
        self.config = config
        self.stream = new_stream()
        self._packages = packages
        self._folder = root / secrets.token_hex(8)
        self._log = log
        self._native_client = native_client
        self._api = RuntimeApi(self._on_event)
        self._events: asyncio.Queue[RuntimeEvent | Exited] = asyncio.Queue()
        self._process: asyncio.subprocess.Process | None = None
        self._waiter: asyncio.Task[None] | None = None
        self._lifeline: int | None = None
        self._output: int | None = None
        self._partial_line = b""
        self._recent = bytearray()
        self._frozen = False
        self.peak_mb = 0
        """The most memory that the process was seen to use; 0 where the system does not tell."""

    @property
    def pid(self) -> int | None:
        """The process, while it lives."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self, variables: Mapping[str, str], *, ahead_s: float = 0) -> None:
        """Start the process with exactly these variables, and what belongs to this environment alone.

        Args:
            variables: of the function.
            ahead_s: how far the process's clock is ahead.
        """
        address = await self._api.start()
        self._folder.mkdir(parents=True)
        watched, self._lifeline = os.pipe()
        self._output, output = os.pipe()
        os.set_blocking(self._output, False)
        settings = {
            "handler": self.config.handler,
            "paths": [str(path) for path in self._packages.paths],
            "installed": self._packages.installed,
            "lifeline": watched,
            "native_client": self._native_client,
            "ahead_s": ahead_s,
        }
        own = {
            "AWS_LAMBDA_RUNTIME_API": address,
            "AWS_LAMBDA_LOG_STREAM_NAME": self.stream,
            "LAMBDA_TASK_ROOT": str(self._packages.code),
            "TMPDIR": str(self._folder),
            "HOME": str(self._folder),  # no configuration of this machine's user is read
        }
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command(json.dumps(settings), variables.get(WRAPPER_VARIABLE)),
                env={**variables, **own},
                cwd=self._packages.code,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(watched,),
                process_group=0,
            )
        finally:
            os.close(watched)
            os.close(output)
        asyncio.get_running_loop().add_reader(self._output, self._read_output)
        self._waiter = asyncio.create_task(self._wait_for_exit(self._process))

    def _command(self, settings: str, wrapper: str | None) -> list[str]:
        """What starts the process: Lambda's Python client, or the function's script in place of it.

        The script gets the client's command line as arguments: here an interpreter that has Lambda's surroundings,
        whatever the script has it run.
        """
        worker = [sys.executable, "-P", str(_WORKER), settings]
        if wrapper is None:
            return [*worker, BOOTSTRAP]
        interpreter = self._folder / f"python{self.config.runtime.removeprefix('python')}"
        interpreter.write_text(f'#!/bin/sh\nexec {shlex.join(worker)} "$@"\n', encoding="utf-8")
        interpreter.chmod(0o700)
        script = wrapper.replace(TASK_ROOT, str(self._packages.code), 1)
        # A script that cannot be run ends this shell with a line in the log.
        return ["/bin/sh", "-c", 'exec "$0" "$@"', script, str(interpreter), BOOTSTRAP]

    async def initialise(self, timeout_s: float) -> InitOutcome:
        """Wait until the function's module is loaded, or until that has failed."""
        event = await self._next_event(timeout_s)
        assert not isinstance(event, Responded), "the process responded before it had an invocation"
        self._read_output()
        self._note_memory()
        return event

    def begin(self, request_id: str) -> None:
        """Start an invocation's part of the log."""
        self._recent.clear()
        self.write_log(system_logs.start(self.config, request_id))

    async def run(self, invocation: Invocation, timeout_s: float) -> RunOutcome:
        """Run one invocation to its end. The process is left as it is: kill it unless it responded."""
        self.thaw()
        self._api.dispatch(invocation)
        deadline = time.monotonic() + timeout_s
        while (remaining_s := deadline - time.monotonic()) > 0:
            event = await self._next_event(min(remaining_s, _MEMORY_POLL_S))
            self._read_output()
            self._note_memory()
            if self.peak_mb > self.config.memory_mb:
                return OutOfMemory()
            if isinstance(event, Responded | Exited):
                return event
        return TimedOut()

    async def settle(self, timeout_s: float) -> bool:
        """Wait until the process asks for its next invocation, and stop it. False if it does not."""
        if not isinstance(await self._next_event(timeout_s), Ready):
            return False
        self._signal(signal.SIGSTOP)
        self._frozen = True
        return True

    def thaw(self) -> None:
        """Let a stopped process go on."""
        if self._frozen:
            self._signal(signal.SIGCONT)
            self._frozen = False

    def kill_now(self) -> None:
        """SIGKILL to the process and everything that it started."""
        self._signal(signal.SIGKILL)

    async def close(self) -> None:
        """Kill the process, and give back everything that it used. Safe to call twice."""
        self.kill_now()
        if self._waiter is not None:
            await self._waiter
        await self._api.close()
        if self._output is not None:
            self._read_output()
            asyncio.get_running_loop().remove_reader(self._output)
            os.close(self._output)
            self._output = None
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def write_log(self, message: str | None) -> None:
        """Add a line to the log, if there is one."""
        if message is None:
            return
        self._recent += f"{message}\n".encode()
        del self._recent[:-TAIL_BYTES]
        self._log(self.stream, message)

    def log_tail(self) -> bytes:
        """What was logged since the invocation began, at most the last 4 KB."""
        return bytes(self._recent)

    def _write_line(self, line: str) -> None:
        """Add a line of the function to the log, unless its level is below the function's."""
        level = self.config.log_level
        if level is None or passes(line, level):
            self.write_log(line)

    def _note_memory(self) -> None:
        status = Path(f"/proc/{self.pid}/status")
        with contextlib.suppress(OSError), status.open("rb", buffering=0) as file:
            _, _, found = file.read(_READ_BYTES).partition(b"VmHWM:")
            if found:  # in KiB
                self.peak_mb = max(self.peak_mb, round(int(found.split(None, 1)[0]) / 1024))

    async def _next_event(self, timeout_s: float) -> RuntimeEvent | Exited | TimedOut:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._events.get()
        except TimeoutError:
            return TimedOut()

    def _on_event(self, event: RuntimeEvent) -> None:
        self._events.put_nowait(event)

    async def _wait_for_exit(self, process: asyncio.subprocess.Process) -> None:
        returncode = await process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it had started
        self._events.put_nowait(Exited(returncode))

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _read_output(self) -> None:
        """Log what the process has written so far; the pipe never blocks."""
        assert self._output is not None
        for _ in range(_READS_AT_ONCE):
            try:
                data = os.read(self._output, _READ_BYTES)
            except BlockingIOError:
                return
            *lines, rest = (self._partial_line + data).split(b"\n")
            if rest and (not data or len(rest) > _MAX_LINE_BYTES):
                lines, rest = [*lines, rest], b""
            self._partial_line = rest
            for line in lines:
                self._write_line(line.decode(errors="replace"))
            if not data:  # every writer is gone
                asyncio.get_running_loop().remove_reader(self._output)
                return
