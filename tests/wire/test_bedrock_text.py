"""BedrockTextModel, by a real boto3 client over real HTTP, against every fault that a stream can have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cicada.attempts.budgets import AttemptBudget
from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    BudgetSpent,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.model_ids import Sampling
from cicada.models.ports import Finished, Prompt, Unbounded
from cicada.models.retries import RetryPolicy
from tests.wire.bedrock_service import ANSWER, BedrockService, FakeTime, serving
from tests.wire.stream_readers import until_readers_are_done

PROMPT = Prompt("Answer from the passages.", "Who found the letter?")
MODEL = "local.extractive"


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def model(service: BedrockService, time: FakeTime | None = None, model_id: str = MODEL, **settings) -> BedrockTextModel:
    if time is not None:
        settings = {
            "clock": time.clock,
            "pause": lambda seconds, _: time.sleep(seconds),
            "share": lambda: 0.5,
            **settings,
        }
    return BedrockTextModel(service.client(), model_id, **{"sampling": Sampling(), **settings})


def read(text_model: BedrockTextModel, time_budget_s: float = 10.0) -> tuple[list[str], Finished | ModelError]:
    """The texts that arrived, and how it ended."""
    texts: list[str] = []
    try:
        for piece in text_model.stream(PROMPT, time_budget_s=time_budget_s, call_scope=Unbounded()):
            if isinstance(piece, Finished):
                return texts, piece
            assert piece.text
            texts.append(piece.text)
    except ModelError as error:
        return texts, error
    raise AssertionError("a stream ends with Finished or an error")


def test_an_answer_arrives_in_pieces_and_ends_with_its_usage(service):
    texts, end = read(model(service))
    assert len(texts) > 5
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)
    assert end.stop_reason == "end_turn"
    assert end.usage.input_tokens > 0
    assert end.usage.output_tokens > 0


def test_the_prompt_and_max_tokens_are_sent_and_no_sampling_parameter_that_is_not_set(service):
    read(model(service, max_tokens=300))
    assert service.bodies == [
        {
            "system": [{"text": PROMPT.system}],
            "messages": [{"role": "user", "content": [{"text": PROMPT.user}]}],
            "inferenceConfig": {"maxTokens": 300},
        }
    ]


def test_a_blank_system_prompt_is_left_out(service):
    pieces = list(model(service).stream(Prompt("", "Hello?"), time_budget_s=10, call_scope=Unbounded()))
    assert isinstance(pieces[-1], Finished)
    assert "system" not in service.bodies[0]


def test_an_arn_and_an_inference_profile_are_called_as_they_are(service):
    for name in ("arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", "eu.amazon.nova-lite-v1:0"):
        texts, end = read(model(service, model_id=name))
        assert "".join(texts) == ANSWER
        assert isinstance(end, Finished)


def test_reasoning_is_no_part_of_the_answer(service):
    texts, end = read(model(service, model_id="us.anthropic.claude-haiku-5-5"))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)


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
        ("exception", "chunked"),
        ("reset", "chunked"),
        ("reset", "close"),
        ("silent", "close"),
        ("half_frame", "chunked"),
        ("half_frame", "close"),
        ("corrupt", "chunked"),
        ("garbled", "chunked"),
        ("stall", "chunked"),
    ],
)
def test_every_form_of_a_broken_stream_is_one_error(service, mode, framing):
    service.faults.arm("bedrock.cut", mode=mode, framing=framing, after=4)
    texts, end = read(model(service, silence_s=0.5 if mode == "stall" else 20))
    assert len(texts) == 4
    assert isinstance(end, StreamBroken)
    assert service.calls["converse-stream"] == 1  # what has been shown is never written again


@pytest.mark.parametrize(
    "exception",
    [
        "internalServerException",
        "modelStreamErrorException",
        "validationException",
        "throttlingException",
        "serviceUnavailableException",
    ],
)
def test_every_exception_in_mid_stream_is_a_broken_stream(service, exception):
    service.faults.arm("bedrock.cut", mode="exception", exception=exception, after=2)
    texts, end = read(model(service))
    assert len(texts) == 2
    assert isinstance(end, StreamBroken)
    assert exception in str(end)
    assert service.calls["converse-stream"] == 1


def test_a_read_time_out_of_the_client_is_a_broken_stream_too(service):
    service.faults.arm("bedrock.cut", mode="stall", after=2)
    impatient = BedrockTextModel(service.client(read_timeout_s=0.5), MODEL, silence_s=30)
    texts, end = read(impatient)
    assert len(texts) == 2
    assert isinstance(end, StreamBroken)
    assert "ReadTimeoutError" in str(end)


@pytest.mark.parametrize("mode", ["reset", "silent", "half_frame", "corrupt", "garbled"])
def test_a_stream_that_breaks_before_its_first_text_is_broken(service, mode):
    service.faults.arm("bedrock.cut", mode=mode, after=0)
    texts, end = read(model(service))
    assert texts == []
    assert isinstance(end, StreamBroken)


@pytest.mark.parametrize(
    "reason",
    [
        "tool_use",
        "max_tokens",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "model_context_window_exceeded",
        "a_reason_of_next_year",
    ],
)
def test_a_stop_that_is_no_normal_finish_is_an_error_that_names_it(service, reason):
    service.faults.arm("bedrock.stop", stop_reason=reason)
    texts, end = read(model(service))
    assert "".join(texts) == ANSWER
    assert isinstance(end, AnswerIncomplete)
    assert str(end) == reason


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence"])
def test_the_normal_stops_finish_the_answer(service, reason):
    service.faults.arm("bedrock.stop", stop_reason=reason)
    _, end = read(model(service))
    assert isinstance(end, Finished)
    assert end.stop_reason == reason


def test_an_answer_that_outgrows_max_tokens_is_incomplete(service):
    texts, end = read(model(service, max_tokens=3))
    assert ANSWER.startswith("".join(texts))
    assert isinstance(end, AnswerIncomplete)
    assert str(end) == "max_tokens"


# --- calls that fail before the first piece ---


@pytest.mark.parametrize(
    ("code", "status", "kind", "calls"),
    [
        ("ThrottlingException", 429, ModelBusy, 3),
        ("ModelNotReadyException", 429, ModelBusy, 3),
        ("SomeNewThrottle", 429, ModelBusy, 3),
        ("ServiceUnavailableException", 503, ModelUnavailable, 3),
        ("InternalServerException", 500, ModelUnavailable, 3),
        ("SomeNewFailure", 502, ModelUnavailable, 3),
        ("ModelTimeoutException", 408, ModelUnavailable, 1),
        ("ModelErrorException", 424, ModelUnavailable, 1),
        ("AccessDeniedException", 403, ModelRefused, 1),
        ("ExpiredTokenException", 403, ModelRefused, 1),
        ("ResourceNotFoundException", 404, ModelRefused, 1),
        ("ValidationException", 400, ModelRefused, 1),
    ],
)
def test_an_early_error_is_mapped_and_called_again_only_where_that_can_help(service, time, code, status, kind, calls):
    service.faults.arm("bedrock.error", exception=code, status=status, message="as a test asked")
    texts, end = read(model(service, time, retry=RetryPolicy(max_attempts=3)))
    assert texts == []
    assert type(end) is kind
    assert code in str(end)
    assert service.calls["converse-stream"] == calls  # so botocore itself makes one attempt a call
    assert len(time.slept_s) == calls - 1


def test_a_throttle_that_passes_is_not_noticed(service, time):
    service.faults.arm("bedrock.throttle", times=2)
    texts, end = read(model(service, time, retry=RetryPolicy(base_s=0.4)))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)
    assert service.calls["converse-stream"] == 3
    assert time.slept_s == pytest.approx([0.2, 0.4])  # half of 0.4, then of 0.8


def test_retries_stay_inside_the_time_budget(service, time):
    service.faults.arm("bedrock.throttle")
    started_s = time.now_s
    _, end = read(model(service, time, retry=RetryPolicy(max_attempts=None, base_s=1, cap_s=4)), time_budget_s=10)
    assert isinstance(end, ModelBusy)
    assert time.now_s - started_s < 10
    assert service.calls["converse-stream"] == len(time.slept_s) + 1 == 7  # waits of 0.5, 1, 2, 2, 2, 2


@pytest.mark.parametrize("exception", ["throttlingException", "serviceUnavailableException"])
def test_a_throttle_in_the_stream_before_any_text_is_called_again(service, time, exception):
    service.faults.arm("bedrock.cut", times=1, mode="exception", exception=exception, after=0)
    texts, end = read(model(service, time))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)
    assert service.calls["converse-stream"] == 2


def test_an_endpoint_that_does_not_listen_is_unavailable(service, time):
    service.url = "http://127.0.0.1:9"
    _, end = read(model(service, time, retry=RetryPolicy(max_attempts=2)))
    assert isinstance(end, ModelUnavailable)
    assert len(time.slept_s) == 1


def test_no_call_is_made_when_no_time_is_left(service):
    _, end = read(model(service), time_budget_s=0)
    assert isinstance(end, ModelUnavailable)
    assert not service.calls


# --- time ---


def test_the_budget_ends_a_call_that_is_not_answered(service):
    service.faults.arm("bedrock.slow", first_ms=60_000)
    _, end = read(model(service), time_budget_s=0.3)
    assert isinstance(end, ModelUnavailable)
    assert "time budget" in str(end)


def test_silence_before_the_first_text_makes_the_model_unavailable(service):
    service.faults.arm("bedrock.cut", mode="stall", after=0)
    _, end = read(model(service, silence_s=0.5))
    assert isinstance(end, ModelUnavailable)
    assert "nothing arrived" in str(end)
    assert service.calls["converse-stream"] == 1


# --- sampling parameters ---


def test_sampling_parameters_are_sent_when_they_are_set(service):
    read(model(service, temperature=0.2, top_p=0.9))
    assert service.bodies[0]["inferenceConfig"] == {"maxTokens": 2048, "temperature": 0.2, "topP": 0.9}


@pytest.mark.parametrize(
    ("model_id", "sent"),
    [
        ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", {"temperature": 0.2}),
        ("global.anthropic.claude-haiku-5-5", {}),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-5-5", {}),
    ],
)
def test_families_known_to_refuse_a_parameter_are_not_sent_it(service, model_id, sent):
    _, end = read(model(service, model_id=model_id, temperature=0.2, top_p=0.9))
    assert isinstance(end, Finished)
    assert service.bodies[0]["inferenceConfig"] == {"maxTokens": 2048, **sent}
    assert service.calls["converse-stream"] == 1


def refuse(service: BedrockService, message: str) -> None:
    service.faults.arm("bedrock.error", times=1, exception="ValidationException", status=400, message=message)


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("The model returned the following errors: `temperature` is deprecated for this model.", {"topP": 0.9}),
        ("The model returned the following errors: `top_p` is deprecated for this model.", {"temperature": 0.2}),
        (
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            {"temperature": 0.2},
        ),
        ("temperature and topP are not supported", {}),
    ],
)
def test_a_refused_parameter_is_left_out_at_once_and_from_then_on(service, time, message, kept):
    refuse(service, message)
    answers = model(service, time, temperature=0.2, top_p=0.9)
    for _ in range(2):
        texts, end = read(answers)
        assert "".join(texts) == ANSWER
        assert isinstance(end, Finished)
    configs = [body["inferenceConfig"] for body in service.bodies]
    assert [{**config, "maxTokens": 0} for config in configs[1:]] == [{"maxTokens": 0, **kept}] * 2
    assert time.slept_s == []


def test_a_second_model_object_knows_what_the_first_one_learnt(service):
    memory = Sampling()
    refuse(service, "`temperature` is deprecated for this model.")
    read(model(service, temperature=0.2, sampling=memory))
    read(model(service, temperature=0.2, sampling=memory))
    assert ["temperature" in body["inferenceConfig"] for body in service.bodies] == [True, False, False]


def test_a_refusal_of_something_that_was_not_sent_is_final(service, time):
    refuse(service, "`temperature` is deprecated for this model.")
    _, end = read(model(service, time))
    assert isinstance(end, ModelRefused)
    assert service.calls["converse-stream"] == 1


# --- calls ---


def test_the_service_gets_as_many_calls_as_the_call_scope_allows(service, time):
    service.faults.arm("bedrock.throttle")
    call_scope = AttemptBudget("rag", calls=2, deadline=float("inf"))
    with pytest.raises(ModelBusy):
        list(model(service, time).stream(PROMPT, time_budget_s=60, call_scope=call_scope))
    assert service.calls["converse-stream"] == 2
    assert call_scope.calls_left == 0
    with pytest.raises(BudgetSpent):
        list(model(service, time).stream(PROMPT, time_budget_s=60, call_scope=call_scope))
    assert service.calls["converse-stream"] == 2


def test_an_answer_that_is_blocked_in_the_middle_carries_what_it_took(service):
    service.faults.arm("bedrock.stop", stop_reason="guardrail_intervened", after=3)
    texts, end = read(model(service))
    assert len(texts) == 3
    assert isinstance(end, AnswerBlocked)
    assert end.usage is not None
    assert end.usage.reported
    assert end.usage.output_tokens > 0


def test_a_connection_that_is_lost_before_the_response_is_tried_again(service, time):
    service.faults.arm("bedrock.refuse", times=1)
    texts, end = read(model(service, time))
    assert "".join(texts) == ANSWER
    assert isinstance(end, Finished)
    assert service.calls["converse-stream"] == 2
