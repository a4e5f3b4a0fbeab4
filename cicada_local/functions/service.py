"""The Lambda service: which functions there are, who may be invoked, and how events are retried."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from cicada_local.cloudwatch import MetricClock, MetricStore
from cicada_local.cloudwatch.sources import LambdaMetrics
from cicada_local.faults import Faults
from cicada_local.functions.async_events import EXHAUSTED, TOO_OLD, DroppedEvent, Send, give_up, send_nowhere
from cicada_local.functions.config import FunctionConfig, FunctionStats, InvokeResult, StreamedResult
from cicada_local.functions.deployment_limits import ACCOUNT_CONCURRENCY, UNZIPPED_BYTES
from cicada_local.functions.environment import Environment
from cicada_local.functions.errors import (
    InvalidParameterValue,
    InvalidRequestContent,
    LambdaApiError,
    RequestTooLarge,
    ResourceNotFound,
    TooManyRequests,
)
from cicada_local.functions.logs import FunctionLog
from cicada_local.functions.packages import PackageStore
from cicada_local.functions.pool import FunctionPool
from cicada_local.functions.routes import add_routes
from cicada_local.functions.streaming import ResponseStream
from cicada_local.functions.variables import lambda_variables

InvocationType = Literal["RequestResponse", "Event", "DryRun"]

_NAME = re.compile(
    r"(?:arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:|\d{12}:(?:function:)?|function:)?"
    r"(?P<name>[A-Za-z0-9_-]{1,140})(?::(?P<qualifier>\$LATEST|[A-Za-z0-9_-]{1,128}))?"
)


PROCESSES_A_PROCESSOR = 16
"""Invocations that one processor bears at once: most of them wait, for a model or for a store."""


def default_concurrency() -> int:
    """How many invocations this machine bears at once."""
    return PROCESSES_A_PROCESSOR * (os.cpu_count() or 1)


@dataclass(frozen=True)
class ServiceLimits:
    """Lambda's limits, and this machine's; tests pass smaller ones."""

    max_concurrency: int = field(default_factory=default_concurrency)
    """Invocations at once, of all functions, that this machine bears: each takes a process."""
    starts_at_once: int = field(default_factory=lambda: max(2, os.cpu_count() or 1))
    """Environments that are initialised at once: each takes a processor, and on AWS has one of its own."""
    account_concurrency: int = ACCOUNT_CONCURRENCY
    """The account's quota, of which functions can reserve a part."""
    idle_s: float = 300.0
    """How long an environment is kept without an invocation. AWS publishes no figure."""
    init_s: float = 10.0
    request_bytes: int = 6 * 1024 * 1024
    event_bytes: int = 1024 * 1024
    """What an asynchronous invocation may carry."""
    event_retry_delays_s: tuple[float, ...] = (60.0, 120.0)
    """After a function error of an asynchronous invocation; then the event is dropped."""
    throttle_retry_delay_s: float = 1.0
    """The first wait of an asynchronous invocation that is throttled; it doubles up to five minutes."""
    event_time_scale: float = 1.0
    """How long a second of an event's age takes: less than 1 where time is stretched."""

    @classmethod
    def stretched(cls, scale: float, max_concurrency: int | None = None) -> ServiceLimits:
        """Lambda's limits, with events that are retried and grow old in other seconds."""
        whole = cls()
        return cls(
            max_concurrency=whole.max_concurrency if max_concurrency is None else max_concurrency,
            event_retry_delays_s=tuple(delay_s * scale for delay_s in whole.event_retry_delays_s),
            throttle_retry_delay_s=whole.throttle_retry_delay_s * scale,
            event_time_scale=scale,
        )


