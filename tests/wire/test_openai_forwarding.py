"""The Bedrock stand-in with a model server behind it: the deployed adapters in front, OpenAI's wire behind."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from aiohttp import web
from pydantic import BaseModel

from cicada.attempts.budgets import AttemptBudget
from cicada.errors import (
    AnswerBlocked,
    AnswerTruncated,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.bedrock import bedrock_client_config
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.model_ids import Sampling
from cicada.models.ports import Finished, Prompt, Stopped, TextDelta, Unbounded, Usage
from cicada.models.retries import RetryPolicy
from cicada_local.bedrock import forwarding as forwarding_module
from cicada_local.bedrock.forwarding import KEY, MODEL, URL, forwarding_from
from cicada_local.bedrock.server import add_routes
from cicada_local.faults import Faults
from cicada_local.running import UpFailed
from tests.wire.openai_service import ANSWER, OpenAiService, serving

PROMPT = Prompt("Answer from the passages.", "Who found the letter?")
ONCE = RetryPolicy(max_attempts=1)


class House:
    """A model server, the stand-in before it, and a client of Bedrock's."""

    def __init__(self, server: OpenAiService, address: str, faults: Faults) -> None:
        self.server = server
        self.faults = faults
        self.client = boto3.client(
            "bedrock-runtime",
            endpoint_url=address,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=bedrock_client_config(read_timeout_s=30),
        )

    def text(self, *, retry: RetryPolicy = ONCE, **settings: Any) -> BedrockTextModel:
        return BedrockTextModel(self.client, "local.extractive", retry=retry, sampling=Sampling(), **settings)

    def forms(self) -> BedrockStructuredModel:
        return BedrockStructuredModel(self.client, "local.extractive", retry=ONCE, sampling=Sampling())


@pytest.fixture
def house() -> Iterator[House]:
    with serving() as server:
        server.key = "sk-local"
        faults = Faults()
        forwarding = forwarding_from({URL: server.url, MODEL: "qwen3:8b", KEY: "sk-local"})
        app = web.Application()
        add_routes(
            app,
            answer=lambda system, user: "never asked",
            embed=lambda texts: [[1.0] * 384] * len(texts),
            faults=faults,
            forwarding=forwarding,
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        loop = asyncio.new_event_loop()

        async def start() -> str:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return f"http://127.0.0.1:{runner.addresses[0][1]}"

        address = loop.run_until_complete(start())
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            yield House(server, address, faults)
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()


def read(model: BedrockTextModel, call_scope: Any = None) -> list[Any]:
    return list(model.stream(PROMPT, time_budget_s=30, call_scope=call_scope or Unbounded()))


def test_what_the_model_server_writes_is_streamed_as_bedrocks_with_its_usage(house):
    *texts, end = read(house.text(max_tokens=300, temperature=0.2))
    assert len(texts) > 5
    assert "".join(piece.text for piece in texts) == ANSWER
    assert end == Finished("end_turn", Usage(input_tokens=13, output_tokens=25))
    assert house.server.bodies == [
        {
            "model": "qwen3:8b",
            "messages": [{"role": "system", "content": PROMPT.system}, {"role": "user", "content": PROMPT.user}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 300,
            "temperature": 0.2,
        }
    ]


def test_cached_input_is_told_as_bedrock_tells_it(house):
    house.server.usage = lambda prompt, completion: {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "total_tokens": 140,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    assert read(house.text())[-1].usage == Usage(36, 40, 64)


def test_a_text_comes_whole_from_converse(house):
    answered = house.client.converse(
        modelId="local.extractive", messages=[{"role": "user", "content": [{"text": "Who?"}]}]
    )
    assert answered["output"]["message"]["content"] == [{"text": ANSWER}]
    assert answered["stopReason"] == "end_turn"
    assert answered["usage"]["outputTokens"] == 25


def test_the_turns_of_a_conversation_are_handed_on(house):
    house.client.converse(
        modelId="local.extractive",
        messages=[
            {"role": "user", "content": [{"text": "Who?"}]},
            {"role": "assistant", "content": [{"text": "Aoi."}]},
            {"role": "user", "content": [{"text": "And"}, {"text": "when?"}]},
        ],
    )
    assert house.server.bodies[0]["messages"] == [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "Aoi."},
        {"role": "user", "content": "And\nwhen?"},
    ]


# --- forms ---


class Found(BaseModel):
    """Who found it."""

    name: str
    when: str | None = None


def fill(house: House) -> Any:
    return house.forms().fill(PROMPT, Found, time_budget_s=30, call_scope=Unbounded())


def test_a_form_is_filled_in_by_a_schema_and_comes_back_as_a_tools_use(house):
    house.server.answer = lambda body: '{"name": "Aoi", "when": null}'
    filled = fill(house)
    assert filled.value == Found(name="Aoi")
    asked = house.server.bodies[0]["response_format"]["json_schema"]
    assert (asked["name"], asked["strict"]) == ("found", True)
    assert asked["schema"]["required"] == ["name", "when"]


def test_a_server_without_schemas_is_told_the_form_in_its_prompt(house):
    house.server.unknown = frozenset({"response_format"})
    house.server.answer = lambda body: 'Here: {"name": "Aoi"}'
    assert fill(house).value == Found(name="Aoi")
    assert '"name"' in house.server.bodies[-1]["messages"][0]["content"]


def test_a_form_that_does_not_fit_is_mended_through_both_wires(house):
    house.server.answer = lambda body: '{"name": 7}' if house.server.calls == 1 else '{"name": "Aoi"}'
    filled = fill(house)
    assert (filled.value, filled.calls) == (Found(name="Aoi"), 2)
    turns = house.server.bodies[1]["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert json.loads(turns[2]["content"]) == {"name": 7}
    assert "does not fit" in turns[3]["content"]


def test_words_in_place_of_a_form_are_asked_for_once_more(house):
    house.server.answer = lambda body: "Aoi, I think." if house.server.calls == 1 else '{"name": "Aoi"}'
    assert fill(house).value == Found(name="Aoi")


# --- faults ---


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, ModelBusy), (503, ModelUnavailable), (401, ModelRefused), (404, ModelRefused), (400, ModelRefused)],
)
def test_a_failure_of_the_server_is_the_failure_that_bedrock_would_have(house, status, kind):
    house.server.faults.arm("openai.error", status=status, message="as a test asked")
    with pytest.raises(kind) as raised:
        read(house.text())
    assert type(raised.value) is kind
    assert house.server.calls == 1


