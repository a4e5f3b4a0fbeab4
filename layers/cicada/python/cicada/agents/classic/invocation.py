"""One InvokeAgent: its client, what its errors mean, and its stream read until it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Any, Unpack

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.agents.classic.events import AgentEvent, read_event
from cicada.agents.limits import SERVICE_READ_TIMEOUT_S, SERVICE_SILENCE_S
from cicada.errors import AgentError, AgentUnavailable, CicadaError, OutOfTime, StreamBroken
from cicada.models.failure import TRANSPORT_ERRORS, code_and_status
from cicada.models.retries import Pace, Pacing
from cicada.models.stopping import StopSignal, track_connections
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
"""Errors of InvokeAgent: the class, and whether a retry before the run has begun can help. Others go by status."""
_SERVER_ERROR = 500


def read_failure(error: Exception) -> tuple[AgentError, bool] | None:
    """The error of a failed call, and whether a retry can help; None for a bug."""
    if isinstance(error, ClientError):
        code, status = code_and_status(error)
        kind, retry = _CODES.get(code, (AgentUnavailable, True) if status >= _SERVER_ERROR else (AgentError, False))
        return kind(str(error)), retry
    if isinstance(error, TRANSPORT_ERRORS):
        return AgentUnavailable(f"the connection to the agent failed: {type(error).__name__}"), True
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return AgentError(str(error)), False
    return None


class Invocations:
    """Makes InvokeAgent calls with one client."""

    def __init__(self, client: Any, *, silence_s: float = SERVICE_SILENCE_S, **pacing: Unpack[Pacing]) -> None:
        """A stream without an event for ``silence_s`` is broken. Calls refused before their stream are retried."""
        track_connections(client)
        self._client = client
        self._silence_s = silence_s
        self._pace = Pace(**pacing)

    def events(
        self,
        request: Mapping[str, Any],
        limits: SearchLimits,
        *,
        try_again: Callable[[], None],
        whole: Callable[[], bool] = lambda: False,
    ) -> Generator[AgentEvent, None, None]:
        """The events of one invocation to the end of its stream, whose meaning the caller decides.

        Closing the iterator early, and the limits' stop, close the connection; it is kept if ``whole`` says then that
        all that matters was read. ``try_again`` is asked before a retry; if it raises a CicadaError, the last failure
        is raised.

        Raises:
            AgentUnavailable, AgentError: the service refused, or failed.
            StreamBroken: the stream broke.
            OutOfTime: no time is left.
            Stopped: the limits' stop.
        """
        signal = StopSignal()

        def call() -> EventStream:
            stream: EventStream = self._client.invoke_agent(**request)["completion"]
            return stream

        unregister = limits.on_stop(signal.stop)
        try:
            attempts = 0
            while True:
                signal.check()
                with closing(StreamReader(call)) as reader:
                    signal.forward_to(reader.stop)
                    try:
                        yield from self._read(reader, limits, signal)
                        return
                    except GeneratorExit:
                        if whole():
                            reader.finish()
                        raise
                    except _NotBegun as not_begun:
                        failure = not_begun
                attempts += 1
                pause_s = self._pace.pause_s(attempts, left_s=limits.time_left_s())
                if not failure.retry or pause_s is None or not _allowed(try_again):
                    raise failure.error
                self._pace.pause(pause_s, signal.stopped)
        finally:
            unregister()

    def _read(
        self, reader: StreamReader, limits: SearchLimits, signal: StopSignal
    ) -> Generator[AgentEvent, None, None]:
        begun = False
        while True:
            item = reader.next(min(limits.time_left_s(), self._silence_s))
            signal.check()
            match item:
                case StreamEvent(content):
                    begun = True
                    yield from _said(content)
                case StreamEnded():
                    reader.finish()
                    return
                case CallFailed(error):
                    failure = read_failure(error)
                    raise error if failure is None else _caused(_NotBegun(*failure), error)
                case ReadFailed(error):
                    raise _caused(_broken(error, begun=begun), error)
                case None:
                    if limits.time_left_s() <= 0:
                        raise OutOfTime("the agent timed out")
                    why = f"nothing arrived for {self._silence_s:g} s"
                    raise StreamBroken(why) if begun else AgentUnavailable(why)


class _NotBegun(Exception):
    """The call was refused: nothing was done, so it may be made again."""

    def __init__(self, error: AgentError, retry: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry = retry


def _said(content: Any) -> tuple[AgentEvent, ...]:
    try:
        return tuple(read_event(content))
    except (KeyError, TypeError, ValueError) as error:
        raise StreamBroken(f"cannot parse an event: {type(error).__name__}") from error


def _broken(error: Exception, *, begun: bool) -> Exception:
    """What an error of the stream means: an exception that the service sent, or a cut."""
    failure = read_failure(error) if isinstance(error, ClientError) else None
    if failure is None:
        return StreamBroken(f"{type(error).__name__}: {error}")
    return _NotBegun(*failure) if failure[1] and not begun else failure[0]


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    if isinstance(error, _NotBegun):
        error.error.__cause__ = cause
    return error


def _allowed(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except CicadaError:  # no call, or no time, is left: the failure itself says more
        return False
    return True


def agent_client_config(*, read_timeout_s: float = SERVICE_READ_TIMEOUT_S, connect_timeout_s: float = 3.0) -> Config:
    """The configuration that the ``bedrock-agent-runtime`` client needs.

    botocore makes one attempt: the adapter retries within the run's limits. The read time-out must exceed the adapter's
    ``silence_s``, which ends a silent stream sooner.
    """
    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": 1},
        tcp_keepalive=True,
    )
