"""The models' twins: one writes from the prompt's passages, one judges citations; both fail in every way they can."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerMalformed,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.ports import CallScope, Filled, Finished, Form, Prompt, Stopped, TextDelta, Usage
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Process, Scheduler, Task

_PASSAGE = re.compile(r'<passage n="(\d+)"[^>]*>\n([^\n]*)')
_ASKED = re.compile(r"<asked>([^<]*)</asked>")
_JUDGED = re.compile(r'<sentence n="(\d+)"')
_LETTERS = "abcdefghijklmnopqrst"
READ_TIMEOUT_S = 20.0
"""After so long a silence the adapter gives a stream up."""
MAX_CALLS = 3
"""As often as the adapter calls before the first piece."""


class Call:
    """One use of a model."""

    __slots__ = ("calls", "ended_at", "finished", "mark", "max_tokens", "process", "prompt", "text")

    def __init__(self, process: Process, prompt: Prompt, max_tokens: int) -> None:
        self.process = process
        self.prompt = prompt
        self.max_tokens = max_tokens
        self.calls = 0
        self.text = ""
        self.mark = ""
        """A word that no other call writes."""
        self.finished = False
        self.ended_at: float | None = None


class Model:
    """:class:`cicada.models.ports.TextModel`. ``called`` hears of every request that goes out."""

    def __init__(
        self, model_id: str, max_tokens: int, scheduler: Scheduler, faults: Faults, called: Callable[[Call], None]
    ) -> None:
        self.model_id = model_id
        self.max_tokens = max_tokens
        self._scheduler = scheduler
        self._faults = faults
        self._called = called

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """See the port."""
        scheduler = self._scheduler
        task = scheduler.current
        call = Call(task.process, prompt, self.max_tokens)
        line = _Line(scheduler, task, scheduler.now + time_budget_s)
        forget = call_scope.on_stop(line.cut)
        try:
            self._open(call, line, call_scope)
            yield from self._write(call, line)
        finally:
            call.ended_at = scheduler.now
            forget()

    def _open(self, call: Call, line: _Line, call_scope: CallScope) -> None:
        """Call until the stream is open."""
        faults = self._faults
        while True:
            call_scope.call()
            call.calls += 1
            self._called(call)
            line.wait(0.05 + 0.2 * self._scheduler.random(), ModelUnavailable)
            if faults.hit("model_refused"):
                raise ModelRefused("the model is not allowed")
            if faults.hit("model_throttled"):
                error: ModelBusy | ModelUnavailable = ModelBusy("throttled")
            elif faults.hit("model_unavailable"):
                error = ModelUnavailable("the service failed")
            else:
                return
            if call.calls >= MAX_CALLS:
                raise error
            line.wait(faults.between(0.1, 1.5), ModelUnavailable)

    def _write(self, call: Call, line: _Line) -> Generator[TextDelta | Finished, None, None]:
        faults = self._faults
        scheduler = self._scheduler
        pieces = self._pieces(call)
        for place, piece in enumerate(pieces):
            wait_s = 0.02 + 0.15 * scheduler.random()
            if not faults.off:
                if faults.hit("stream_silent"):
                    line.wait(READ_TIMEOUT_S, StreamBroken)
                    raise StreamBroken("nothing arrived in time") if place else ModelUnavailable("no answer in time")
                if faults.hit("stream_broken"):
                    raise StreamBroken("the connection was cut")
                if faults.hit("model_slow"):
                    wait_s += faults.between(0.5, 12)
            line.wait(wait_s, StreamBroken)
            call.text += piece
            yield TextDelta(piece)
        if faults.hit("stream_truncated"):
            return
        if faults.hit("answer_cut"):
            raise AnswerIncomplete("max_tokens")
        if faults.hit("answer_withheld"):
            raise AnswerBlocked("guardrail_intervened", told="This is not to be spoken of.")
        call.finished = True
        yield Finished("end_turn", Usage(400, 10 + len(pieces)))

    def _pieces(self, call: Call) -> list[str]:
        """An answer like no other: each ends in a word of its own, so that two can never be mistaken for one."""
        faults, prompt = self._faults, call.prompt
        if faults.hit("answer_empty"):
            return []
        asked = _ASKED.findall(prompt.user)
        if asked:  # a question is to be completed
            return ["And what did ", "Mara" if "Mara" in asked[-1] else "the keeper", " do next?"]
        mark = call.mark = "".join(_LETTERS[int(faults.between(0, 20))] for _ in range(6))
        found = _PASSAGE.findall(prompt.user)
        if not found:
            return ["Good day", " to you, ", mark, "."]
        pieces = []
        for number, text in found[: 1 + int(faults.between(0, 3))]:
            cited = "9" if faults.hit("answer_invents") else number
            words = f"{text.rstrip('.')} {mark}. [{cited}] "
            cut = int(faults.between(1, len(words)))
            pieces += [words[:cut], words[cut:]]
        return [piece for piece in pieces if piece]


class JudgingModel:
    """:class:`cicada.models.ports.StructuredModel`, asked about citations. ``called`` hears of every request."""

    def __init__(
        self, model_id: str, max_tokens: int, scheduler: Scheduler, faults: Faults, called: Callable[[Call], None]
    ) -> None:
        self.model_id = model_id
        self.max_tokens = max_tokens
        self._scheduler = scheduler
        self._faults = faults
        self._called = called

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """See the port."""
        scheduler, faults = self._scheduler, self._faults
        task = scheduler.current
        call = Call(task.process, prompt, self.max_tokens)
        line = _Line(scheduler, task, scheduler.now + time_budget_s)
        forget = call_scope.on_stop(line.cut)
        try:
            call_scope.call()
            call.calls += 1
            self._called(call)
            line.wait(0.2 + 0.8 * scheduler.random(), ModelUnavailable)
            if faults.hit("judge_slow"):
                line.wait(faults.between(0.5, 12), ModelUnavailable)
            if faults.hit("judge_fails"):
                raise ModelBusy("throttled")
            if faults.hit("judge_malformed"):
                raise AnswerMalformed("not what was asked for")
            verdict = "not_stated" if faults.hit("judge_objects") else "supported"
            told = [{"n": int(n), "verdict": verdict} for n in _JUDGED.findall(prompt.user)]
            if faults.hit("judge_forgets"):
                told = told[1:]
            return Filled(form.model_validate({"sentences": told}), Usage(600, 20 * len(told)), 1)
        finally:
            call.ended_at = scheduler.now
            forget()


class _Line:
    """Waits of one call, ended by its call scope or its deadline."""

    def __init__(self, scheduler: Scheduler, task: Task, deadline: float) -> None:
        self._scheduler = scheduler
        self._task = task
        self._deadline = deadline
        self._stopped = False
        self._waiting = False

    def cut(self) -> None:
        """Nobody wants the answer any more."""
        self._stopped = True
        if self._waiting:
            self._scheduler.wake(self._task)

    def wait(self, seconds: float, late: type[Exception]) -> None:
        """Wait. Raises Stopped, or ``late`` at the deadline."""
        scheduler = self._scheduler
        if self._stopped:
            raise Stopped
        left_s = self._deadline - scheduler.now
        self._waiting = True
        scheduler.park(max(0.0, min(seconds, left_s)))
        self._waiting = False
        if self._stopped:
            raise Stopped
        if seconds >= left_s:
            raise late("the time budget is spent")