def test_a_busy_server_is_tried_again_by_the_deployed_code(house):
    house.server.faults.arm("openai.error", times=2, status=429)
    assert isinstance(read(house.text(retry=RetryPolicy(base_s=0.001)))[-1], Finished)
    assert house.server.calls == 3


@pytest.mark.parametrize("after", [0, 3])
def test_a_stream_that_breaks_behind_breaks_in_front(house, after):
    house.server.faults.arm("openai.cut", mode="reset", after=after)
    with pytest.raises(StreamBroken):
        read(house.text())


@pytest.mark.parametrize(("reason", "kind"), [("length", AnswerTruncated), ("content_filter", AnswerBlocked)])
def test_why_a_model_stopped_is_handed_on(house, reason, kind):
    house.server.faults.arm("openai.stop", reason=reason)
    with pytest.raises(kind) as raised:
        read(house.text())
    assert raised.value.usage == Usage(13, 25)


def test_the_stand_ins_own_faults_still_strike(house):
    house.faults.arm("bedrock.throttle", times=1)
    with pytest.raises(ModelBusy):
        read(house.text())
    assert house.server.calls == 0
    house.faults.arm("bedrock.cut", times=1, after=3)
    pieces = house.text().stream(PROMPT, time_budget_s=30, call_scope=Unbounded())
    assert [type(next(pieces)) for _ in range(3)] == [TextDelta] * 3
    with pytest.raises(StreamBroken):
        next(pieces)


def test_what_bedrock_refuses_is_refused_before_the_server_is_asked(house):
    with pytest.raises(ModelRefused):
        read(house.text(max_tokens=1_000_000))
    assert house.server.calls == 0


def test_a_model_that_reads_for_long_is_not_taken_for_silent(house, monkeypatch):
    monkeypatch.setattr(forwarding_module, "EARLY_S", 0.05)
    monkeypatch.setattr(forwarding_module, "SIGN_OF_LIFE_S", 0.05)
    house.server.faults.arm("openai.slow", first_ms=900)
    *texts, end = read(house.text(silence_s=0.5))
    assert "".join(piece.text for piece in texts) == ANSWER
    assert isinstance(end, Finished)


def test_a_stop_reaches_the_model_server(house):
    house.server.answer = lambda body: "word " * 1000
    house.server.faults.arm("openai.slow", delay_ms=60_000)
    call_scope = AttemptBudget("rag", calls=1, deadline=float("inf"))
    pieces = house.text().stream(PROMPT, time_budget_s=60, call_scope=call_scope)
    next(pieces)
    call_scope.stop()
    with pytest.raises(Stopped):
        next(pieces)
    waited = threading.Event()
    for _ in range(1000):
        if house.server.streams()["closed_by_caller"] == 1:
            return
        waited.wait(0.01)
    raise AssertionError("the server goes on writing")


# --- settings ---


def test_without_an_address_nothing_is_forwarded():
    assert forwarding_from({}) is None
    assert forwarding_from({URL: " ", MODEL: "qwen3:8b"}) is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({URL: "http://localhost:11434/v1"}, f"name the server's model in {MODEL}"),
        ({URL: "localhost:11434", MODEL: "m"}, f"{URL}: must be a URL"),
        ({URL: "http://192.168.0.9:11434/v1", MODEL: "m"}, f"{URL}: must begin with https://"),
        ({URL: "http://localhost:11434/v1", MODEL: "m", KEY: "two words"}, f"{KEY}: holds no key"),
    ],
)
def test_a_variable_that_is_wrong_is_named_and_no_key_is_quoted(environment, said):
    with pytest.raises(UpFailed, match=said) as raised:
        forwarding_from(environment)
    assert "two words" not in str(raised.value)
