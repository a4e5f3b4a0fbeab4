"""BedrockTextModel where the wire plays no part: a stream cut at every event, and what comes after the last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import (
    ClientError,
    EventStreamError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ProtocolError

from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    BudgetSpent,
    CicadaError,
    ContextTooLarge,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models import streaming
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.model_ids import Sampling
from cicada.models.ports import Finished, Prompt, Stopped, TextDelta, Usage
from cicada.models.retries import RetryPolicy

EVENTS: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "Aoi "}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": ""}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"SDK_UNKNOWN_MEMBER": {"name": "smell"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "did."}}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"inputTokens": 7, "outputTokens": 2, "cacheReadInputTokens": 3}, "metrics": {}}},
]
STOP_AT = next(place for place, event in enumerate(EVENTS) if "messageStop" in event)


class Stream:
    """What boto3 gives for the stream: events, and then perhaps an exception."""

    def __init__(self, events: list[dict[str, Any]], error: Exception | None = None, *, hang: bool = False) -> None:
        self._events, self._error, self._hang = events, error, hang
        self.closed = threading.Event()
        self.begun = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.begun = True
        yield from self._events
        if self._error is not None:
            raise self._error
        if self._hang:
            self.closed.wait(0.5)

    def close(self) -> None:
        self.closed.set()


class Client:
    """Gives each call its answer, and the last one again to those that follow."""

    def __init__(self, *answers: Stream | Exception) -> None:
        self._answers = answers
        self.calls = 0

    def converse_stream(self, **_: Any) -> dict[str, Any]:
        answer = self._answers[min(self.calls, len(self._answers) - 1)]
        self.calls += 1
        if isinstance(answer, Exception):
            raise answer
        return {"stream": answer}


class Held:
    """A call scope that counts."""

    def __init__(self, calls: int = 99) -> None:
        self.left = calls
        self.wakes: list[Callable[[], None]] = []

    def call(self) -> None:
        if self.left == 0:
            raise BudgetSpent("no call is left")
        self.left -= 1

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        self.wakes.append(wake)
        return lambda: self.wakes.remove(wake)

    def stop(self) -> None:
        for wake in self.wakes:
            wake()


def model(*answers: Stream | Exception, **settings: Any) -> BedrockTextModel:
    return BedrockTextModel(
        Client(*answers), "a.model", **{"pause": lambda *_: None, "sampling": Sampling(), **settings}
    )


def throttled() -> ClientError:
    error = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 429}}
    return ClientError(error, "ConverseStream")


def refused(message: str) -> ClientError:
    error = {
        "Error": {"Code": "ValidationException", "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(error, "ConverseStream")


def read(text_model: BedrockTextModel, call_scope: Held | None = None) -> list[Any]:
    return list(
        text_model.stream(
            Prompt("system", "user"), time_budget_s=60, call_scope=Held() if call_scope is None else call_scope
        )
    )


def test_only_text_is_passed_on_and_the_usage_comes_with_the_end():
    assert read(model(Stream(EVENTS))) == [
        TextDelta("Aoi "),
        TextDelta("did."),
        Finished("end_turn", Usage(input_tokens=7, output_tokens=2, cache_read_tokens=3)),
    ]


FAULTS = [
    None,
    EventStreamError({"Error": {"Code": "modelStreamErrorException", "Message": "m"}}, "ConverseStream"),
    ProtocolError("Connection broken"),
    ReadTimeoutError(endpoint_url="https://bedrock"),
    ResponseParserError("unreadable"),
    ConnectionResetError("reset"),
    ValueError("something a parser raised"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("place", range(STOP_AT + 1))
def test_a_stream_without_its_message_stop_is_broken_wherever_and_however_it_ends(place, fault):
    with pytest.raises(StreamBroken):
        read(model(Stream(EVENTS[:place], fault), retry=RetryPolicy(max_attempts=1)))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_stream_that_breaks_after_its_message_stop_is_whole(fault):
    pieces = read(model(Stream(EVENTS[: STOP_AT + 1], fault)))
    assert pieces[-1] == Finished("end_turn", Usage(reported=False))


def test_the_usage_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(streaming, "USAGE_WAIT_S", 0.01)
    stream = Stream(EVENTS[: STOP_AT + 1], hang=True)
    assert read(model(stream))[-1] == Finished("end_turn", Usage(reported=False))
    assert not stream.closed.is_set()


def test_the_budget_ends_a_stream_whose_reader_is_slow_even_if_more_has_arrived():
    now_s = 0.0
    text_model = model(Stream(EVENTS), clock=lambda: now_s)
    pieces = text_model.stream(Prompt("system", "user"), time_budget_s=60, call_scope=Held())
    assert next(pieces) == TextDelta("Aoi ")
    now_s = 60.0
    with pytest.raises(StreamBroken, match="time budget"):
        next(pieces)


@pytest.mark.parametrize("event", [{"contentBlockDelta": {}}, {"messageStop": {}}])
def test_an_event_whose_payload_was_lost_is_no_event_to_skip(event):
    with pytest.raises(StreamBroken, match="has no"):
        read(model(Stream([*EVENTS[:4], event, *EVENTS[4:]])))


def test_an_event_of_a_kind_not_yet_known_is_skipped():
    assert len(read(model(Stream([{"SDK_UNKNOWN_MEMBER": {"name": "later"}}, *EVENTS])))) == 3


def test_a_whole_stream_is_closed():
    stream = Stream(EVENTS)
    read(model(stream))
    assert stream.closed.wait(5)


@pytest.mark.parametrize("error", [NoCredentialsError(), ParamValidationError(report="maxTokens")])
def test_a_call_that_cannot_be_made_is_refused(error):
    with pytest.raises(ModelRefused):
        read(model(error))


def test_a_lost_connection_before_the_stream_is_tried_again():
    text_model = model(ReadTimeoutError(endpoint_url="https://bedrock"), retry=RetryPolicy(max_attempts=3))
    with pytest.raises(ModelUnavailable):
        read(text_model)
    assert text_model._client.calls == 3


def test_a_bug_is_not_dressed_as_a_failure_of_the_model():
    with pytest.raises(ZeroDivisionError) as raised:
        read(model(ZeroDivisionError()))
    assert not isinstance(raised.value, CicadaError)


# --- the nine stop reasons ---

REASONS: dict[str, type[AnswerIncomplete] | None] = {
    "end_turn": None,
    "stop_sequence": None,
    "tool_use": AnswerIncomplete,
    "max_tokens": AnswerTruncated,
    "guardrail_intervened": AnswerBlocked,
    "content_filtered": AnswerBlocked,
    "malformed_model_output": AnswerMalformed,
    "malformed_tool_use": AnswerMalformed,
    "model_context_window_exceeded": ContextTooLarge,
}


def stopping(reason: str, *after: dict[str, Any]) -> Stream:
    return Stream([*EVENTS[:STOP_AT], {"messageStop": {"stopReason": reason}}, *after])


def test_every_stop_reason_of_the_service_has_its_meaning():
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    assert set(service.shape_for("StopReason").enum) == set(REASONS)


@pytest.mark.parametrize("reason", [reason for reason, kind in REASONS.items() if kind is None])
def test_a_normal_stop_finishes_the_answer(reason):
    assert read(model(stopping(reason, EVENTS[-1])))[-1] == Finished(reason, Usage(7, 2, 3))


@pytest.mark.parametrize(
    ("reason", "kind"), [*((r, k) for r, k in REASONS.items() if k), ("a_reason_of_next_year", AnswerIncomplete)]
)
def test_another_stop_is_an_error_of_its_own_that_carries_the_tokens_it_took(reason, kind):
    text_model = model(stopping(reason, EVENTS[-1]))
    with pytest.raises(AnswerIncomplete) as raised:
        read(text_model)
    assert isinstance(raised.value, kind)
    assert raised.value.code == kind.code
    assert str(raised.value) == reason
    assert raised.value.usage == Usage(input_tokens=7, output_tokens=2, cache_read_tokens=3)
    assert text_model._client.calls == 1


def test_a_failure_whose_tokens_were_not_told_reports_none():
    with pytest.raises(AnswerTruncated) as raised:
        read(model(stopping("max_tokens")))
    assert raised.value.usage == Usage(reported=False)


@pytest.mark.parametrize(
    ("failure", "known"), [(throttled(), True), (ReadTimeoutError(endpoint_url="https://bedrock"), False)]
)
def test_a_try_that_may_have_been_paid_for_leaves_the_usage_unknown(failure, known):
    told = read(model(Stream(EVENTS)))[-1]
    assert read(model(failure, Stream(EVENTS)))[-1] == replace(told, usage=replace(told.usage, reported=known))
    with pytest.raises(ModelError) as raised:
        read(model(failure), Held(calls=1))
    assert raised.value.usage == Usage(reported=known)


def test_metadata_without_usage_reports_nothing():
    stream = Stream([*EVENTS[:-1], {"metadata": {"metrics": {"latencyMs": 5}}}])
    assert read(model(stream))[-1] == Finished("end_turn", Usage(reported=False))


# --- the call scope ---


def test_every_request_that_goes_out_is_asked_for():
    call_scope = Held()
    text_model = model(throttled(), throttled(), Stream(EVENTS))
    assert read(text_model, call_scope)[-1].stop_reason == "end_turn"
    assert text_model._client.calls == 99 - call_scope.left == 3


def test_without_a_call_left_none_is_made():
    text_model = model(Stream(EVENTS))
    with pytest.raises(BudgetSpent):
        read(text_model, Held(calls=0))
    assert text_model._client.calls == 0


@pytest.mark.parametrize("calls", [1, 2])
def test_when_no_further_call_is_left_the_last_failure_is_raised_without_a_wait(calls):
    pauses: list[float] = []
    text_model = model(throttled(), pause=lambda seconds, _: pauses.append(seconds))
    with pytest.raises(ModelBusy):
        read(text_model, Held(calls))
    assert text_model._client.calls == calls
    assert len(pauses) == calls - 1


def test_the_repeat_without_a_refused_parameter_is_asked_for_too():
    call_scope = Held(calls=2)
    text_model = model(refused("`temperature` is deprecated for this model."), Stream(EVENTS), temperature=0.5)
    assert read(text_model, call_scope)[-1].stop_reason == "end_turn"
    assert call_scope.left == 0


def test_a_parameter_that_was_refused_with_the_last_call_is_known_to_the_next_answer():
    text_model = model(refused("`temperature` is deprecated for this model."), Stream(EVENTS), temperature=0.5)
    with pytest.raises(ModelRefused, match="deprecated"):
        read(text_model, Held(calls=1))
    assert read(text_model, Held(calls=1))[-1].stop_reason == "end_turn"


def test_a_wait_that_outlasts_the_budget_ends_with_the_failure_before_it():
    now_s = 0.0

    def oversleep(*_: Any) -> None:
        nonlocal now_s
        now_s = 61.0

    text_model = model(throttled(), clock=lambda: now_s, pause=oversleep)
    with pytest.raises(ModelBusy):
        read(text_model)
    assert text_model._client.calls == 1


@pytest.mark.parametrize(
    "answer",
    [Stream(EVENTS), Stream(EVENTS[:5]), stopping("max_tokens"), throttled(), ZeroDivisionError()],
    ids=["whole", "broken", "truncated", "throttled", "bug"],
)
def test_nothing_stays_registered_with_the_call_scope(answer):
    call_scope = Held()
    with suppress(CicadaError, ZeroDivisionError):
        read(model(answer), call_scope)
    assert call_scope.wakes == []


def test_nothing_stays_registered_when_the_iterator_is_closed_or_never_begun():
    call_scope = Held()
    pieces = model(Stream(EVENTS)).stream(Prompt("system", "user"), time_budget_s=60, call_scope=call_scope)
    next(pieces)
    assert len(call_scope.wakes) == 1
    pieces.close()
    assert call_scope.wakes == []
    model(Stream(EVENTS)).stream(Prompt("system", "user"), time_budget_s=60, call_scope=call_scope)
    assert call_scope.wakes == []


def test_a_stop_between_two_pieces_is_noticed_before_the_next_even_if_all_has_arrived():
    call_scope = Held()
    stream = Stream(EVENTS)
    pieces = model(stream).stream(Prompt("system", "user"), time_budget_s=60, call_scope=call_scope)
    next(pieces)
    assert stream.closed.wait(5)  # its reader is through
    call_scope.stop()
    with pytest.raises(Stopped):
        next(pieces)


def test_a_stop_while_the_reader_is_made_is_not_lost():
    call_scope = Held()

    class Stopping(Client):
        def converse_stream(self, **request: Any) -> dict[str, Any]:
            call_scope.stop()
            return super().converse_stream(**request)

    with pytest.raises(Stopped):
        read(BedrockTextModel(Stopping(Stream([], hang=True)), "a.model"), call_scope)


def test_a_call_whose_connection_cannot_be_closed_is_left_behind_and_its_stream_never_read():
    call_scope = Held()
    called, answered = threading.Event(), threading.Event()
    stream = Stream(EVENTS)

    class Silent(Client):
        def converse_stream(self, **request: Any) -> dict[str, Any]:
            called.set()
            answered.wait(10)
            return super().converse_stream(**request)

    def stop() -> None:
        called.wait(10)
        call_scope.stop()

    threading.Thread(target=stop).start()
    with pytest.raises(Stopped):
        read(BedrockTextModel(Silent(stream), "a.model"), call_scope)
    assert not stream.closed.is_set()
    answered.set()
    assert stream.closed.wait(10)
    assert not stream.begun


def test_a_model_tells_its_bounds():
    text_model = model(Stream(EVENTS), max_tokens=700)
    assert (text_model.model_id, text_model.max_tokens) == ("a.model", 700)
