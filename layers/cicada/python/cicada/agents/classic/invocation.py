"""One InvokeAgent: its client, what its errors mean, and its stream read until it ends."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.agents.classic.events import AgentEvent, read_event
from cicada.agents.limits import SERVICE_READ_TIMEOUT_S, SERVICE_SILENCE_S
from cicada.errors import AgentError, AgentUnavailable, CicadaError, OutOfTime, StreamBroken
from cicada.models.failure import TRANSPORT_ERRORS
from cicada.models.ports import Stopped
from cicada.models.retries import INTERACTIVE, RetryPolicy, wait
from cicada.models.stopping import track_connections
from cicada.models.stream_reader import CallFailed, EventStream, ReadFailed, StreamEnded, StreamEvent, StreamReader
from cicada.retrieval.ports import SearchLimits

_CODES: dict[str, tuple[type[AgentError], bool]] = {
    "ThrottlingException": (AgentUnavailable, True),
    "ModelNotReadyException": (AgentUnavailable, True),
    "ServiceQuotaExceededException": (AgentUnavailable, False),
    "InternalServerException": (AgentUnavailable, True),
    "BadGatewayException": (AgentUnavailable, True),
    "ConflictException": (AgentUnavailable, True),
    "DependencyFailedException": (AgentError, False),
    "AccessDeniedException": (AgentError, False),
    "ResourceNotFoundException": (AgentError, False),
    "ValidationException": (AgentError, False),
}
"""Errors of InvokeAgent by code: the class, and whether to call again before the run has begun. Any other code is read
by its status."""
_SERVER_ERROR = 500


@dataclass(frozen=True)
class InvocationFailure:
    """A failed call."""

    error: CicadaError
    retry: bool


def read_failure(error: Exception) -> InvocationFailure | None:
    """Read what a call to the service raised; None if it is none of its failures, but a bug.

    In-stream errors name their code in lower camel case (``throttlingException``), early ones in upper.
    """
    if isinstance(error, ClientError):
        return _read_client_error(error)
    if isinstance(error, TRANSPORT_ERRORS):
        return InvocationFailure(
            AgentUnavailable(f"the connection to the agent failed: {type(error).__name__}"), retry=True
        )
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return InvocationFailure(AgentError(str(error)), retry=False)
    return None


def _read_client_error(error: ClientError) -> InvocationFailure:
    code = str(error.response.get("Error", {}).get("Code", ""))
    code = code[:1].upper() + code[1:]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind, retry = _CODES.get(code, (AgentUnavailable, True) if status >= _SERVER_ERROR else (AgentError, False))
    return InvocationFailure(kind(str(error)), retry)


class Invocations:
    """Makes InvokeAgent calls with one client."""

    def __init__(
        self,
        client: Any,
        *,
        silence_s: float = SERVICE_SILENCE_S,
        retry: RetryPolicy = INTERACTIVE,
        pause: Callable[[float, threading.Event], None] = wait,
        share: Callable[[], float] = random.random,
    ) -> None:
        """Take what calls need.

        Args:
            silence_s: a stream that sends no event for this long is broken; the start of the action-group function and
                a model's turn lie between two events.
            retry: for calls that are turned away before their stream begins.
        """
        track_connections(client)
        self._client = client
        self._silence_s = silence_s
        self._retry = retry
        self._pause = pause
        self._share = share

    def events(
        self,
        request: Mapping[str, Any],
        limits: SearchLimits,
        *,
        try_again: Callable[[], None],
        whole: Callable[[], bool] = lambda: False,
    ) -> Generator[AgentEvent, None, None]:
        """The events of one invocation, to the end of its stream: what that end means, the caller knows.

        Closing the iterator early, and the limits' stop, close the connection.

        Args:
            try_again: asked before any try after the first one. Where it raises an error of ours, no further one is
                made, and the last failure is raised.
            whole: asked where the iterator is closed early: whether all has been read that matters, so that the
                connection can be kept.

        Raises:
            AgentUnavailable, AgentError: the service refused, or failed.
            StreamBroken: the stream broke.
            OutOfTime: no time is left.
            Stopped: nobody wants the answer any more.
        """
        stopped = threading.Event()
        readers: list[StreamReader] = []

        def stop() -> None:
            stopped.set()
            for reader in readers:
                reader.stop()

        def call() -> EventStream:
            stream: EventStream = self._client.invoke_agent(**request)["completion"]
            return stream

        unregister = limits.on_stop(stop)
        try:
            attempts = 0
            while True:
                _check(stopped)
                with closing(StreamReader(call)) as reader:
                    readers[:] = [reader]
                    if stopped.is_set():
                        reader.stop()
                    try:
                        yield from self._read(reader, limits, stopped)
                        return
                    except GeneratorExit:
                        if whole():
                            reader.finish()
                        raise
                    except _NotBegun as not_begun:
                        failure = not_begun.failure
                attempts += 1
                pause_s = self._retry.pause_s(attempts, left_s=limits.time_left_s(), share=self._share())
                if not failure.retry or pause_s is None or not _allowed(try_again):
                    raise failure.error
                self._pause(pause_s, stopped)
        finally:
            unregister()

    def _read(
        self, reader: StreamReader, limits: SearchLimits, stopped: threading.Event
    ) -> Generator[AgentEvent, None, None]:
        begun = False
        while True:
            left_s = limits.time_left_s()
            item = reader.next(min(left_s, self._silence_s)) if left_s > 0 else None
            _check(stopped)
            match item:
                case StreamEvent(content):
                    begun = True
                    try:
                        said = tuple(read_event(content))
                    except (KeyError, TypeError, ValueError) as error:
                        raise StreamBroken(f"an event cannot be read: {type(error).__name__}") from error
                    yield from said
                case StreamEnded():
                    reader.finish()
                    return
                case CallFailed(error):
                    failure = read_failure(error)
                    raise error if failure is None else _caused(_NotBegun(failure), error)
                case ReadFailed(error):
                    raise _caused(_broken(error, begun=begun), error)
                case None:
                    if limits.time_left_s() <= 0:
                        raise OutOfTime("the agent took longer than it may")
                    why = f"nothing arrived for {self._silence_s:g} s"
                    raise StreamBroken(why) if begun else AgentUnavailable(why)


class _NotBegun(Exception):
    """The call was turned away: nothing has been done, so it may be made again."""

    def __init__(self, failure: InvocationFailure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


def _broken(error: Exception, *, begun: bool) -> Exception:
    """What an error of the stream means: an exception that the service sent, or a cut."""
    failure = read_failure(error) if isinstance(error, ClientError) else None
    if failure is None:
        return StreamBroken(f"{type(error).__name__}: {error}")
    return _NotBegun(failure) if failure.retry and not begun else failure.error


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    if isinstance(error, _NotBegun):
        error.failure.error.__cause__ = cause
    return error


def _check(stopped: threading.Event) -> None:
    if stopped.is_set():
        raise Stopped("nobody wants the answer any more")


def _allowed(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except CicadaError:  # no call, or no time, is left: the failure itself says more
        return False
    return True


def agent_client_config(*, read_timeout_s: float = SERVICE_READ_TIMEOUT_S, connect_timeout_s: float = 3.0) -> Config:
    """The configuration that the ``bedrock-agent-runtime`` client needs.

    botocore makes one attempt: retries are the adapter's own, inside the run's limits.

    Args:
        read_timeout_s: how long one read may wait; more than the adapter's ``silence_s``, which ends a silent stream
            sooner.
    """
    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": 1},
        tcp_keepalive=True,
    )
