"""Choosing a retrieval engine, falling back to the shards, and how passages and filters fit into S3 Vectors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import (
    IndexFailure,
    IndexMismatch,
    IndexMissing,
    IndexUnavailable,
    ModelRefused,
    ModelUnavailable,
    SettingsInvalid,
)
from cicada.retrieval.engine import EngineSettings, build_retriever
from cicada.retrieval.fallback import FAILURES_TO_REST, REST_S, FallbackRetriever, PrefetchingEmbedder
from cicada.retrieval.ports import Degradation, Filters, Hit, Retriever, SearchQuery, SearchResult, TimeLimit
from cicada.retrieval.s3vectors.load import BATCH, BATCH_BYTES, batches
from cicada.retrieval.s3vectors.vector_records import (
    MAX_METADATA_BYTES,
    labels_of,
    metadata_filter,
    passage_of,
    record_of,
)
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import make_passage

QUERY = SearchQuery("Who rings the bell?", readable=EVERYTHING)
ARN = "arn:aws:s3vectors:us-east-1:123456789012:bucket/vectors/index/passages"


class Shards:
    """The index's own shards, in version 7."""

    def __init__(self, embedder: Any = None, raises: Exception | None = None) -> None:
        self.embedder = embedder
        self.raises = raises
        self.searches = 0

    def search(self, query: SearchQuery) -> SearchResult:
        self.searches += 1
        if self.embedder is not None:
            self.embedder.embed([query.text], time_budget_s=1)
        if self.raises is not None:
            raise self.raises
        return SearchResult((Hit(make_passage(1), 0.9),), "000007-g", 1)

    def version(self) -> str:
        return "000007-g"


class Engine:
    """A managed engine that does what a test says."""

    def __init__(self, act: Callable[[], SearchResult | None], held: str | None = "000007-g") -> None:
        self.act = act
        self.held = held
        self.searches = 0

    def search(self, query: SearchQuery) -> SearchResult:
        self.searches += 1
        return self.act() or SearchResult((), "000007-g", 0, engine="s3vectors")

    def version(self) -> str:
        return "000007-g"

    def held_version(self) -> str | None:
        return self.held


def failing(error: Exception) -> Callable[[], SearchResult | None]:
    def act() -> SearchResult | None:
        raise error

    return act


@pytest.fixture
def never() -> Iterator[Callable[[], SearchResult | None]]:
    """An engine's act that does not come to an end within any budget."""
    ends = threading.Event()

    def act() -> SearchResult | None:
        ends.wait(20)
        return None

    yield act
    ends.set()


# --- falling back ---


def test_an_engine_that_answers_is_all_that_is_asked() -> None:
    shards = Shards()
    result = FallbackRetriever(Engine(lambda: None), shards).search(QUERY)
    assert (result.engine, result.degraded, shards.searches) == ("s3vectors", (), 0)


@pytest.mark.parametrize("error", [IndexUnavailable("down"), IndexMissing("not there"), IndexMismatch("other filter")])
def test_where_the_engine_fails_the_shards_answer_and_say_so(error: IndexFailure) -> None:
    result = FallbackRetriever(Engine(failing(error)), Shards(), name="Amazon S3 Vectors").search(QUERY)
    assert (result.engine, result.index_version, len(result.hits)) == ("shards", "000007-g", 1)
    (note,) = result.degraded
    assert note == Degradation(
        "engine_fallback",
        f"Amazon S3 Vectors could not answer ({error.code}). "
        "The index's own shards were searched instead, in version 000007-g, the same.",
    )


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("000006-f", "in version 000007-g; Amazon Kendra holds version 000006-f."),
        (None, "in version 000007-g; which version Amazon Kendra holds is not known."),
    ],
)
def test_versions_that_differ_are_said(held: str | None, told: str) -> None:
    engine = Engine(failing(IndexUnavailable("down")), held)
    (note,) = FallbackRetriever(engine, Shards(), name="Amazon Kendra").search(QUERY).degraded
    assert note.message.endswith(told)