class FunctionService:
    """Runs functions in real processes. All methods belong to one event loop."""

    def __init__(
        self,
        lookup: Callable[[str], FunctionConfig | None],
        *,
        work_dir: Path,
        endpoint_url: str,
        overrides: Callable[[FunctionConfig], Mapping[str, str]],
        faults: Faults,
        log: Callable[[str, str], None] | None = None,
        limits: ServiceLimits | None = None,
        native_client: bool = True,
        reserved: Callable[[], int] = lambda: 0,
        metrics: LambdaMetrics | None = None,
        send: Send = send_nowhere,
    ) -> None:
        """Nothing is started before the first invocation.

        Args:
            lookup: a function's configuration as it stands now, by its plain name; None if there is none.
            work_dir: unpacked archives, logs and temporary files.
            endpoint_url: the functions' ``AWS_ENDPOINT_URL``, where they find every AWS service.
            overrides: further variables of a function; they win over its own.
            faults: where ``functions.kill``, ``functions.throttle`` and ``functions.slow_start`` are armed.
            log: called with a function's name and each message of its log.
            limits: Lambda's, where not given.
            native_client: use awslambdaric's compiled Runtime API client where it is installed.
            reserved: the concurrency that all functions have reserved together.
            send: sends messages to queues, in functions' roles.
            metrics: takes in Lambda's metrics.
        """
        self._lookup = lookup
        self._work_dir = work_dir
        self._endpoint_url = endpoint_url
        self._overrides = overrides
        self._faults = faults
        self._told = log
        self._limits = limits or ServiceLimits()
        self._native_client = native_client
        self._reserved = reserved
        self._send = send
        self._metrics = metrics or LambdaMetrics(MetricStore(MetricClock()))
        self._packages = PackageStore(work_dir / "unpacked")
        self._pools: dict[str, FunctionPool] = {}
        self._starts = asyncio.Semaphore(self._limits.starts_at_once)
        self._logs: dict[str, FunctionLog] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def add_routes(self, app: web.Application) -> None:
        """Serve ``Invoke`` and ``GetAccountSettings`` in an application, and close with it."""
        add_routes(app, self.invoke, self.close, self._account_limit)

    def _account_limit(self) -> dict[str, int]:
        """What GetAccountSettings tells of the account. Source: AWS Lambda API reference, "AccountLimit"."""
        limit = self._limits.account_concurrency
        return {
            "TotalCodeSize": 80_530_636_800,
            "CodeSizeUnzipped": UNZIPPED_BYTES,
            "CodeSizeZipped": 52_428_800,
            "ConcurrentExecutions": limit,
            "UnreservedConcurrentExecutions": limit - self._reserved(),
        }

    async def invoke(
        self,
        name_or_arn: str,
        payload: bytes,
        *,
        invocation_type: str = "RequestResponse",
        client_context: str | None = None,
    ) -> InvokeResult:
        """Invoke a function by name, ARN or partial ARN, with or without a qualifier.

        An invocation goes on when its caller is cancelled. ``client_context`` is JSON.

        Raises:
            LambdaApiError: the service refused it; see ``cicada_local.functions.errors``.
        """
        if invocation_type not in ("RequestResponse", "Event", "DryRun"):
            raise InvalidParameterValue(f"{invocation_type} is no invocation type")
        config, version = self._resolve(name_or_arn)
        payload = payload or b"{}"
        self._check_payload(payload, invocation_type)
        if invocation_type == "DryRun":
            return InvokeResult(204)
        request_id = str(uuid.uuid4())
        pool = self._pool(config.name)
        if self._faults.take("functions.throttle", function=config.name) is not None:
            self._throttled(pool, config)
            raise TooManyRequests("Rate Exceeded.", reason="ConcurrentInvocationLimitExceeded")
        if invocation_type == "Event":
            self._spawn(self._deliver_event(config.name, payload, request_id, client_context))
            return InvokeResult(202, request_id=request_id)
        result = await self._run(config, payload, request_id, client_context)
        return replace(result, executed_version=version)

    async def stream(self, name_or_arn: str, payload: bytes) -> InvokeResult | StreamedResult:
        """Invoke a function as its URL does in response streaming mode.

        An invocation goes on when its caller is cancelled, or reads no more.

        Returns:
            The response's pieces, as soon as the first is there; or a buffered result, such as an error before it.

        Raises:
            LambdaApiError: the service refused it.
        """
        config, _ = self._resolve(name_or_arn)
        self._check_payload(payload, "RequestResponse")
        request_id, stream = str(uuid.uuid4()), ResponseStream()
        run = self._spawn(self._run(config, payload, request_id, None, stream))
        begun = asyncio.create_task(stream.begun.wait())
        try:
            await asyncio.wait({run, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        return StreamedResult(request_id, stream, run) if stream.begun.is_set() else await run

    def processes(self) -> dict[str, list[int]]:
        """The living processes of each function that was invoked."""
        return {name: pool.pids() for name, pool in self._pools.items()}

    def kill(self, name: str, pid: int | None = None) -> list[int]:
        """SIGKILL to a function's processes that are at work, or to one by its id; returns the ids of those it met."""
        pool = self._pools.get(name)
        return [] if pool is None else pool.kill(pid)

    def stats(self) -> dict[str, FunctionStats]:
        """What each function that was invoked has seen so far; a copy."""
        return {name: replace(pool.stats) for name, pool in self._pools.items()}

    async def close(self) -> None:
        """Drop what is under way, and kill every process. Idempotent."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        for log in self._logs.values():
            log.close()

    def _resolve(self, name_or_arn: str) -> tuple[FunctionConfig, str]:
        match = _NAME.fullmatch(name_or_arn)
        if match is None:
            raise InvalidParameterValue(f"{name_or_arn!r} is neither a function's name nor its ARN")
        config = self._lookup(match["name"])
        if config is None:
            raise ResourceNotFound(f"Function not found: {name_or_arn}")
        qualifier = match["qualifier"] or "$LATEST"
        return config, qualifier if qualifier.isdigit() else "$LATEST"

    def _check_payload(self, payload: bytes, invocation_type: str) -> None:
        limit = self._limits.event_bytes if invocation_type == "Event" else self._limits.request_bytes
        if len(payload) > limit:
            raise RequestTooLarge(f"Request must be smaller than {limit} bytes for the InvokeFunction operation")
        try:
            json.loads(payload)
        except ValueError as error:
            raise InvalidRequestContent(f"Could not parse request body into json: {error}") from error

    def _admit(self, config: FunctionConfig) -> FunctionPool:
        if self._closed:
            raise LambdaApiError("The service is closing.")
        pool = self._pool(config.name)
        if config.reserved_concurrency is not None and pool.running >= config.reserved_concurrency:
            self._throttled(pool, config)
            raise TooManyRequests("Rate Exceeded.", reason="ReservedFunctionConcurrentInvocationLimitExceeded")
        if sum(each.running for each in self._pools.values()) >= min(
            self._limits.max_concurrency, self._limits.account_concurrency
        ):
            self._throttled(pool, config)
            raise TooManyRequests("Rate Exceeded.", reason="ConcurrentInvocationLimitExceeded")
        return pool

    def _throttled(self, pool: FunctionPool, config: FunctionConfig) -> None:
        pool.stats.throttles += 1
        self._metrics.throttled(config.name)

    async def _run(
        self,
        config: FunctionConfig,
        payload: bytes,
        request_id: str,
        client_context: str | None,
        stream: ResponseStream | None = None,
    ) -> InvokeResult:
        pool = self._admit(config)
        pool.running += 1
        self._metrics.running(config.name, pool.running, sum(each.running for each in self._pools.values()))
        task = self._spawn(pool.run(config, payload, request_id, client_context, stream))
        task.add_done_callback(pool.finished)
        return await asyncio.shield(task)

    async def _deliver_event(self, name: str, payload: bytes, request_id: str, client_context: str | None) -> None:
        """Run an asynchronous invocation until it succeeds, its retries are used up, or it is too old."""
        self._metrics.event("AsyncEventsReceived", name)
        began = time.monotonic()
        attempts, result = 0, None
        throttled_s = self._limits.throttle_retry_delay_s
        while (config := self._lookup(name)) is not None:
            condition = self._given_up(config, attempts, time.monotonic() - began)
            if condition is not None:
                event = DroppedEvent(request_id, payload, condition, attempts, result)
                give_up(config, event, self._send, lambda metric: self._metrics.event(metric, name))
                return
            try:
                result = await self._run(config, payload, request_id, client_context)
            except TooManyRequests:
                await asyncio.sleep(throttled_s)
                throttled_s = min(2 * throttled_s, 300.0 * self._limits.event_time_scale)
                continue
            if result.function_error is None:
                return
            attempts += 1
            if attempts <= config.asynchronous.max_retries:
                await asyncio.sleep(self._limits.event_retry_delays_s[attempts - 1])

    def _given_up(self, config: FunctionConfig, attempts: int, age_s: float) -> str | None:
        """Why an event is not tried again; None if it is."""
        configured = config.asynchronous
        stopped = config.reserved_concurrency == 0 and bool(configured.on_failure or configured.dead_letter)
        if attempts > configured.max_retries or stopped:
            return EXHAUSTED
        return TOO_OLD if age_s > configured.max_age_s * self._limits.event_time_scale else None

    def _pool(self, name: str) -> FunctionPool:
        if name not in self._pools:
            self._pools[name] = FunctionPool(
                name,
                self._launch,
                self._faults,
                init_s=self._limits.init_s,
                idle_s=self._limits.idle_s,
                metrics=self._metrics,
                starts=self._starts,
            )
        return self._pools[name]

    async def _launch(self, config: FunctionConfig) -> Environment:
        packages = await asyncio.to_thread(self._packages.prepare, config)
        log = self._log(config.name)
        environment = Environment(
            config, packages, self._work_dir / "environments", log.write, native_client=self._native_client
        )
        try:
            clock = self._faults.take("functions.clock", function=config.name) or {}
            variables = lambda_variables(config, self._endpoint_url, self._overrides(config))
            await environment.start(variables, ahead_s=float(clock.get("ahead_s", 0)))
        except BaseException:
            await environment.close()
            raise
        return environment

    def _log(self, name: str) -> FunctionLog:
        if name not in self._logs:
            told = self._told
            tell = None if told is None else lambda message: told(name, message)
            self._logs[name] = FunctionLog(self._work_dir / "logs" / f"{name}.log", tell)
        return self._logs[name]

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
