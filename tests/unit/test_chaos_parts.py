"""The parts of a chaos run that need no cloud: what is drawn, what the model said, whose call it was."""

from __future__ import annotations

import itertools
import random

import pytest

from cicada_local.bedrock.event_stream import encode_event, encode_exception
from tests.chaos import faults
from tests.chaos.attribution import attribute
from tests.chaos.faults import Faults
from tests.chaos.model_stream import has_ended, read_response
from tests.chaos.model_watch import ModelCall
from tests.chaos.plans import KINDS, Planner
from tests.chaos.questions import POLICIES, SMALL_TALK, questions
from tests.chaos.record import Followed

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"


def delta(text):
    return encode_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}})


def stop(reason="end_turn"):
    return encode_event("messageStop", {"stopReason": reason})


def chunked(*parts):
    """A response with chunked encoding."""
    body = b"".join(f"{len(part):x}".encode() + b"\r\n" + part + b"\r\n" for part in parts)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body


# --- what the model said ---


def test_a_whole_stream_is_read_with_its_stop_reason():
    said = read_response("converse-stream", chunked(delta("Ilse "), delta("counted."), stop()) + b"0\r\n\r\n")
    assert (said.status, said.text, said.stop_reason, said.whole) == (200, "Ilse counted.", "end_turn", True)


@pytest.mark.parametrize(
    "end",
    [
        b"",
        delta("never")[:20],
        delta("never")[:-1] + b"\x00",
        encode_exception("throttlingException", {"message": "slow down"}),
    ],
    ids=["nothing", "half a frame", "a corrupt frame", "an exception"],
)
def test_of_a_broken_stream_is_read_what_came_before(end):
    said = read_response("converse-stream", chunked(delta("Ilse "), end or delta("")))
    assert (said.text, said.whole) == ("Ilse ", False)


def test_a_stream_that_is_cut_within_a_chunk_is_read_up_to_there():
    said = read_response("converse-stream", chunked(delta("Ilse "), delta("counted."))[:-30])
    assert (said.text, said.whole) == ("Ilse ", False)


def test_a_close_delimited_stream_is_read():
    said = read_response("converse-stream", HEAD + b"\r\n" + delta("Ilse ") + stop("max_tokens"))
    assert (said.text, said.stop_reason, said.whole) == ("Ilse ", "max_tokens", False)


def test_a_refusal_says_nothing():
    raw = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}"
    assert (read_response("converse-stream", raw).status, read_response("converse-stream", raw).text) == (429, "")
    assert read_response("converse-stream", b"").status == 0


def test_a_whole_turn_is_read():
    body = b'{"output":{"message":{"content":[{"text":"Yes."}]}},"stopReason":"end_turn"}'
    assert read_response("converse", HEAD + b"\r\n" + body).text == "Yes."
    assert not read_response("converse", HEAD + b"\r\n" + body[:30]).whole


def test_the_end_of_a_response_is_told_from_its_middle():
    whole = chunked(delta("Ilse ")) + b"0\r\n\r\n"
    assert has_ended(whole)
    assert not any(has_ended(whole[:length]) for length in range(len(whole)))
    counted = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    assert has_ended(counted)
    assert not has_ended(counted[:-1])


# --- whose call it was ---


def call(prompt, at=10.0, operation="converse-stream"):
    return ModelCall("local.extractive", operation, prompt, at)


def request(number, question, *, asked_at=5.0, ended_at=20.0, log=()):
    return Followed(number, f"r{number}", question, asked_at=asked_at, ended_at=ended_at, log=log)


def test_a_call_is_its_questions():
    calls = [call("<question>\nWho rang?\n</question>"), call("<question>\nWho &amp; why?\n</question>"), call("else")]
    evidence, unknown = attribute(calls, [request(1, "Who rang?"), request(2, "Who & why?")])
    assert {name: len(found.said) for name, found in evidence.items()} == {"r1": 1, "r2": 1}
    assert unknown == 1


