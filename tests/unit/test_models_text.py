"""BedrockTextModel where the wire plays no part: a stream cut at every event, and what comes after the last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EventStreamError, NoCredentialsError, ParamValidationError, ReadTimeoutError
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ProtocolError

from cicada.errors import CicadaError, ModelRefused, ModelUnavailable, StreamBroken
from cicada.models import bedrock_text
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.ports import Finished, Prompt, TextDelta, Usage
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

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from self._events
        if self._error is not None:
            raise self._error
        if self._hang:
            self.closed.wait(0.5)

    def close(self) -> None:
        self.closed.set()


class Client:
    def __init__(self, answer: Stream | Exception) -> None:
        self._answer = answer
        self.calls = 0

    def converse_stream(self, **_: Any) -> dict[str, Any]:
        self.calls += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return {"stream": self._answer}


def model(answer: Stream | Exception, **settings: Any) -> BedrockTextModel:
    return BedrockTextModel(Client(answer), "a.model", sleep=lambda _: None, **settings)


def read(text_model: BedrockTextModel) -> list[TextDelta | Finished]:
    return list(text_model.stream(Prompt("system", "user"), time_budget_s=60))


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
    assert pieces[-1] == Finished("end_turn", Usage())


def test_the_usage_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(bedrock_text, "METADATA_WAIT_S", 0.01)
    stream = Stream(EVENTS[: STOP_AT + 1], hang=True)
    assert read(model(stream))[-1] == Finished("end_turn", Usage())
    assert not stream.closed.is_set()


def test_the_budget_ends_a_stream_whose_reader_is_slow_even_if_more_has_arrived():
    now_s = 0.0
    text_model = model(Stream(EVENTS), clock=lambda: now_s)
    pieces = text_model.stream(Prompt("system", "user"), time_budget_s=60)
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
