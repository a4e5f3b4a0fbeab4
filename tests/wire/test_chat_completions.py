"""The OpenAI-compatible API, asked by OpenAI's own client, over a scripted deployment."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from cicada.errors import LimitReached
from cicada.protocol.actions import Ask, Cancel
from cicada.protocol.events import Chunk, Refused
from cicada.usage.limits import LimitState
from cicada_http import chat_completions
from cicada_http.app import create_app
from cicada_http.settings import HttpSettings
from tests.support.scripted_answers import (
    BROKEN_OFF,
    METRICS,
    QUESTION,
    TEXT,
    WORDS,
    accepted,
    answer,
    answer_after_fallback,
    begun,
    failed,
)
from tests.support.scripted_deployment import HOLD, PATIENCE_S, ScriptedDeployment, Step
from tests.support.served_app import served

TOKEN = "the-token-of-mara"
LIMIT = LimitState(account="user", limit="requestsMinute", most=5, left=0)
SCRIPTS: dict[str, Sequence[Step] | Refused] = {
    QUESTION: answer(),
    "And then?": answer(),
    "fallback": answer_after_fallback(),
    "failed": failed(),
    "limited": Refused(code=LimitReached.code, message="Your limit is reached.", retryable=True, limit=LIMIT),
    "held": [accepted(), *begun(), Chunk(attempt=1, content=WORDS[0]), HOLD],
}


@pytest.fixture(scope="module")
def deployment() -> Iterator[ScriptedDeployment]:
    with ScriptedDeployment(SCRIPTS, token=TOKEN) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def url(deployment: ScriptedDeployment) -> Iterator[str]:
    settings = HttpSettings.read({"WEBSOCKET_URL": deployment.url, "JWT_ISSUER": "https://issuer.example"})
    with served(create_app(settings, chat_completions.part)) as url:
        yield f"{url}/v1"


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key=TOKEN, max_retries=0, timeout=PATIENCE_S) as client:
        yield client


def user(*texts: str) -> Any:
    """The user's messages, with the assistant's between them."""
    messages = [{"role": "user", "content": texts[0]}]
    for text in texts[1:]:
        messages += [{"role": "assistant", "content": TEXT}, {"role": "user", "content": text}]
    return messages


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["cicada"]
    assert client.models.retrieve("cicada").owned_by == "cicada"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-5")


def test_a_whole_answer_has_its_text_usage_and_sources(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(model="cicada", messages=user(QUESTION), temperature=0.2)
    assert (done.choices[0].message.content, done.choices[0].finish_reason) == (TEXT, "stop")
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (METRICS.input_tokens, METRICS.output_tokens)
    told = extension(done)
    assert (told["strategy"], told["model"], told["grounded"]) == ("rag", "quoting-model", True)
    assert [source["passageId"] for source in told["sources"]] == ["ep1/12", "ep1-14"]
    assert [citation["verdict"] for citation in told["citations"]] == ["verified"]


def test_a_streamed_answer_ends_with_its_sources_and_usage(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model="cicada", messages=user(QUESTION), stream=True, stream_options={"include_usage": True}
    ) as stream:
        *chunks, last, usage = list(stream)
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["", *WORDS]
    assert (last.choices[0].finish_reason, extension(last)["grounded"]) == ("stop", True)
    assert usage.choices == []
    assert usage.usage is not None
    assert usage.usage.total_tokens == METRICS.input_tokens + METRICS.output_tokens


def test_withdrawn_text_is_marked_and_the_whole_text_follows(client: openai.OpenAI) -> None:
    with client.chat.completions.create(model="cicada", messages=user("fallback"), stream=True) as stream:
        chunks = list(stream)
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(texts) == BROKEN_OFF + chat_completions.WITHDRAWN + TEXT
    told = extension(chunks[-1])
    assert told["text"] == TEXT
    assert told["withdrawn"] == [{"from": "hybrid", "to": "rag", "code": "stream_broken"}]
    whole = client.chat.completions.create(model="cicada", messages=user("fallback"))
    assert whole.choices[0].message.content == TEXT


def test_text_that_is_held_is_never_withdrawn(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model="cicada", messages=user("fallback"), stream=True, extra_body={"cicada": {"hold": True}}
    ) as stream:
        chunks = list(stream)
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["", TEXT, None]
    assert "withdrawn" not in extension(chunks[-1])


def test_the_beginning_of_a_conversation_names_its_session(
    client: openai.OpenAI, deployment: ScriptedDeployment
) -> None:
    before = len(deployment.actions(Ask))
    client.chat.completions.create(model="cicada", messages=user(QUESTION))
    client.chat.completions.create(model="cicada", messages=user(QUESTION, "And then?"))
    client.chat.completions.create(
        model="cicada", messages=[{"role": "system", "content": "Be brief."}, *user(QUESTION)]
    )
    filters = {"sessionId": "mine", "collections": ["script"], "documents": ["a.md"], "sections": ["Setup"], "topK": 3}
    client.chat.completions.create(model="cicada", messages=user(QUESTION), extra_body={"cicada": filters})
    first, second, third, fourth = deployment.actions(Ask)[before:]
    assert (second.query, second.session_id) == ("And then?", first.session_id)
    assert third.session_id != first.session_id
    sent = fourth.model_dump(mode="json", by_alias=True)
    assert {name: sent[name] for name in filters} == filters


def test_text_parts_are_joined_and_other_parts_refused(client: openai.OpenAI) -> None:
    parts: Any = [{"type": "text", "text": QUESTION}]
    done = client.chat.completions.create(model="cicada", messages=[{"role": "user", "content": parts}])
    assert done.choices[0].message.content == TEXT
    parts.append({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
    with pytest.raises(openai.BadRequestError, match="image_url"):
        client.chat.completions.create(model="cicada", messages=[{"role": "user", "content": parts}])


@pytest.mark.parametrize(
    ("changed", "status", "told"),
    [
        ({"model": "gpt-5"}, 404, "model_not_found"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, 400, "role user"),
        ({"messages": [{"role": "user", "content": " "}]}, 400, "query"),
        ({"n": 2}, 400, "n: "),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"extra_body": {"cicada": {"colections": ["script"]}}}, 400, "cicada.colections"),
        ({"messages": user("failed")}, 503, "all_strategies_failed"),
    ],
    ids=str,
)
def test_errors_have_openais_form(client: openai.OpenAI, changed: dict[str, Any], status: int, told: str) -> None:
    request: dict[str, Any] = {"model": "cicada", "messages": user(QUESTION), **changed}
    with pytest.raises(openai.APIStatusError) as failure:
        client.chat.completions.create(**request)
    assert failure.value.status_code == status
    assert told in failure.value.response.text


def test_a_limit_says_when_to_come_again(client: openai.OpenAI, deployment: ScriptedDeployment) -> None:
    ends_ms = int(time.time() * 1000) + 30_000
    limited = SCRIPTS["limited"]
    assert isinstance(limited, Refused)
    told = limited.model_copy(update={"limit": LIMIT.model_copy(update={"resets_at_ms": ends_ms})})
    deployment.script("limited", told)
    with pytest.raises(openai.RateLimitError) as failure:
        client.chat.completions.create(model="cicada", messages=user("limited"), stream=True)
    assert failure.value.code == "limit_reached"
    assert 0 < int(failure.value.response.headers["Retry-After"]) <= 30


def test_a_wrong_token_is_refused(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="cicada", messages=user(QUESTION))


def test_a_failure_after_the_stream_has_begun_is_an_error_event(client: openai.OpenAI) -> None:
    with client.chat.completions.create(model="cicada", messages=user("failed"), stream=True) as stream:
        with pytest.raises(openai.APIError) as failure:
            list(stream)
    assert failure.value.code == "all_strategies_failed"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_cancels_its_answer(url: str, deployment: ScriptedDeployment, stream: bool) -> None:
    before = len(deployment.actions(Cancel))
    asked = len(deployment.actions(Ask))
    connection = post(url, {"model": "cicada", "messages": user("held"), "stream": stream})
    if stream:
        assert connection.getresponse().status == 200
    else:
        deployment.wait(lambda: len(deployment.actions(Ask)) > asked)
    connection.close()
    deployment.wait(lambda: len(deployment.actions(Cancel)) > before)


def extension(completion: Any) -> Mapping[str, Any]:
    """What OpenAI's format has no field for."""
    told: Mapping[str, Any] = completion.model_extra["cicada"]
    return told


def post(url: str, body: Mapping[str, Any]) -> http.client.HTTPConnection:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    connection.request("POST", f"{place.path}/chat/completions", json.dumps(body), headers)
    return connection
