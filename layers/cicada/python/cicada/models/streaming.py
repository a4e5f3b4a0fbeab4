"""A streamed answer, whatever service writes it: when it is whole, what is tried again, and what ends it early.

What a client library does with a broken stream differs with the fault and the library: an exception of one of many
classes, a time-out, or nothing at all: a cut stream can just end. The rule that covers all of them is that an answer is
whole only when the service has said why the model stopped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack

from cicada.errors import AnswerIncomplete, BudgetSpent, ModelError, ModelUnavailable, StreamBroken
from cicada.models.failure import Failure
from cicada.models.ports import CallScope, Finished, Stopped, TextDelta, Usage
from cicada.models.retries import Pace, Pacing
from cicada.models.stream_reader import CallFailed, EventStream, ReadFailed, StreamEnded, StreamEvent, StreamReader

logger = logging.getLogger(__name__)

SILENCE_S = 20.0
"""A model's stream that sends no event for this long is broken."""
USAGE_WAIT_S = 2.0
"""How long the token usage, which follows the stop, is waited for. The answer is whole without it."""


@dataclass(frozen=True)
class Stop:
    """The model has said all it will say."""

    reason: str
    incomplete: type[AnswerIncomplete] | None = None
    """What such an answer is called, if the reason is no normal finish."""


Said = TextDelta | Stop | Usage


class ServiceCall(Protocol):
    """One try at an answer, in the words of one service."""

    def open(self) -> EventStream:
        """Make the request; on a thread of its own. Raises what the service's client raises."""

    def read(self, event: Any) -> Iterable[Said]:
        """What an event of the stream says. Raises StreamBroken if it cannot be read."""

    def failure(self, error: Exception, *, opened: bool) -> Failure | None:
        """What an error of the client means.

        Args:
            error: raised by :meth:`open`, or by the stream before its first text.
            opened: whether the stream had been opened.

        Returns:
            None if it is none of the service's failures: a bug where the call was made, and else a broken stream.
        """

    def learn(self, failure: Failure) -> bool:
        """Take note of a failure; true if the next try will be another request, so that it can help at once."""


class _NotBegun(Exception):
    """A call failed before its first piece of text: nothing has been shown, so it may be made again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class _Watch:
    """Passes the call scope's stop on to whatever the answer waits for."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._reader: StreamReader | None = None

    def stop(self) -> None:
        """Stop; from any thread."""
        self.stopped.set()
        if (reader := self._reader) is not None:
            reader.stop()

    def over(self, reader: StreamReader) -> None:
        """From now on the answer waits for this reader."""
        self._reader = reader
        if self.stopped.is_set():
            reader.stop()

    def check(self) -> None:
        """Raise Stopped after a stop."""
        if self.stopped.is_set():
            raise Stopped("nobody wants the answer any more")


def _allows_another(call_scope: CallScope) -> bool:
    try:
        call_scope.call()
    except BudgetSpent:
        return False
    return True


