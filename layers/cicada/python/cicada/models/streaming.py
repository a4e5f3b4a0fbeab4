"""A streamed answer of any service: when it is complete, what is retried, and what ends it early.

Client libraries report a broken stream as one of many exceptions, as a time-out, or not at all: a cut stream can just
end. One rule covers all cases: an answer is complete only when the service has said why the model stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack

from cicada.errors import (
    AnswerIncomplete,
    AnswerMalformed,
    GuardrailUnavailable,
    ModelError,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.failure import Failure
from cicada.models.ports import CallScope, Finished, TextDelta, Usage
from cicada.models.retries import Pace, Pacing, prepare_retry
from cicada.models.stopping import StopSignal
from cicada.models.stream_reader import CallFailed, EventStream, ReadFailed, StreamEnded, StreamEvent, StreamReader

logger = logging.getLogger(__name__)

SILENCE_S = 20.0
"""A model's stream that sends no event for this long is broken."""
USAGE_WAIT_S = 2.0
"""Seconds to wait for the token usage after the stop. The answer is complete without it."""


@dataclass(frozen=True)
class Stop:
    """The model has stopped."""

    reason: str
    incomplete: Callable[[str], AnswerIncomplete | None] | None = None
    """Makes the answer's error of the reason, if that is not a normal finish; called at the stream's end."""


Said = TextDelta | Stop | Usage


class ServiceCall(Protocol):
    """One try at an answer, in the words of one service."""

    def open(self) -> EventStream:
        """Make the request; on a thread of its own. Raises what the service's client raises."""

    def read(self, event: Any) -> Iterable[Said]:
        """What an event of the stream says. Raises StreamBroken if it cannot be read."""

    def failure(self, error: Exception, *, opened: bool) -> Failure | None:
        """What an error of :meth:`open`, or of the opened stream, means.

        None if it is not a failure of the service: in :meth:`open` a bug, in the stream a broken connection.
        """

    def learn(self, failure: Failure) -> bool:
        """Take note of a failure; true if the next try sends a different request, and so can help at once."""


