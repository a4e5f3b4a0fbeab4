"""A function's execution environments: started when needed, kept warm, retired when stale."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from cicada_local.cloudwatch.sources import LambdaMetrics
from cicada_local.faults import Faults
from cicada_local.functions import system_logs
from cicada_local.functions.config import FunctionConfig, FunctionStats, InvokeResult
from cicada_local.functions.environment import Environment, Exited, InitOutcome, OutOfMemory, RunOutcome, TimedOut
from cicada_local.functions.runtime_api import InitFailed, Invocation, Ready, Responded
from cicada_local.functions.streaming import ResponseStream, StreamError

_SETTLE_S = 0.25
"""How long a response waits for its process to ask for the next invocation, so that the caller's next one finds it."""


class FunctionPool:
    """Runs a function's invocations, each in an environment that nothing else uses meanwhile."""

    def __init__(
        self,
        name: str,
        launch: Callable[[FunctionConfig], Awaitable[Environment]],
        faults: Faults,
        *,
        init_s: float,
        idle_s: float,
        metrics: LambdaMetrics,
        starts: asyncio.Semaphore,
    ) -> None:
        """Have no environment yet.

        Args:
            name: the function's.
            launch: starts an environment's process and returns at once.
            faults: may kill, or slow a start down.
            init_s: how long an initialisation may take.
            idle_s: how long an environment is kept without an invocation.
            metrics: takes in the function's metrics.
            starts: held by each environment that is being initialised, of whatever function.
        """
        self._starts = starts
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Invocations without an environment: woken one by one, as environments fall idle."""
        self._metrics = metrics
        self.stats = FunctionStats()
        self.running = 0
        """Invocations under way: the service counts them up, :meth:`finished` down."""
        self._name = name
        self._launch = launch
        self._faults = faults
        self._init_s = init_s
        self._idle_s = idle_s
        self._live: set[Environment] = set()
        self._idle: dict[Environment, asyncio.TimerHandle] = {}
        self._at_work: set[Environment] = set()
        self._fingerprint = ""
        self._background: set[asyncio.Task[None]] = set()

    def pids(self) -> list[int]:
        """The processes that live now."""
        return sorted(environment.pid for environment in self._live if environment.pid is not None)

    def kill(self, pid: int | None = None) -> list[int]:
        """SIGKILL to the processes that are at work, or to one, at work or not; returns their ids.

        Their invocations fail with ``Runtime.ExitError``, as any whose process dies.
        """
        struck = [
            environment
            for environment in self._live
            if environment.pid is not None
            and (environment.pid == pid if pid is not None else environment in self._at_work)
        ]
        pids = sorted(environment.pid for environment in struck if environment.pid is not None)
        for environment in struck:
            environment.kill_now()
        return pids

    async def run(
        self,
        config: FunctionConfig,
        payload: bytes,
        request_id: str,
        client_context: str | None,
        stream: ResponseStream | None = None,
    ) -> InvokeResult:
        """Run one invocation, in an idle environment or in a new one; ``stream`` takes a streamed response."""
        self.stats.invocations += 1
        begun = time.monotonic()
        init_ms: float | None = None
        environment = await self._idle_or_turn(config)
        if environment is None:
            self.stats.cold_starts += 1
            try:
                environment, outcome, init_ms = await self._cold_start(config)
            finally:
                self._starts.release()
            if not isinstance(outcome, Ready):
                environment.begin(request_id)
                result = self._conclude(environment, request_id, outcome, begun, init_ms=None)
                self._spawn(self._discard(environment))
                return result
            begun = time.monotonic()
        invocation = Invocation(
            request_id,
            payload,
            deadline_ms=int((time.time() + config.timeout_s) * 1000),
            function_arn=config.arn,
            trace_id=f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Parent={secrets.token_hex(8)};Sampled=0",
            client_context=client_context,
            stream=stream,
        )
        environment.begin(request_id)
        run_outcome = await self._run_in(environment, invocation)
        if isinstance(run_outcome, TimedOut | OutOfMemory):
            environment.kill_now()
        if stream is not None:  # unless the process has ended it
            stream.end(StreamError(_error_type(run_outcome)))
        result = self._conclude(environment, request_id, run_outcome, begun, init_ms)
        remaining_s = config.timeout_s - (time.monotonic() - begun)
        afterwards = self._spawn(
            self._release(environment, remaining_s)
            if isinstance(run_outcome, Responded)
            else self._discard(environment)
        )
        await asyncio.wait({afterwards}, timeout=_SETTLE_S)
        return result

    def finished(self, _: asyncio.Task[InvokeResult]) -> None:
        """Give back an invocation's place."""
        self.running -= 1

    async def close(self) -> None:
        """Kill every process."""
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        for environment in list(self._live):
            self._spawn(self._discard(environment))
        while self._background:
            await asyncio.wait(self._background)

    async def _idle_or_turn(self, config: FunctionConfig) -> Environment | None:
        """An idle environment, now or as soon as one falls idle; or None, with the turn to start a new one."""
        turn: asyncio.Task[bool] | None = None
        while (environment := self._take_idle(config)) is None:
            if turn is None:
                turn = asyncio.create_task(self._starts.acquire())
                await asyncio.sleep(0)
            if turn.done():
                return None
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            either: set[asyncio.Future[Any]] = {turn, freed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            freed.cancel()
        if turn is not None and not turn.cancel():
            self._starts.release()
        return environment

    async def _cold_start(self, config: FunctionConfig) -> tuple[Environment, InitOutcome, float]:
        """A new environment, how its initialisation ended, and what that took in milliseconds.

        An initialisation that fails is tried once more, inside the invocation's time.
        """
        environment, outcome, init_ms = await self._initialise(config, "init", self._init_s)
        if not isinstance(outcome, Ready):
            await self._discard(environment)
            environment, outcome, init_ms = await self._initialise(config, "invoke", config.timeout_s)
        return environment, outcome, init_ms

    async def _initialise(
        self, config: FunctionConfig, phase: str, limit_s: float
    ) -> tuple[Environment, InitOutcome, float]:
        begun = time.monotonic()
        environment = await self._launch(config)
        self._live.add(environment)
        environment.write_log(system_logs.init_start(config))
        delay_s = (self._faults.take("functions.slow_start", function=self._name) or {}).get("delay_ms", 0) / 1000
        if delay_s:  # by a fault, which takes no processor's time
            self._starts.release()
            await asyncio.sleep(min(delay_s, limit_s))
            await self._starts.acquire()
        outcome = await environment.initialise(max(limit_s - delay_s, 0))
        init_ms = (time.monotonic() - begun) * 1000
        if not isinstance(outcome, Ready):
            environment.write_log(system_logs.init_report(config, phase, init_ms, _ended(outcome)))
        return environment, outcome, init_ms

    async def _run_in(self, environment: Environment, invocation: Invocation) -> RunOutcome:
        killer: asyncio.TimerHandle | None = None
        if (kill := self._faults.take("functions.kill", function=self._name)) is not None:
            after_s = kill.get("after_ms", 0) / 1000
            killer = asyncio.get_running_loop().call_later(after_s, environment.kill_now)
        self._at_work.add(environment)
        try:
            return await environment.run(invocation, environment.config.timeout_s)
        finally:
            self._at_work.discard(environment)
            if killer is not None:
                killer.cancel()

    def _conclude(
        self,
        environment: Environment,
        request_id: str,
        outcome: InitOutcome | RunOutcome,
        begun: float,
        init_ms: float | None,
    ) -> InvokeResult:
        """Count and log how an invocation ended, and say it as ``Invoke`` does."""
        duration_ms = (time.monotonic() - begun) * 1000
        payload = b""
        function_error: str | None = "Unhandled"
        match outcome:
            case Responded(payload=payload, failed=failed):
                function_error = "Unhandled" if failed else None
            case InitFailed(payload=payload):
                pass
            case _:
                reason = _reason(outcome, environment.config)
                payload = json.dumps(
                    {"errorType": _error_type(outcome), "errorMessage": f"RequestId: {request_id} Error: {reason}"}
                ).encode()
                environment.write_log(f"RequestId: {request_id} Error: {reason}")
        self._metrics.concluded(self._name, duration_ms, failed=function_error is not None)
        self.stats.errors += function_error is not None
        self.stats.timeouts += isinstance(outcome, TimedOut)
        self.stats.exits += isinstance(outcome, Exited | OutOfMemory)
        config, ended = environment.config, _ended(outcome)
        environment.write_log(system_logs.runtime_done(config, request_id, duration_ms, ended))
        environment.write_log(system_logs.report(config, request_id, duration_ms, init_ms, environment.peak_mb, ended))
        return InvokeResult(200, payload, function_error, log=environment.log_tail(), request_id=request_id)

    def _take_idle(self, config: FunctionConfig) -> Environment | None:
        self._fingerprint = config.fingerprint
        for environment in list(reversed(self._idle)):  # the one used last is the warmest
            self._idle.pop(environment).cancel()
            if environment.pid is not None and environment.config.fingerprint == self._fingerprint:
                return environment
            self._spawn(self._discard(environment))
        return None

    async def _release(self, environment: Environment, remaining_s: float) -> None:
        settled = await environment.settle(max(remaining_s, _SETTLE_S))
        if settled and environment.config.fingerprint == self._fingerprint:
            timer = asyncio.get_running_loop().call_later(self._idle_s, self._reap, environment)
            self._idle[environment] = timer
            self._wake_one()
        else:
            await self._discard(environment)

    def _wake_one(self) -> None:
        while self._waiting:
            freed = self._waiting.popleft()
            if not freed.done():
                freed.set_result(None)
                return

    def _reap(self, environment: Environment) -> None:
        del self._idle[environment]
        self._spawn(self._discard(environment))

    async def _discard(self, environment: Environment) -> None:
        await environment.close()
        self._live.discard(environment)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _ended(outcome: InitOutcome | RunOutcome) -> system_logs.Ended:
    match outcome:
        case Responded(failed=failed):
            return system_logs.RAISED if failed else system_logs.SUCCESS
        case TimedOut():
            return system_logs.TIMED_OUT
    return system_logs.failed(_error_type(outcome))


def _error_type(outcome: InitOutcome | RunOutcome) -> str:
    match outcome:
        case InitFailed(payload=payload):
            return str(json.loads(payload)["errorType"])
        case TimedOut():
            return "Sandbox.Timedout"
        case OutOfMemory():
            return "Runtime.OutOfMemory"
    return "Runtime.ExitError"


def _reason(outcome: InitOutcome | RunOutcome, config: FunctionConfig) -> str:
    match outcome:
        case TimedOut():
            return f"Task timed out after {config.timeout_s:.2f} seconds"
        case Exited(returncode=0):
            return "Runtime exited without providing a reason"
        case Exited(reason=reason):
            return f"Runtime exited with error: {reason}"
    return "Runtime exited with error: signal: killed"
