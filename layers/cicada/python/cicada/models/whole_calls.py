"""Calls whose answer comes in one piece: repeated while that helps, inside a time budget, and ended from outside.

boto3 offers no time limit for one call: it blocks until the client's read time-out, whatever the caller's budget. So
each call is made on a thread of its own, and its connection is closed when it is not wanted any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from cicada.errors import BudgetSpent, ModelError, ModelUnavailable
from cicada.models.failure import Failure
from cicada.models.ports import CallScope, Stopped
from cicada.models.retries import Pace
from cicada.models.stopping import ConnectionHandle

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class _Answered(Generic[Answer]):
    answer: Answer


@dataclass(frozen=True)
class _Failed:
    error: Exception


class _Call(Generic[Answer]):
    """One call under way."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._line = ConnectionHandle()
        self._outcomes: SimpleQueue[_Answered[Answer] | _Failed | None] = SimpleQueue()
        threading.Thread(target=self._make, name="bedrock-call", daemon=True).start()

    def outcome(self, wait_s: float) -> _Answered[Answer] | _Failed | None:
        """What came of it; None if nothing did in time, or if it was stopped."""
        try:
            return self._outcomes.get(timeout=max(0.0, wait_s))
        except Empty:
            return None

    def stop(self) -> None:
        """Close its connection and wake whoever waits for it; from any thread."""
        self._line.cut()
        self._outcomes.put(None)

    def _make(self) -> None:
        try:
            with self._line.calling():
                answer = self._call()
        except Exception as error:  # what it is, is read on the caller's thread
            self._outcomes.put(_Failed(error))
        else:
            self._outcomes.put(_Answered(answer))
        finally:
            self._line.end()


class WholeCalls:
    """The calls made for one purpose, one after the other; a context manager, for the call scope's sake."""

    def __init__(
        self,
        call_scope: CallScope,
        deadline_s: float,
        pace: Pace,
        *,
        read_failure: Callable[[Exception], Failure | None],
    ) -> None:
        """Take what bounds them.

        Args:
            call_scope: asked before every call, and heard when the answer is not wanted any more.
            deadline_s: on the clock; no call outlasts it.
            pace: of calls that fail, counted anew for each :meth:`make`.
            read_failure: what an exception of a call means; None for a bug, which is raised as it is.
        """
        self._call_scope = call_scope
        self._deadline_s = deadline_s
        self._pace = pace
        self._read_failure = read_failure
        self._stopped = threading.Event()
        self._under_way: _Call[Any] | None = None
        self.count = 0
        """Calls that went out."""
        self.lost = 0
        """Calls among them that were not answered and may have been paid for all the same."""

    def __enter__(self) -> Self:
        """Listen for the call scope's stop."""
        self._unregister = self._call_scope.on_stop(self._stop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Listen no more."""
        self._unregister()

    def make(self, call: Callable[[], Answer], *, learn: Callable[[ModelError], bool] = lambda _: False) -> Answer:
        """Call, and call again while that can help.

        Args:
            call: makes one call on another thread and returns its answer. Called anew for every try.
            learn: is given a request's refusal (a ValidationException); true if the next try will be another request.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: the last try's failure.
            BudgetSpent: the call scope allows no first try. Where it allows no further one, the last failure is raised.
            Stopped: the call scope's stop.
        """
        self._check()
        if self._pace.clock() >= self._deadline_s:
            raise ModelUnavailable("no time is left to call the model")
        self._call_scope.call()
        attempts = 0
        while True:
            outcome = self._try(call)
            if isinstance(outcome, _Answered):
                return outcome.answer
            self.lost += not outcome.free
            if outcome.invalid and learn(outcome.error):
                self._prepare_another(outcome, 0.0)
                continue
            attempts += 1
            pause_s = self._pace.pause_s(attempts, left_s=self._left_s(), asked_s=outcome.retry_after_s)
            if not outcome.retry or pause_s is None:
                raise outcome.error
            self._prepare_another(outcome, pause_s)

    def _prepare_another(self, failure: Failure, pause_s: float) -> None:
        """Wait for the next try. Raises the failure if there is none."""
        try:
            self._call_scope.call()
        except BudgetSpent:
            raise failure.error from None
        if pause_s > 0:
            self._pace.pause(pause_s, self._stopped)
        self._check()
        if self._left_s() <= 0:
            raise failure.error
        logger.info("the model is called again", extra={"code": failure.error.code})

    def _try(self, call: Callable[[], Answer]) -> _Answered[Answer] | Failure:
        self.count += 1
        under_way = _Call(call)
        self._under_way = under_way
        if self._stopped.is_set():  # between the last look and now
            under_way.stop()
        outcome = under_way.outcome(self._left_s())
        self._under_way = None
        self._check()
        match outcome:
            case None:
                under_way.stop()
                return Failure(ModelUnavailable("the time budget ran out"), retry=False)
            case _Failed(error):
                failure = self._read_failure(error)
                if failure is None:  # none of the service's: a bug
                    raise error
                failure.error.__cause__ = error
                return failure
        return outcome

    def _stop(self) -> None:
        self._stopped.set()
        if (under_way := self._under_way) is not None:
            under_way.stop()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Stopped("nobody wants the answer any more")

    def _left_s(self) -> float:
        return self._deadline_s - self._pace.clock()
