"""What a stream of Chat Completions says, where the wire plays no part."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import AnswerBlocked, AnswerMalformed, AnswerTruncated, StreamBroken
from cicada.models.openai_events import (
    DONE,
    MAX_EVENT_BYTES,
    ChunkReader,
    EventParser,
    ThoughtFilter,
    read_stop,
    read_usage,
)
from cicada.models.ports import TextDelta, Usage
from cicada.models.streaming import Stop


def parsed(*pieces: bytes) -> list[str]:
    parser = EventParser()
    return [data for piece in pieces for data in parser.feed(piece)]


def test_an_event_is_its_data_lines_and_what_else_it_carries_is_skipped():
    body = b"event: message\nid: 7\nretry: 10\ndata: one\ndata:two\ndata:  three\n\ndata: four\n\n"
    assert parsed(body) == ["one\ntwo\n three", "four"]


def test_a_comment_is_a_sign_of_life_and_an_event_without_data_is_nothing():
    assert parsed(b": keep-alive\n\nevent: ping\n\ndata: one\n\n") == ["", "one"]


def test_what_is_not_whole_at_the_end_is_no_event():
    assert parsed(b"data: one\n\ndata: two\n") == ["one"]


@settings(max_examples=60)
@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_it_makes_no_difference_how_a_stream_is_cut_into_pieces(texts, newline, cuts):
    body = "".join(f"data: {text}{newline}{newline}" for text in texts).encode()
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[begin:end] for begin, end in itertools.pairwise(places)]
    assert parsed(*pieces) == texts


def test_a_byte_order_mark_is_no_part_of_the_first_event():
    body = b"\xef\xbb\xbfdata: one\n\ndata: \xef\xbb\xbftwo\n\n"
    assert parsed(body) == ["one", "\ufefftwo"]
    assert parsed(*(body[place : place + 1] for place in range(len(body)))) == ["one", "\ufefftwo"]


@pytest.mark.parametrize("body", [b"data: \xff\n\n", b"data: \xe8\x91\n\n"])
def test_bytes_that_are_no_text_break_the_stream(body):
    with pytest.raises(StreamBroken, match="UTF-8"):
        parsed(body)


@pytest.mark.parametrize(
    "pieces",
    [[b"data: " + b"x" * MAX_EVENT_BYTES], [b"data: " + b"x" * 1000 + b"\n"] * 1100],
    ids=["one line", "many lines"],
)
def test_an_event_without_an_end_is_not_gathered_for_ever(pieces):
    with pytest.raises(StreamBroken, match="too long"):
        parsed(*pieces, b"y")


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def said(*chunks: Any) -> list[Any]:
    reader = ChunkReader()
    return [one for event in chunks for one in reader.read(event)]


COUNTS = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


def test_text_stop_and_usage_come_in_their_order():
    assert said(
        chunk({"role": "assistant", "content": ""}), chunk({"content": "Aoi"}), chunk({}, "stop"), {"usage": COUNTS}
    ) == [
        TextDelta("Aoi"),
        Stop("end_turn"),
        Usage(7, 2),
    ]


def test_one_chunk_may_say_all_of_it():
    assert said(chunk({"content": "Aoi"}, "stop", usage=COUNTS)) == [TextDelta("Aoi"), Stop("end_turn"), Usage(7, 2)]


def test_a_usage_that_grows_with_the_text_is_told_with_the_end():
    early = chunk({"content": "Aoi"}, usage={**COUNTS, "completion_tokens": 1})
    assert said(early, chunk({}, "stop"), DONE) == [TextDelta("Aoi"), Stop("end_turn"), Usage(7, 1)]


def test_a_stream_that_is_done_without_a_stop_has_said_nothing():
    assert said(chunk({"content": "Aoi"}), DONE) == [TextDelta("Aoi")]


def test_a_stream_that_is_done_without_a_usage_reports_none():
    assert said(chunk({}, "stop"), DONE) == [Stop("end_turn"), Usage(reported=False)]


def test_other_choices_reasoning_and_empty_chunks_are_skipped():
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    assert said({}, {"choices": []}, {"choices": None}, other, chunk({"reasoning": "Hm", "content": None})) == []


def test_a_choice_without_a_number_is_the_first():
    for choice in ({"index": None}, {}):
        found = said({"choices": [{**choice, "delta": {"content": "One."}, "finish_reason": "stop"}]})
        assert found == [TextDelta("One."), Stop("end_turn")]


def test_parts_of_text_are_text():
    assert said(chunk({"content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Aoi"}]})) == [
        TextDelta("Aoi")
    ]


def test_a_refusal_blocks_the_answer_whatever_the_model_stopped_for():
    assert said(chunk({"refusal": "I cannot"}), chunk({}, "stop"))[-1] == Stop("refusal", AnswerBlocked)


@pytest.mark.parametrize("broken", [{"choices": [7]}, {"choices": [{"delta": {"content": 7}}]}, {"choices": 7}])
def test_a_chunk_of_another_shape_breaks_the_stream(broken):
    with pytest.raises(StreamBroken):
        said(broken)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("stop", None),
        ("eos_token", None),
        ("STOP", None),
        ("end_turn", None),
        ("COMPLETE", None),
        ("MAX_TOKENS", AnswerTruncated),
        ("SAFETY", AnswerBlocked),
        ("refusal", AnswerBlocked),
        ("length", AnswerTruncated),
        ("content_filter", AnswerBlocked),
        ("tool_calls", AnswerMalformed),
        ("error", AnswerMalformed),
    ],
)
def test_every_finish_reason_has_its_meaning(reason, kind):
    assert read_stop(reason).incomplete is kind


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (COUNTS, Usage(7, 2)),
        ({**COUNTS, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(2, 2, 5)),
        ({**COUNTS, "prompt_cache_hit_tokens": 5}, Usage(2, 2, 5)),
        ({**COUNTS, "prompt_tokens_details": {"cached_tokens": 50}}, Usage(0, 2, 7)),
        # reasoning within the completion, and beside it
        ({**COUNTS, "completion_tokens_details": {"reasoning_tokens": 1}}, Usage(7, 2)),
        ({**COUNTS, "total_tokens": 19, "completion_tokens_details": {"reasoning_tokens": 10}}, Usage(7, 12)),
        ({"prompt_tokens": "7"}, Usage(reported=False)),
        ({"prompt_tokens": -7}, Usage(reported=False)),
        ({"prompt_tokens": 7, "prompt_tokens_details": 3}, Usage(reported=False)),
    ],
)
def test_tokens_are_counted_whoever_counts_them(counts, usage):
    assert read_usage(counts) == usage


# --- thoughts ---


def filtered(*pieces: str) -> str:
    thoughts = ThoughtFilter()
    return "".join([*(thoughts.feed(piece) for piece in pieces), thoughts.end()])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Aoi did.", "Aoi did."),
        ("<think>Who?</think>\n\nAoi did.", "Aoi did."),
        ("\n <think>\nWho? <b>\n</think>Aoi did.", "Aoi did."),
        ("<think>a</think><think>b</think> Aoi", "Aoi"),
        ("<thinking> is a tag", "<thinking> is a tag"),
        ("She wrote <think>no</think>.", "She wrote <think>no</think>."),
        ("<think>never closed", ""),
        ("<thi", "<thi"),
        (" ", " "),
        ("", ""),
    ],
)
def test_thoughts_at_the_beginning_are_left_out_and_nothing_else(text, kept):
    assert filtered(text) == kept
    assert filtered(*text) == kept


@settings(max_examples=80)
@given(st.text(alphabet="<think>/ a\n", max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_it_makes_no_difference_how_a_text_is_cut_into_pieces(text, cuts):
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(places)]
    assert filtered(*pieces) == filtered(text)


def test_what_is_no_thought_is_passed_on_at_once():
    thoughts = ThoughtFilter()
    assert [thoughts.feed(piece) for piece in ("A", "oi")] == ["A", "oi"]


def test_a_chunk_is_json_of_its_event():
    assert json.loads(parsed(b'data: {"choices": []}\n\n')[0]) == {"choices": []}
