"""Forms over real HTTP: the stand-in's tools do what AWS's do, and BedrockStructuredModel gets its forms filled in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from pydantic import BaseModel, Field

from cicada.corpus.documents import Document
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import (
    AnswerMalformed,
    AnswerTruncated,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
)
from cicada.ingest.contracts import EnrichmentOptions
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.ports import Filled, Prompt, Stopped, Unbounded
from cicada.models.retries import RetryPolicy
from tests.support.object_stores import InMemoryStore
from tests.wire.bedrock_service import BedrockService, serving

MODEL = "local.extractive"
NOVA = "amazon.nova-lite-v1:0"
REASONING = "us.anthropic.claude-haiku-5-5"
SCHEMA = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
USER = {"role": "user", "content": [{"text": "Aoi found the letter. She told nobody."}]}
CALL = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t-1", "name": "note", "input": {}}}]}
RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "t-1", "content": [{"text": "No."}]}}]}


class Note(BaseModel):
    """A note about a text."""

    summary: str = Field(min_length=1, description="what it says")
    entities: list[str]


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


@pytest.fixture
def client(service: BedrockService) -> Any:
    return service.client()


def spec(name: str = "note", schema: Any = SCHEMA) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "description": "A note.", "inputSchema": {"json": schema}}}


def converse(client: Any, model_id: str = MODEL, **request: Any) -> dict[str, Any]:
    tools = {"tools": [spec()], "toolChoice": {"tool": {"name": "note"}}}
    answer: dict[str, Any] = client.converse(modelId=model_id, **{"messages": [USER], "toolConfig": tools, **request})
    return answer


def refusal(client: Any, model_id: str = MODEL, **request: Any) -> str:
    with pytest.raises(ClientError) as raised:
        converse(client, model_id, **request)
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    return str(raised.value.response["Error"]["Message"])


def model(service: BedrockService, model_id: str = MODEL, **settings: Any) -> BedrockStructuredModel:
    return BedrockStructuredModel(service.client(), model_id, **{"retry": RetryPolicy(base_s=0.001), **settings})


def fill(structured: BedrockStructuredModel, time_budget_s: float = 10.0) -> Filled[Note]:
    prompt = Prompt("Take a note.", "<passages>\n<passage n='1'>x</passage>\n</passages>The keeper, Aoi, left.")
    return structured.fill(prompt, Note, time_budget_s=time_budget_s, call_scope=Unbounded())


# --- the stand-in ---


def test_b25_a_tools_use_is_a_content_block_and_a_stop_reason(client):
    response = converse(client)
    (block,) = response["output"]["message"]["content"]
    assert block["toolUse"]["name"] == "note"
    assert block["toolUse"]["toolUseId"].startswith("tooluse_")
    assert block["toolUse"]["input"] == {"summary": "Aoi found the letter. She told nobody."}
    assert response["stopReason"] == "tool_use"
    usage = response["usage"]
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert usage["inputTokens"] > 20, "the tools are part of the input"
    reasoned = converse(client, REASONING, toolConfig={"tools": [spec()]})
    assert [next(iter(block)) for block in reasoned["output"]["message"]["content"]] == ["reasoningContent", "toolUse"]


def test_b26_a_tool_choice_makes_the_model_call_that_tool(client):
    both = [spec("first"), spec("note")]
    chosen = converse(client, toolConfig={"tools": both, "toolChoice": {"tool": {"name": "note"}}})
    assert chosen["output"]["message"]["content"][0]["toolUse"]["name"] == "note"
    response = converse(client, toolConfig={"tools": both, "toolChoice": {"any": {}}})
    assert response["output"]["message"]["content"][0]["toolUse"]["name"] == "first"
    assert "Thinking may not be enabled when tool_choice forces" in refusal(client, REASONING)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"tools": [spec("a tool")]}, "regular expression pattern"),
        ({"tools": [spec(), spec()]}, "must be unique"),
        ({"tools": [spec(schema={"type": "array"})]}, "must be one of the following: object"),
        ({"tools": [spec(schema="{}")]}, "Provide a json object"),
        ({"tools": [spec(schema={"type": "object", "properties": {"a": {"type": "text"}}})]}, "JSON schema is invalid"),
        ({"tools": [spec(schema={"type": "object", "properties": []})]}, "JSON schema is invalid"),
        ({"tools": [spec(schema={"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}})]}, "is invalid"),
        ({"tools": [spec()], "toolChoice": {"tool": {"name": "other"}}}, "not found in provided tools"),
    ],
)
def test_b27_tools_have_to_be_well_formed(client, config, words):
    assert words in refusal(client, toolConfig=config)


def test_b28_nova_takes_three_keywords_at_a_schemas_top(client):
    described = {"tools": [spec(schema={**SCHEMA, "description": "A note."})]}
    assert "Only type, properties and required" in refusal(client, NOVA, toolConfig=described)
    assert converse(client, toolConfig=described)["stopReason"] == "tool_use"


def test_b29_uses_and_results_of_tools_belong_together(client):
    assert "Expected toolResult blocks" in refusal(client, messages=[USER, CALL, USER])
    assert "exceeds the number of toolUse blocks" in refusal(client, messages=[RESULT])
    assert "not allowed in a turn of the user" in refusal(client, messages=[{**CALL, "role": "user"}])
    with pytest.raises(ClientError, match="toolConfig field must be defined"):
        client.converse(modelId=MODEL, messages=[USER, CALL, RESULT])
    assert converse(client, messages=[USER, CALL, RESULT])["stopReason"] == "tool_use"


def test_b30_an_input_that_outgrows_max_tokens_is_not_whole(client):
    response = converse(client, inferenceConfig={"maxTokens": 2})
    assert response["stopReason"] == "max_tokens"
    assert response["output"]["message"]["content"][0]["toolUse"]["input"] == {}
    assert response["usage"]["outputTokens"] == 2


def test_b33_a_whole_response_can_break_off(service, client):
    service.faults.arm("bedrock.converse_cut")
    assert converse(client).keys() == {"ResponseMetadata"}, "botocore says nothing of it"


def test_b39_a_use_of_a_tool_that_nova_writes_wrongly_is_an_error_of_the_model(service, client):
    service.faults.arm("bedrock.form", times=1, mode="sequence")
    with pytest.raises(ClientError, match="Model produced invalid sequence as part of ToolUse") as raised:
        converse(client, NOVA)
    assert raised.value.response["Error"]["Code"] == "ModelErrorException"
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 424


def test_b40_nova_takes_its_top_k_beside_the_common_parameters(client):
    def top_k(value: Any) -> dict[str, Any]:
        return {"additionalModelRequestFields": {"inferenceConfig": {"topK": value}}}

    assert converse(client, NOVA, **top_k(1))["stopReason"] == "tool_use"
    assert "topK: 129 is not between 0 and 128" in refusal(client, NOVA, **top_k(129))
    assert "extraneous key [inferenceConfig]" in refusal(client, **top_k(1))


# --- the adapter ---


@pytest.mark.parametrize("model_id", [MODEL, NOVA, "us.anthropic.claude-haiku-4-5-20251001-v1:0"])
def test_a_form_is_filled_in(service, model_id):
    filled = fill(model(service, model_id))
    assert filled.value.summary
    assert (filled.calls, filled.usage.reported) == (1, True)
    (sent,) = service.bodies
    assert sent["inferenceConfig"]["maxTokens"] == 1024
    greedy = {"inferenceConfig": {"topK": 1}} if model_id == NOVA else None
    assert sent.get("additionalModelRequestFields") == greedy
    assert sent["inferenceConfig"].get("temperature") == (0.0 if greedy else None)


def test_a_model_that_thinks_is_asked_for_the_call_and_that_is_remembered(service):
    structured = model(service, REASONING)
    assert [fill(structured).calls, fill(structured).calls] == [2, 1]


def test_a_refused_temperature_costs_one_call_more_at_most(service):
    structured = model(service, "us.anthropic.claude-sonnet-5", temperature=0.0)
    assert fill(structured).calls == 1, "that this family refuses it is known"


@pytest.mark.parametrize("mode", ["misfit", "talk", "unreadable", "sequence"])
def test_an_answer_that_does_not_fit_is_asked_for_once_more(service, mode):
    service.faults.arm("bedrock.form", times=1, mode=mode)
    assert fill(model(service)).calls == 2
    service.faults.arm("bedrock.form", times=2, mode=mode)
    with pytest.raises(AnswerMalformed) as raised:
        fill(model(service))
    assert raised.value.usage is not None


def test_a_thinking_model_gets_its_thoughts_back_with_the_correction(service):
    service.faults.arm("bedrock.form", times=1, mode="misfit")
    assert fill(model(service, REASONING)).calls == 3
    said = service.bodies[2]["messages"][1]["content"]
    assert [next(iter(block)) for block in said] == ["reasoningContent", "toolUse"]


def test_faults_of_the_service_are_told_in_our_words(service):
    service.faults.arm("bedrock.throttle", times=1)
    assert fill(model(service)).calls == 2
    service.faults.arm("bedrock.throttle")
    with pytest.raises(ModelBusy):
        fill(model(service, retry=RetryPolicy(max_attempts=2, base_s=0.001)))
    service.faults.disarm()
    service.faults.arm("bedrock.error", exception="AccessDeniedException", status=403)
    with pytest.raises(ModelRefused):
        fill(model(service))


@pytest.mark.parametrize("fault", ["bedrock.refuse", "bedrock.converse_cut"])
def test_a_lost_connection_is_tried_again(service, fault):
    service.faults.arm(fault, times=1)
    assert fill(model(service)).calls == 2
    service.faults.arm(fault)
    with pytest.raises(ModelUnavailable):
        fill(model(service, retry=RetryPolicy(max_attempts=2, base_s=0.001)))


def test_an_input_cut_at_max_tokens_is_no_answer(service):
    with pytest.raises(AnswerTruncated):
        fill(model(service, max_tokens=2))


def test_a_call_ends_with_its_time_budget_and_its_connection_with_it(service):
    service.faults.arm("bedrock.slow", first_ms=20_000)
    with pytest.raises(ModelUnavailable, match="time budget"):
        fill(model(service), time_budget_s=0.1)
    assert service.finished.wait(5), "the service notices that nobody waits"


class Stopping:
    """A call scope that is stopped a moment after the call goes out."""

    def call(self) -> None:
        pass

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        def later() -> None:
            time.sleep(0.1)
            wake()

        threading.Thread(target=later, daemon=True).start()
        return lambda: None


def test_a_stop_closes_the_connection(service):
    service.faults.arm("bedrock.slow", first_ms=20_000)
    began = time.monotonic()
    with pytest.raises(Stopped):
        model(service).fill(Prompt("", "x"), Note, time_budget_s=300.0, call_scope=Stopping())
    assert time.monotonic() - began < 20, "it waited for the answer"
    assert service.finished.wait(5)


def test_a_documents_passages_are_summarised_and_named_once(service):
    options = EnrichmentOptions(entities="model", summaries="model", model_id=MODEL)
    store = InMemoryStore()
    texts = ["Before the tide Ren Hale closes valve V-1104. The tide is high.", "Aoi Mori keeps the lamp."]
    items = [
        Indexable(
            Passage(id=str(n), collection="c", text=text, context=text, locator=DocumentLocator(source="s", title="T")),
            (WeightedText(text, 1.0),),
        )
        for n, text in enumerate(texts)
    ]
    document = Document("s", "T", "text", "d", ())
    enriched = Enricher(options, model(service), store).enrich(document, items)
    first = enriched.items[0].passage
    assert (first.entities, first.codes) == (("Ren Hale",), ("V-1104",))
    assert first.summary == "Before the tide Ren Hale closes valve V-1104."
    assert (enriched.calls, enriched.cost_usd, enriched.notes) == (2, 0.0, ())
    assert Enricher(options, model(service), store).enrich(document, items).calls == 0
    summary = DocumentSummaries(store, model(service)).get_or_make("s", "T", texts, time_budget_s=5)
    assert (summary.text, summary.made) == (enriched.summary, False)