def test_an_engine_that_is_slow_is_not_waited_for(never: Callable[[], SearchResult | None]) -> None:
    result = FallbackRetriever(Engine(never), Shards(), 0.05, name="Amazon S3 Vectors").search(QUERY)
    assert result.engine == "shards"
    assert result.degraded[0].message.startswith("Amazon S3 Vectors did not answer within 0.05 s.")


def test_the_time_that_both_need_is_not_the_engines() -> None:
    prepared: list[str] = []
    retriever = FallbackRetriever(Engine(lambda: None), Shards(), prepare=lambda query: prepared.append(query.text))
    retriever.search(QUERY)
    assert prepared == [QUERY.text]


def test_when_neither_can_answer_both_reasons_are_told() -> None:
    retriever = FallbackRetriever(Engine(failing(IndexUnavailable("down"))), Shards(raises=IndexMissing("none")))
    with pytest.raises(IndexUnavailable, match="down; the shards cannot answer either: none"):
        retriever.search(QUERY)


@pytest.mark.parametrize("error", [ModelUnavailable("no model"), ValueError("a bug")])
def test_what_is_not_the_engines_failure_is_raised(error: Exception) -> None:
    shards = Shards()
    with pytest.raises(type(error)):
        FallbackRetriever(Engine(failing(error)), shards).search(QUERY)
    assert shards.searches == 0


def test_an_engine_that_fails_again_and_again_is_left_alone_for_a_while() -> None:
    now = [0.0]
    engine = Engine(failing(IndexUnavailable("down")))
    retriever = FallbackRetriever(engine, Shards(), name="Amazon S3 Vectors", clock=lambda: now[0])
    for _ in range(FAILURES_TO_REST + 5):
        result = retriever.search(QUERY)
    assert engine.searches == FAILURES_TO_REST
    assert result.degraded[0].message.startswith("Amazon S3 Vectors has failed 3 times in a row")
    now[0] = REST_S
    engine.act = lambda: None
    assert retriever.search(QUERY).engine == "s3vectors"


def test_queries_that_the_engine_refuses_are_no_outage() -> None:
    engine = Engine(failing(IndexMismatch("no such attribute")))
    retriever = FallbackRetriever(engine, Shards())
    for _ in range(2 * FAILURES_TO_REST):
        retriever.search(QUERY)
    assert engine.searches == 2 * FAILURES_TO_REST


def test_failures_that_are_not_in_a_row_do_not_add_up() -> None:
    engine = Engine(lambda: None)
    retriever = FallbackRetriever(engine, Shards())
    for turn in range(4 * FAILURES_TO_REST):
        engine.act = failing(IndexUnavailable("down")) if turn % 2 else lambda: None
        retriever.search(QUERY)
    assert engine.searches == 4 * FAILURES_TO_REST


def test_an_engine_that_had_less_time_than_its_own_is_not_blamed(never: Callable[[], SearchResult | None]) -> None:
    hurried = SearchQuery("Who rings the bell?", limits=TimeLimit(lambda: 0.02), readable=EVERYTHING)
    engine = Engine(never)
    retriever = FallbackRetriever(engine, Shards(), budget_s=5)
    for _ in range(FAILURES_TO_REST + 1):
        assert retriever.search(hurried).degraded[0].code == "engine_fallback"
    assert engine.searches == FAILURES_TO_REST + 1


# --- a query is embedded once ---


def test_a_learnt_text_is_not_embedded_again() -> None:
    embedder = WordEmbedder()
    prefetching = PrefetchingEmbedder(embedder)
    prefetching.prefetch("bell", time_budget_s=1)
    prefetching.prefetch("bell", time_budget_s=1)
    assert prefetching.embed(["bell"], time_budget_s=1) == WordEmbedder().embed(["bell"], time_budget_s=1)
    assert embedder.asked == ["bell"]
    assert (prefetching.model_id, prefetching.dimensions) == (embedder.model_id, embedder.dimensions)
    prefetching.embed(["bell", "lamp"], time_budget_s=1)
    assert embedder.asked == ["bell", "bell", "lamp"]


