"""Calls without streaming: retried while that helps, inside a time budget, and stopped from other threads.

boto3 has no time limit for one call: it blocks until the client's read time-out, whatever the caller's budget. So each
call runs on a thread of its own, and its connection is closed when the result is not wanted any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from types import TracebackType
from typing import Generic, Self, TypeVar

from cicada.errors import ModelUnavailable
from cicada.models.failure import Failure
from cicada.models.ports import CallScope, Stopped
from cicada.models.retries import Pace, prepare_retry
from cicada.models.stopping import ConnectionHandle, StopSignal

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class _Call(Generic[Answer]):
    """One call under way."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._handle = ConnectionHandle()
        self.done: Future[Answer] = Future()
        threading.Thread(target=self._make, name="bedrock-call", daemon=True).start()

    def stop(self) -> None:
        """Close the connection and wake the waiting thread."""
        self._handle.cut()
        with suppress(InvalidStateError):  # it has ended
            self.done.set_exception(Stopped())

    def _make(self) -> None:
        with suppress(InvalidStateError):  # stopped meanwhile
            try:
                with self._handle.calling():
                    answer = self._call()
            except Exception as error:  # read on the caller's thread
                self.done.set_exception(error)
            else:
                self.done.set_result(answer)
            finally:
                self._handle.end()


class UnaryCalls:
    """The calls made for one purpose, one after the other; a context manager that listens for the call scope's stop."""

    def __init__(
        self,
        call_scope: CallScope,
        deadline_s: float,
        pace: Pace,
        *,
        read_failure: Callable[[Exception], Failure | None],
    ) -> None:
        """No call outlasts ``deadline_s`` on the pace's clock; ``read_failure`` returns None for a bug."""
        self._call_scope = call_scope
        self._deadline_s = deadline_s
        self._pace = pace
        self._read_failure = read_failure
        self._signal = StopSignal()
        self.count = 0
        """Calls that went out."""
        self.lost = 0
        """Unanswered calls that may have been paid for."""

    def __enter__(self) -> Self:
        """Listen for the call scope's stop."""
        self._unregister = self._call_scope.on_stop(self._signal.stop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop listening."""
        self._unregister()

    def make(self, call: Callable[[], Answer], *, learn: Callable[[Failure], bool] = lambda _: False) -> Answer:
        """Run ``call`` on another thread, and again while that can help.

        ``learn`` takes each failure, and returns whether the next try sends a different request.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: the last try's failure.
            BudgetSpent: the call scope allows no first try. Without budget for a retry, the last failure is raised.
            Stopped: the call scope's stop.
        """
        self._signal.check()
        if self._left_s() <= 0:
            raise ModelUnavailable("no time left to call the model")
        self._call_scope.call()
        attempts = 0
        while True:
            outcome = self._try(call)
            if not isinstance(outcome, Failure):
                return outcome
            self.lost += not outcome.free
            pause_s: float | None = 0.0
            if not learn(outcome):
                attempts += 1
                pause_s = self._pace.pause_s(attempts, left_s=self._left_s(), asked_s=outcome.retry_after_s)
                pause_s = pause_s if outcome.retry else None
            prepare_retry(outcome, pause_s, self._pace, self._deadline_s, self._call_scope, self._signal)
            logger.info("retrying the model call", extra={"code": outcome.error.code})

    def _try(self, call: Callable[[], Answer]) -> Answer | Failure:
        self.count += 1
        under_way = _Call(call)
        self._signal.forward_to(under_way.stop)
        wait([under_way.done], timeout=max(0.0, self._left_s()))
        self._signal.check()
        if not under_way.done.done():
            under_way.stop()
            return Failure(ModelUnavailable("the time budget ran out"), retry=False)
        error = under_way.done.exception()
        if error is None:
            return under_way.done.result()
        failure = self._read_failure(error) if isinstance(error, Exception) else None
        if failure is None:  # a bug
            raise error
        failure.error.__cause__ = error
        return failure

    def _left_s(self) -> float:
        return self._deadline_s - self._pace.clock()
