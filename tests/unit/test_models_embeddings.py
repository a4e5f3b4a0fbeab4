"""BedrockEmbedder where the wire plays no part: threads, and responses that no service should send."""

from __future__ import annotations

import io
import json
import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from urllib3.exceptions import ProtocolError

from cicada.errors import ModelRefused, ModelUnavailable, SettingsInvalid
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_models import EMBEDDING_MODELS, EmbeddingModel
from cicada.models.ports import Usage
from cicada.models.prices import cost
from cicada.text.sentences import pieces


@pytest.fixture(autouse=True)
def a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of two dimensions that takes a text of 50 tokens a call, and one that takes three."""
    one = EmbeddingModel((2,), lambda texts, *_: {"inputText": texts[0]}, lambda said: [said["embedding"]], 50)
    three = replace(one, max_texts=3, body=lambda texts, *_: {"inputText": texts}, vectors=lambda said: said["all"])
    monkeypatch.setitem(EMBEDDING_MODELS, "a.model", one)
    monkeypatch.setitem(EMBEDDING_MODELS, "three.model", three)


class Client:
    """A client whose body is the test's to give."""

    def __init__(self, body: Callable[[Any], Any]) -> None:
        self._body = body
        self.threads: list[threading.Thread] = []

    def invoke_model(self, *, body: str, **_: Any) -> dict[str, Any]:
        self.threads.append(threading.current_thread())
        found = self._body(json.loads(body)["inputText"])
        return {"body": found if hasattr(found, "read") else io.BytesIO(json.dumps(found).encode())}


class CutBody:
    def read(self) -> bytes:
        raise ProtocolError("Connection broken")


def embedder(client: Client, **settings: Any) -> BedrockEmbedder:
    return BedrockEmbedder(client, "a.model", 2, pause=lambda *_: None, **settings)


def test_a_single_text_is_embedded_on_the_callers_thread():
    client = Client(lambda _: {"embedding": [3, 4]})
    assert embedder(client).embed(["one"], time_budget_s=10) == [[0.6, 0.8]]
    assert client.threads == [threading.current_thread()]


def test_calls_at_once_are_bounded():
    running, most, lock = 0, 0, threading.Lock()
    full = threading.Event()

    def body(_: str) -> dict[str, Any]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                full.set()
        full.wait(10)
        with lock:
            running -= 1
        return {"embedding": [1, 0]}

    embedder(Client(body), parallelism=3).embed([f"text {n}" for n in range(30)], time_budget_s=60)
    assert most == 3


def test_a_load_stops_at_its_first_final_failure():
    calls = []

    def body(text: str) -> dict[str, Any]:
        calls.append(text)
        if text == "text 0":
            return {"embedding": [1, 0, 0]}
        time.sleep(0.001)  # 5,000 of them would take seconds
        return {"embedding": [1, 0]}

    with pytest.raises(ModelRefused, match="3 dimensions; 2 were requested"):
        embedder(Client(body), parallelism=2).embed([f"text {n}" for n in range(5000)], time_budget_s=60)
    assert len(calls) < 5000


@pytest.mark.parametrize("answer", [{"embedding": [1]}, {"embedding": [1, 2, 3]}, {"embedding": []}])
def test_a_vector_of_other_dimensions_is_refused(answer):
    with pytest.raises(ModelRefused, match="dimensions"):
        embedder(Client(lambda _: answer)).embed(["one"], time_budget_s=10)


@pytest.mark.parametrize("vector", [[0, 0], [float("nan"), 1], [float("inf"), 1]])
def test_a_vector_without_a_direction_is_refused(vector):
    with pytest.raises(ModelRefused, match="of length"):
        embedder(Client(lambda _: {"embedding": vector})).embed(["one"], time_budget_s=10)


@pytest.mark.parametrize("answer", [{}, [], "text", {"embedding": None}, {"embedding": ["x", 1]}])
def test_an_answer_without_a_vector_is_an_error(answer):
    with pytest.raises(ModelUnavailable, match="cannot parse the vectors"):
        embedder(Client(lambda _: answer)).embed(["one"], time_budget_s=10)


