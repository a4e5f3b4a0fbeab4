"""BedrockEmbedder, by a real boto3 client over real HTTP."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import pytest

from cicada.errors import ModelBusy, ModelRefused, ModelUnavailable
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_cache import CachingEmbedder
from cicada.models.embedding_models import Purpose
from cicada.models.retries import QUERY, RetryPolicy
from cicada.retrieval.ports import SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages
from tests.wire.bedrock_service import BedrockService, FakeTime, serving

TITAN = "amazon.titan-embed-text-v2:0"
LOCAL = "local.all-minilm-l6-v2"
NOVA = "amazon.nova-2-multimodal-embeddings-v1:0"
COHERE = ("cohere.embed-english-v3", "cohere.embed-multilingual-v3", "us.cohere.embed-v4:0")
MODELS = [(TITAN, 512), (LOCAL, 384), (NOVA, 3072), (COHERE[0], 1024), (COHERE[1], 1024), (COHERE[2], 1536)]


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        running.embed = lambda texts: [[float(len(text)), 1.0] + [0.0] * 382 for text in texts]
        yield running


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def embedder(
    service: BedrockService, time: FakeTime | None = None, dimensions: int = 384, **settings
) -> BedrockEmbedder:
    if time is not None:
        settings = {"clock": time.clock, "pause": lambda s, _: time.sleep(s), "share": lambda: 0.5, **settings}
    model_id = LOCAL if dimensions == 384 else TITAN
    return BedrockEmbedder(service.client(), model_id, dimensions, **settings)


def of_model(service: BedrockService, model_id: str, dimensions: int, **settings: Any) -> BedrockEmbedder:
    return BedrockEmbedder(service.client(), model_id, dimensions, **settings)


def sent_texts(service: BedrockService) -> list[str]:
    """What the service was sent, of any model."""
    texts: list[str] = []
    for body in service.bodies:
        nova = body.get("singleEmbeddingParams", {}).get("text", {}).get("value")
        texts += body.get("texts") or [body.get("inputText") or nova]
    return texts


@pytest.mark.parametrize(("model_id", "dimensions"), MODELS)
def test_every_supported_model_gives_unit_vectors_in_order(service, model_id, dimensions):
    vectors = of_model(service, model_id, dimensions).embed(["x" * n for n in (7, 3, 5)], time_budget_s=30)
    assert [len(vector) for vector in vectors] == [dimensions] * 3
    assert [round(vector[0] / vector[1]) for vector in vectors] == [7, 3, 5]
    assert all(math.hypot(*vector) == pytest.approx(1) for vector in vectors)


@pytest.mark.parametrize(("model_id", "dimensions"), MODELS)
def test_an_index_of_every_supported_model_is_written_and_searched(service, model_id, dimensions):
    words = WordEmbedder(dimensions=384)
    service.embed = lambda texts: words.embed(texts, time_budget_s=1)
    passages, queries = (of_model(service, model_id, dimensions, purpose=one) for one in get_args(Purpose))
    store = InMemoryStore()
    IndexWriter(store, passages).replace("script", indexable(make_passages(5)))
    retriever = ShardRetriever(IndexReader(store, embedding_model_id=model_id, dimensions=dimensions), queries)
    wanted = make_passages(5)[3]
    found = retriever.search(SearchQuery(wanted.context, top_k=1, min_score=0.0, mode="dense", readable=EVERYTHING))
    assert [hit.passage.id for hit in found.hits] == [wanted.id]


@pytest.mark.parametrize("model_id", COHERE)
def test_cohere_takes_96_texts_a_call(service, model_id):
    vectors = of_model(service, model_id, 1024).embed(["x" * n for n in range(1, 100)], time_budget_s=30)
    assert sorted(len(body["texts"]) for body in service.bodies) == [3, 96]
    assert [round(vector[0] / vector[1]) for vector in vectors] == list(range(1, 100))


@pytest.mark.parametrize(
    ("purpose", "input_type", "nova"),
    [("document", "search_document", "GENERIC_INDEX"), ("query", "search_query", "TEXT_RETRIEVAL")],
)
def test_a_passage_is_embedded_to_be_found_and_a_question_to_find(service, purpose, input_type, nova):
    for model_id in COHERE:
        of_model(service, model_id, 1024, purpose=purpose).embed(["x"], time_budget_s=10)
    of_model(service, NOVA, 1024, purpose=purpose).embed(["x"], time_budget_s=10)
    *cohere, last = service.bodies
    assert {body["input_type"] for body in cohere} == {input_type}
    assert last["singleEmbeddingParams"]["embeddingPurpose"] == nova


@pytest.mark.parametrize("dimensions", [384, 256, 512, 1024])
def test_a_text_becomes_a_vector_of_unit_length(service, dimensions):
    (vector,) = embedder(service, dimensions=dimensions).embed(["A question"], time_budget_s=10)
    assert len(vector) == dimensions
    assert math.hypot(*vector) == pytest.approx(1)
    assert service.bodies == [{"inputText": "A question", "dimensions": dimensions, "normalize": True}]


def test_many_texts_keep_their_order(service):
    texts = ["x" * n for n in range(1, 41)]
    vectors = embedder(service).embed(texts, time_budget_s=30)
    assert [round(vector[0] / vector[1]) for vector in vectors] == list(range(1, 41))
    assert service.calls["invoke"] == 40


def test_no_texts_need_no_call(service):
    assert embedder(service).embed([], time_budget_s=10) == []
    assert not service.calls


@pytest.mark.parametrize("texts", [["one"], ["one", "two", "three"]])
def test_a_throttle_that_passes_is_not_noticed(service, time, texts):
    service.faults.arm("bedrock.embed_throttle", times=3)
    assert len(embedder(service, time).embed(texts, time_budget_s=60)) == len(texts)
    assert service.calls["invoke"] == len(texts) + 3


def test_a_throttle_that_lasts_uses_up_the_budget_and_no_more(service, time):
    service.faults.arm("bedrock.embed_throttle")
    started_s = time.now_s
    with pytest.raises(ModelBusy):
        embedder(service, time, retry=RetryPolicy(max_attempts=None, base_s=1, cap_s=4)).embed(["a"], time_budget_s=10)
    assert time.now_s - started_s < 10
    assert service.calls["invoke"] == len(time.slept_s) + 1 == 7


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDeniedException", 403, ModelRefused),
        ("ResourceNotFoundException", 404, ModelRefused),
        ("ModelErrorException", 424, ModelUnavailable),
        ("ServiceQuotaExceededException", 400, ModelBusy),
    ],
)
@pytest.mark.parametrize("texts", [["one"], ["one", "two", "three"]])
def test_a_final_error_is_raised_at_once(service, time, code, status, kind, texts):
    service.faults.arm("bedrock.embed_error", exception=code, status=status)
    with pytest.raises(kind, match=code):
        embedder(service, time).embed(texts, time_budget_s=60)
    assert time.slept_s == []


def test_a_server_error_is_tried_again(service, time):
    service.faults.arm("bedrock.embed_error", times=1, exception="InternalServerException", status=500)
    assert len(embedder(service, time).embed(["one"], time_budget_s=60)) == 1


def test_a_call_that_the_service_refuses_names_its_texts(service):
    service.faults.arm("bedrock.embed_error", exception="ValidationException", status=400)
    with pytest.raises(ModelRefused, match=r"text 0: .*Injected"):
        embedder(service).embed(["one"], time_budget_s=10)
    with pytest.raises(ModelRefused, match=r"texts 0 to 1: .*Injected"):
        of_model(service, "cohere.embed-v4:0", 256).embed(["one", "two"], time_budget_s=10)


LONG = {"in English": "The tide turns at four. " * 200, "in Japanese": "灯台の鍵を盗んだ。" * 400}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize(("model_id", "dimensions"), MODELS)
def test_a_text_of_any_length_is_embedded_whole(service, model_id, dimensions, text):
    fits = {"cohere.embed-v4:0", TITAN, LOCAL, *([NOVA] if text.isascii() else [])}
    vectors = of_model(service, model_id, dimensions).embed(["short", text], time_budget_s=30)
    assert [len(vector) for vector in vectors] == [dimensions, dimensions]
    assert all(math.hypot(*vector) == pytest.approx(1) for vector in vectors)
    assert (len(sent_texts(service)) == 2) == (model_id.removeprefix("us.") in fits)
    assert sorted("".join(sent_texts(service))) == sorted("short" + text)


@pytest.mark.parametrize("blank", ["", " \n"])
def test_an_empty_text_is_refused_by_its_place(service, blank):
    with pytest.raises(ModelRefused, match="text 1 of 2 is empty"):
        embedder(service).embed(["fits", blank], time_budget_s=10)


def test_a_load_ends_with_its_budget(service):
    service.faults.arm("bedrock.embed_slow", first_ms=60_000)
    with pytest.raises(ModelUnavailable, match="0 of 3 texts"):
        embedder(service).embed(["one", "two", "three"], time_budget_s=0.3)


def test_a_query_is_asked_for_twice_at_the_most(service, time):
    service.faults.arm("bedrock.embed_throttle")
    with pytest.raises(ModelBusy):
        embedder(service, time, retry=QUERY).embed(["one"], time_budget_s=60)
    assert service.calls["invoke"] == 2


def test_a_query_that_two_ask_for_at_once_is_one_request(service):
    service.faults.arm("bedrock.embed_slow", first_ms=100)
    shared = CachingEmbedder(embedder(service))
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(lambda _: shared.embed(["a question"], time_budget_s=10)[0], range(4)))
    assert all(vector == vectors[0] for vector in vectors)
    assert service.calls["invoke"] == 1