def test_a_failure_is_remembered_until_the_text_is_learnt_again() -> None:
    class Flaky(WordEmbedder):
        fails = True

        def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
            self.asked += texts
            if self.fails:
                raise ModelUnavailable("down")
            return WordEmbedder.embed(self, [], time_budget_s=1) or [[1.0]]

    embedder = Flaky()
    prefetching = PrefetchingEmbedder(embedder)
    with pytest.raises(ModelUnavailable):
        prefetching.prefetch("bell", time_budget_s=1)
    with pytest.raises(ModelUnavailable):
        prefetching.embed(["bell"], time_budget_s=1)
    assert embedder.asked == ["bell"]
    embedder.fails = False
    prefetching.prefetch("bell", time_budget_s=1)
    assert prefetching.embed(["bell"], time_budget_s=1) == [[1.0]]


def test_a_text_that_is_not_learnt_in_time_is_not_waited_for_again() -> None:
    class Hung(WordEmbedder):
        def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
            ends.wait(20)
            return super().embed(texts, time_budget_s=time_budget_s)

    ends = threading.Event()
    prefetching = PrefetchingEmbedder(Hung())
    with pytest.raises(ModelUnavailable):
        prefetching.prefetch("bell", time_budget_s=0.05)
    with pytest.raises(ModelUnavailable):
        prefetching.embed(["bell"], time_budget_s=20)
    ends.set()


# --- choosing ---


def built(engine: EngineSettings, embedder: Any = None, **over: Any) -> tuple[Retriever, list[str]]:
    """The retriever, and the services that clients were made of."""
    made: list[str] = []

    def client(service: str, **options: Any) -> Any:
        made.append(service)
        keys = {"aws_access_key_id": "t", "aws_secret_access_key": "t"}
        return boto3.client(service, region_name="us-east-1", endpoint_url="http://127.0.0.1:9", **keys, **options)

    wiring = {"shards": Shards, "embedder": embedder or WordEmbedder(), "store": InMemoryStore(), "client": client}
    return build_retriever(engine, **{**wiring, **over}), made


def test_the_shards_need_no_client_of_any_engine() -> None:
    retriever, made = built(EngineSettings())
    assert isinstance(retriever, Shards)
    assert made == []


def test_s3_vectors_that_cannot_be_reached_falls_back_with_the_query_embedded_once() -> None:
    embedder = WordEmbedder()
    retriever, made = built(EngineSettings("s3vectors", s3_vectors_index_arn=ARN, engine_budget_s=5), embedder)
    result = retriever.search(QUERY)
    assert made == ["s3vectors"]
    assert result.engine == "shards"
    assert result.degraded[0].message.startswith("Amazon S3 Vectors could not answer (index_unavailable).")
    assert "127.0.0.1" not in result.degraded[0].message
    assert embedder.asked == [QUERY.text]


def test_kendra_that_cannot_be_reached_falls_back() -> None:
    retriever, made = built(EngineSettings("kendra", kendra_index_id="1" * 36, engine_budget_s=5))
    assert retriever.search(QUERY).degraded[0].code == "engine_fallback"
    assert made == ["kendra"]


def test_a_model_that_is_down_stops_a_search_by_meaning_and_no_other() -> None:
    class Down(WordEmbedder):
        def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
            raise ModelUnavailable("down")

    shards = Shards()
    settings = EngineSettings("s3vectors", s3_vectors_index_arn=ARN, engine_budget_s=5)
    retriever, _ = built(settings, Down(), shards=lambda _: shards)
    with pytest.raises(ModelUnavailable):
        retriever.search(SearchQuery("bell", mode="dense", readable=EVERYTHING))
    assert shards.searches == 0
    assert retriever.search(SearchQuery("bell", readable=EVERYTHING)).engine == "shards"


def test_a_model_that_refuses_the_query_is_told() -> None:
    class Refusing(WordEmbedder):
        def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
            raise ModelRefused("too long")

    retriever, _ = built(EngineSettings("s3vectors", s3_vectors_index_arn=ARN), Refusing())
    with pytest.raises(ModelRefused):
        retriever.search(QUERY)