def test_a_body_that_breaks_while_it_is_read_is_asked_for_again():
    bodies = iter([CutBody(), {"embedding": [0, 2]}])
    assert embedder(Client(lambda _: next(bodies))).embed(["one"], time_budget_s=10) == [[0, 1]]


@pytest.mark.parametrize("texts", [["one"], ["one", "two"]])
def test_a_bug_is_not_dressed_as_a_failure_of_the_model(texts):
    def body(_: str) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        embedder(Client(body)).embed(texts, time_budget_s=10)


def test_a_long_text_is_embedded_in_pieces_and_is_their_weighted_mean():
    sent = []

    def body(text: str) -> dict[str, Any]:
        sent.append(text)
        return {"embedding": [0, 2] if text.startswith("Mira") else [5, 0]}

    text = "Mira rows over the bay. " * 7 + "Fog. " * 11
    (vector,) = embedder(Client(body)).embed([text], time_budget_s=10)
    first, second = sorted(sent, key=text.index)
    assert first + second == text
    over, under = len(first), len(second)
    assert vector == pytest.approx([under / math.hypot(over, under), over / math.hypot(over, under)])


def test_texts_go_out_in_batches_and_come_back_in_their_order():
    sent = []

    def body(texts: list[str]) -> dict[str, Any]:
        sent.append(len(texts))
        return {"all": [[1, int(text)] for text in texts]}

    vectors = BedrockEmbedder(Client(body), "three.model", 2).embed([str(n) for n in range(8)], time_budget_s=10)
    assert sorted(sent) == [2, 3, 3]
    assert [round(second / first) for first, second in vectors] == list(range(8))


def test_a_response_that_lacks_a_vector_is_an_error():
    with pytest.raises(ModelUnavailable, match="returned 1 vectors for 2 texts"):
        BedrockEmbedder(Client(lambda _: {"all": [[1, 0]]}), "three.model", 2).embed(["a", "b"], time_budget_s=10)


@pytest.mark.parametrize(
    ("model_id", "dimensions", "why"),
    [
        ("amazon.titan-embed-text-v1", 1536, "unsupported embedding model amazon.titan-embed-text-v1; supported: "),
        ("us.cohere.embed-v4:0", 1000, "us.cohere.embed-v4:0 offers 256, 512, 1024 and 1536 dimensions, not 1000"),
        ("cohere.embed-english-v3", 512, "cohere.embed-english-v3 offers 1024 dimensions, not 512"),
    ],
)
def test_other_models_and_dimensions_are_refused_before_any_call(model_id, dimensions, why):
    with pytest.raises(SettingsInvalid, match=why):
        BedrockEmbedder(Client(lambda _: {}), model_id, dimensions)


@pytest.mark.parametrize("name", [*EMBEDDING_MODELS])
def test_the_limits_of_characters_are_kept_too(name):
    """The services bound characters beside tokens; 3.5 letters count as a token, and all else as one each."""
    most = {"cohere.embed-english-v3": 2_048, "cohere.embed-multilingual-v3": 2_048, "cohere.embed-v4:0": 512_000}
    most["amazon.nova-2-multimodal-embeddings-v1:0"] = 8_192
    for text in ("a word " * 9_000, "灯" * 9_000, "1a " * 9_000):
        limit = EMBEDDING_MODELS[name].max_tokens
        assert max(map(len, pieces(text, limit))) <= most.get(name, 50_000)


def test_the_documentation_lists_the_models_that_can_be_deployed():
    text = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9.:-]+)` \| ([\d, ]+) \| (\d+) \|", text, re.MULTILINE)
    listed = {name: (tuple(map(int, dimensions.split(", "))), int(texts)) for name, dimensions, texts in rows}
    known = {name: (model.dimensions, model.max_texts) for name, model in EMBEDDING_MODELS.items()}
    assert listed == {name: facts for name, facts in known.items() if name.startswith(("amazon.", "cohere."))}


def test_every_supported_model_has_a_price():
    known = [name for name in EMBEDDING_MODELS if name.startswith(("amazon.", "cohere."))]
    assert all(cost(name, Usage(1_000_000)) for name in (*known, "eu.cohere.embed-v4:0"))