def test_calls_for_a_search_are_counted_beside_those_that_write():
    calls = [call("Who rang?", operation="converse"), call("Who rang?", operation="converse"), call("Who rang?")]
    evidence, _ = attribute(calls, [request(1, "Who rang?")])
    assert (len(evidence["r1"].said), evidence["r1"].retrieval_calls) == (1, 2)


def test_of_several_questions_in_a_prompt_the_last_counts():
    evidence, _ = attribute(
        [call("Who rang? … And who heard it?")], [request(1, "Who rang?"), request(2, "And who heard it?")]
    )
    assert set(evidence) == {"r2"}


def test_a_question_that_holds_another_one_is_told_apart():
    evidence, _ = attribute([call("Say, who rang?")], [request(1, "who rang?"), request(2, "Say, who rang?")])
    assert set(evidence) == {"r2"}


def test_a_completed_question_is_found_by_what_its_sources_say():
    completed = ({"type": "sources", "query": "Who heard the bell?"},)
    evidence, _ = attribute([call("Who heard the bell?")], [request(1, "And who heard it?", log=completed)])
    assert set(evidence) == {"r1"}


def test_only_a_request_that_was_open_can_have_called():
    requests = [request(1, "Who rang?", ended_at=6.0), request(2, "Who rang?", asked_at=9.0)]
    assert set(attribute([call("Who rang?")], requests)[0]) == {"r2"}
    assert attribute([call("Who rang?", at=100.0)], requests) == ({}, 1)


# --- what is drawn ---


def test_every_fault_comes_once_before_any_comes_again():
    drawn = Faults(random.Random(1))
    first = [next(drawn) for _ in faults.ALL]
    assert sorted(fault.told for fault in first) == sorted(fault.told for fault in faults.ALL)
    assert drawn.due == 0
    assert next(drawn).name in {fault.name for fault in faults.ALL}


def test_the_catalogue_has_every_cut_and_tells_each_fault_by_its_own_words():
    cuts = {fault.params["mode"] for fault in faults.ALL if fault.name == "bedrock.cut"}
    assert cuts == set(faults.CUT_MODES)
    assert {"bedrock.cut stall", "dynamodb.throttle UpdateItem", "gateway.busy"} <= {fault.told for fault in faults.ALL}


def test_the_same_seed_draws_the_same():
    def drawn(seed):
        planner, found = Planner(random.Random(seed)), Faults(random.Random(seed))
        asked = itertools.islice(questions(random.Random(seed)), 50)
        return [planner.draw() for _ in range(50)], [next(found) for _ in range(50)], list(asked)

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_every_kind_of_drop_is_planned_before_any_comes_again():
    planner = Planner(random.Random(3))
    kinds = [drop.kind for _ in range(60) for drop in planner.draw().drops]
    rounds = zip(*[iter(kinds)] * len(KINDS), strict=False)
    assert all(set(one) == set(KINDS) for one in list(rounds)[:5])


def test_a_drop_that_did_not_happen_is_planned_next():
    planner = Planner(random.Random(3))
    planner.draw_next(["fallback"])
    kinds = [drop.kind for _ in range(20) for drop in planner.draw().drops]
    assert kinds[0] == "fallback"
    assert set(kinds[1 : 1 + len(KINDS)]) == set(KINDS)


def test_plans_hold_every_fate():
    plans = [planner.draw() for planner in [Planner(random.Random(5))] for _ in range(200)]
    assert {plan.second for plan in plans} == {"none", "resumes", "asks"}
    assert any(plan.leaves_at for plan in plans)
    assert any(plan.cancels_after_s is not None for plan in plans)
    assert all(plan.second == "none" for plan in plans if plan.leaves_at)


def test_no_question_comes_twice_until_all_have_come():
    asked = [one.text for one in itertools.islice(questions(random.Random(2)), 500)]
    assert len(set(asked)) == len(asked)
    assert any(one in asked for one in SMALL_TALK)
    assert any(one in asked for one in POLICIES)