class Streaming:
    """What every streamed answer of one model has in common."""

    def __init__(self, model_id: str, *, silence_s: float = SILENCE_S, **pacing: Unpack[Pacing]) -> None:
        """Set the bounds: a stream that sends no event for ``silence_s`` is broken.

        Calls that fail before their first piece are made again.
        """
        self._model_id = model_id
        self._silence_s = silence_s
        self._pace = Pace(**pacing)
        self.clock = self._pace.clock

    def stream(
        self, new_call: Callable[[], ServiceCall], *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """Write an answer piece by piece. The time budget runs from this call, and holds in mid-stream too.

        The usage, of the finish or of the error, is that of all tries: where one of them may have been paid for without
        its usage being known, it is not reported.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without a stop, in whatever form, or outlasted the budget.
            AnswerIncomplete: the model stopped for another reason than a normal finish; ``str(error)`` is the reason.
            BudgetSpent: the call scope allows no first call. If it allows no retry, the last failure is raised.
            Stopped: the call scope's stop, whatever was being waited for.
        """
        return self._answer(new_call, self.clock() + time_budget_s, call_scope)

    def _answer(
        self, new_call: Callable[[], ServiceCall], deadline_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        watch = _Watch()
        unregister = call_scope.on_stop(watch.stop)
        try:
            watch.check()
            if self.clock() >= deadline_s:
                raise ModelUnavailable("no time is left to call the model")
            call_scope.call()
            yield from self._tries(new_call, deadline_s, call_scope, watch)
        finally:
            unregister()

    def _tries(
        self, new_call: Callable[[], ServiceCall], deadline_s: float, call_scope: CallScope, watch: _Watch
    ) -> Generator[TextDelta | Finished, None, None]:
        """Try, and try again while that can help. The call scope has allowed the first try."""
        attempts = 0
        known = True  # what the tries before took
        while True:
            call = new_call()
            with closing(self._attempt(call, deadline_s, watch)) as pieces:
                try:
                    for piece in pieces:
                        yield (
                            replace(piece, usage=_of_all(piece.usage, known)) if isinstance(piece, Finished) else piece
                        )
                    return
                except _NotBegun as not_begun:
                    failure = not_begun.failure
                except ModelError as error:
                    error.usage = _of_all(error.usage, known)
                    raise
            known = known and failure.free
            failure.error.usage = Usage(reported=known)
            pause_s: float | None = 0.0
            if not call.learn(failure):
                attempts += 1
                pause_s = self._pause_s(failure, attempts, deadline_s - self.clock())
            if pause_s is None or not _allows_another(call_scope):
                raise failure.error
            if pause_s > 0:
                self._pace.pause(pause_s, watch.stopped)
            watch.check()
            if self.clock() >= deadline_s:
                raise failure.error
            logger.info("the model is called again", extra={"model": self._model_id, "code": failure.error.code})

    def _pause_s(self, failure: Failure, attempts: int, left_s: float) -> float | None:
        """Seconds to wait before the next try, or None to give up."""
        if not failure.retry:
            return None
        return self._pace.pause_s(attempts, left_s=left_s, asked_s=failure.retry_after_s)

    def _attempt(
        self, call: ServiceCall, deadline_s: float, watch: _Watch
    ) -> Generator[TextDelta | Finished, None, None]:
        """One call. Raises :class:`_NotBegun` before the first piece if the call failed, else the port's errors."""
        begun = False
        stop: Stop | None = None
        usage: Usage | None = None
        with closing(StreamReader(call.open)) as reader:
            watch.over(reader)
            while stop is None or usage is None:
                left_s = deadline_s - self.clock()
                wait_s = min(left_s, self._silence_s if stop is None else USAGE_WAIT_S)
                item = reader.next(wait_s) if wait_s > 0 else None
                watch.check()
                if not isinstance(item, StreamEvent):
                    if stop is not None:
                        break  # the model has said it all; only its usage is not known
                    raise self._fault(call, item, begun=begun, out_of_time=left_s <= self._silence_s)
                for said in call.read(item.content):
                    match said:
                        case TextDelta():
                            begun = True
                            yield said
                        case Stop():
                            stop = said
                        case Usage():
                            usage = said
            else:
                reader.finish()
        if stop.incomplete is not None:
            error = stop.incomplete(stop.reason)
            error.usage = usage
            raise error
        yield Finished(stop.reason, usage or Usage(reported=False))

    def _fault(
        self, call: ServiceCall, item: CallFailed | ReadFailed | StreamEnded | None, *, begun: bool, out_of_time: bool
    ) -> Exception:
        """What to raise when a stream without a stop sends no further event."""
        match item:
            case None:
                why = "the time budget ran out" if out_of_time else f"nothing arrived for {self._silence_s:g} s"
                if begun:
                    return StreamBroken(why)
                return _NotBegun(Failure(ModelUnavailable(why), retry=False))
            case StreamEnded():
                return StreamBroken("the stream ended before it said why the model stopped")
            case CallFailed(error):
                failure = call.failure(error, opened=False)
                return error if failure is None else _not_begun(failure, error)  # none of the service's: a bug
            case ReadFailed(StreamBroken() as broken):
                return broken
            case ReadFailed(error):
                failure = None if begun else call.failure(error, opened=True)
                if failure is not None:  # for example throttled in the stream, before its first piece
                    return _not_begun(failure, error)
                broken = StreamBroken(f"{type(error).__name__}: {error}")
                broken.__cause__ = error
                return broken


def _of_all(usage: Usage | None, known: bool) -> Usage:
    """The usage of the last try as that of all; ``known`` says whether those before it took nothing."""
    usage = usage or Usage(reported=False)
    return usage if known else replace(usage, reported=False)


def _not_begun(failure: Failure, cause: Exception) -> _NotBegun:
    failure.error.__cause__ = cause
    return _NotBegun(failure)
