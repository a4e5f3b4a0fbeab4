"""What the adapters send and read, against the recorded shapes of each family of models (``contracts/*.json``).

A contract names its sources, the requests that an adapter must send, what the service answers, and what the adapter
reads. Requests and responses of Converse are also checked against botocore's service model, bodies of InvokeModel and
of Chat Completions against a schema made from their documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from aiohttp import web
from botocore.model import ListShape, Shape, StructureShape
from botocore.validate import ParamValidator
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from cicada.agents.converse.agent import ConverseAgent
from cicada.agents.limits import AgentCaps, CappedLimits
from cicada.agents.ports import Actor, AgentFinished, AgentTask, ToolInput
from cicada.agents.source_registry import NumberedSources
from cicada.agents.tool_runner import ToolRunner
from cicada.errors import AnswerBlocked
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.bedrock_rerank import BedrockReranker
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.embedding_models import EMBEDDING_MODELS
from cicada.models.guardrail import Guardrail
from cicada.models.guardrail_checks import GuardrailChecks
from cicada.models.model_ids import Sampling, read_model_id
from cicada.models.openai_chat import ChatSettings, OpenAiChat, OpenAiTextModel
from cicada.models.openai_dialect import Dialects
from cicada.models.openai_http import ChatConnection
from cicada.models.openai_structured import OpenAiStructuredModel
from cicada.models.ports import Finished, Prompt, StructuredModel, TextDelta, TextModel, Unbounded, Usage
from cicada.retrieval.ports import UNLIMITED
from cicada.rights import EVERYTHING
from cicada_local.bedrock.event_stream import encode_event, encode_exception
from tests.support.agents import FakeTool
from tests.wire.app_server import serving_app
from tests.wire.bedrock_service import BedrockService

CONTRACTS = {path.stem: path for path in sorted(Path(__file__).with_name("contracts").glob("*.json"))}
PROMPT = Prompt("Answer from the passages.", "Who found the letter?")
TIME_S = 20.0


class Note(BaseModel):
    """A note about a text."""

    summary: str
    pages: list[int]


@dataclass
class Recorded:
    """A contract, and a server that answers by it."""

    contract: Mapping[str, Any]
    url: str = ""
    sent: list[dict[str, Any]] = field(default_factory=list)

    @property
    def model_id(self) -> str:
        return str(self.contract["model"])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next recorded response."""
        number = len(self.sent)
        self.sent.append({"path": request.raw_path, "body": await request.json()})
        response = self.contract["exchanges"][number]["response"]
        if "body" in response:
            data = json.dumps(response["body"]).encode()
            kind = {"Content-Type": "application/json"}
            return web.Response(status=response["status"], body=data, headers=kind | response.get("headers", {}))
        if "chunks" in response:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in response["chunks"]]
            text = "".join([*lines, "data: [DONE]\n\n"])
            return web.Response(text=text, content_type="text/event-stream")
        frames = [encode_event(kind, content) for kind, content in response["events"]]
        if "exception" in response:
            frames.append(encode_exception(*response["exception"]))
        return web.Response(body=b"".join(frames), content_type="application/vnd.amazon.eventstream")

    def client(self) -> Any:
        return BedrockService(url=self.url).client()

    def chat(self) -> OpenAiChat:
        settings = ChatSettings(2048, self.contract["temperature"])
        own = self.model_id.partition("/")[2]
        connection = ChatConnection(self.url, read_timeout_s=5.0)
        return OpenAiChat(self.model_id, own, connection, None, settings, sampling=Sampling(), dialects=Dialects())


