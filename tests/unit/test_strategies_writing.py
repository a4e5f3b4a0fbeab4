"""One use of a text model: within the attempt's budget, noted and logged however it ends."""

from __future__ import annotations

import logging

import pytest

from cicada.attempts.budgets import ModelCall
from cicada.attempts.writing import write, write_whole
from cicada.errors import AnswerIncomplete, AnswerTruncated, BudgetSpent, ModelBusy, OutOfTime, StreamBroken
from cicada.models.ports import Finished, Prompt, Stopped, TextDelta, Usage
from tests.support.answers import new_budget
from tests.support.breakers import Clock
from tests.support.questions import ScriptedModel

PROMPT = Prompt("Be brief.", "Who?")


class TimedModel(ScriptedModel):
    """Half a second until the first piece, and as long for each further step."""

    def __init__(self, clock, *pieces):
        super().__init__(*pieces)
        self.clock = clock

    def stream(self, prompt, *, time_budget_s, call_scope):
        self.time_budget_s = time_budget_s
        for step in super().stream(prompt, time_budget_s=time_budget_s, call_scope=call_scope):
            self.clock.pass_s(0.5)
            yield step


def noted(attempt_budget):
    (call,) = attempt_budget.made
    return call


def test_the_pieces_are_passed_on_and_the_whole_is_returned():
    pieces = write(ScriptedModel("Ma", "ra"), PROMPT, new_budget())
    assert [next(pieces), next(pieces)] == [TextDelta("Ma"), TextDelta("ra")]
    with pytest.raises(StopIteration) as end:
        next(pieces)
    assert (end.value.value.text, end.value.value.finished.usage) == ("Mara", Usage(100, 10))


def test_who_has_no_use_for_pieces_gets_the_whole():
    attempt_budget = new_budget()
    written = write_whole(ScriptedModel("What did ", "Mara say?"), PROMPT, attempt_budget, "complete_question")
    assert written.text == "What did Mara say?"
    assert noted(attempt_budget).purpose == "complete_question"


def test_what_a_call_took_is_noted_and_told(caplog):
    caplog.set_level(logging.INFO, "cicada")
    clock = Clock(0)
    model = TimedModel(clock, "Ma", "ra")
    model.model_id = "us.amazon.nova-micro-v1:0"
    attempt_budget = new_budget(clock=clock, left_s=30)
    write_whole(model, PROMPT, attempt_budget)
    assert model.time_budget_s == 30
    assert noted(attempt_budget) == ModelCall(
        purpose="answer",
        model_id="us.amazon.nova-micro-v1:0",
        calls=1,
        usage=Usage(100, 10),
        took_ms=1500,
        first_piece_ms=500,
    )
    (record,) = [record for record in caplog.records if record.step == "model_call"]
    told = record.__dict__
    assert (told["purpose"], told["calls"], told["input_tokens"], told["output_tokens"]) == ("answer", 1, 100, 10)
    assert (told["took_ms"], told["first_piece_ms"], told["fault"]) == (1500, 500, None)
    assert told["cost_usd"] == pytest.approx(100 * 0.035e-6 + 10 * 0.14e-6)


def truncated(usage):
    error = AnswerTruncated("max_tokens")
    error.usage = usage
    return error


@pytest.mark.parametrize(
    ("pieces", "error", "first_piece", "usage"),
    [
        ([ModelBusy("throttled")], ModelBusy, False, Usage(reported=False)),
        (["Half an ans", StreamBroken("cut")], StreamBroken, True, Usage(reported=False)),
        (["Half an ans", truncated(Usage(90, 512))], AnswerTruncated, True, Usage(90, 512)),
        ([" ", "\n"], AnswerIncomplete, True, Usage(100, 10)),
    ],
)
def test_a_call_that_fails_is_noted_with_what_is_known_of_it(caplog, pieces, error, first_piece, usage):
    attempt_budget = new_budget()
    with pytest.raises(error):
        write_whole(ScriptedModel(*pieces), PROMPT, attempt_budget)
    call = noted(attempt_budget)
    assert (call.calls, call.fault, call.usage) == (1, error.code, usage)
    assert (call.first_piece_ms is not None) == first_piece
    (told,) = [record for record in caplog.records if record.step == "model_call"]
    assert (told.fault, told.cost_usd is not None) == (error.code, usage.reported)


