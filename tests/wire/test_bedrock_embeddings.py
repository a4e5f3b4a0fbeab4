"""BedrockEmbedder, by a real boto3 client over real HTTP."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cicada.errors import ModelBusy, ModelRefused, ModelUnavailable
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_cache import CachingEmbedder
from cicada.models.retries import QUERY, RetryPolicy
from tests.wire.bedrock_service import BedrockService, FakeTime, serving

TITAN = "amazon.titan-embed-text-v2:0"
LOCAL = "local.all-minilm-l6-v2"


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


def test_dimensions_that_the_model_does_not_have_are_refused(service):
    with pytest.raises(ModelRefused, match="not a valid enum value"):
        embedder(service, dimensions=300).embed(["a"], time_budget_s=10)


def test_a_text_with_too_many_characters_is_refused_by_its_place_without_a_call(service):
    with pytest.raises(ModelRefused, match=r"text 1 of 2 has 50,001 characters"):
        embedder(service).embed(["fits", "x" * 50_001], time_budget_s=10)
    assert not service.calls


def test_a_text_with_too_many_tokens_is_refused_by_its_place(service):
    with pytest.raises(ModelRefused, match=r"text 2: .*Too many input tokens"):
        embedder(service).embed(["fits", "too", "蝉" * 9000], time_budget_s=10)


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
