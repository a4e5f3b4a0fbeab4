"""OpenAiTextModel, by urllib3 over real HTTP, against every fault that an endpoint can have."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from cicada.attempts.budgets import AttemptBudget
from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    BudgetSpent,
    ContextTooLarge,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.endpoint_keys import GivenKey
from cicada.models.model_ids import Sampling
from cicada.models.openai_chat import ChatSettings, OpenAiChat, OpenAiTextModel
from cicada.models.openai_dialect import Dialects
from cicada.models.ports import Finished, Prompt, Unbounded, Usage
from cicada.models.retries import RetryPolicy
from tests.wire.bedrock_service import FakeTime, Identity
from tests.wire.openai_service import ANSWER, OpenAiService, serving
from tests.wire.stream_readers import until_readers_are_done

PROMPT = Prompt("Answer from the passages.", "Who found the letter?")
MODEL = "mine/llama-4:8b"


@pytest.fixture
def service() -> Iterator[OpenAiService]:
    with serving() as running:
        yield running


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def model(
    service: OpenAiService, time: FakeTime | None = None, *, keys: Any = None, **settings: Any
) -> OpenAiTextModel:
    wiring: dict[str, Any] = {"sampling": Sampling(), "dialects": Dialects()}
    wiring |= {name: settings.pop(name) for name in wiring if name in settings}
    if time is not None:
        wiring |= {"clock": time.clock, "pause": lambda seconds, _: time.sleep(seconds), "share": lambda: 0.5}
    return OpenAiTextModel(
        OpenAiChat(
            MODEL,
            "llama-4:8b",
            service.connection(),
            keys,
            ChatSettings(**{"max_tokens": 2048, **settings}),
            **wiring,
        )
    )


def read(text_model: OpenAiTextModel, time_budget_s: float = 10.0, prompt: Prompt = PROMPT) -> tuple[list[str], Any]:
    """The texts that arrived, and how it ended."""
    texts: list[str] = []
    try:
        for piece in text_model.stream(prompt, time_budget_s=time_budget_s, call_scope=Unbounded()):
            if isinstance(piece, Finished):
                return texts, piece
            assert piece.text
            texts.append(piece.text)
    except ModelError as error:
        return texts, error
    raise AssertionError("a stream ends with Finished or an error")


# --- whole answers ---


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_an_answer_arrives_in_pieces_and_ends_with_its_usage(service, framing, newline):
    service.framing, service.newline = framing, newline
    texts, end = read(model(service))
    assert len(texts) > 5
    assert "".join(texts) == ANSWER
    assert end == Finished("end_turn", Usage(input_tokens=13, output_tokens=25))


def test_what_is_sent_is_a_plain_request_for_a_stream_with_its_usage(service):
    read(model(service, max_tokens=300, temperature=0.2, top_p=0.9))
    assert service.bodies == [
        {
            "model": "llama-4:8b",
            "messages": [{"role": "system", "content": PROMPT.system}, {"role": "user", "content": PROMPT.user}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 300,
            "temperature": 0.2,
            "top_p": 0.9,
        }
    ]
    assert "authorization" not in service.headers[0]


def test_a_blank_system_prompt_is_left_out(service):
    read(model(service), prompt=Prompt(" ", "Hello?"))
    assert service.bodies[0]["messages"] == [{"role": "user", "content": "Hello?"}]


def test_text_of_every_script_survives(service):
    service.answer = lambda body: body["messages"][-1]["content"]
    texts, end = read(model(service), prompt=Prompt("", "葵は手紙を見つけた。 Ærø – 🙂"))
    assert "".join(texts) == "葵は手紙を見つけた。 Ærø – 🙂"
    assert isinstance(end, Finished)


def test_reasoning_is_no_part_of_the_answer_wherever_a_server_puts_it(service):
    service.reasoning = "Look for the passages."
    service.answer = lambda body: f"<think>\nLook again.\n</think>\n\n{ANSWER}"
    texts, end = read(model(service))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)


def test_cached_input_is_told_apart_and_reasoning_is_output(service):
    service.usage = lambda prompt, completion: {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "total_tokens": 140,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    _, end = read(model(service))
    assert end.usage == Usage(input_tokens=36, output_tokens=40, cache_read_tokens=64)


def test_the_usage_may_come_with_the_last_chunk(service):
    service.usage_with_finish = True
    _, end = read(model(service))
    assert end.usage.output_tokens == 25


def test_an_answer_is_whole_without_a_usage_and_nothing_is_waited_for_once_the_stream_is_done(service):
    service.usage = lambda prompt, completion: None
    texts, end = read(model(service))
    assert "".join(texts) == ANSWER
    assert end.usage == Usage(reported=False)


def test_consecutive_answers_share_connections(service):
    answers = model(service)
    for _ in range(6):
        read(answers)
        until_readers_are_done()
    assert len(service.connections) == 1


# --- streams that break ---


@pytest.mark.parametrize(
    ("mode", "framing"),
    [
        ("reset", "chunked"),
        ("reset", "close"),
        ("silent", "close"),
        ("half_event", "chunked"),
        ("half_event", "close"),
        ("garbled", "chunked"),
        ("no_object", "chunked"),
        ("no_text", "chunked"),
        ("error", "chunked"),
        ("done", "chunked"),
        ("stall", "chunked"),
        ("stall", "close"),
    ],
)
def test_every_form_of_a_broken_stream_is_one_error(service, mode, framing):
    service.faults.arm("openai.cut", mode=mode, framing=framing, after=4)
    texts, end = read(model(service, silence_s=0.5 if mode == "stall" else 20))
    assert len(texts) == 4
    assert type(end) is StreamBroken
    assert service.calls == 1  # what has been shown is never written again


@pytest.mark.parametrize("mode", ["reset", "silent", "half_event", "garbled", "no_object", "no_text", "done"])
def test_a_stream_that_breaks_before_its_first_text_is_broken(service, mode):
    service.faults.arm("openai.cut", mode=mode, after=0)
    texts, end = read(model(service))
    assert texts == []
    assert type(end) is StreamBroken


@pytest.mark.parametrize(
    ("fault", "kind", "calls"),
    [
        ({"message": "slow down", "code": 429}, ModelBusy, 3),
        ({"message": "slow down", "type": "rate_limit_error"}, ModelBusy, 3),
        ({"message": "sorry", "type": "server_error"}, ModelUnavailable, 3),
        ({"message": "the context length is exceeded", "code": "context_length_exceeded"}, ContextTooLarge, 1),
        ({"message": "something of next year"}, StreamBroken, 1),
    ],
)
def test_an_error_in_the_stream_before_its_first_text_is_read_like_an_early_one(service, time, fault, kind, calls):
    service.faults.arm("openai.cut", mode="error", after=0, fault=fault)
    texts, end = read(model(service, time, retry=RetryPolicy(max_attempts=3)))
    assert texts == []
    assert type(end) is kind
    assert service.calls == calls


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("length", AnswerTruncated),
        ("content_filter", AnswerBlocked),
        ("tool_calls", AnswerMalformed),
        ("function_call", AnswerMalformed),
        ("a_reason_of_next_year", AnswerMalformed),
    ],
)
def test_a_stop_that_is_no_normal_finish_is_an_error_that_names_it_and_carries_its_usage(service, reason, kind):
    service.faults.arm("openai.stop", reason=reason)
    texts, end = read(model(service))
    assert "".join(texts) == ANSWER
    assert type(end) is kind
    assert str(end) == reason
    assert end.usage == Usage(input_tokens=13, output_tokens=25)


def test_an_answer_that_outgrows_max_tokens_is_incomplete(service):
    texts, end = read(model(service, max_tokens=3))
    assert ANSWER.startswith("".join(texts))
    assert isinstance(end, AnswerIncomplete)


def test_an_answer_in_one_piece_is_refused(service):
    service.faults.arm("openai.plain")
    _, end = read(model(service))
    assert isinstance(end, ModelRefused)
    assert service.calls == 1


# --- calls that fail before the first piece ---


@pytest.mark.parametrize(
    ("status", "code", "kind", "calls"),
    [
        (429, "rate_limit_exceeded", ModelBusy, 3),
        (429, "insufficient_quota", ModelBusy, 1),
        (408, None, ModelUnavailable, 3),
        (500, None, ModelUnavailable, 3),
        (502, None, ModelUnavailable, 3),
        (503, None, ModelUnavailable, 3),
        (529, "overloaded_error", ModelUnavailable, 3),
        (400, None, ModelRefused, 1),
        (401, "invalid_api_key", ModelRefused, 1),
        (403, None, ModelRefused, 1),
        (404, "model_not_found", ModelRefused, 1),
        (422, None, ModelRefused, 1),
        (307, None, ModelRefused, 1),
        (400, "context_length_exceeded", ContextTooLarge, 1),
        (413, None, ContextTooLarge, 1),
        (400, "content_filter", AnswerBlocked, 1),
    ],
)
def test_an_early_error_is_mapped_and_called_again_only_where_that_can_help(service, time, status, code, kind, calls):
    service.faults.arm("openai.error", status=status, code=code, message="as a test asked")
    texts, end = read(model(service, time, retry=RetryPolicy(max_attempts=3)))
    assert texts == []
    assert type(end) is kind
    assert str(status) in str(end)
    assert service.calls == calls
    assert len(time.slept_s) == calls - 1


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "x"}},
        {"object": "error", "message": "This model's maximum context length is 8192 tokens.", "code": 400},
        {"error": "prompt is too long"},
        {"detail": "Too many tokens."},
    ],
)
def test_a_prompt_that_is_too_long_is_known_by_the_words_of_many_servers(service, body):
    service.faults.arm("openai.error", status=400, body=body)
    _, end = read(model(service))
    assert type(end) is ContextTooLarge


def test_a_throttle_that_passes_is_not_noticed(service, time):
    service.faults.arm("openai.error", times=2, status=429)
    texts, end = read(model(service, time))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)
    assert service.calls == 3


@pytest.mark.parametrize(("header", "value"), [("Retry-After", "4"), ("retry-after-ms", "4000")])
def test_a_service_that_asks_to_be_left_alone_is(service, time, header, value):
    service.faults.arm("openai.error", times=1, status=429, headers={header: value})
    _, end = read(model(service, time))
    assert isinstance(end, Finished)
    assert time.slept_s == [4.25]  # and a little more, so that not all come back at once


@pytest.mark.parametrize(("asked_s", "budget_s"), [(9, 8.0), (11, 600.0)])
def test_a_wait_over_the_budget_or_longer_than_anybody_waits_is_not_begun(service, time, asked_s, budget_s):
    service.faults.arm("openai.error", status=429, headers={"Retry-After": str(asked_s)})
    _, end = read(model(service, time), time_budget_s=budget_s)
    assert type(end) is ModelBusy
    assert service.calls == 1
    assert time.slept_s == []


def test_retries_stay_within_the_time_budget(service, time):
    service.faults.arm("openai.error", status=503)
    began = time.now_s
    _, end = read(model(service, time, retry=RetryPolicy(max_attempts=None)), time_budget_s=30)
    assert isinstance(end, ModelUnavailable)
    assert time.now_s - began <= 30
    assert service.calls > 3


def test_a_connection_that_is_lost_before_the_response_is_tried_again(service, time):
    service.faults.arm("openai.refuse", times=1)
    texts, end = read(model(service, time))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)
    assert service.calls == 2


def test_nobody_at_the_address_makes_the_model_unavailable(service, time):
    service.url = "http://127.0.0.1:9/v1"
    _, end = read(model(service, time, retry=RetryPolicy(max_attempts=2)))
    assert isinstance(end, ModelUnavailable)


def test_silence_before_the_first_text_makes_the_model_unavailable(service):
    service.faults.arm("openai.cut", mode="stall", after=0)
    _, end = read(model(service, silence_s=0.5))
    assert isinstance(end, ModelUnavailable)
    assert "nothing arrived" in str(end)
    assert service.calls == 1


def test_an_endpoint_whose_certificate_nobody_vouches_for_is_not_called(tmp_path, time):
    with serving(Identity.make(tmp_path)) as unknown:
        connection = unknown.connection(authorities=None)
        chat = OpenAiChat(
            MODEL, "model", connection, GivenKey("sk-1"), ChatSettings(100), clock=time.clock, pause=lambda *_: None
        )
        _, end = read(OpenAiTextModel(chat))
        assert type(end) is ModelRefused
        assert "certificate" in str(end)
        assert unknown.calls == 0


# --- what a model does not take ---


@pytest.mark.parametrize(
    ("unknown", "gone", "come"),
    [
        ({"temperature"}, {"temperature"}, set()),
        ({"top_p"}, {"top_p"}, set()),
        ({"max_tokens"}, {"max_tokens"}, {"max_completion_tokens"}),
        ({"stream_options"}, {"stream_options"}, set()),
        ({"max_tokens", "temperature", "stream_options"}, {"max_tokens", "temperature", "stream_options"}, set()),
    ],
)
def test_a_refused_field_is_left_out_at_once_and_from_then_on(service, time, unknown, gone, come):
    service.unknown = frozenset(unknown)
    answers = model(service, time, temperature=0.2, top_p=0.9)
    for _ in range(2):
        texts, end = read(answers)
        assert "".join(texts) == ANSWER
        assert isinstance(end, Finished)
    assert service.calls == len(unknown) + 2
    for body in service.bodies[-2:]:
        assert not gone & body.keys()
        assert come <= body.keys()
    assert time.slept_s == []


def test_a_model_without_system_turns_is_told_its_instructions_by_the_user(service, time):
    service.faults.arm("openai.error", times=1, status=400, message="System role not supported")
    _, end = read(model(service, time))
    assert isinstance(end, Finished)
    assert service.bodies[-1]["messages"] == [{"role": "user", "content": f"{PROMPT.system}\n\n{PROMPT.user}"}]


def test_a_second_model_object_knows_what_the_first_one_learnt(service):
    service.unknown = frozenset({"temperature", "max_tokens"})
    memory: dict[str, Any] = {"sampling": Sampling(), "dialects": Dialects()}
    read(model(service, temperature=0.2, **memory))
    before = service.calls
    read(model(service, temperature=0.2, **memory))
    assert service.calls == before + 1


def test_a_limit_that_is_too_high_is_no_reason_to_send_another_field(service, time):
    service.faults.arm("openai.error", status=400, message="max_tokens is too large: 2048", param="max_tokens")
    _, end = read(model(service, time))
    assert isinstance(end, ModelRefused)
    assert service.calls == 1


def test_a_server_that_refuses_all_is_not_asked_for_ever(service, time):
    message = "temperature top_p max_tokens max_completion_tokens stream_options response_format system role: unknown"
    service.faults.arm("openai.error", status=400, message=message)
    _, end = read(model(service, time, temperature=0.2, top_p=0.9))
    assert isinstance(end, ModelRefused)
    assert service.calls <= 6


# --- calls, and keys ---


def test_the_service_gets_as_many_calls_as_the_call_scope_allows(service, time):
    service.faults.arm("openai.error", status=429)
    call_scope = AttemptBudget("rag", calls=2, deadline=float("inf"))
    with pytest.raises(ModelBusy):
        list(model(service, time).stream(PROMPT, time_budget_s=60, call_scope=call_scope))
    assert service.calls == 2
    with pytest.raises(BudgetSpent):
        list(model(service, time).stream(PROMPT, time_budget_s=60, call_scope=call_scope))
    assert service.calls == 2


def test_the_key_is_sent_and_a_wrong_one_refused_without_being_told(service, time, caplog):
    service.key = "sk-canary-0123456789"
    with caplog.at_level(logging.DEBUG):
        _, end = read(model(service, time, keys=GivenKey(" sk-canary-0123456789\n")))
        assert isinstance(end, Finished)
        _, refused = read(model(service, time, keys=GivenKey("sk-wrong-0123456789")))
    assert isinstance(refused, ModelRefused)
    assert service.calls == 2
    assert "0123456789" not in f"{refused!r} {refused.__cause__!r} {caplog.text}"


@pytest.mark.parametrize("quoting", ["the passages: Answer from the passages.", "you asked: Who found the letter?"])
def test_an_error_that_quotes_the_prompt_is_not_told(service, quoting):
    service.faults.arm("openai.error", status=400, message=quoting, type="invalid_request_error")
    _, end = read(model(service))
    assert str(end) == "the endpoint answers 400 (invalid_request_error)"


def test_a_key_that_an_error_quotes_is_not_told_either(service):
    service.faults.arm("openai.error", status=500, message="upstream said: key sk-canary-77 is unknown")
    _, end = read(model(service, keys=GivenKey("sk-canary-77"), retry=RetryPolicy(max_attempts=1)))
    assert "canary" not in str(end)


def test_an_error_that_quotes_nothing_is_told(service):
    service.faults.arm(
        "openai.error", status=404, body={"error": {"message": 'model "llama" not found, pull it first'}}
    )
    _, end = read(model(service))
    assert str(end) == 'the endpoint answers 404: model "llama" not found, pull it first'


def test_what_is_no_json_is_no_reason_to_fail_over_an_error(service, time):
    service.faults.arm("openai.error", status=400, body=json.dumps("<html>"))
    _, end = read(model(service, time))
    assert str(end) == "the endpoint answers 400"
