"""The tools of a run: what a model gives is hostile, and what it may do is counted."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.agents.limits import AgentCaps
from cicada.agents.ports import MAX_OUTPUT_CHARS, Actor, ProfileWritten, ToConfirm, ToolCall
from cicada.agents.receipts import change_words
from cicada.agents.source_registry import MAX_REASONS, MAX_SOURCES, NumberedSources
from cicada.agents.tool_runner import MAX_INPUT_CHARS, ToolRunner, bounded
from cicada.errors import (
    AgentCapReached,
    DeliveryUnavailable,
    IndexUnavailable,
    OutOfTime,
    ProfileConflict,
    ToolInvalid,
)
from cicada.models.ports import Stopped
from cicada.protocol.events import Reason
from cicada.retrieval.ports import UNLIMITED, TimeLimit
from cicada.rights import EVERYTHING
from tests.support.agents import FakeTool, found, written

ME = Actor("tenant/me", "request-1", "Note that Mira rows.", 1_700_000_000_000, readable=EVERYTHING)


class Box:
    """A tool runner with one tool that reads and one that writes."""

    def __init__(self, caps: AgentCaps | None = None, limits=UNLIMITED, may_write=lambda: True):
        self.look, self.note = FakeTool("look"), FakeTool("note", written, writes=True)
        self.registry = NumberedSources()
        self.changes: list[ProfileWritten | ToConfirm] = []
        self.box = ToolRunner(
            [self.look, self.note],
            actor=ME,
            registry=self.registry,
            limits=limits,
            caps=caps,
            may_write=may_write,
            on_change=self.changes.append,
        )

    def call(self, name="look", given=None, call_id="c1"):
        return self.box.call(ToolCall(call_id, name, {"words": "x"} if given is None else given))


def test_a_valid_call_runs_in_the_users_name_and_its_result_is_told():
    box = Box()
    reply = box.call(given={"words": "rows"})
    assert (reply.call_id, reply.name, reply.failed) == ("c1", "look", False)
    assert json.loads(reply.text) == {"said": "rows"}
    assert [(actor, given.words) for actor, given in box.look.runs] == [(ME, "rows")]


@pytest.mark.parametrize(
    "given",
    [
        {"words": 7},
        {"words": "x", "subject": "tenant/you"},
        {"actor": {"subject": "tenant/you"}},
        "no JSON at all",
        ["words"],
        None,
        {"words": float("nan")},
        {"words": "x" * (MAX_INPUT_CHARS + 1)},
        {"words": {1, 2}},
    ],
)
def test_input_that_does_not_fit_runs_nothing_and_is_told(given):
    box = Box()
    reply = box.box.call(ToolCall("c1", "look", given))
    assert reply.failed
    assert json.loads(reply.text)["error"] == "tool_invalid"
    assert box.look.runs == []


def test_input_that_is_nested_without_end_is_refused():
    deep: list[Any] = []
    deep.append(deep)
    reply = Box().box.call(ToolCall("c1", "look", {"words": deep}))
    assert reply.failed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(name=st.sampled_from(["look", "note", "drop", ""]) | st.text(max_size=10), value=JSON)
def test_whatever_a_model_writes_is_a_reply_and_nobody_else_acts(name, value):
    box = Box()
    reply = box.box.call(ToolCall("c1", name, value))
    assert len(reply.text) <= MAX_OUTPUT_CHARS
    json.loads(reply.text)
    assert {actor for tool in (box.look, box.note) for actor, _ in tool.runs} <= {ME}
    assert len(box.look.runs) + len(box.note.runs) == (0 if reply.failed else 1)


def test_an_unknown_tool_is_told_which_there_are_and_its_name_is_not_logged(caplog):
    caplog.set_level(logging.INFO)
    box = Box()
    reply = box.call("secret words of a question", {})
    assert reply.failed
    assert "look, note" in reply.text
    assert all("secret words" not in str(record.__dict__) for record in caplog.records)
    assert box.box.records[0].name == "unknown"


def test_no_text_of_a_call_stands_in_a_log_line(caplog):
    caplog.set_level(logging.DEBUG)
    Box().call(given={"words": "the asker's secret"})
    lines = [record for record in caplog.records if getattr(record, "step", None) == "tool_call"]
    assert [(line.tool, line.by, line.fault) for line in lines] == [("look", "model", None)]
    assert all("secret" not in str(record.__dict__) for record in caplog.records)


# --- errors of tools ---


def test_what_a_tool_says_to_the_model_is_passed_on_and_what_is_for_the_log_is_not():
    box = Box()

    def conflict(given, registry):
        raise ProfileConflict("version 4 is current")

    def fault(given, registry):
        raise IndexUnavailable("arn:aws:s3:::a-bucket did not respond")

    box.look.result, box.note.result = conflict, fault
    assert "version 4 is current" in box.call().text
    reply = box.call("note")
    assert reply.failed
    assert "a-bucket" not in reply.text
    assert json.loads(reply.text)["error"] == "index_unavailable"


@pytest.mark.parametrize("error", [OutOfTime("late"), Stopped("gone")])
def test_the_end_of_the_run_is_no_reply(error):
    box = Box()

    def ends(given, registry):
        raise error

    box.look.result = ends
    with pytest.raises(type(error)):
        box.call()


# --- caps and loops ---


def test_calls_are_capped_failed_ones_too():
    box = Box(AgentCaps(max_tool_calls=2))
    box.call(given={"words": "a"})
    box.call("drop", {})
    with pytest.raises(AgentCapReached, match="tool calls"):
        box.call(given={"words": "b"})


def test_turns_are_capped_and_need_time():
    box = Box(AgentCaps(max_turns=2))
    box.box.turn()
    box.box.turn()
    with pytest.raises(AgentCapReached, match="turns"):
        box.box.turn()
    with pytest.raises(OutOfTime):
        Box(limits=TimeLimit(lambda: 0.0)).box.turn()


def test_a_call_that_is_repeated_is_told_the_same_again_without_a_second_run_and_then_is_a_loop():
    box = Box()
    first, second = box.call(given={"words": "a"}), box.call(given={"words": "a"}, call_id="c2")
    assert (second.call_id, second.text) == ("c2", first.text)
    assert len(box.look.runs) == 1
    assert box.box.records[-1].repeated
    with pytest.raises(AgentCapReached, match="loop"):
        box.call(given={"words": "a"})


def test_the_order_of_an_inputs_keys_makes_no_other_call():
    box = Box()
    box.call(given={"words": "a", "times": 2})
    box.call(given={"times": 2, "words": "a"})
    assert len(box.look.runs) == 1


def test_the_same_mistake_again_and_again_is_a_loop():
    box = Box()
    box.call(given={"words": 1})
    box.call(given={"words": 1})
    with pytest.raises(AgentCapReached, match="loop"):
        box.call(given={"words": 1})


def test_after_a_change_the_same_look_is_another_one():
    box = Box()
    box.call(given={"words": "a"})
    box.call("note", {"words": "b"})
    box.call(given={"words": "a"})
    assert len(box.look.runs) == 2


def test_a_change_that_is_asked_for_again_is_made_once():
    box = Box()
    box.call("note", {"words": "b"})
    box.call(given={"words": "a"})
    box.call("note", {"words": "b"})
    assert len(box.note.runs) == 1


# --- writes ---


class StoppedLimits(TimeLimit):
    """Nobody wants the answer any more."""

    def on_stop(self, wake):
        wake()
        return lambda: None


@pytest.mark.parametrize("name", ["look", "note"])
def test_nothing_is_run_once_nobody_wants_the_answer(name):
    box = Box(limits=StoppedLimits(lambda: 9.0))
    with pytest.raises(Stopped):
        box.call(name)
    with pytest.raises(Stopped):
        box.box.open(name, {"words": "x"})
    with pytest.raises(Stopped):
        box.box.turn()
    assert (box.look.runs, box.note.runs) == ([], [])


def test_a_run_that_answers_its_request_no_more_may_look_and_may_not_write():
    box = Box(may_write=lambda: False)
    assert not box.call("look").failed
    with pytest.raises(Stopped):
        box.call("note")
    assert (box.note.runs, box.changes, box.box.changes) == ([], [], 0)


def test_a_stop_while_the_right_to_write_is_looked_up_counts():
    stops: list[object] = []

    class Late(TimeLimit):
        def on_stop(self, wake):
            if stops:
                wake()
            return lambda: None

    def may_write():
        stops.append(1)
        return True

    box = Box(limits=Late(lambda: 9.0), may_write=may_write)
    with pytest.raises(Stopped):
        box.call("note")
    assert box.note.runs == []


def test_where_the_right_to_write_cannot_be_looked_up_nothing_is_written_and_the_model_is_told():
    def unknown():
        raise DeliveryUnavailable("the table arn:aws:secret")

    box = Box(may_write=unknown)
    reply = box.call("note")
    assert (reply.failed, json.loads(reply.text)["error"]) == (True, "delivery_unavailable")
    assert "secret" not in reply.text
    assert box.note.runs == []


def test_each_change_is_told_once_it_is_made():
    box = Box()
    box.call("look")
    box.call("note", {"words": "Corin"})
    box.call("note", {"words": 7})
    (told,) = box.changes
    assert isinstance(told, ProfileWritten)
    assert change_words(told.change) == "created the character “Corin”"
    assert box.box.changes == 1


def test_what_waits_for_the_user_is_told_and_is_no_change_yet():
    box = Box()
    waits = ToConfirm({"result": "confirmation_required"}, "0" * 32, "delete", "1" * 20, "character", "Mira", 1, (), 9)
    box.note.result = lambda given, registry: waits
    reply = box.call("note")
    assert json.loads(reply.text) == {"result": "confirmation_required"}
    assert (box.changes, box.box.changes) == ([waits], 1)


# --- calls by code ---


def test_calls_by_code_count_towards_no_cap_and_are_known_when_the_model_repeats_them():
    box = Box(AgentCaps(max_tool_calls=1))
    done = box.box.open("look", {"words": "a"})
    assert (done.call.name, done.reply.call_id) == ("look", done.call.call_id)
    assert box.call(given={"words": "a"}).text == done.reply.text
    assert len(box.look.runs) == 1
    assert [record.by for record in box.box.records] == ["code", "model"]


def test_a_failed_call_by_code_is_raised():
    box = Box()

    def fault(given, registry):
        raise IndexUnavailable("down")

    box.look.result = fault
    with pytest.raises(IndexUnavailable):
        box.box.open("look", {"words": "a"})
    assert [record.fault for record in box.box.records] == ["index_unavailable"]
    with pytest.raises(ToolInvalid):
        box.box.open("drop", {})


def test_two_tools_of_one_name_are_a_mistake():
    with pytest.raises(ValueError, match="duplicate tool names"):
        ToolRunner([FakeTool("a"), FakeTool("a")], actor=ME, registry=NumberedSources(), limits=UNLIMITED)


# --- the registry ---


def test_a_passage_lies_on_the_registry_once_whichever_tools_bring_it():
    registry = NumberedSources()
    one, two = found(1, "Mira rows."), found(2, "Ren waits.")
    searched, weighed = Reason(kind="tool", name="search_script"), Reason(kind="tool", name="gather_evidence")
    assert [registry.put(one.model_copy(update={"why": (searched,)})), registry.put(two)] == [1, 2]
    assert registry.put(one.model_copy(update={"why": (weighed,), "n": 9})) == 1
    assert [(source.n, source.text) for source in registry.sources] == [(1, "Mira rows."), (2, "Ren waits.")]
    assert registry.sources[0].why == (searched, weighed)


def gathered(of: str, confidence: float = 0.5) -> Reason:
    return Reason(kind="tool", name="gather_evidence", matched=f"for: {of}", confidence=confidence)


def test_of_too_many_reasons_those_that_only_name_a_tool_go_first_and_then_the_oldest():
    registry = NumberedSources()
    plain = [Reason(kind="tool", name=f"tool_{n}") for n in range(MAX_REASONS)]
    for why in (*plain, gathered("a")):
        registry.put(found(1, "Mira rows.").model_copy(update={"why": (why,)}))
    assert registry.sources[0].why == (*plain[: MAX_REASONS - 1], gathered("a"))
    for name in "bcde":
        registry.put(found(1, "Mira rows.").model_copy(update={"why": (gathered(name),)}))
    assert registry.sources[0].why == tuple(map(gathered, "bcde"))


def test_a_reason_that_is_given_again_is_the_newest():
    registry = NumberedSources()
    for why in (gathered("a"), gathered("b"), gathered("a", 0.9)):
        registry.put(found(1, "Mira rows.").model_copy(update={"why": (why,)}))
    assert registry.sources[0].why == (gathered("b"), gathered("a", 0.9))


def test_a_source_has_the_version_of_the_index_that_it_was_last_found_in():
    registry = NumberedSources()
    registry.put(found(1, "Mira rows."))
    assert registry.version_of(1) == ""
    registry.put(found(1, "Mira rows."), "v1")
    registry.put(found(2, "Ren waits."), "v1")
    registry.put(found(1, "Mira rows."))
    assert [registry.version_of(n) for n in (0, 1, 2, 3)] == ["", "v1", "v1", ""]
    assert registry.version == "v1"


def test_no_registry_holds_passages_of_two_versions_of_the_index():
    registry = NumberedSources()
    registry.put(found(1, "Mira rows."), "v1")
    with pytest.raises(ToolInvalid, match="new index version"):
        registry.put(found(2, "Ren waits."), "v2")
    with pytest.raises(ToolInvalid, match="new index version"):
        registry.put(found(1, "Mira rows."), "v2")
    assert [registry.version_of(n) for n in (1, 2)] == ["v1", ""]


def test_a_note_that_has_changed_is_another_source():
    registry = NumberedSources()
    assert registry.put(found(1, "Mira rows.")) == 1
    assert registry.put(found(1, "Mira rows no more.")) == 2


def test_a_full_registry_takes_nothing_more_and_says_so():
    registry = NumberedSources()
    for n in range(MAX_SOURCES):
        registry.put(found(n, f"Passage {n}."))
    with pytest.raises(ToolInvalid, match="answer from these"):
        registry.put(found(999, "One more."))
    assert registry.put(found(0, "Passage 0.")) == 1


# --- output ---


def test_a_result_that_is_too_long_loses_its_longest_texts_first_and_says_so():
    result = {"passages": [{"n": n, "text": "words " * 2_000} for n in range(5)], "note": "short"}
    told = json.loads(bounded(result))
    assert told["clipped"] is True
    assert told["note"] == "short"
    assert [one["n"] for one in told["passages"]] == list(range(5))


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=6), JSON.filter(lambda value: value == value), max_size=5))
def test_a_result_is_json_within_its_bound_whatever_it_holds(result):
    text = bounded(result, 80)
    assert len(text) <= 80
    json.loads(text)
