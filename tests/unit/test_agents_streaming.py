"""What the agent's own loop is made of: a turn put together from a stream, held text, estimates and limits."""

from __future__ import annotations

from typing import Any

import pytest

from cicada.agents.exchange import AgentExchange, json_tokens
from cicada.agents.limits import AgentCaps, CappedLimits, timed
from cicada.agents.looping import HOLD_CHARS, HeldText, LoopingAgent
from cicada.agents.ports import Actor, AgentTask, Done, ToolCall, ToolReply
from cicada.agents.source_registry import NumberedSources
from cicada.agents.tool_runner import ToolRunner
from cicada.errors import (
    AgentCapReached,
    AgentError,
    AgentUnavailable,
    AnswerMalformed,
    BudgetSpent,
    CicadaError,
    ModelBusy,
    ModelUnavailable,
    OutOfTime,
    StreamBroken,
)
from cicada.models.converse import StreamedTurn, ToolUse, read_event
from cicada.models.ports import ModelUse, TextDelta, Usage
from cicada.models.streaming import Stop
from cicada.retrieval.ports import UNLIMITED, TimeLimit
from cicada.rights import EVERYTHING
from cicada.text.tokens import estimated_tokens
from tests.support.agents import FakeTool
from tests.support.breakers import Clock

# --- a turn ---


def start(index, use_id, name):
    return {
        "contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": use_id, "name": name}}}
    }


def delta(index, **content):
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": content}}


def turn_of(*events):
    turn = StreamedTurn()
    for event in events:
        turn.add(event)
    return turn


def test_a_tools_input_is_put_together_from_its_pieces():
    turn = turn_of(
        start(1, "a", "look"),
        delta(1, toolUse={"input": '{"wor'}),
        start(2, "b", "list"),
        delta(1, toolUse={"input": 'ds": "x"}'}),
    )
    assert turn.uses == (ToolUse("a", "look", {"words": "x"}), ToolUse("b", "list", {}))


@pytest.mark.parametrize("written", ['{"words": ', "[" * 100_000, "{'words': 1}"])
def test_an_input_that_is_no_json_is_kept_as_it_was_written_and_given_back_empty(written):
    turn = turn_of(start(0, "a", "look"), delta(0, toolUse={"input": written}))
    assert turn.uses[0].given == written
    assert turn.content == [{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}]


def test_reasoning_is_given_back_as_it_came_and_text_beside_a_tools_use_is_not():
    turn = turn_of(
        delta(0, reasoningContent={"text": "I should "}),
        delta(0, reasoningContent={"text": "look."}),
        delta(0, reasoningContent={"signature": "c2lnbmVk"}),
        delta(1, reasoningContent={"redactedContent": b"\x01\x02"}),
        delta(2, text="Let me look."),
        start(3, "a", "look"),
    )
    assert turn.content == [
        {"reasoningContent": {"reasoningText": {"text": "I should look.", "signature": "c2lnbmVk"}}},
        {"reasoningContent": {"redactedContent": b"\x01\x02"}},
        {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}},
    ]


def test_text_that_is_out_is_given_back_beside_a_tools_use():
    turn = turn_of(delta(0, text="Mira rows. "), start(1, "a", "look"))
    turn.shown = True
    assert turn.content == [
        {"text": "Mira rows. "},
        {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}},
    ]


def test_a_turn_of_text_alone_is_given_back_without_blank_blocks():
    assert turn_of(delta(0, text=" \n"), delta(1, text="Mira "), delta(1, text="rows.")).content == [
        {"text": "Mira rows."}
    ]


