"""What the functions for integrators call services with."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.config import Config

from cicada.index.reader import REFRESH_INTERVAL_S, IndexReader
from cicada.index.writer import IndexWriter
from cicada.integrators import wiring
from cicada.integrators.settings import IndexSettings, ModelSettings, SearchSettings
from cicada.integrators.wiring import models_of
from cicada.models.endpoints import Endpoints
from cicada.models.ports import Prompt, Unbounded
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages


class Asked(Exception):
    """The client was asked for."""


def test_a_silent_secrets_manager_is_not_waited_for_by_its_clients_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, Config]] = []

    def client(service: str, *, config: Config) -> Any:
        made.append((service, config))
        raise Asked

    monkeypatch.setattr(boto3, "client", client)
    price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
    mine = {"base_url": "https://models.example/v1", "secret_arn": "arn:aws:s", "models": {"m": price}}
    settings = ModelSettings.model_construct(
        writing_model_id="mine/m", model_endpoints=Endpoints.model_validate({"mine": mine})
    )
    with pytest.raises(Asked):
        list(
            models_of(settings)
            .text("mine/m", max_tokens=9)
            .stream(Prompt("", "?"), time_budget_s=5, call_scope=Unbounded())
        )
    ((service, config),) = made
    assert service == "secretsmanager"
    assert config.read_timeout * config.retries["total_max_attempts"] < 10


def test_questions_are_embedded_as_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []

    class Bedrock:
        def invoke_model(self, *, body: str, **_: Any) -> dict[str, Any]:
            sent.append(json.loads(body))
            return {"body": io.BytesIO(json.dumps({"embeddings": {"float": [[1.0] * 256]}}).encode())}

    monkeypatch.setattr(boto3, "client", lambda *_, **__: Bedrock())
    monkeypatch.setattr(wiring, "store_for_answers", lambda bucket, **_: InMemoryStore())
    settings = SearchSettings.model_construct(
        index_bucket="b", embedding_model_id="eu.cohere.embed-v4:0", embedding_dimensions=256
    )
    reader = IndexReader(InMemoryStore(), embedding_model_id="eu.cohere.embed-v4:0", dimensions=256)
    _, embedder = wiring.search_of(settings, reader)
    assert len(embedder.embed(["Who rows?"], time_budget_s=5)[0]) == 256
    assert [body["input_type"] for body in sent] == ["search_query"]


def test_a_call_of_milliseconds_waits_for_a_new_version_that_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryStore()
    IndexWriter(store, WordEmbedder()).replace("script", indexable(make_passages(12)))
    now_s = [1000.0]
    monkeypatch.setattr(wiring, "store_for_answers", lambda bucket, **_: store)
    monkeypatch.setattr(wiring, "IndexReader", partial(IndexReader, clock=lambda: now_s[0]))
    reader = wiring.index_reader(
        IndexSettings.model_construct(index_bucket="b", embedding_model_id="test.words", embedding_dimensions=64)
    )
    try:
        reader.current()
        version = IndexWriter(store, WordEmbedder()).replace("script", indexable(make_passages(15))).version
        now_s[0] += REFRESH_INTERVAL_S
        assert reader.current().manifest.version == version
    finally:
        reader.close()
