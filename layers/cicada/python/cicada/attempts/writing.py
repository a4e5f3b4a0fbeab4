"""Streams a model's answer and accounts for the call."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

from cicada.attempts.budgets import AttemptBudget, ModelCall, Purpose
from cicada.errors import AnswerIncomplete, CicadaError, ModelError, OutOfTime, StreamBroken
from cicada.models.ports import STOPPED, CountedCallScope, Finished, Prompt, Stopped, TextDelta, TextModel, Usage
from cicada.models.prices import cost
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WrittenAnswer:
    """A whole answer."""

    text: str
    finished: Finished


def write(
    model: TextModel, prompt: Prompt, attempt_budget: AttemptBudget, purpose: Purpose = "answer"
) -> Generator[TextDelta, None, WrittenAnswer]:
    """Yield the pieces of a model's answer and return the whole.

    However it ends, its usage is recorded on ``attempt_budget`` and in the request trace.

    Raises:
        AnswerIncomplete: the model wrote nothing.
        BudgetSpent: the call could exceed its share of the request's budget, or no call is left.
        OutOfTime, ModelError, Stopped.
    """
    attempt_budget.admit(model.model_id, prompt, model.max_tokens)
    time_left_s = attempt_budget.time_left_s()
    if time_left_s <= 0:
        raise OutOfTime("no time left to call a model")
    record = _Record(model.model_id, purpose, attempt_budget)
    pieces: list[str] = []
    try:
        with closing(model.stream(prompt, time_budget_s=time_left_s, call_scope=record)) as stream:
            for step in stream:
                if isinstance(step, TextDelta):
                    # A lone surrogate cannot be encoded as UTF-8, so it could be neither stored nor sent.
                    piece = TextDelta(step.text.encode("utf-8", "replace").decode())
                    record.piece()
                    pieces.append(piece.text)
                    yield piece
                else:
                    record.usage = step.usage
                    if not "".join(pieces).strip():
                        raise AnswerIncomplete("the model wrote nothing")
                    record.fault = None
                    return WrittenAnswer("".join(pieces), step)
        raise StreamBroken("the model's stream ended without a finish")
    except CicadaError as error:
        record.fault = error.code
        if isinstance(error, ModelError) and error.usage is not None:
            record.usage = error.usage
        raise
    except (Stopped, GeneratorExit):
        record.fault = STOPPED
        raise
    finally:
        record.close()


def write_whole(
    model: TextModel, prompt: Prompt, attempt_budget: AttemptBudget, purpose: Purpose = "answer"
) -> WrittenAnswer:
    """Run :func:`write` to its end and return the whole answer."""
    pieces = write(model, prompt, attempt_budget, purpose)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            written: WrittenAnswer = end.value
            return written


def note_call(call: ModelCall, attempt_budget: AttemptBudget) -> None:
    """Record a use of a model on the attempt's budget and in the request trace."""
    attempt_budget.note(call)
    price = cost(call.model_id, call.usage) if call.usage.reported else None
    log_event(
        logger,
        "model_call",
        "model called",
        level=logging.WARNING if call.fault not in (None, STOPPED) else logging.INFO,
        purpose=call.purpose,
        model_id=call.model_id,
        calls=call.calls,
        input_tokens=call.usage.input_tokens,
        output_tokens=call.usage.output_tokens,
        cost_usd=price.usd if price else None,
        took_ms=call.took_ms,
        first_piece_ms=call.first_piece_ms,
        fault=call.fault,
    )


class _Record(CountedCallScope):
    """Counts and times one use of a model, as the model's call scope."""

    def __init__(self, model_id: str, purpose: Purpose, attempt_budget: AttemptBudget) -> None:
        super().__init__(attempt_budget)
        self.usage = Usage(reported=False)
        self.fault: str | None = CicadaError.code  # holds for an unexpected exception; every known end overwrites it
        self._model_id = model_id
        self._purpose = purpose
        self._attempt_budget = attempt_budget
        self._started = attempt_budget.monotonic()
        self._first_piece_ms: int | None = None

    def piece(self) -> None:
        if self._first_piece_ms is None:
            self._first_piece_ms = self._elapsed_ms()

    def close(self) -> None:
        call = ModelCall(
            purpose=self._purpose,
            model_id=self._model_id,
            calls=self.calls,
            usage=self.usage,
            took_ms=self._elapsed_ms(),
            first_piece_ms=self._first_piece_ms,
            fault=self.fault,
        )
        note_call(call, self._attempt_budget)

    def _elapsed_ms(self) -> int:
        return round((self._attempt_budget.monotonic() - self._started) * 1000)