def test_an_event_that_lacks_what_it_must_have_breaks_the_stream():
    with pytest.raises(StreamBroken):
        turn_of({"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"name": "look"}}}})
    with pytest.raises(StreamBroken):
        turn_of({"contentBlockDelta": {"delta": {"text": "x"}}})


def test_kinds_of_events_that_are_not_known_are_passed_over():
    turn = turn_of({"messageStart": {"role": "assistant"}}, delta(0, citation={"title": "?"}), {"next_years": {}})
    assert (turn.uses, turn.content, turn.uses_tools) == ((), [], False)


# --- held text ---


def test_a_short_turn_comes_out_at_its_end():
    text = HeldText()
    assert [text.feed("Mira "), text.feed("rows."), text.turn_over()] == ["", "", "Mira rows."]


def test_a_long_turn_streams_once_it_has_outgrown_what_is_held():
    text = HeldText()
    assert text.feed("a" * HOLD_CHARS) == ""
    assert text.feed("b") == "a" * HOLD_CHARS + "b"
    assert text.feed("c") == "c"
    assert text.turn_over() == ""


def test_what_is_held_is_dropped_when_the_turn_uses_a_tool():
    text = HeldText()
    text.feed("Let me look.")
    text.tool_used()
    assert [text.feed("Looking."), text.turn_over()] == ["", ""]
    assert [text.feed("Found."), text.turn_over()] == ["", "Found."]


def test_what_is_out_already_stays_and_a_blank_line_follows_it():
    text = HeldText()
    long = "a" * (HOLD_CHARS + 1)
    assert text.feed(long) == long
    text.tool_used()
    text.turn_over()
    text.feed("\nFound.")
    assert text.turn_over() == "\n\nFound."


def test_a_blank_turn_says_nothing():
    text = HeldText()
    text.feed(" \n" * HOLD_CHARS)
    assert text.turn_over() == ""


def test_a_turn_that_is_asked_for_again_leaves_no_trace():
    text = HeldText()
    text.feed("Let me")
    text.drop()
    text.feed("Mira rows.")
    assert text.turn_over() == "Mira rows."


# --- the loop ---


class Played(LoopingAgent):
    """Plays turns, and keeps what the model was given to read."""

    def __init__(self, *turns):
        super().__init__(object(), "local.m", max_turn_tokens=100)
        self.turns = list(turns)
        self.heard = []

    def call(self, task, exchange, turn, *, left_s):
        self.heard.append(list(exchange.messages))
        return PlayedCall(self.turns.pop(0), turn)

    def answer(self, *tools):
        box = ToolRunner(
            tools,
            actor=Actor("me", "r", "Who rows?", 1, readable=EVERYTHING),
            registry=NumberedSources(),
            limits=UNLIMITED,
        )
        steps = self.run(AgentTask("Rules.", "Who rows?"), box, Purse())
        return "".join(step.text for step in steps if isinstance(step, TextDelta))


class Events(list[Any]):
    def close(self):
        """Nothing is held."""


class PlayedCall:
    def __init__(self, events, turn):
        self.events, self.turn = events, turn

    def open(self):
        return Events(self.events)

    def read(self, event):
        if isinstance(event, Stop):
            return (event,)
        self.turn.add(event)
        said = read_event(event)
        return () if said is None else (said,)

    def failure(self, error, *, opened):
        return None

    def learn(self, failure):
        return False


def test_a_malformed_turn_is_asked_for_again_and_no_blank_line_begins_the_answer():
    played = Played(
        [delta(0, text="Let me"), Stop("malformed_model_output", AnswerMalformed)],
        [delta(0, text="Mira rows."), Stop("end_turn", None)],
    )
    assert played.answer() == "Mira rows."


@pytest.mark.parametrize(("text", "given_back"), [("Long. " * HOLD_CHARS, True), ("Short.", False)])
def test_a_model_is_given_back_what_it_has_said_of_the_answer(text, given_back):
    played = Played(
        [delta(0, text=text), start(1, "a", "look"), Stop("tool_use", None)],
        [delta(0, text="Mira rows."), Stop("end_turn", None)],
    )
    said = played.answer(FakeTool("look"))
    assert ("Long." in said, said.endswith("Mira rows.")) == (given_back, True)
    assert ({"text": text} in played.heard[1][1]["content"]) == given_back


# --- estimates ---


@pytest.mark.parametrize(
    "text", ["彼女は灯台の鍵を盗んだ。" * 80, "Она украла ключ от маяка. " * 80, "1234567890 " * 200]
)
def test_other_scripts_and_digits_are_counted_as_estimates_of_prose_count_them(text):
    assert json_tokens({"text": text}) >= 0.9 * estimated_tokens(text)


def test_the_next_turns_input_is_estimated_from_what_the_last_was_reported_to_take():
    opening = Done(ToolCall("opening_1", "look", {"words": "x"}), ToolReply("opening_1", "look", "y" * 3_000))
    exchange = AgentExchange(AgentTask("Rules.", "Who rows?", (opening,)), [FakeTool("look")])
    assert 1_000 < exchange.input_tokens < 1_400
    turn = turn_of(start(0, "a", "look"))
    exchange.replied(turn, Usage(800, 30), [ToolReply("a", "look", "z" * 300)])
    assert 930 < exchange.input_tokens < 1_000
    before = exchange.input_tokens
    exchange.replied(turn, Usage(reported=False), [ToolReply("a", "look", "z" * 300)])
    assert before + 100 < exchange.input_tokens < before + 250


# --- limits ---


class Purse(TimeLimit):
    """Limits that remember what was allowed and noted."""

    allowed: list[Any]
    noted: list[Any]

    def __init__(self, left_s=100.0):
        super().__init__(lambda: left_s)
        object.__setattr__(self, "allowed", [])
        object.__setattr__(self, "noted", [])

    def allow(self, model_id, most):
        self.allowed.append(most)

    def note(self, use):
        self.noted.append(use)

    def check_time(self):
        """There is time."""


def used(usage):
    return ModelUse("agent", "local.m", 1, usage, 5)


def test_a_run_has_its_own_time_within_the_attempts():
    clock = Clock(0)
    limits = CappedLimits(Purse(left_s=100.0), AgentCaps(time_s=30), clock=clock)
    assert limits.time_left_s() == 30
    clock.now_s = 31
    assert limits.time_left_s() == 0
    with pytest.raises(AgentCapReached, match="time"):
        limits.call()
    assert CappedLimits(Purse(left_s=5.0), AgentCaps(time_s=30), clock=clock).time_left_s() == 5


@pytest.mark.parametrize("error", [AgentUnavailable("x"), ModelUnavailable("x"), OutOfTime("x"), StreamBroken("x")])
def test_what_breaks_off_because_the_time_is_over_is_told_as_that(error):
    def outcome(limits):
        with pytest.raises(CicadaError) as raised, timed(limits):
            raise error
        return raised.value

    clock = Clock(0)
    limits = CappedLimits(Purse(), AgentCaps(time_s=30), clock=clock)
    assert outcome(limits) is error
    clock.now_s = 30
    told = outcome(limits)
    assert isinstance(told, AgentCapReached)
    assert str(told) == "time: a run may take 30 s"
    assert isinstance(outcome(CappedLimits(Purse(left_s=0.0), AgentCaps(), clock=clock)), OutOfTime)


@pytest.mark.parametrize("error", [ModelBusy("throttled"), BudgetSpent("no call"), AgentError("denied")])
def test_what_has_nothing_to_do_with_time_is_told_as_it_is(error):
    limits = CappedLimits(Purse(left_s=0.0), AgentCaps())
    with pytest.raises(type(error)) as raised, timed(limits):
        raise error
    assert raised.value is error


def test_a_turn_that_could_outgrow_the_runs_tokens_is_not_made():
    limits = CappedLimits(Purse(), AgentCaps(max_tokens=1_000))
    limits.allow("local.m", Usage(600, 100))
    with pytest.raises(AgentCapReached, match="tokens"):
        limits.allow("local.m", Usage(600, 100))


def test_what_a_turn_did_not_take_is_there_for_the_next():
    limits = CappedLimits(Purse(), AgentCaps(max_tokens=1_000))
    for _ in range(5):
        limits.allow("local.m", Usage(600, 200))
        limits.note(used(Usage(30, 10)))
    limits.allow("local.m", Usage(600, 200))


def test_a_turn_whose_use_is_not_reported_is_taken_for_the_most():
    limits = CappedLimits(Purse(), AgentCaps(max_tokens=1_000))
    limits.allow("local.m", Usage(500, 100))
    limits.note(used(Usage(reported=False)))
    with pytest.raises(AgentCapReached):
        limits.allow("local.m", Usage(500, 100))


def test_what_the_attempt_refuses_is_not_counted():
    class Empty(Purse):
        def allow(self, model_id, most):
            raise BudgetSpent("nothing is left")

    limits = CappedLimits(Empty(), AgentCaps(max_tokens=1_000))
    for _ in range(3):
        with pytest.raises(BudgetSpent):
            limits.allow("local.m", Usage(600, 100))
