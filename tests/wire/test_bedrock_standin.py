"""The Bedrock stand-in does what AWS does: each line of its conformance list, by a boto3 client over real HTTP."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer
from botocore.exceptions import ClientError, ConnectionClosedError, EventStreamError
from botocore.exceptions import ReadTimeoutError as BotoReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from cicada_local.bedrock import server
from cicada_local.bedrock.event_stream import encode_event, encode_message
from cicada_local.bedrock.switches import Pace
from cicada_local.bedrock.tokens import count_tokens, split_pieces
from cicada_local.faults import Faults
from tests.wire.bedrock_service import ANSWER, BedrockService, serving

MODEL = "local.extractive"
TITAN = "amazon.titan-embed-text-v2:0"
HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
REASONING = "us.anthropic.claude-haiku-5-5"
IMAGE = {"image": {"format": "png", "source": {"bytes": b"x"}}}
NO_STREAMS = {"open": 0, "finished": 0, "closed_by_caller": 0, "broken": 0, "refused": 0}
MESSAGES = [{"role": "user", "content": [{"text": "Who found the letter?"}]}]


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


@pytest.fixture
def client(service: BedrockService) -> Any:
    return service.client()


def converse_stream(client: Any, model_id: str = MODEL, **request: Any) -> list[dict[str, Any]]:
    return list(client.converse_stream(modelId=model_id, **{"messages": MESSAGES, **request})["stream"])


def embed(client: Any, body: Any, model_id: str = TITAN) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = client.invoke_model(modelId=model_id, body=raw, contentType="application/json")
    answer: dict[str, Any] = json.loads(response["body"].read())
    return answer


def refusal(client: Any, **request: Any) -> tuple[str, str, int]:
    """Code, message and status of the error that a Converse request gets."""
    with pytest.raises(ClientError) as raised:
        client.converse(**{"modelId": MODEL, "messages": MESSAGES, **request})
    return code_of(raised.value)


def code_of(error: ClientError) -> tuple[str, str, int]:
    response = error.response
    return response["Error"]["Code"], response["Error"]["Message"], response["ResponseMetadata"]["HTTPStatusCode"]


def texts_of(events: list[dict[str, Any]]) -> str:
    deltas = (event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event)
    return "".join(delta.get("text", "") for delta in deltas)


def test_every_line_of_the_conformance_list_has_a_test():
    lines = re.findall(r"^(B\d\d) ", server.__doc__ or "", re.MULTILINE)
    names = ("standin", "structured", "rerank", "tools", "guardrails")
    modules = [Path(__file__).with_name(f"test_bedrock_{name}.py") for name in names]
    tested = {
        line.upper() for module in modules for line in re.findall(r"^def test_(b\d\d)_", module.read_text(), re.M)
    }
    assert set(lines) == tested
    assert len(lines) == len(tested)


def test_b01_a_stream_has_its_events_in_order(client):
    events = converse_stream(client)
    kinds = [next(iter(event)) for event in events]
    deltas = kinds.count("contentBlockDelta")
    assert deltas > 5
    assert kinds == [
        "messageStart",
        *["contentBlockDelta"] * deltas,
        "contentBlockStop",
        "messageStop",
        "metadata",
    ]
    assert events[0]["messageStart"] == {"role": "assistant"}
    assert texts_of(events) == ANSWER


def test_b02_the_metadata_counts_tokens_and_milliseconds(client):
    metadata = converse_stream(client)[-1]["metadata"]
    usage = metadata["usage"]
    assert usage["inputTokens"] == count_tokens("Who found the letter?")
    assert usage["outputTokens"] > 0
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert metadata["metrics"]["latencyMs"] >= 0


def test_b03_converse_answers_the_same_in_one_body(client):
    whole = client.converse(modelId=MODEL, messages=MESSAGES)
    events = converse_stream(client)
    assert whole["output"]["message"] == {"role": "assistant", "content": [{"text": ANSWER}]}
    assert whole["stopReason"] == events[-2]["messageStop"]["stopReason"] == "end_turn"
    assert whole["usage"] == events[-1]["metadata"]["usage"]


@pytest.mark.parametrize(
    "name",
    [
        "local.extractive",
        "amazon.nova-lite-v1:0",
        "eu.amazon.nova-lite-v1:0",
        "global.anthropic.claude-sonnet-5",
        "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-micro-v1:0",
        "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-micro-v1:0",
    ],
)
def test_b04_a_model_has_several_names(client, name):
    assert texts_of(converse_stream(client, name)) == ANSWER


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("acme.oracle-v1:0", "ResourceNotFoundException", 404),
        ("eu.acme.oracle-v1:0", "ResourceNotFoundException", 404),
        ("arn:aws:bedrock:eu-west-1::foundation-model/acme.oracle-v1:0", "ResourceNotFoundException", 404),
        ("no model!", "ValidationException", 400),
        ("arn:aws:s3:::bucket/key", "ValidationException", 400),
    ],
)
def test_b05_an_unknown_model_is_not_found_and_a_malformed_id_is_invalid(client, name, code, status):
    assert refusal(client, modelId=name)[::2] == (code, status)
    with pytest.raises(ClientError) as raised:
        embed(client, {"inputText": "a"}, name)
    assert code_of(raised.value)[::2] == (code, status)


@pytest.mark.parametrize(
    "base", ["anthropic.claude-haiku-4-5-20251001-v1:0", "amazon.nova-2-lite-v1:0", "anthropic.claude-sonnet-5-5"]
)
def test_b06_some_models_need_an_inference_profile(client, base):
    code, message, status = refusal(client, modelId=base)
    assert (code, status) == ("ValidationException", 400)
    assert "inference profile" in message
    assert texts_of(converse_stream(client, f"us.{base}")) == ANSWER


def test_b07_errors_and_responses_have_aws_headers(client):
    with pytest.raises(ClientError) as raised:
        client.converse(modelId="acme.oracle", messages=MESSAGES)
    metadata = raised.value.response["ResponseMetadata"]
    assert metadata["HTTPHeaders"]["x-amzn-errortype"].startswith("ResourceNotFoundException:http")
    assert metadata["RequestId"]
    for response in (
        client.converse(modelId=MODEL, messages=MESSAGES),
        client.converse_stream(modelId=MODEL, messages=MESSAGES),
        client.invoke_model(modelId=TITAN, body=b'{"inputText":"a"}'),
    ):
        assert response["ResponseMetadata"]["RequestId"]


def test_b08_an_unsigned_request_is_refused(service):
    unsigned = service.client(Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1}))
    assert refusal(unsigned)[::2] == ("MissingAuthenticationTokenException", 403)


def turn(role: str, text: str = "words") -> dict[str, Any]:
    return {"role": role, "content": [{"text": text}]}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [turn("user", " ")]}, "messages.0.content.0 is blank"),
        ({"messages": [{"role": "user", "content": []}]}, "messages.0 is empty"),
        ({"messages": [turn("assistant")]}, "start with a user message"),
        ({"messages": [turn("user"), turn("user")]}, "alternate"),
        ({"messages": [turn("user"), turn("assistant")]}, "end with a user message"),
        ({"messages": [turn("nobody")]}, "enum value set"),
        (
            {"messages": [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"x"}}}]}]},
            "image",
        ),
        ({"system": [{"text": " "}]}, "system.0 is blank"),
    ],
)
def test_b09_a_conversation_has_to_be_well_formed(client, request_, words):
    code, message, status = refusal(client, **request_)
    assert (code, status) == ("ValidationException", 400)
    assert words in message


@pytest.mark.parametrize("max_tokens", [0, -1, 10_001])
def test_b10_max_tokens_has_its_limits(service, max_tokens):
    lenient = service.client(Config(parameter_validation=False, retries={"total_max_attempts": 1}))
    code, message, status = refusal(lenient, modelId="amazon.nova-lite-v1:0", inferenceConfig={"maxTokens": max_tokens})
    assert (code, status) == ("ValidationException", 400)
    assert "maxTokens" in message or "model limit of 10000" in message


@pytest.mark.parametrize(
    ("model_id", "config", "words"),
    [
        (REASONING, {"temperature": 0.5}, "`temperature` is deprecated"),
        (REASONING, {"topP": 0.5}, "`top_p` is deprecated"),
        (HAIKU, {"temperature": 0.5, "topP": 0.5}, "`temperature` and `top_p` cannot both be specified"),
    ],
)
def test_b11_some_models_refuse_sampling_parameters(client, model_id, config, words):
    code, message, status = refusal(client, modelId=model_id, inferenceConfig=config)
    assert (code, status) == ("ValidationException", 400)
    assert words in message
    assert texts_of(converse_stream(client, HAIKU, inferenceConfig={"temperature": 0.5})) == ANSWER
    assert texts_of(converse_stream(client, MODEL, inferenceConfig={"temperature": 0.5, "topP": 0.5})) == ANSWER


@pytest.mark.parametrize("temperature", [1.5, -0.1])
def test_b11_a_temperature_out_of_range_is_refused(service, temperature):
    lenient = service.client(Config(parameter_validation=False, retries={"total_max_attempts": 1}))
    assert refusal(lenient, inferenceConfig={"temperature": temperature})[0] == "ValidationException"


def test_b12_an_input_over_the_context_window_is_refused(client):
    long = [turn("user", "word" * 130_000)]
    code, message, _ = refusal(client, messages=long)
    assert (code, message) == ("ValidationException", "Input is too long for requested model.")
    assert texts_of(converse_stream(client, "amazon.nova-lite-v1:0", messages=long)) == ANSWER


def test_b13_max_tokens_and_stop_sequences_end_an_answer(client):
    cut = converse_stream(client, inferenceConfig={"maxTokens": 5})
    assert ANSWER.startswith(texts_of(cut))
    assert cut[-2]["messageStop"]["stopReason"] == "max_tokens"
    assert cut[-1]["metadata"]["usage"]["outputTokens"] == 5
    stopped = converse_stream(client, inferenceConfig={"stopSequences": ["zzz", "[1]"]})
    assert texts_of(stopped) == ANSWER[: ANSWER.index("[1]")]
    assert stopped[-2]["messageStop"]["stopReason"] == "stop_sequence"


def test_b14_a_reasoning_model_reasons_first_in_a_block_of_its_own(client):
    events = converse_stream(client, REASONING)
    deltas = [event["contentBlockDelta"] for event in events if "contentBlockDelta" in event]
    kinds = ["reasoningContent" if "reasoningContent" in delta["delta"] else "text" for delta in deltas]
    assert kinds == sorted(kinds)  # reasoning before text
    assert {(delta["contentBlockIndex"], kind) for delta, kind in zip(deltas, kinds, strict=True)} == {
        (0, "reasoningContent"),
        (1, "text"),
    }
    assert texts_of(events) == ANSWER


def test_b15_an_embedding_has_titans_format(client):
    answer = embed(client, {"inputText": "A question", "dimensions": 512, "normalize": True})
    assert len(answer["embedding"]) == 512
    assert math.hypot(*answer["embedding"]) == pytest.approx(1)
    assert answer["embeddingsByType"] == {"float": answer["embedding"]}
    assert answer["inputTextTokenCount"] == count_tokens("A question")


def test_b16_titan_has_three_dimensions(client):
    assert len(embed(client, {"inputText": "a"})["embedding"]) == 1024
    for dimensions in (256, 512, 1024):
        assert len(embed(client, {"inputText": "a", "dimensions": dimensions})["embedding"]) == dimensions
    for wrong in (384, 0, "512", None):
        with pytest.raises(ClientError, match="#/dimensions"):
            embed(client, {"inputText": "a", "dimensions": wrong})
    assert len(embed(client, {"inputText": "a"}, "local.all-minilm-l6-v2")["embedding"]) == 384
    with pytest.raises(ClientError, match="#/dimensions"):
        embed(client, {"inputText": "a", "dimensions": 1024}, "local.all-minilm-l6-v2")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, r"required key \[inputText\] not found"),
        ({"inputText": "a", "colour": 1}, r"extraneous key \[colour\] is not permitted"),
        ({"inputText": ["a"]}, "expected type: String, found: JSONArray"),
        ({"inputText": ""}, "expected minLength: 1"),
        ({"inputText": "x" * 50_001}, "expected maxLength: 50000, actual: 50001"),
        ({"inputText": "蝉" * 8193}, "Max input tokens: 8192, request input token count: 8193"),
        ({"inputText": "a", "normalize": "yes"}, "expected type: Boolean"),
        ({"inputText": "a", "embeddingTypes": ["binary"]}, "embeddingTypes"),
        (b"no json", "Malformed input request"),
        ([], "Malformed input request"),
    ],
)
def test_b17_titans_body_is_strict(client, body, words):
    with pytest.raises(ClientError, match=words) as raised:
        embed(client, body)
    assert code_of(raised.value)[::2] == ("ValidationException", 400)
    assert embed(client, {"inputText": "x" * 32_768})["inputTextTokenCount"] == 8192


NOVA_EMBEDDINGS = "amazon.nova-2-multimodal-embeddings-v1:0"
COHERE_V3, COHERE_V4 = "cohere.embed-english-v3", "us.cohere.embed-v4:0"
TO_FIND: dict[str, Any] = {"texts": ["a", "b"], "input_type": "search_query"}


def nova_embedding(**changed: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"embeddingPurpose": "GENERIC_INDEX", "text": {"truncationMode": "NONE", "value": "a"}}
    return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": asked | changed}


@pytest.mark.parametrize(
    ("model_id", "body", "words"),
    [
        (COHERE_V3, {"texts": ["a"]}, r"required key \[input_type\] not found"),
        (COHERE_V3, TO_FIND | {"texts": []}, "expected minimum item count: 1"),
        (COHERE_V3, TO_FIND | {"texts": "a"}, "expected type: JSONArray, found: String"),
        (COHERE_V3, TO_FIND | {"texts": ["a"] * 97}, "expected maximum item count: 96, found: 97"),
        (COHERE_V3, TO_FIND | {"texts": ["a", "x" * 2_049]}, "#/texts/1: expected maxLength: 2048, actual: 2049"),
        (COHERE_V3, TO_FIND | {"texts": ["蝉" * 513]}, "Input is too long for requested model"),
        (COHERE_V3, TO_FIND | {"input_type": "question"}, "#/input_type"),
        (COHERE_V3, TO_FIND | {"truncate": "LEFT"}, "#/truncate"),
        (COHERE_V3, TO_FIND | {"output_dimension": 1024}, r"extraneous key \[output_dimension\]"),
        (COHERE_V4, TO_FIND | {"truncate": "START"}, "#/truncate"),
        (COHERE_V4, TO_FIND | {"output_dimension": 1000}, "#/output_dimension"),
        (COHERE_V4, TO_FIND | {"embedding_types": ["int8"]}, "#/embedding_types/0"),
        (NOVA_EMBEDDINGS, {"inputText": "a"}, r"required key \[singleEmbeddingParams\] not found"),
        (NOVA_EMBEDDINGS, nova_embedding(embeddingDimension=512), "embeddingDimension"),
        (NOVA_EMBEDDINGS, nova_embedding(embeddingPurpose="SEARCH"), "embeddingPurpose"),
        (NOVA_EMBEDDINGS, nova_embedding(text={"value": "a"}), r"required key \[truncationMode\]"),
        (NOVA_EMBEDDINGS, nova_embedding(text={"truncationMode": "NONE", "value": "x" * 8_193}), "maxLength: 8192"),
    ],
)
def test_b41_other_families_have_schemas_of_their_own(client, model_id, body, words):
    with pytest.raises(ClientError, match=words) as raised:
        embed(client, body, model_id)
    assert code_of(raised.value)[::2] == ("ValidationException", 400)


def test_b42_cohere_answers_a_list_or_by_type(client):
    answer = embed(client, TO_FIND, COHERE_V3)
    assert ([len(one) for one in answer["embeddings"]], answer["response_type"]) == ([1024, 1024], "embeddings_floats")
    assert len(embed(client, TO_FIND | {"embedding_types": ["float"]}, COHERE_V3)["embeddings"]["float"]) == 2
    answer = embed(client, TO_FIND, COHERE_V4)
    assert [len(one) for one in answer["embeddings"]["float"]] == [1536, 1536]
    assert len(embed(client, TO_FIND | {"output_dimension": 256}, COHERE_V4)["embeddings"]["float"][0]) == 256


def test_b43_nova_answers_one_embedding(client):
    (one,) = embed(client, nova_embedding(), NOVA_EMBEDDINGS)["embeddings"]
    assert (one["embeddingType"], len(one["embedding"])) == ("TEXT", 3072)
    (one,) = embed(client, nova_embedding(embeddingDimension=384), NOVA_EMBEDDINGS)["embeddings"]
    assert len(one["embedding"]) == 384


@pytest.mark.parametrize(
    ("model_id", "body", "tokens"),
    [(TITAN, {"inputText": "abcde"}, "2"), (NOVA_EMBEDDINGS, nova_embedding(), "1"), (COHERE_V4, TO_FIND, None)],
)
def test_b44_a_header_counts_the_tokens(client, model_id, body, tokens):
    response = client.invoke_model(modelId=model_id, body=json.dumps(body))
    assert response["ResponseMetadata"]["HTTPHeaders"].get("x-amzn-bedrock-input-token-count") == tokens


def test_b18_an_operation_that_a_model_does_not_have_is_invalid(client):
    assert refusal(client, modelId=TITAN)[::2] == ("ValidationException", 400)
    with pytest.raises(ClientError) as raised:
        embed(client, {"inputText": "a"}, MODEL)
    assert code_of(raised.value)[::2] == ("ValidationException", 400)


def test_b19_a_call_can_fail_before_its_stream(service, client):
    service.faults.arm("bedrock.throttle", times=1, model=MODEL)
    assert converse_stream(client, "amazon.nova-lite-v1:0")
    with pytest.raises(client.exceptions.ThrottlingException) as raised:
        client.converse_stream(modelId=MODEL, messages=MESSAGES)
    assert code_of(raised.value)[2] == 429
    assert converse_stream(client)

    service.faults.arm("bedrock.error", times=1, exception="ModelTimeoutException", status=408, message="Too slow.")
    with pytest.raises(client.exceptions.ModelTimeoutException) as raised:
        client.converse_stream(modelId=MODEL, messages=MESSAGES)
    assert code_of(raised.value) == ("ModelTimeoutException", "Too slow.", 408)

    service.faults.arm("bedrock.embed_throttle", times=1)
    with pytest.raises(client.exceptions.ThrottlingException):
        embed(client, {"inputText": "a"})
    service.faults.arm("bedrock.embed_error", times=1, exception="AccessDeniedException", status=403)
    with pytest.raises(client.exceptions.AccessDeniedException):
        embed(client, {"inputText": "a"})


def read_until_it_breaks(client: Any) -> tuple[str, int, Exception | None]:
    """The text, the status, and what the stream raised."""
    response = client.converse_stream(modelId=MODEL, messages=MESSAGES)
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    events = []
    try:
        for event in response["stream"]:
            events.append(event)
    except Exception as error:
        return texts_of(events), status, error
    assert not any("messageStop" in event for event in events)
    return texts_of(events), status, None


@pytest.mark.parametrize("exception", ["throttlingException", "modelStreamErrorException", "internalServerException"])
def test_b20_an_exception_can_come_in_the_stream(service, client, exception):
    service.faults.arm("bedrock.cut", mode="exception", exception=exception, message="Enough.", after=2)
    text, status, error = read_until_it_breaks(client)
    assert isinstance(error, EventStreamError)
    assert error.response["Error"] == {"Code": exception, "Message": "Enough."}
    assert text == "".join(split_pieces(ANSWER)[:2])
    assert status == 200


@pytest.mark.parametrize(
    ("mode", "framing", "raised"),
    [
        ("reset", "chunked", ProtocolError),
        ("reset", "close", None),
        ("silent", "close", None),
        ("half_frame", "chunked", ProtocolError),
        ("half_frame", "close", None),
        ("corrupt", "chunked", ChecksumMismatch),
        ("stall", "chunked", ReadTimeoutError),
    ],
)
def test_b21_a_stream_can_be_cut_without_an_exception_of_aws(service, mode, framing, raised):
    service.faults.arm("bedrock.cut", mode=mode, framing=framing, after=3)
    text, _, error = read_until_it_breaks(service.client(read_timeout_s=0.5 if mode == "stall" else 20))
    assert text == "".join(split_pieces(ANSWER)[:3])
    assert error is None if raised is None else type(error).__name__ == raised.__name__


@pytest.mark.parametrize(
    "reason",
    [
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "model_context_window_exceeded",
    ],
)
def test_b22_a_stream_can_stop_for_any_reason(service, client, reason):
    service.faults.arm("bedrock.stop", times=1, stop_reason=reason)
    assert converse_stream(client)[-2]["messageStop"]["stopReason"] == reason
    assert converse_stream(client)[-2]["messageStop"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("fault", "params", "pieces"),
    [
        ("bedrock.slow", {"first_ms": 60_000}, None),
        ("bedrock.slow", {"first_piece_ms": 60_000}, 0),
        ("bedrock.slow", {"delay_ms": 60_000}, 1),
        ("bedrock.cut", {"mode": "stall", "after": 2}, 2),
    ],
)
def test_b23_a_caller_that_goes_ends_the_call(service, fault, params, pieces):
    service.faults.arm(fault, **params)
    client = service.client(read_timeout_s=0.3)
    if pieces is None:
        with pytest.raises(BotoReadTimeoutError):  # botocore closes the connection then
            client.converse_stream(modelId=MODEL, messages=MESSAGES)
    else:
        stream = client.converse_stream(modelId=MODEL, messages=MESSAGES)["stream"]
        events = iter(stream)
        assert [next(iter(next(events))) for _ in range(1 + pieces)] == [
            "messageStart",
            *["contentBlockDelta"] * pieces,
        ]
        stream.close()
    assert service.finished.wait(20)
    assert service.streams() == {**NO_STREAMS, "closed_by_caller": 1}


def test_b24_a_connection_can_be_lost_before_the_response(service, client):
    service.faults.arm("bedrock.refuse", times=1)
    with pytest.raises(ConnectionClosedError):
        client.converse_stream(modelId=MODEL, messages=MESSAGES)
    service.faults.arm("bedrock.embed_refuse", times=1)
    with pytest.raises(ConnectionClosedError):
        embed(client, {"inputText": "a"})
    assert converse_stream(client)
    assert service.streams() == {**NO_STREAMS, "refused": 1, "finished": 1}


# --- beyond the list ---


def test_streams_are_counted_by_how_they_ended(service, client):
    assert service.streams() == NO_STREAMS
    converse_stream(client)
    service.faults.arm("bedrock.cut", times=1, mode="silent")
    converse_stream(client)
    service.faults.arm("bedrock.throttle", times=1)
    with pytest.raises(ClientError):
        converse_stream(client)
    assert service.streams() == {**NO_STREAMS, "finished": 1, "broken": 1, "refused": 1}


def test_a_stop_can_come_after_some_pieces(service, client):
    service.faults.arm("bedrock.stop", times=1, stop_reason="content_filtered", after=2)
    events = converse_stream(client)
    assert texts_of(events) == "".join(split_pieces(ANSWER)[:2])
    assert events[-2]["messageStop"]["stopReason"] == "content_filtered"
    assert events[-1]["metadata"]["usage"]["outputTokens"] == sum(map(count_tokens, split_pieces(ANSWER)[:2]))


def test_a_model_of_fixed_latency_makes_up_for_what_came_before():
    pace = Pace(between_s=0.05, first_piece_s=0.5, since=100.0)
    assert pace.wait_s(0, 100.2) == pytest.approx(0.3)  # the answer took 0.2 s to think of
    assert pace.wait_s(1, 100.52) == pytest.approx(0.03)
    assert pace.wait_s(2, 100.9) == 0.0  # late already


def test_a_slow_model_waits_anew_before_each_piece():
    pace = Pace(between_s=0.05, first_piece_s=0.5)
    assert [pace.wait_s(sent, 100.0 + sent) for sent in range(3)] == [0.5, 0.05, 0.05]


def test_pieces_come_at_the_fixed_times_of_their_model(service, client):
    service.faults.arm("bedrock.slow", first_ms=30, first_piece_ms=60_000, delay_ms=60_000)
    service.faults.arm("bedrock.pace", first_piece_ms=60, delay_ms=1, model=MODEL)
    assert texts_of(converse_stream(client)) == ANSWER


def test_a_fault_strikes_the_model_that_it_names(service, client):
    service.faults.arm("bedrock.stop", stop_reason="max_tokens", model="amazon.nova-lite-v1:0")
    assert converse_stream(client)[-2]["messageStop"]["stopReason"] == "end_turn"
    assert converse_stream(client, "amazon.nova-lite-v1:0")[-2]["messageStop"]["stopReason"] == "max_tokens"


def strikes(faults: Faults, times: int) -> list[bool]:
    return [faults.take("bedrock.throttle") is not None for _ in range(times)]


def test_a_fault_with_a_share_strikes_that_often_and_the_same_again_by_its_seed():
    faults = Faults()
    faults.arm("bedrock.throttle", share=0.25, seed=7, message="Enough.")
    assert faults.armed() == {"bedrock.throttle": {"times": None, "share": 0.25, "message": "Enough."}}
    first = strikes(faults, 400)
    assert 60 < sum(first) < 140
    faults.arm("bedrock.throttle", share=0.25, seed=7)
    assert strikes(faults, 400) == first
    faults.arm("bedrock.throttle", share=0.25, seed=8)
    assert strikes(faults, 400) != first


def test_only_strikes_use_up_the_times_of_a_fault_with_a_share():
    faults = Faults()
    faults.arm("bedrock.throttle", share=0.5, seed=1, times=3)
    assert sum(strikes(faults, 100)) == 3
    assert not faults.armed()


def test_the_answerer_gets_the_system_prompt_and_the_last_turn(service, client):
    heard = []

    def answer(system: str, user: str) -> str:
        heard.append((system, user))
        return "Yes."

    service.answer = answer
    client.converse(
        modelId=MODEL,
        system=[{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        messages=[turn("user", "first"), turn("assistant", "answer"), turn("user", "last")],
    )
    assert heard == [("Be brief.", "last")]


def test_a_bug_of_the_answerer_is_an_internal_server_error(service, client):
    def answer(system: str, user: str) -> str:
        raise ZeroDivisionError

    service.answer = answer
    assert refusal(client)[::2] == ("InternalServerException", 500)


def test_a_fault_that_is_not_known_is_told_of(service, client):
    service.faults.arm("bedrock.cut", times=1, mode="explode")
    with pytest.raises(ClientError, match="InternalServerException"):
        converse_stream(client)


@given(st.text(max_size=200))
def test_pieces_are_the_text(text):
    pieces = split_pieces(text)
    assert "".join(pieces) == text
    assert all(pieces)


@given(
    st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=50), max_size=5),
    st.binary(max_size=300),
    st.integers(0, 400),
)
def test_botocore_reads_what_is_encoded_and_nothing_that_is_damaged(headers, payload, place):
    message = encode_message(headers, payload)
    buffer = EventStreamBuffer()
    buffer.add_data(message)
    (read,) = list(buffer)
    assert (read.headers, read.payload) == (headers, payload)

    place %= len(message)
    damaged = EventStreamBuffer()
    damaged.add_data(message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :])
    with pytest.raises(ChecksumMismatch):
        list(damaged)


def test_what_one_message_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="too long"):
        encode_message({"x" * 256: ""}, b"")
    with pytest.raises(ValueError, match="too long"):
        encode_message({"x": "y" * 32_768}, b"")
    with pytest.raises(ValueError, match="too much"):
        encode_message({}, b"x" * (24 * 1024 * 1024 + 1))
    assert len(encode_event("messageStop", {"stopReason": "end_turn"})) < 200
