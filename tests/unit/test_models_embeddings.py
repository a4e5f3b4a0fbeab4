"""BedrockEmbedder where the wire plays no part: threads, and responses that no service should send."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from urllib3.exceptions import ProtocolError

from cicada.errors import ModelRefused, ModelUnavailable
from cicada.models.bedrock_embeddings import BedrockEmbedder


class Client:
    """A client whose body is the test's to give."""

    def __init__(self, body: Callable[[str], Any]) -> None:
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

    with pytest.raises(ModelRefused, match="3 dimensions, 2 were asked for"):
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
    with pytest.raises(ModelUnavailable, match="no readable vector"):
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