def test_a_stream_that_ends_without_its_finish_is_broken():
    class Cut(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            for step in super().stream(prompt, time_budget_s=time_budget_s, call_scope=call_scope):
                if not isinstance(step, Finished):
                    yield step

    attempt_budget = new_budget()
    with pytest.raises(StreamBroken):
        write_whole(Cut("Half an ans"), PROMPT, attempt_budget)
    assert noted(attempt_budget).fault == "stream_broken"


def test_every_call_that_goes_out_is_counted_retries_too():
    class Retries(ScriptedModel):
        def stream(self, prompt, *, time_budget_s, call_scope):
            call_scope.call()
            yield from super().stream(prompt, time_budget_s=time_budget_s, call_scope=call_scope)

    attempt_budget = new_budget(calls=2)
    write_whole(Retries("Mara"), PROMPT, attempt_budget)
    assert (noted(attempt_budget).calls, attempt_budget.spent.calls, attempt_budget.calls_left) == (2, 2, 0)


def test_without_a_call_left_none_goes_out():
    attempt_budget = new_budget(calls=0)
    model = ScriptedModel("never")
    with pytest.raises(BudgetSpent):
        write_whole(model, PROMPT, attempt_budget)
    assert (model.prompts, noted(attempt_budget).calls, noted(attempt_budget).fault) == ([], 0, "budget_spent")


@pytest.mark.parametrize("budget", [{"tokens": 4 * 512}, {"cost_usd": 0.0}])
def test_a_call_that_could_take_more_than_its_share_is_not_made(budget):
    model = ScriptedModel("never")
    model.model_id = "amazon.nova-pro-v1:0"
    attempt_budget = new_budget(**budget)
    with pytest.raises(BudgetSpent):
        write_whole(model, PROMPT, attempt_budget)
    assert (model.prompts, attempt_budget.made, attempt_budget.calls_left) == ([], [], 2)


def test_without_time_left_none_is_made():
    model = ScriptedModel("never")
    with pytest.raises(OutOfTime):
        write_whole(model, PROMPT, new_budget(left_s=0))
    assert model.prompts == []


def test_a_stop_reaches_the_model_and_passes_through():
    attempt_budget = new_budget()
    pieces = write(ScriptedModel("one ", "two ", "three"), PROMPT, attempt_budget)
    next(pieces)
    attempt_budget.stop()
    with pytest.raises(Stopped):
        next(pieces)
    assert noted(attempt_budget).fault == "stopped"


def test_a_reader_that_leaves_closes_the_model_and_the_call_is_noted(caplog):
    attempt_budget = new_budget()
    model = ScriptedModel("one ", "two ", "three")
    pieces = write(model, PROMPT, attempt_budget)
    next(pieces)
    pieces.close()
    assert model.closed_early == 1
    assert (noted(attempt_budget).fault, noted(attempt_budget).calls) == ("stopped", 1)
    assert all(record.levelno < logging.WARNING for record in caplog.records)


def test_a_bug_is_not_taken_for_a_stop():
    attempt_budget = new_budget()
    with pytest.raises(ZeroDivisionError):
        write_whole(ScriptedModel(ZeroDivisionError()), PROMPT, attempt_budget)
    assert noted(attempt_budget).fault == "internal"


def test_a_lone_surrogate_is_replaced():
    assert write_whole(ScriptedModel("The bell \ud83d", "rang."), PROMPT, new_budget()).text == "The bell ?rang."