class _NotBegun(Exception):
    """A call failed before its first piece of text: nothing has been shown, so it may be made again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class Streaming:
    """What every streamed answer of one model has in common."""

    def __init__(self, model_id: str, *, silence_s: float = SILENCE_S, **pacing: Unpack[Pacing]) -> None:
        """A stream without an event for ``silence_s`` is broken. Calls that fail before any text are retried."""
        self._model_id = model_id
        self._silence_s = silence_s
        self._pace = Pace(**pacing)
        self.clock = self._pace.clock

    def stream(
        self, new_call: Callable[[], ServiceCall], *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See :meth:`cicada.models.ports.TextModel.stream`. The time budget runs from this call, in mid-stream too.

        The usage, of the finish or of the error, is that of all tries; not reported if one of unknown usage may have
        been paid for.
        """
        return self._answer(new_call, self.clock() + time_budget_s, call_scope)

    def _answer(
        self, new_call: Callable[[], ServiceCall], deadline_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        signal = StopSignal()
        unregister = call_scope.on_stop(signal.stop)
        try:
            signal.check()
            if self.clock() >= deadline_s:
                raise ModelUnavailable("no time left to call the model")
            call_scope.call()
            yield from self._tries(new_call, deadline_s, call_scope, signal)
        finally:
            unregister()

    def _tries(
        self, new_call: Callable[[], ServiceCall], deadline_s: float, call_scope: CallScope, signal: StopSignal
    ) -> Generator[TextDelta | Finished, None, None]:
        """Try, and retry while that can help. The call scope has allowed the first try."""
        attempts = 0
        known = True  # the usage of all tries so far
        while True:
            call = new_call()
            try:
                yield from self._accounted(call, deadline_s, signal, known)
                return
            except _NotBegun as not_begun:
                failure = not_begun.failure
            known = known and failure.free
            failure.error.usage = Usage(reported=known)
            pause_s: float | None = 0.0
            if not call.learn(failure):
                attempts += 1
                left_s = deadline_s - self.clock()
                pause_s = self._pace.pause_s(attempts, left_s=left_s, asked_s=failure.retry_after_s)
                pause_s = pause_s if failure.retry else None
            prepare_retry(failure, pause_s, self._pace, deadline_s, call_scope, signal)
            logger.info("retrying the model call", extra={"model": self._model_id, "code": failure.error.code})

    def _accounted(
        self, call: ServiceCall, deadline_s: float, signal: StopSignal, known: bool
    ) -> Generator[TextDelta | Finished, None, None]:
        """One call. Its usage is that of all tries, and reported only if that of the earlier ones is ``known``."""
        with closing(self._attempt(call, deadline_s, signal)) as pieces:
            try:
                for piece in pieces:
                    yield replace(piece, usage=_of_all(piece.usage, known)) if isinstance(piece, Finished) else piece
            except ModelError as error:
                error.usage = _of_all(error.usage, known)
                raise

    def _attempt(
        self, call: ServiceCall, deadline_s: float, signal: StopSignal
    ) -> Generator[TextDelta | Finished, None, None]:
        """One call. Raises :class:`_NotBegun` if it failed before the first piece, else the port's errors."""
        begun = False
        stop: Stop | None = None
        usage: Usage | None = None
        with closing(StreamReader(call.open)) as reader:
            signal.forward_to(reader.stop)
            while stop is None or usage is None:
                left_s = deadline_s - self.clock()
                item = reader.next(min(left_s, self._silence_s if stop is None else USAGE_WAIT_S))
                signal.check()
                if not isinstance(item, StreamEvent):
                    if stop is not None:
                        break  # the answer is whole; only its usage is unknown
                    raise self._fault(call, item, begun=begun, out_of_time=left_s <= self._silence_s)
                for said in call.read(item.content):
                    if isinstance(said, TextDelta):
                        begun = True
                        yield said
                    elif isinstance(said, Stop):
                        stop = said
                    else:
                        usage = said
            else:
                reader.finish()
        yield _ending(stop, usage)

    def _fault(
        self, call: ServiceCall, item: CallFailed | ReadFailed | StreamEnded | None, *, begun: bool, out_of_time: bool
    ) -> Exception:
        """What to raise when a stream without a stop sends no further event."""
        match item:
            case None:
                why = "the time budget ran out" if out_of_time else f"nothing arrived for {self._silence_s:g} s"
                return StreamBroken(why) if begun else _NotBegun(Failure(ModelUnavailable(why), retry=False))
            case StreamEnded():
                return StreamBroken("the stream ended before it said why the model stopped")
            case CallFailed(error):
                failure = call.failure(error, opened=False)
                return error if failure is None else _not_begun(failure, error)  # without a failure it is a bug
            case ReadFailed(error):
                return _broken_stream(call, error, begun)


def _broken_stream(call: ServiceCall, error: Exception, begun: bool) -> Exception:
    if isinstance(error, StreamBroken):
        return error
    failure = call.failure(error, opened=True)
    if failure is not None and not begun:  # for example throttled in the stream, before its first piece
        return _not_begun(failure, error)
    if failure is not None and isinstance(failure.error, AnswerMalformed | GuardrailUnavailable):  # not the stream's
        failure.error.__cause__ = error
        return failure.error
    broken = StreamBroken(f"{type(error).__name__}: {error}")
    broken.__cause__ = error
    return broken


def _ending(stop: Stop, usage: Usage | None) -> Finished:
    """The last item of a stream. Raises AnswerIncomplete for a stop that is not a normal finish."""
    error = None if stop.incomplete is None else stop.incomplete(stop.reason)
    if error is not None:
        error.usage = usage
        raise error
    return Finished(stop.reason, usage or Usage(reported=False))


def _of_all(usage: Usage | None, known: bool) -> Usage:
    """The last try's usage as that of all tries; ``known`` says whether the earlier ones cost nothing."""
    usage = usage or Usage(reported=False)
    return usage if known else replace(usage, reported=False)


def _not_begun(failure: Failure, cause: Exception) -> _NotBegun:
    failure.error.__cause__ = cause
    return _NotBegun(failure)