def expanded(value: Any) -> Any:
    """A recorded value, with its vectors written out: ``{"vector": [3, 4], "length": 256}`` goes on with zeros."""
    if isinstance(value, list):
        return [expanded(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"vector", "length"}:
        return [*value["vector"], *[0] * (value["length"] - len(value["vector"]))]
    return {key: expanded(one) for key, one in value.items()}


@contextmanager
def served(name: str) -> Iterator[Recorded]:
    recorded = Recorded(expanded(json.loads(CONTRACTS[name].read_text(encoding="utf-8"))))
    app = web.Application()
    app.router.add_post("/{path:.*}", recorded.answer)
    with serving_app(app) as recorded.url:
        yield recorded


# --- the adapters ---


def _usage(usage: Usage) -> dict[str, int] | None:
    """The tokens; None where they are not known."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    names = ("input_tokens", "output_tokens", "cache_read_tokens")
    return dict(zip(names, counts, strict=True)) if usage.reported else None


def _filled(model: StructuredModel) -> dict[str, Any]:
    filled = model.fill(PROMPT, Note, time_budget_s=TIME_S, call_scope=Unbounded())
    return {"value": filled.value.model_dump(), "calls": filled.calls, "usage": _usage(filled.usage)}


def _streamed(model: TextModel) -> dict[str, Any]:
    *pieces, finished = model.stream(PROMPT, time_budget_s=TIME_S, call_scope=Unbounded())
    assert isinstance(finished, Finished)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    return {"text": text, "stop_reason": finished.stop_reason, "usage": _usage(finished.usage)}


GUARDRAIL = Guardrail("abc123def456", "3", grounding=True)
GUARDED = Prompt(
    "Answer from the passages.", "<p>Aoi found it.</p>\n<q>Who?</q>", checked="Who?", sources="<p>Aoi found it.</p>"
)


def _blocked(model: TextModel) -> dict[str, Any]:
    stream = model.stream(GUARDED, time_budget_s=TIME_S, call_scope=Unbounded())
    shown = []
    with pytest.raises(AnswerBlocked) as blocked:
        shown += [piece.text for piece in stream if isinstance(piece, TextDelta)]
    error = blocked.value
    return {"told": error.told, "by_guardrail": error.by_guardrail, "usage": _usage(error.usage or Usage())}


class Search(ToolInput):
    """What is searched for."""

    query: str


def agent(recorded: Recorded) -> dict[str, Any]:
    model = ConverseAgent(
        recorded.client(),
        recorded.model_id,
        max_turn_tokens=500,
        temperature=recorded.contract["temperature"],
        sampling=Sampling(),
    )
    tool = FakeTool("search_script", lambda given, _: {"found": given.model_dump()["query"]}, form=Search)
    limits = CappedLimits(UNLIMITED, AgentCaps())
    actor = Actor("asker", "request-1", PROMPT.user, 1_700_000_000_000, readable=EVERYTHING)
    box = ToolRunner([tool], actor=actor, registry=NumberedSources(), limits=limits)
    *pieces, finished = model.run(AgentTask(PROMPT.system, PROMPT.user), box, limits)
    assert isinstance(finished, AgentFinished)
    said = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    return {"text": said, "stop_reason": finished.stop_reason, "usage": _usage(finished.usage)}


def embed(recorded: Recorded) -> dict[str, Any]:
    contract = recorded.contract
    model = BedrockEmbedder(recorded.client(), recorded.model_id, contract["dimensions"], purpose=contract["purpose"])
    vectors = model.embed(contract["texts"], time_budget_s=TIME_S)
    return {"vectors": [[round(number, 9) for number in vector] for vector in vectors]}


def rerank(recorded: Recorded) -> dict[str, Any]:
    model = BedrockReranker(recorded.client(), recorded.model_id)
    texts = recorded.contract["texts"]
    ranked = model.rerank(PROMPT.user, texts, time_budget_s=TIME_S, call_scope=Unbounded())
    return {"scores": list(ranked.scores)}


ADAPTERS: dict[str, Callable[[Recorded], dict[str, Any]]] = {
    "text": lambda recorded: _streamed(
        BedrockTextModel(
            recorded.client(), recorded.model_id, temperature=recorded.contract["temperature"], sampling=Sampling()
        )
    ),
    "form": lambda recorded: _filled(
        BedrockStructuredModel(
            recorded.client(), recorded.model_id, temperature=recorded.contract["temperature"], sampling=Sampling()
        )
    ),
    "agent": agent,
    "embed": embed,
    "rerank": rerank,
    "guarded": lambda recorded: _blocked(
        BedrockTextModel(recorded.client(), recorded.model_id, sampling=Sampling(), guardrail=GUARDRAIL)
    ),
    "apply": lambda recorded: {
        "text": GuardrailChecks(recorded.client(), GUARDRAIL).check(
            "Write to aoi@example.org.", "OUTPUT", call_scope=Unbounded(), prompt=GUARDED
        )
    },
    "chat": lambda recorded: _streamed(OpenAiTextModel(recorded.chat())),
    "chat_form": lambda recorded: _filled(OpenAiStructuredModel(recorded.chat())),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_adapter_sends_and_reads_what_the_contract_says(name):
    with served(name) as recorded:
        read = ADAPTERS[recorded.contract["adapter"]](recorded)
    assert recorded.sent == [exchange["request"] for exchange in recorded.contract["exchanges"]]
    assert read == recorded.contract["read"]


# --- the contracts themselves ---

SERVICE = botocore.session.get_session().get_service_model("bedrock-runtime")


def misfits(value: Any, shape: Shape, path: str = "") -> list[str]:
    """Where a recorded value differs from botocore's shape: unknown and missing members, other types."""
    if isinstance(shape, StructureShape) and not shape.is_document_type:
        if not isinstance(value, dict):
            return [f"{path} is no structure"]
        padding = {"p"} if path.count(".") == 1 else set()  # events of a stream may have it, and no model names it
        unknown = [f"{path}.{key} is not modelled" for key in value.keys() - shape.members.keys() - padding]
        missing = [f"{path}.{key} is missing" for key in set(shape.required_members) - value.keys()]
        known = value.keys() & shape.members.keys()
        inside = [problem for key in known for problem in misfits(value[key], shape.members[key], f"{path}.{key}")]
        return [*unknown, *missing, *inside]
    if isinstance(shape, ListShape):
        return [problem for n, one in enumerate(value) for problem in misfits(one, shape.member, f"{path}[{n}]")]
    kinds = {"string": str, "integer": int, "long": int, "float": float, "double": float, "boolean": bool}
    wanted = kinds.get(shape.type_name)
    return [] if wanted is None or isinstance(value, wanted) else [f"{path} is no {shape.type_name}"]


def test_a_response_that_aws_could_not_send_is_noticed():
    wrong = {"messageStop": {"reason": "end_turn"}, "metadata": {"usage": {"inputTokens": "7"}, "p": "abc"}}
    assert set(misfits(wrong, SERVICE.shape_for("ConverseStreamOutput"))) == {
        ".messageStop.reason is not modelled",
        ".messageStop.stopReason is missing",
        ".metadata.metrics is missing",
        ".metadata.usage.inputTokens is no integer",
        ".metadata.usage.outputTokens is missing",
        ".metadata.usage.totalTokens is missing",
    }


@pytest.mark.parametrize("name", [name for name in CONTRACTS if name.startswith("converse")])
def test_a_contract_of_converse_fits_botocores_model(name):
    contract = json.loads(CONTRACTS[name].read_text(encoding="utf-8"))
    operation = SERVICE.operation_model(contract["operation"])
    assert operation.input_shape is not None
    for exchange in contract["exchanges"]:
        request, response = exchange["request"], exchange["response"]
        assert request["path"].endswith({"Converse": "/converse", "ConverseStream": "/converse-stream"}[operation.name])
        report = ParamValidator().validate({"modelId": contract["model"], **request["body"]}, operation.input_shape)
        assert not report.has_errors(), report.generate_report()
        if "events" in response:
            shape = SERVICE.shape_for("ConverseStreamOutput")
            events = [{kind: content} for kind, content in response["events"]]
            events += [dict([response["exception"]])] if "exception" in response else []
            assert [problem for event in events for problem in misfits(event, shape)] == []
        elif response["status"] == 200:
            assert misfits(response["body"], SERVICE.shape_for("ConverseResponse")) == []
        else:
            code = response["headers"]["x-amzn-ErrorType"].split(":")[0]
            shape = SERVICE.shape_for(code)
            assert shape.metadata["error"]["httpStatusCode"] == response["status"]
            assert misfits(response["body"], shape) == []


@pytest.mark.parametrize("name", [name for name in CONTRACTS if not name.startswith("converse")])
def test_a_contract_of_another_format_fits_its_documented_schema(name):
    contract = json.loads(CONTRACTS[name].read_text(encoding="utf-8"))
    validator = Draft202012Validator(contract["body_schema"])
    for exchange in contract["exchanges"]:
        validator.validate(exchange["request"]["body"])


def test_every_family_that_is_supported_has_a_contract_with_its_sources():
    contracts = [json.loads(path.read_text(encoding="utf-8")) for path in CONTRACTS.values()]
    assert all(contract["sources"] for contract in contracts)
    embedded = {read_model_id(contract["model"]).base for contract in contracts if contract["adapter"] == "embed"}
    families = {model: EMBEDDING_MODELS[model].body for model in EMBEDDING_MODELS}
    assert {families[model] for model in embedded} == set(families.values())