@pytest.mark.parametrize(("engine", "missing"), [("s3vectors", "S3_VECTORS_INDEX_ARN"), ("kendra", "KENDRA_INDEX_ID")])
def test_an_engine_without_a_place_is_refused(engine: Any, missing: str) -> None:
    with pytest.raises(SettingsInvalid, match=missing):
        built(EngineSettings(engine))


# --- passages and filters in S3 Vectors ---


def marked(**metadata: str) -> Any:
    return make_passage(1).model_copy(update={"metadata": metadata})


def test_no_filter_is_no_document() -> None:
    assert metadata_filter(Filters(), EVERYTHING) is None
    assert metadata_filter(Filters(metadata={"season": ()}), EVERYTHING) is None


def test_a_filter_has_one_constraint_a_field_and_one_a_label() -> None:
    filters = Filters(("script",), ("ep1", "ep2"), metadata={"source": ("a.pdf",), "season": ("winter", "autumn")})
    assert metadata_filter(filters, EVERYTHING) == {
        "$and": [
            {"collection": {"$eq": "script"}},
            {"episode": {"$in": ["ep1", "ep2"]}},
            {"source": {"$eq": "a.pdf"}},
            {"$or": [{"labels": {"$eq": "season=winter"}}, {"labels": {"$eq": "season=autumn"}}]},
        ]
    }


def test_more_values_than_the_service_takes_are_refused() -> None:
    with pytest.raises(IndexMismatch, match="takes 100 constraints"):
        metadata_filter(Filters(metadata={"season": tuple(map(str, range(101)))}), EVERYTHING)


def test_a_long_value_cannot_be_mistaken_for_the_digest_of_another() -> None:
    long = labels_of(marked(k="v" * 100))["labels"]
    assert labels_of(marked(**{long[0]: ""}))["labels"] != long
    assert all(label.startswith("#") for label in labels_of(marked(**{"#a": "b"}))["labels"])


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@settings(max_examples=60)
@given(metadata=st.dictionaries(texts, texts, max_size=64), scale=st.sampled_from([1, 50, 1200]), text=texts)
def test_every_passage_fits_and_comes_back_as_it_was(metadata: dict[str, str], scale: int, text: str) -> None:
    passage = make_passage(1).model_copy(
        update={"metadata": metadata, "text": text * scale, "context": text * 2 * scale}
    )
    record = record_of(passage, np.full(4, 0.5, dtype=np.float32))
    store = InMemoryStore()
    if record.overflow is not None:
        store.objects[record.overflow[0]] = record.overflow[1]
    assert passage_of(json.loads(json.dumps(record.metadata)), store) == passage
    compact = json.dumps(record.metadata, ensure_ascii=False, separators=(",", ":"))
    assert len(compact.encode()) <= MAX_METADATA_BYTES
    filterable = {key: value for key, value in record.metadata.items() if not key.startswith("_")}
    assert len(json.dumps(filterable, ensure_ascii=False, separators=(",", ":")).encode()) <= 2048
    assert len(record.key) <= 1024
    assert len(json.dumps(record.put_input())) <= record.most_bytes


def test_keys_differ_where_vector_or_content_do() -> None:
    one, other = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
    keys = [
        record_of(passage, vector).key
        for passage, vector in [
            (make_passage(1), one),
            (make_passage(1), other),
            (marked(season="winter"), one),
            (make_passage(1, collection="other"), one),
        ]
    ]
    assert len(set(keys)) == 4
    assert record_of(make_passage(1), one).key == keys[0]


def test_requests_stay_within_the_services_counts_and_bytes() -> None:
    vector = np.full(4096, 1 / 64, dtype=np.float32)
    records = [record_of(make_passage(number), vector) for number in range(400)]
    cut = list(batches(iter(records)))
    assert [record for batch in cut for record in batch] == records
    for batch in cut:
        assert len(batch) <= BATCH
        assert sum(record.most_bytes for record in batch) <= BATCH_BYTES
    assert len(cut) == 3
    small = [record_of(make_passage(number), vector[:2]) for number in range(1001)]
    assert [len(batch) for batch in batches(small)] == [500, 500, 1]
